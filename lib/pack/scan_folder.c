/* One folder: its entries become files, folders to read, or counts. A folder is opened by its path from the source, so
 * depth costs no descriptors. Nothing is skipped in silence: what cannot be read is an error. */
#define _DEFAULT_SOURCE 1 /* d_type */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "pack/filter.h"
#include "pack/names.h"
#include "pack/scan_walk.h"

#define DELIVERY 256 /* files and folders */

/* "SRC" or "SRC/path", for messages. */
#define WHERE(w) (w)->walk->s->src, (w)->path[0] ? "/" : "", (w)->path

static spk_status check_folder(spk_walker *w, int fd, spk_error *err)
{
    struct stat st;
    size_t depth = w->now.depth;
    if (fstat(fd, &st) < 0)
        return spk_error_sys(err, errno, "%s%s%s", WHERE(w));
    if (!w->now.junk)
        SPK_TRY(spk_walk_around(w, &st, err));
    spk_folder_id id = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    if (w->walk->s->target_ino != 0 && id.dev == w->walk->s->target_dev && id.ino == w->walk->s->target_ino)
        return spk_error_set(err, SPK_E_INVALID, "%s%s%s: DST lies inside SRC", WHERE(w));
    if (!w->walk->s->o->follow_symlinks)
        return SPK_OK;
    for (size_t i = 0; i < depth; i++)
        if (w->above[i].dev == id.dev && w->above[i].ino == id.ino)
            return spk_error_set(err, SPK_E_INVALID, "%s%s%s: symlink loop: leads back to a folder %zu levels above",
                                 w->walk->s->src, "/", w->path, depth - i);
    SPK_TRY(spk_grow(&w->above, &w->above_cap, depth + 1, sizeof *w->above, err));
    w->above[depth] = id;
    return SPK_OK;
}

static spk_status found_one(spk_walker *w, spk_error *err)
{
    return ++w->found < DELIVERY ? SPK_OK : spk_walk_deliver(w, err);
}

/* Only the walker that reads the source itself comes here. */
static spk_status add_class(spk_scan *s, const char *name, spk_error *err)
{
    SPK_TRY(spk_grow(&s->classes, &s->classes_cap, s->classes_n + 1, sizeof *s->classes, err));
    char *copy = strdup(name);
    if (!copy)
        return spk_error_nomem(err, strlen(name) + 1);
    s->classes[s->classes_n++] = copy;
    return SPK_OK;
}

static spk_status take_folder(spk_walker *w, const char *name, size_t n, spk_error *err)
{
    bool junk = w->now.junk || strcmp(name, "__MACOSX") == 0;
    if (!junk && !spk_filter_folder(w->walk->s->o, w->path, n, w->folder_n)) {
        w->excluded_folders++;
        return SPK_OK;
    }
    if (!junk && w->now.depth == 0)
        SPK_TRY(add_class(w->walk->s, name, err));
    w->empty = w->empty && junk;
    spk_walk_folder f = {(uint32_t)n, w->now.depth + 1, junk};
    SPK_TRY(spk_buf_append(&w->folders, w->path, n, err));
    SPK_TRY(spk_buf_append(&w->folders, &f, sizeof f, err));
    return found_one(w, err);
}

static spk_status take_file(spk_walker *w, size_t n, const struct stat *st, spk_error *err)
{
    if (!spk_filter_file(w->walk->s->o, w->path, n, w->folder_n)) {
        w->excluded++;
        return SPK_OK;
    }
    w->empty = false;
    SPK_TRY(spk_buf_append(&w->files, st, sizeof *st, err));
    SPK_TRY(spk_buf_append(&w->files, &n, sizeof n, err));
    SPK_TRY(spk_buf_append(&w->files, w->path, n + 1, err));
    return found_one(w, err);
}

/* w->path holds the entry's path, n bytes. */
static spk_status take_entry(spk_walker *w, int fd, const struct dirent *e, size_t n, spk_error *err)
{
    struct stat st = {0};
    bool follow = w->walk->s->o->follow_symlinks && !w->now.junk;
    if (e->d_type == DT_DIR)
        return take_folder(w, e->d_name, n, err);
    if (e->d_type != DT_UNKNOWN && (w->now.junk || spk_name_is_junk(e->d_name))) {
        w->junk++;
        return SPK_OK;
    }
    if (e->d_type != DT_REG && e->d_type != DT_UNKNOWN && !(e->d_type == DT_LNK && follow)) {
        w->other_skipped++;
        return SPK_OK;
    }
    if (fstatat(fd, e->d_name, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return spk_error_sys(err, errno, "%s%s%s", WHERE(w));
    if (S_ISDIR(st.st_mode))
        return take_folder(w, e->d_name, n, err);
    if (w->now.junk || spk_name_is_junk(e->d_name))
        w->junk++;
    else if (!S_ISREG(st.st_mode))
        w->other_skipped++;
    else
        return take_file(w, n, &st, err);
    return SPK_OK;
}

static spk_status join(spk_walker *w, const char *name, size_t *out, spk_error *err)
{
    size_t n = strlen(name);
    if (n > SPK_SCAN_PATH_MAX - w->folder_n) {
        w->path[w->folder_n] = '\0';
        return spk_error_set(err, SPK_E_LIMIT, "%s/%.200s...: path of %zu bytes: longer than the limit of %u",
                             w->walk->s->src, w->path, w->folder_n + n, SPK_SCAN_PATH_MAX);
    }
    memcpy(w->path + w->folder_n, name, n + 1);
    *out = w->folder_n + n;
    return SPK_OK;
}

static spk_status read_entries(spk_walker *w, DIR *dir, spk_error *err)
{
    for (;;) {
        size_t n = 0;
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (!e && errno != 0) {
            w->path[w->folder_n > 0 ? w->folder_n - 1 : 0] = '\0';
            return spk_error_sys(err, errno, "%s%s%s", WHERE(w));
        }
        if (!e)
            return SPK_OK;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (w->walk->alone)
            SPK_TRY(spk_scan_tick(w->walk->s, err));
        SPK_TRY(join(w, e->d_name, &n, err));
        SPK_TRY(take_entry(w, dirfd(dir), e, n, err));
    }
}

spk_status spk_walk_folder_read(spk_walker *w, spk_error *err)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (w->walk->s->o->follow_symlinks ? 0 : O_NOFOLLOW);
    int fd = openat(w->walk->s->src_fd, w->path[0] ? w->path : ".", flags);
    if (fd < 0)
        return spk_error_sys(err, errno, "%s%s%s", WHERE(w));
    spk_status status = check_folder(w, fd, err);
    DIR *dir = status == SPK_OK ? fdopendir(fd) : NULL;
    if (!dir) {
        if (status == SPK_OK)
            status = spk_error_sys(err, errno, "%s%s%s", WHERE(w));
        close(fd);
        return status;
    }
    w->folder_n = w->now.len;
    if (w->folder_n > 0 && w->folder_n < SPK_SCAN_PATH_MAX)
        w->path[w->folder_n++] = '/';
    w->empty = true;
    status = read_entries(w, dir, err);
    w->empty_folders += status == SPK_OK && w->empty && !w->now.junk && w->now.depth > 0;
    closedir(dir);
    return status == SPK_OK ? spk_walk_deliver(w, err) : status;
}
