/* Source over a local regular file. The size is the one at opening; a file that shrinks later is an error of the read
 * that meets the new end. Positional reads only, so any number of threads may share one. */
#include "io/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_MAX ((size_t)1 << 30) /* one system call moves at most about 2 GiB */

struct source_file {
    spk_source base;
    int fd;
    uint64_t size;
    char name[];
};

static spk_status file_pread(spk_source *s, void *out, size_t n, uint64_t off, spk_error *err)
{
    struct source_file *f = (struct source_file *)s;
    char *p = out;
    while (n > 0) {
        ssize_t got = pread(f->fd, p, n < READ_MAX ? n : READ_MAX, (off_t)off);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int e = errno;
            spk_status st = spk_error_sys(err, e, "cannot read %zu bytes at byte %llu", n, (unsigned long long)off);
            if (err)
                err->offset = (int64_t)off;
            return st;
        }
        if (got == 0)
            return spk_error_at(err, SPK_E_FORMAT, off, "ends at byte %llu, had %llu bytes when it was opened",
                                (unsigned long long)off, (unsigned long long)f->size);
        p += got;
        n -= (size_t)got;
        off += (uint64_t)got;
    }
    return SPK_OK;
}

static uint64_t file_size(const spk_source *s)
{
    return ((const struct source_file *)s)->size;
}

static const char *file_name(const spk_source *s)
{
    return ((const struct source_file *)s)->name;
}

static void file_close(spk_source *s)
{
    struct source_file *f = (struct source_file *)s;
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

static const struct spk_source_ops file_ops = {
    .pread = file_pread, .size = file_size, .name = file_name, .close = file_close};

spk_status spk_source_file(spk_source **out, const char *path, spk_error *err)
{
    *out = NULL;
    size_t len = strlen(path) + 1;
    struct source_file *f = malloc(sizeof *f + len);
    if (!f)
        return spk_error_nomem(err, sizeof *f + len);
    f->base.ops = &file_ops;
    f->size = 0;
    memcpy(f->name, path, len);
    /* O_NONBLOCK: opening a pipe must fail below instead of waiting for its writer. */
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    spk_status st = SPK_OK;
    struct stat info;
    if (f->fd < 0 || fstat(f->fd, &info) < 0)
        st = spk_error_sys(err, errno, "%s", path);
    else if (!S_ISREG(info.st_mode))
        st = spk_error_set(err, SPK_E_INVALID, "%s: not a regular file", path);
    if (st < 0) {
        file_close(&f->base);
        return st;
    }
    f->size = (uint64_t)info.st_size;
    *out = &f->base;
    return SPK_OK;
}
