/* Source files, checked against the scan. One more byte than expected is asked for, so that a file that grew is seen
 * without another call. */
#include "pack/read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "pack/beneath.h"

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
        return spk_error_set(err, SPK_E_CHANGED,
                             "%s/%s: changed while packing: now a symbolic link, or in a folder that is one", r->src,
                             path);
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
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    *fd = r->follow ? openat(r->src_fd, path, flags) : spk_open_beneath(r->src_fd, path, flags);
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

/* What of the whole archive was found must still be so after the read: its members have no times of their own. */
static spk_status check_archive(const spk_reading *r, spk_error *err)
{
    struct stat st;
    if (fstat(r->archive->fd, &st) != 0)
        return spk_error_sys(err, errno, "%s", r->src);
    if ((uint64_t)st.st_size != r->archive->size)
        return spk_error_set(err, SPK_E_CHANGED, "%s: changed while packing: had %llu bytes, now %llu", r->src,
                             (unsigned long long)r->archive->size, (unsigned long long)st.st_size);
    if (written_since(&st, r->archive->stamp))
        return spk_error_set(err, SPK_E_CHANGED, "%s: changed while packing: written to since its members were found",
                             r->src);
    return SPK_OK;
}

/* n bytes of a member from byte `from` on. */
static spk_status read_member(const spk_reading *r, const char *path, const spk_input_file *file, uint64_t from,
                              uint8_t *out, size_t n, spk_error *err)
{
    uint64_t at = (uint64_t)file->stamp;
    int e = 0;
    for (size_t got = 0; got < n && e == 0;) {
        ssize_t k = pread(r->archive->fd, out + got, n - got, (off_t)(at + from + got));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            e = k < 0 ? errno : EIO;
        got += k > 0 ? (size_t)k : 0;
    }
    SPK_TRY(check_archive(r, err));
    if (e == 0)
        return SPK_OK;
    spk_status status = spk_error_sys(err, e, "read");
    spk_archive_prefix(r->archive, r->src, path, at, err);
    return status;
}

spk_status spk_read_whole(const spk_reading *r, const char *path, const spk_input_file *file, uint8_t *out,
                          spk_error *err)
{
    int fd = -1;
    size_t got = 0;
    if (r->archive)
        return read_member(r, path, file, 0, out, (size_t)file->size, err);
    SPK_TRY(open_file(r, path, &fd, err));
    int e = read_up_to(fd, out, (size_t)file->size + 1, &got);
    spk_status status = compare(r, path, file, fd, e, got, err);
    close(fd);
    return status;
}

static spk_status read_member_pieces(const spk_reading *r, const char *path, const spk_input_file *file, uint8_t *chunk,
                                     size_t chunk_n,
                                     spk_status (*sink)(void *ctx, const void *p, size_t n, spk_error *err), void *ctx,
                                     spk_error *err)
{
    for (uint64_t done = 0; done < file->size;) {
        size_t n = file->size - done < chunk_n ? (size_t)(file->size - done) : chunk_n;
        SPK_TRY(read_member(r, path, file, done, chunk, n, err));
        SPK_TRY(sink(ctx, chunk, n, err));
        done += n;
    }
    return SPK_OK;
}

spk_status spk_read_pieces(const spk_reading *r, const char *path, const spk_input_file *file, uint8_t *chunk,
                           size_t chunk_n, spk_status (*sink)(void *ctx, const void *p, size_t n, spk_error *err),
                           void *ctx, spk_error *err)
{
    int fd = -1, e = 0;
    if (r->archive)
        return read_member_pieces(r, path, file, chunk, chunk_n, sink, ctx, err);
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
