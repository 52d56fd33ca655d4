/* The lock of a dataset's folder, atomic replacement of small files, moves that never overwrite, and the names of
 * published files. The folder is always given as a descriptor; `folder` is for messages only. */
#define _GNU_SOURCE /* renameat2 */
#include "dataset/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"

#define LOCK_TRIES 16
#define PART_NAME_MAX 256
#define PREFIX_MAX 64

/* True if fd is still what the name of the lock file leads to: a packer that ends removes the file it holds. */
static bool is_current_lock(int dirfd, int fd)
{
    struct stat mine, named;
    return fstat(fd, &mine) == 0 && fstatat(dirfd, SPK_WORK_LOCK, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

/* One try; SPK_END if the lock file went away in between. */
static spk_status try_lock(int dirfd, const char *folder, int *lock_fd, spk_error *err)
{
    struct stat st;
    if (mkdirat(dirfd, SPK_WORK_FOLDER, 0777) != 0 && errno != EEXIST)
        return spk_error_sys(err, errno, "%s/%s", folder, SPK_WORK_FOLDER);
    if (fstatat(dirfd, SPK_WORK_FOLDER, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
        return spk_error_set(err, SPK_E_EXISTS, "%s/%s: not a folder", folder, SPK_WORK_FOLDER);
    int fd = openat(dirfd, SPK_WORK_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return errno == ENOENT ? SPK_END : spk_error_sys(err, errno, "%s/%s", folder, SPK_WORK_LOCK);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int e = errno;
        close(fd);
        if (e == EWOULDBLOCK)
            return spk_error_set(err, SPK_E_BUSY, "%s: another process is packing into or pruning this folder", folder);
        return spk_error_sys(err, e, "%s/%s", folder, SPK_WORK_LOCK);
    }
    if (!is_current_lock(dirfd, fd)) {
        close(fd);
        return SPK_END;
    }
    *lock_fd = fd;
    return SPK_OK;
}

spk_status spk_work_lock(int dirfd, const char *folder, int *lock_fd, spk_error *err)
{
    *lock_fd = -1;
    for (int i = 0; i < LOCK_TRIES; i++) {
        spk_status status = try_lock(dirfd, folder, lock_fd, err);
        if (status != SPK_END)
            return status;
    }
    return spk_error_set(err, SPK_E_BUSY, "%s: the lock changed hands %d times", folder, LOCK_TRIES);
}

static spk_status write_all(int fd, const void *data, size_t n)
{
    const char *p = data;
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return SPK_E_IO;
        p += done;
        n -= (size_t)done;
    }
    return SPK_OK;
}

spk_status spk_publish_file(int dirfd, const char *folder, const char *name, const void *data, size_t n, spk_error *err)
{
    char part[PART_NAME_MAX];
    int len = snprintf(part, sizeof part, ".%s.part", name);
    if (len < 0 || (size_t)len >= sizeof part)
        return spk_error_set(err, SPK_E_INVALID, "%s/%s: name too long", folder, name);
    if (unlinkat(dirfd, part, 0) != 0 && errno != ENOENT)
        return spk_error_sys(err, errno, "%s/%s", folder, part);
    int fd = openat(dirfd, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return spk_error_sys(err, errno, "%s/%s", folder, part);
    int failed = write_all(fd, data, n) < 0 || fsync(fd) != 0 ? errno : 0;
    if (close(fd) != 0 && !failed)
        failed = errno;
    if (!failed && renameat(dirfd, part, dirfd, name) != 0)
        failed = errno;
    if (failed) {
        unlinkat(dirfd, part, 0);
        return spk_error_sys(err, failed, "%s/%s", folder, name);
    }
    /* Some file systems cannot sync a folder; there the rename is as durable as it gets. */
    if (fsync(dirfd) != 0 && errno != EINVAL && errno != ENOTSUP)
        return spk_error_sys(err, errno, "%s", folder);
    return SPK_OK;
}

/* Moves without overwriting; returns an errno value. */
static int move_exclusive(int dirfd, const char *from, const char *to)
{
    if (renameat2(dirfd, from, dirfd, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    if (linkat(dirfd, from, dirfd, to, 0) == 0)
        return unlinkat(dirfd, from, 0) == 0 ? 0 : errno;
    if (errno != EPERM && errno != ENOTSUP && errno != ENOSYS && errno != EMLINK)
        return errno;
    /* Neither is there (FAT): the folder's lock keeps other packers away between look and rename. */
    struct stat st;
    if (fstatat(dirfd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return EEXIST;
    return renameat(dirfd, from, dirfd, to) == 0 ? 0 : errno;
}

/* Reads up to n bytes; fewer only at the end of the file, negative with errno on failure. */
static ssize_t read_piece(int fd, char *p, size_t n)
{
    size_t have = 0;
    while (have < n) {
        ssize_t got = read(fd, p + have, n - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return got;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

/* EXISTS unless the files have the same bytes. */
static spk_status compare_bytes(int from, int to, spk_error *err)
{
    enum { CHUNK = 256 * 1024 };
    char *chunk = malloc((size_t)2 * CHUNK);
    spk_status status = chunk ? SPK_OK : spk_error_nomem(err, (size_t)2 * CHUNK);
    while (status == SPK_OK) {
        ssize_t a = read_piece(from, chunk, CHUNK), b = a < 0 ? a : read_piece(to, chunk + CHUNK, CHUNK);
        if (b < 0)
            status = spk_error_sys(err, errno, "read");
        else if (a != b || memcmp(chunk, chunk + CHUNK, (size_t)a) != 0)
            status = spk_error_set(err, SPK_E_EXISTS, "exists with other contents; if it is damaged, remove it");
        else if (a == 0)
            break;
    }
    free(chunk);
    return status;
}

/* OK if dirfd/to is a regular file with the bytes of dirfd/from, EXISTS if it is something else. */
static spk_status check_same(int dirfd, const char *from, const char *to, spk_error *err)
{
    struct stat theirs, mine;
    spk_status status = SPK_OK;
    int b = -1, a = openat(dirfd, from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (a >= 0)
        b = openat(dirfd, to, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (b < 0)
        status = spk_error_sys(err, errno, "open");
    else if (fstat(a, &mine) != 0 || fstat(b, &theirs) != 0)
        status = spk_error_sys(err, errno, "stat");
    else if (!S_ISREG(theirs.st_mode))
        status = spk_error_set(err, SPK_E_EXISTS, "exists and is not a regular file");
    else if (theirs.st_size != mine.st_size)
        status =
            spk_error_set(err, SPK_E_EXISTS, "exists with %jd bytes, the new file has %jd; if it is damaged, remove it",
                          (intmax_t)theirs.st_size, (intmax_t)mine.st_size);
    else
        status = compare_bytes(a, b, err);
    if (a >= 0)
        close(a);
    if (b >= 0)
        close(b);
    return status;
}

spk_status spk_publish_move(int dirfd, const char *folder, const char *from, const char *to, spk_error *err)
{
    int failed = move_exclusive(dirfd, from, to);
    if (failed == 0)
        return SPK_OK;
    if (failed != EEXIST)
        return spk_error_sys(err, failed, "%s/%s", folder, failed == ENOENT ? from : to);
    /* A run that was killed in the middle, or that packed the same bytes before. */
    spk_status status = check_same(dirfd, from, to, err);
    if (status < 0) {
        spk_error_prefix(err, "%s/%s", folder, to);
        return status;
    }
    if (unlinkat(dirfd, from, 0) != 0)
        return spk_error_sys(err, errno, "%s/%s", folder, from);
    return SPK_OK;
}

static spk_status check_fingerprint(const char *fingerprint, spk_error *err)
{
    uint8_t raw[32];
    if (!spk_unhex(raw, sizeof raw, fingerprint, strlen(fingerprint)))
        return spk_error_set(err, SPK_E_INVALID, "fingerprint \"%.80s\" is not 64 lower-case hex digits", fingerprint);
    return SPK_OK;
}

spk_status spk_shard_file_name(char *out, size_t cap, const char *prefix, const char *fingerprint, uint64_t number,
                               spk_error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    SPK_TRY(check_fingerprint(fingerprint, err));
    if (!*prefix || prefix[strspn(prefix, allowed)])
        return spk_error_set(err, SPK_E_INVALID, "shard prefix \"%.80s\" is not [A-Za-z0-9_]+", prefix);
    if (strlen(prefix) > PREFIX_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "shard prefix of %zu bytes, at most %d are allowed", strlen(prefix),
                             PREFIX_MAX);
    int n = snprintf(out, cap, "%s-%.8s-%06" PRIu64 ".tar.zst", prefix, fingerprint, number);
    if (n < 0 || (size_t)n >= cap)
        return spk_error_set(err, SPK_E_LIMIT, "shard name of %d bytes (prefix \"%.80s\") is too long", n, prefix);
    return SPK_OK;
}

spk_status spk_table_file_name(char *out, size_t cap, const char *fingerprint, spk_error *err)
{
    SPK_TRY(check_fingerprint(fingerprint, err));
    int n = snprintf(out, cap, "shards-%.8s.tsv", fingerprint);
    if (n < 0 || (size_t)n >= cap)
        return spk_error_set(err, SPK_E_LIMIT, "table name of %d bytes is too long", n);
    return SPK_OK;
}
