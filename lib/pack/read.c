/* Source files, checked against the scan. One more byte than expected is asked for, so that a file that grew is seen
 * without another call. */
#include "pack/read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* The inode's own time (links, owner, mode) may move while packing; that of the content must not pass what was found.
 */
static bool written_since(const struct stat *st, int64_t stamp)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec > stamp;
}

static spk_status changed(const spk_reading *r, const char *path, uint64_t had, uint64_t now, spk_error *err)
{
    return spk_error_set(err, SPK_E_CHANGED, "%s/%s: changed while packing: had %llu bytes, now %llu", r->src, path,
                         (unsigned long long)had, (unsigned long long)now);
}

static spk_status open_failed(const spk_reading *r, const char *path, int e, spk_error *err)
{
    if (e == ELOOP && !r->follow)
        return spk_error_set(err, SPK_E_CHANGED, "%s/%s: changed while packing: now a symbolic link", r->src, path);
    if (e != ENOENT && e != ENOTDIR)
        return spk_error_sys(err, e, "%s/%s", r->src, path);
    (void)spk_error_sys(err, e, "%s/%s: vanished while packing", r->src, path);
    if (err)
        err->code = SPK_E_CHANGED;
    return SPK_E_CHANGED;
}

/* O_NONBLOCK in case a FIFO took the file's place. */
static spk_status open_file(const spk_reading *r, const char *path, int *fd, spk_error *err)
{
    *fd = openat(r->src_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (r->follow ? 0 : O_NOFOLLOW));
    return *fd < 0 ? open_failed(r, path, errno, err) : SPK_OK;
}

/* Compares the file with the scan. Called after its bytes were read, so that a write in between shows too; read_errno
 * is that of the read, 0 if it went well. */
static spk_status compare(const spk_reading *r, const char *path, const spk_input_file *file, int fd, int read_errno,
                          uint64_t got, spk_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return spk_error_sys(err, errno, "%s/%s", r->src, path);
    if (!S_ISREG(st.st_mode))
        return spk_error_set(err, SPK_E_CHANGED, "%s/%s: changed while packing: no regular file any more", r->src,
                             path);
    if ((uint64_t)st.st_size != file->size)
        return changed(r, path, file->size, (uint64_t)st.st_size, err);
    if (read_errno != 0)
        return spk_error_sys(err, read_errno, "%s/%s", r->src, path);
    if (got != file->size)
        return changed(r, path, file->size, got, err);
    if (written_since(&st, file->stamp))
        return spk_error_set(err, SPK_E_CHANGED, "%s/%s: changed while packing: written to since it was found", r->src,
                             path);
    return SPK_OK;
}

/* Up to n bytes, fewer only at the end of the file; returns an errno value. */
static int read_up_to(int fd, uint8_t *out, size_t n, size_t *got)
{
    *got = 0;
    while (*got < n) {
        ssize_t k = read(fd, out + *got, n - *got);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno;
        *got += (size_t)k;
        if (k == 0 || *got + 1 == n) /* all that is expected: the end shows up as a short read */
            break;
    }
    return 0;
}

spk_status spk_read_whole(const spk_reading *r, const char *path, const spk_input_file *file, uint8_t *out,
                          spk_error *err)
{
    int fd = -1;
    size_t got = 0;
    SPK_TRY(open_file(r, path, &fd, err));
    int e = read_up_to(fd, out, (size_t)file->size + 1, &got);
    spk_status status = compare(r, path, file, fd, e, got, err);
    close(fd);
    return status;
}

spk_status spk_read_pieces(const spk_reading *r, const char *path, const spk_input_file *file, uint8_t *chunk,
                           size_t chunk_n, spk_status (*sink)(void *ctx, const void *p, size_t n, spk_error *err),
                           void *ctx, spk_error *err)
{
    int fd = -1, e = 0;
    SPK_TRY(open_file(r, path, &fd, err));
    uint64_t done = 0;
    spk_status status = SPK_OK;
    while (status == SPK_OK && done < file->size) {
        size_t got = 0;
        uint64_t left = file->size - done;
        e = read_up_to(fd, chunk, left < chunk_n ? (size_t)left : chunk_n, &got);
        if (e != 0 || got == 0)
            break;
        done += got;
        status = sink(ctx, chunk, got, err);
    }
    if (status == SPK_OK)
        status = compare(r, path, file, fd, e, done, err);
    close(fd);
    return status;
}
