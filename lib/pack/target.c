/* Where the target may lie, and making and removing its folders. */
#include "pack/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataset/publish.h"
#include "io/url.h"
#include "pack/journal.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static char *join(const char *a, const char *b)
{
    size_t cap = strlen(a) + strlen(b) + 2;
    char *s = malloc(cap);
    if (s)
        snprintf(s, cap, "%s%s%s", a, a[0] && a[strlen(a) - 1] == '/' ? "" : "/", b);
    return s;
}

/* Is the folder, or one above it, the source? */
static spk_status check_outside(int fd, const struct stat *source, const char *dst, const char *src, spk_error *err)
{
    struct stat st, above;
    spk_status status = SPK_OK;
    int at = openat(fd, ".", FOLDER_FLAGS);
    if (at < 0 || fstat(at, &st) != 0)
        status = spk_error_sys(err, errno, "%s", dst);
    while (status == SPK_OK) {
        if (st.st_dev == source->st_dev && st.st_ino == source->st_ino) {
            status = spk_error_set(err, SPK_E_INVALID, "%s: lies inside the source folder %s", dst, src);
            break;
        }
        int up = openat(at, "..", FOLDER_FLAGS);
        if (up < 0) /* not allowed to look further up: then nothing there can be told from the source */
            break;
        close(at);
        at = up;
        if (fstat(at, &above) != 0 || (above.st_dev == st.st_dev && above.st_ino == st.st_ino))
            break;
        st = above;
    }
    if (at >= 0)
        close(at);
    return status;
}

/* The target does not exist: its parent must. */
static spk_status find_parent(spk_target *t, spk_error *err)
{
    char *slash = strrchr(t->top.name, '/');
    t->base = slash ? slash + 1 : t->top.name;
    if (slash == t->top.name) {
        t->parent = open("/", FOLDER_FLAGS);
    } else if (slash) {
        *slash = '\0';
        t->parent = open(t->top.name, FOLDER_FLAGS);
    } else {
        t->parent = open(".", FOLDER_FLAGS);
    }
    spk_status status = SPK_OK;
    if (t->parent < 0)
        status = spk_error_sys(err, errno, "%s", slash ? t->top.name : ".");
    else if (faccessat(t->parent, ".", W_OK | X_OK, AT_EACCESS) != 0)
        status = spk_error_sys(err, errno, "%s: cannot make a folder in it", slash ? t->top.name : ".");
    if (slash)
        *slash = '/';
    return status;
}

spk_status spk_target_find(spk_target *t, const char *dst, int src_fd, const char *src, spk_error *err)
{
    struct stat source = {0}, st;
    memset(t, 0, sizeof *t);
    t->top.fd = t->top.lock = t->parent = t->work = -1;
    size_t n = strlen(dst);
    while (n > 1 && dst[n - 1] == '/')
        n--;
    t->top.name = strndup(dst, n);
    t->work_name = t->top.name ? join(t->top.name, SPK_WORK_FOLDER) : NULL;
    if (!t->work_name)
        return spk_error_nomem(err, n);
    if (n == 0)
        return spk_error_set(err, SPK_E_INVALID, "the target's name is empty");
    if (spk_url_is_remote(dst))
        return spk_url_refuse(dst, "the target must be a folder; `shardpack mirror` then copies the dataset there",
                              err);
    if (src_fd >= 0 && fstat(src_fd, &source) != 0)
        return spk_error_sys(err, errno, "%s", src);
    t->top.fd = open(t->top.name, FOLDER_FLAGS);
    if (t->top.fd < 0) {
        if (errno != ENOENT)
            return spk_error_sys(err, errno, "%s", t->top.name);
        SPK_TRY(find_parent(t, err));
        return src_fd < 0 ? SPK_OK : check_outside(t->parent, &source, t->top.name, src, err);
    }
    if (fstat(t->top.fd, &st) != 0)
        return spk_error_sys(err, errno, "%s", t->top.name);
    t->dev = (uint64_t)st.st_dev;
    t->ino = (uint64_t)st.st_ino;
    if (src_fd < 0)
        return SPK_OK;
    if (st.st_dev == source.st_dev && st.st_ino == source.st_ino)
        return spk_error_set(err, SPK_E_INVALID, "%s: the target is the source folder itself", t->top.name);
    return check_outside(t->top.fd, &source, t->top.name, src, err);
}

