/* Copying into a folder: as a packer publishes there, under its lock, through its work folder. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "dataset/mirror.h"
#include "dataset/publish.h"
#include "io/source_file.h"

static spk_status differs(const spk_dest *t, const char *name, spk_error *err)
{
    return spk_error_set(err, SPK_E_EXISTS, "%s/%s: is there and differs; it is not overwritten", t->name, name);
}

spk_status spk_folder_look(spk_dest *t, const spk_dataset *d, uint64_t number, bool *there, spk_error *err)
{
    const spk_catalog_row *row = &d->catalog.rows[number];
    const char *name = spk_catalog_path(&d->catalog, (size_t)number);
    const spk_shard_expect expect = {row->samples, row->frames, row->bytes, row->tar_bytes, row->index_offset, {0}};
    spk_shard_expect full = expect;
    struct stat st;
    char *path = NULL;
    spk_source *source = NULL;
    bool good = true;
    memcpy(full.tail_sha256, row->tail_sha256, sizeof full.tail_sha256);
    *there = t->dirfd >= 0 && fstatat(t->dirfd, name, &st, 0) == 0;
    if (!*there)
        return SPK_OK;
    SPK_TRY(spk_path_join(&path, t->folder, name, err));
    spk_status status = spk_source_file(&source, path, err);
    free(path);
    if (status == SPK_OK)
        status = spk_mirror_check(source, &full, &good, err);
    spk_source_close(source);
    return status == SPK_OK && !good ? differs(t, name, err) : status;
}

static spk_status write_all(int fd, const char *name, const uint8_t *p, size_t n, spk_error *err)
{
    while (n > 0) {
        ssize_t put = write(fd, p, n < (1u << 30) ? n : (1u << 30));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return spk_error_sys(err, errno, "%s", name);
        p += put;
        n -= (size_t)put;
    }
    return SPK_OK;
}

static spk_status make_parents(int dirfd, const char *name, spk_error *err)
{
    char path[SPK_TABLE_PATH_MAX + 1];
    snprintf(path, sizeof path, "%s", name);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(dirfd, path, 0777) != 0 && errno != EEXIST)
            return spk_error_sys(err, errno, "%s", path);
        *slash = '/';
    }
    return SPK_OK;
}

/* Makes the names in a folder durable; the folder is in dirfd, or ".." its parent. */
static spk_status sync_folder(int dirfd, const char *name, spk_error *err)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), failed = fd < 0 ? errno : 0;
    if (!failed && fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) /* as spk_publish_file */
        failed = errno;
    if (fd >= 0)
        close(fd);
    return failed ? spk_error_sys(err, failed, "%s", name) : SPK_OK;
}

/* The folders on the way to a shard; the one that holds them all is synced with the table and the manifest. */
static spk_status sync_parents(int dirfd, const char *name, spk_error *err)
{
    char path[SPK_TABLE_PATH_MAX + 1];
    snprintf(path, sizeof path, "%s", name);
    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        *slash = '\0';
        SPK_TRY(sync_folder(dirfd, path, err));
    }
    return SPK_OK;
}

spk_status spk_folder_send(spk_dest *t, spk_feed *feed, int (*cancel)(void *, uint64_t), void *user, spk_error *err)
{
    char part[64];
    const char *name = spk_catalog_path(&feed->dataset->catalog, (size_t)feed->number);
    const uint8_t *p = NULL;
    size_t n = 0;
    uint64_t sent = 0;
    snprintf(part, sizeof part, SPK_WORK_FOLDER "/%06" PRIu64 ".part", feed->number);
    SPK_TRY(make_parents(t->dirfd, name, err));
    int fd = openat(t->dirfd, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return spk_error_sys(err, errno, "%s/%s", t->name, part);
    spk_status st = spk_feed_rewind(feed, err);
    do {
        if (st == SPK_OK)
            st = spk_feed_next(feed, &p, &n, err);
        if (st == SPK_OK)
            st = write_all(fd, name, p, n, err);
        sent += n;
        if (st == SPK_OK && cancel(user, sent))
            st = spk_error_set(err, SPK_E_CANCELLED, "cancelled");
    } while (st == SPK_OK && n > 0);
    if (st == SPK_OK && fsync(fd) != 0)
        st = spk_error_sys(err, errno, "%s/%s", t->name, part);
    if (close(fd) != 0 && st == SPK_OK)
        st = spk_error_sys(err, errno, "%s/%s", t->name, part);
    if (st == SPK_OK)
        st = spk_publish_move(t->dirfd, t->name, part, name, err);
    if (st == SPK_OK)
        st = sync_parents(t->dirfd, name, err);
    if (st < 0)
        unlinkat(t->dirfd, part, 0);
    return st;
}

/* A packer compares the manifest's time with those of the source files, so a copy keeps it, as far as that goes. */
static void keep_time(const spk_dest *t, const spk_dataset *d)
{
    struct stat st;
    if (d->net || stat(d->manifest_path, &st) != 0)
        return;
    const struct timespec at[2] = {{.tv_nsec = UTIME_OMIT}, st.st_mtim};
    (void)utimensat(t->dirfd, SPK_MANIFEST_NAME, at, 0);
}

spk_status spk_folder_publish(spk_dest *t, const spk_dataset *d, const spk_buf *table, spk_error *err)
{
    char *path = NULL;
    spk_source *source = NULL;
    struct stat st;
    uint8_t digest[SPK_SHA256_BYTES];
    bool same = false;
    if (fstatat(t->dirfd, d->manifest.table_name, &st, 0) == 0) {
        SPK_TRY(spk_path_join(&path, t->folder, d->manifest.table_name, err));
        spk_status status = spk_source_file(&source, path, err);
        free(path);
        SPK_TRY(status);
        uint8_t *there = malloc(table->len + 1);
        same = there && spk_source_size(source) == table->len &&
               spk_source_pread(source, there, table->len, 0, NULL) == SPK_OK &&
               spk_sha256_once(there, table->len, digest, NULL) == SPK_OK &&
               memcmp(digest, d->manifest.table_sha256, sizeof digest) == 0;
        free(there);
        spk_source_close(source);
        if (!same)
            return differs(t, d->manifest.table_name, err);
    } else {
        SPK_TRY(spk_publish_file(t->dirfd, t->name, d->manifest.table_name, table->data, table->len, err));
    }
    SPK_TRY(spk_publish_file(t->dirfd, t->name, SPK_MANIFEST_NAME, d->text, strlen(d->text), err));
    keep_time(t, d);
    (void)sync_folder(t->dirfd, "..", NULL); /* it may have been made; not always may it be opened */
    return SPK_OK;
}
