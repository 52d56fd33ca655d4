/* The folder walk. One folder is open at a time, by its path from the source, so depth costs no descriptors and no
 * recursion; folders still to do are kept as a stack of paths. The order in which a file system lists its entries does
 * not matter, because everything is sorted afterwards. Nothing is skipped in silence: what cannot be read is an error.
 */
#define _DEFAULT_SOURCE 1 /* d_type */

#include "pack/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "pack/filter.h"
#include "pack/names.h"

typedef struct folder_id {
    uint64_t dev, ino;
} folder_id;

/* What the stack holds behind a folder's path. */
typedef struct frame {
    uint32_t len;   /* of the path, without its NUL */
    uint32_t depth; /* 0: the source itself */
    uint32_t junk;  /* below __MACOSX */
} frame;

typedef struct walk {
    spk_scan *s;
    spk_buf stack;
    folder_id *above; /* the folders that lead to the current one, by depth; kept when links are followed */
    size_t above_cap;
    char path[SPK_SCAN_PATH_MAX + 1];
    size_t folder_n; /* bytes of the current folder's path in it, with its '/' */
    frame now;
    bool empty; /* nothing of use in the current folder so far */
} walk;

static spk_status push(walk *w, size_t n, uint32_t depth, bool junk, spk_error *err)
{
    frame f = {(uint32_t)n, depth, junk};
    SPK_TRY(spk_buf_append(&w->stack, w->path, n, err));
    return spk_buf_append(&w->stack, &f, sizeof f, err);
}

static void pop(walk *w)
{
    memcpy(&w->now, w->stack.data + w->stack.len - sizeof w->now, sizeof w->now);
    w->stack.len -= sizeof w->now + w->now.len;
    memcpy(w->path, w->stack.data + w->stack.len, w->now.len);
    w->path[w->now.len] = '\0';
}

/* "SRC" or "SRC/path", for messages. */
#define WHERE(w) (w)->s->src, (w)->path[0] ? "/" : "", (w)->path

static spk_status check_folder(walk *w, int fd, spk_error *err)
{
    struct stat st;
    size_t depth = w->now.depth;
    if (fstat(fd, &st) < 0)
        return spk_error_sys(err, errno, "%s%s%s", WHERE(w));
    folder_id id = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    if (w->s->target_ino != 0 && id.dev == w->s->target_dev && id.ino == w->s->target_ino)
        return spk_error_set(err, SPK_E_INVALID, "%s%s%s: DST lies inside SRC", WHERE(w));
    if (!w->s->o->follow_symlinks)
        return SPK_OK;
    for (size_t i = 0; i < depth; i++)
        if (w->above[i].dev == id.dev && w->above[i].ino == id.ino)
            return spk_error_set(err, SPK_E_INVALID, "%s%s%s: symlink loop: leads back to a folder %zu levels above",
                                 w->s->src, "/", w->path, depth - i);
    SPK_TRY(spk_grow(&w->above, &w->above_cap, depth + 1, sizeof *w->above, err));
    w->above[depth] = id;
    return SPK_OK;
}

static spk_status take_folder(walk *w, const char *name, size_t n, spk_error *err)
{
    bool junk = w->now.junk || strcmp(name, "__MACOSX") == 0;
    if (!junk && !spk_filter_folder(w->s->o, w->path, n, w->folder_n)) {
        w->s->in->excluded++;
        return SPK_OK;
    }
    if (!junk && w->now.depth == 0) {
        SPK_TRY(spk_grow(&w->s->classes, &w->s->classes_cap, w->s->classes_n + 1, sizeof *w->s->classes, err));
        char *copy = strdup(name);
        if (!copy)
            return spk_error_nomem(err, n + 1);
        w->s->classes[w->s->classes_n++] = copy;
    }
    w->empty = w->empty && junk;
    return push(w, n, w->now.depth + 1, junk, err);
}

static spk_status take_file(walk *w, size_t n, const struct stat *st, spk_error *err)
{
    if (!spk_filter_file(w->s->o, w->path, n, w->folder_n)) {
        w->s->in->excluded++;
        return SPK_OK;
    }
    w->empty = false;
    SPK_TRY(spk_scan_add(w->s, w->path, n, st, err));
    const spk_input *in = w->s->in;
    if (w->now.depth == 0 && strcmp(spk_field_kind(in->fields[in->files[in->files_n - 1].field]), "image") == 0)
        w->s->root_image = true;
    return SPK_OK;
}

/* w->path holds the entry's path, n bytes. */
static spk_status take_entry(walk *w, int fd, const struct dirent *e, size_t n, spk_error *err)
{
    struct stat st = {0};
    bool follow = w->s->o->follow_symlinks && !w->now.junk;
    if (e->d_type == DT_DIR)
        return take_folder(w, e->d_name, n, err);
    if (e->d_type != DT_UNKNOWN && (w->now.junk || spk_name_is_junk(e->d_name))) {
        w->s->in->junk++;
        return SPK_OK;
    }
    if (e->d_type != DT_REG && e->d_type != DT_UNKNOWN && !(e->d_type == DT_LNK && follow)) {
        w->s->in->other_skipped++;
        return SPK_OK;
    }
    if (fstatat(fd, e->d_name, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return spk_error_sys(err, errno, "%s%s%s", WHERE(w));
    if (S_ISDIR(st.st_mode))
        return take_folder(w, e->d_name, n, err);
    if (w->now.junk || spk_name_is_junk(e->d_name))
        w->s->in->junk++;
    else if (!S_ISREG(st.st_mode))
        w->s->in->other_skipped++;
    else
        return take_file(w, n, &st, err);
    return SPK_OK;
}

static spk_status join(walk *w, const char *name, size_t *out, spk_error *err)
{
    size_t n = strlen(name);
    if (n > SPK_SCAN_PATH_MAX - w->folder_n) {
        w->path[w->folder_n] = '\0';
        return spk_error_set(err, SPK_E_LIMIT, "%s/%.200s...: path of %zu bytes: longer than the limit of %u",
                             w->s->src, w->path, w->folder_n + n, SPK_SCAN_PATH_MAX);
    }
    memcpy(w->path + w->folder_n, name, n + 1);
    *out = w->folder_n + n;
    return SPK_OK;
}

static spk_status read_entries(walk *w, DIR *dir, spk_error *err)
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
        SPK_TRY(spk_scan_tick(w->s, err));
        SPK_TRY(join(w, e->d_name, &n, err));
        SPK_TRY(take_entry(w, dirfd(dir), e, n, err));
    }
}

static spk_status read_folder(walk *w, spk_error *err)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (w->s->o->follow_symlinks ? 0 : O_NOFOLLOW);
    int fd = openat(w->s->src_fd, w->path[0] ? w->path : ".", flags);
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
    w->s->in->empty_folders += status == SPK_OK && w->empty && !w->now.junk && w->now.depth > 0;
    closedir(dir);
    return status;
}

spk_status spk_scan_tree(spk_scan *s, spk_error *err)
{
    walk *w = calloc(1, sizeof *w);
    if (!w)
        return spk_error_nomem(err, sizeof *w);
    w->s = s;
    spk_status status = push(w, 0, 0, false, err);
    while (status == SPK_OK && w->stack.len > 0) {
        pop(w);
        status = read_folder(w, err);
    }
    spk_buf_free(&w->stack);
    free(w->above);
    free(w);
    return status;
}