spk_status spk_target_find_splits(spk_target *t, const spk_pack_options *o, spk_error *err)
{
    if (o->split_count == 0)
        return SPK_OK;
    t->splits = calloc(o->split_count, sizeof *t->splits);
    if (!t->splits)
        return spk_error_nomem(err, o->split_count * sizeof *t->splits);
    for (size_t i = 0; i < o->split_count; i++)
        t->splits[i].fd = t->splits[i].lock = -1;
    t->splits_n = o->split_count;
    for (size_t i = 0; i < t->splits_n; i++) {
        spk_target_folder *f = &t->splits[i];
        f->name = join(t->top.name, o->splits[i].name);
        if (!f->name)
            return spk_error_nomem(err, strlen(t->top.name));
        f->fd = t->top.fd < 0 ? -1 : openat(t->top.fd, o->splits[i].name, FOLDER_FLAGS | O_NOFOLLOW);
        if (f->fd < 0 && t->top.fd >= 0 && errno != ENOENT)
            return spk_error_sys(err, errno, "%s", f->name);
    }
    return SPK_OK;
}

spk_status spk_target_lock(spk_target *t, spk_error *err)
{
    if (t->top.fd < 0 || t->top.lock >= 0)
        return SPK_OK;
    return spk_work_lock(t->top.fd, t->top.name, &t->top.lock, err);
}

static spk_status make_folder(spk_target_folder *f, int parent, const char *base, spk_error *err)
{
    if (f->fd < 0) {
        f->made = mkdirat(parent, base, 0777) == 0;
        if (!f->made && errno != EEXIST)
            return spk_error_sys(err, errno, "%s", f->name);
        if (fsync(parent) != 0 && errno != EINVAL && errno != ENOTSUP)
            return spk_error_sys(err, errno, "%s: its parent", f->name);
        f->fd = openat(parent, base, FOLDER_FLAGS | O_NOFOLLOW);
        if (f->fd < 0)
            return spk_error_sys(err, errno, "%s", f->name);
    }
    return f->lock >= 0 ? SPK_OK : spk_work_lock(f->fd, f->name, &f->lock, err);
}

spk_status spk_target_make(spk_target *t, const spk_pack_options *o, spk_error *err)
{
    SPK_TRY(make_folder(&t->top, t->parent, t->base, err));
    t->work = openat(t->top.fd, SPK_WORK_FOLDER, FOLDER_FLAGS | O_NOFOLLOW);
    if (t->work < 0)
        return spk_error_sys(err, errno, "%s", t->work_name);
    for (size_t i = 0; i < t->splits_n; i++)
        SPK_TRY(make_folder(&t->splits[i], t->top.fd, o->splits[i].name, err));
    return SPK_OK;
}

static void remove_work(spk_target_folder *f)
{
    if (f->fd < 0 || f->lock < 0)
        return;
    unlinkat(f->fd, SPK_WORK_LOCK, 0);
    unlinkat(f->fd, SPK_WORK_FOLDER, AT_REMOVEDIR);
    close(f->lock);
    f->lock = -1;
}

static void remove_work_file(void *ctx, const char *entry)
{
    bool done = false;
    if (spk_target_work_file(entry, &done) >= 0)
        unlinkat(*(int *)ctx, entry, 0);
}

void spk_target_unlock(spk_target *t)
{
    for (size_t i = 0; i < t->splits_n; i++)
        remove_work(&t->splits[i]);
    remove_work(&t->top);
}

void spk_target_clean(spk_target *t, bool undo)
{
    if (t->work < 0 && t->top.lock >= 0)
        t->work = openat(t->top.fd, SPK_WORK_FOLDER, FOLDER_FLAGS | O_NOFOLLOW);
    if (t->work >= 0) {
        if (spk_target_list(t->work, t->work_name, remove_work_file, &t->work, NULL) < 0)
            return; /* then the folder stays as well */
        unlinkat(t->work, SPK_JOURNAL_NAME, 0);
    }
    for (size_t i = 0; i < t->splits_n; i++) {
        spk_target_folder *f = &t->splits[i];
        /* Left by a run that was killed behind its last manifest; prune may hold it just now. */
        if (t->top.lock >= 0 && f->fd >= 0 && f->lock < 0 && spk_work_lock(f->fd, f->name, &f->lock, NULL) < 0)
            continue;
        remove_work(f);
        if (undo && t->splits[i].made)
            unlinkat(t->top.fd, strrchr(t->splits[i].name, '/') + 1, AT_REMOVEDIR);
    }
    remove_work(&t->top);
    if (undo && t->top.made)
        unlinkat(t->parent, t->base, AT_REMOVEDIR);
}

static void folder_free(spk_target_folder *f)
{
    free(f->name);
    if (f->fd >= 0)
        close(f->fd);
    if (f->lock >= 0)
        close(f->lock);
}

void spk_target_free(spk_target *t)
{
    if (!t->top.name)
        return;
    for (size_t i = 0; i < t->splits_n; i++)
        folder_free(&t->splits[i]);
    free(t->splits);
    folder_free(&t->top);
    if (t->parent >= 0)
        close(t->parent);
    if (t->work >= 0)
        close(t->work);
    free(t->work_name);
    memset(t, 0, sizeof *t);
}
