/* Removing what a dataset's manifest does not name. The lock is held from before the manifest is read until the last
 * file is gone, so no packer can publish in between. Files are taken by name only, and only by names that we give.
 * A folder without a manifest whose sub-folders are the splits of one packing is pruned split by split, with its own
 * work folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/options.h"
#include "dataset/dataset.h"
#include "dataset/publish.h"
#include "io/url.h"

typedef struct prune {
    spk_prune_options options;
    spk_prune_result *result;
    const char *folder;
    const char *split; /* its name in the folder that was asked for; NULL: it is that folder */
    int dirfd;
    char **names; /* candidates, relative to the folder */
    size_t n, cap;
} prune;

static void drop_names(prune *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->names[i]);
    free(p->names);
    p->names = NULL;
    p->n = p->cap = 0;
}

static size_t span_hex8(const char *p)
{
    return strspn(p, "0123456789abcdef") == 8 ? 8 : 0;
}

/* PREFIX-XXXXXXXX-NNNNNN.tar.zst */
bool spk_is_shard_name(const char *name)
{
    size_t prefix = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const char *p = name + prefix;
    if (prefix == 0 || *p != '-' || span_hex8(p + 1) == 0 || p[9] != '-')
        return false;
    size_t digits = strspn(p + 10, "0123456789");
    return digits >= 6 && strcmp(p + 10 + digits, ".tar.zst") == 0;
}

bool spk_is_table_name(const char *name)
{
    return strncmp(name, "shards-", 7) == 0 && span_hex8(name + 7) && strcmp(name + 15, ".tsv") == 0;
}

/* What spk_publish_file leaves when it is killed: .NAME.part */
static bool is_part_name(const char *name)
{
    return strcmp(name, "." SPK_MANIFEST_NAME ".part") == 0 || strcmp(name, ".bad-files.tsv.part") == 0 ||
           (strncmp(name, ".shards-", 8) == 0 && span_hex8(name + 8) && strcmp(name + 16, ".tsv.part") == 0);
}

/* journal*, NNNNNN.part, NNNNNN.done in the work folder. */
static bool is_work_name(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return strncmp(name, "journal", 7) == 0 ||
           (digits >= 6 && (strcmp(name + digits, ".part") == 0 || strcmp(name + digits, ".done") == 0));
}

static bool is_ours(const char *name, bool work)
{
    return work ? is_work_name(name) : spk_is_shard_name(name) || spk_is_table_name(name) || is_part_name(name);
}

static spk_status add_name(prune *p, const char *folder, const char *name, spk_error *err)
{
    SPK_TRY(spk_grow(&p->names, &p->cap, p->n + 1, sizeof *p->names, err));
    char *full = NULL;
    if (folder)
        SPK_TRY(spk_path_join(&full, folder, name, err));
    else if (!(full = strdup(name)))
        return spk_error_nomem(err, strlen(name) + 1);
    p->names[p->n++] = full;
    return SPK_OK;
}

/* Lists what is ours in the folder (sub NULL) or its sub-folder; a missing sub-folder is empty. */
static spk_status list(prune *p, const char *sub, spk_error *err)
{
    int fd = openat(p->dirfd, sub ? sub : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return sub && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
                   ? SPK_OK
                   : spk_error_sys(err, errno, "%s/%s", p->folder, sub ? sub : "");
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int e = errno;
        close(fd);
        return spk_error_sys(err, e, "%s", p->folder);
    }
    spk_status status = SPK_OK;
    while (status == SPK_OK) {
        errno = 0;
        const struct dirent *entry = readdir(dir); /* a stream of our own: no other thread uses it */
        if (!entry) {
            if (errno)
                status = spk_error_sys(err, errno, "%s", p->folder);
            break;
        }
        if (is_ours(entry->d_name, sub != NULL))
            status = add_name(p, sub, entry->d_name, err);
    }
    closedir(dir);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static spk_status remove_one(prune *p, const char *name, spk_error *err)
{
    struct stat st;
    if (fstatat(p->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? SPK_OK : spk_error_sys(err, errno, "%s/%s", p->folder, name);
    if (!S_ISREG(st.st_mode))
        return SPK_OK;
    if (!p->options.dry_run && unlinkat(p->dirfd, name, 0) != 0)
        return spk_error_sys(err, errno, "%s/%s", p->folder, name);
    p->result->files++;
    p->result->bytes += (uint64_t)st.st_size;
    if (!p->options.on_file)
        return SPK_OK;
    char *full = NULL;
    if (p->split)
        SPK_TRY(spk_path_join(&full, p->split, name, err));
    p->options.on_file(p->options.user, full ? full : name, (uint64_t)st.st_size);
    free(full);
    return SPK_OK;
}

spk_status spk_kept_make(spk_kept *k, const spk_dataset *d, spk_error *err)
{
    const spk_catalog *c = &d->catalog;
    *k = (spk_kept){.dataset = d, .paths = calloc(c->n + 1, sizeof *k->paths)};
    if (!k->paths)
        return spk_error_nomem(err, c->n * sizeof *k->paths);
    for (size_t i = 0; i < c->n; i++)
        k->paths[i] = spk_catalog_path(c, i);
    qsort(k->paths, c->n, sizeof *k->paths, compare_names);
    return SPK_OK;
}

bool spk_kept_has(const spk_kept *k, const char *name)
{
    return strcmp(name, k->dataset->manifest.table_name) == 0 ||
           bsearch(&name, k->paths, k->dataset->catalog.n, sizeof *k->paths, compare_names);
}

void spk_kept_free(spk_kept *k)
{
    free(k->paths);
    k->paths = NULL;
}

static spk_status remove_unnamed(prune *p, const spk_dataset *d, spk_error *err)
{
    spk_kept kept;
    spk_status status = spk_kept_make(&kept, d, err);
    for (size_t i = 0; i < p->n && status == SPK_OK; i++)
        if (!spk_kept_has(&kept, p->names[i]))
            status = remove_one(p, p->names[i], err);
    spk_kept_free(&kept);
    return status;
}

static spk_status prune_locked(prune *p, const void *arg, spk_error *err)
{
    const char *path = arg;
    spk_dataset *d = NULL;
    SPK_TRY(spk_dataset_open(&d, path, NULL, err));
    spk_status status = list(p, NULL, err);
    if (status == SPK_OK)
        status = list(p, SPK_WORK_FOLDER, err);
    if (status == SPK_OK) {
        if (p->n > 0)
            qsort(p->names, p->n, sizeof *p->names, compare_names);
        status = remove_unnamed(p, d, err);
    }
    spk_dataset_close(d);
    return status;
}

static bool has_lock(int dirfd)
{
    struct stat st;
    return fstatat(dirfd, SPK_WORK_LOCK, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Opens and locks p->folder, and runs the function. */
static spk_status with_lock(prune *p, const void *arg, spk_status (*fn)(prune *p, const void *arg, spk_error *err),
                            spk_error *err)
{
    int lock = -1;
    p->dirfd = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->dirfd < 0)
        return spk_error_sys(err, errno, "%s", p->folder);
    bool locked = !p->options.dry_run || has_lock(p->dirfd); /* a dry run makes nothing, not even the lock */
    spk_status status = locked ? spk_work_lock(p->dirfd, p->folder, &lock, err) : SPK_OK;
    if (status == SPK_OK)
        status = fn(p, arg, err);
    if (lock >= 0 && !p->options.dry_run) {
        unlinkat(p->dirfd, SPK_WORK_LOCK, 0);
        unlinkat(p->dirfd, SPK_WORK_FOLDER, AT_REMOVEDIR); /* stays if something else is in it */
    }
    if (lock >= 0)
        close(lock);
    close(p->dirfd);
    return status;
}

/* Names of the splits in a folder, sorted. */
typedef struct splits {
    char **names;
    size_t n, cap;
} splits;

/* The packer writes the name of the split into its manifest, so that other datasets beside it can be told from it. */
static spk_status is_split(const char *path, const char *name, bool *out, spk_error *err)
{
    spk_dataset *d = NULL;
    SPK_TRY(spk_dataset_open(&d, path, NULL, err));
    json_t *pack = d->manifest.pack ? json_loads(d->manifest.pack, 0, NULL) : NULL;
    const char *split = json_string_value(json_object_get(pack, "split"));
    *out = split && strcmp(split, name) == 0;
    json_decref(pack);
    spk_dataset_close(d);
    return SPK_OK;
}

static spk_status add_split(splits *s, int dirfd, const char *folder, const char *name, spk_error *err)
{
    char *path = NULL, *manifest = NULL;
    struct stat st;
    bool found = false;
    if (name[0] == '.')
        return SPK_OK;
    spk_status status = spk_path_join(&path, folder, name, err);
    if (status == SPK_OK)
        status = spk_path_join(&manifest, name, SPK_MANIFEST_NAME, err);
    if (status == SPK_OK && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
        fstatat(dirfd, manifest, &st, 0) == 0)
        status = is_split(path, name, &found, err);
    if (status == SPK_OK && found)
        status = spk_grow(&s->names, &s->cap, s->n + 1, sizeof *s->names, err);
    if (status == SPK_OK && found) {
        s->names[s->n] = strdup(name);
        status = s->names[s->n] ? SPK_OK : spk_error_nomem(err, strlen(name) + 1);
        s->n += s->names[s->n] != NULL;
    }
    free(path);
    free(manifest);
    return status;
}

/* Finds none in what is no folder, or has a manifest of its own. */
static spk_status find_splits(splits *s, const char *folder, spk_error *err)
{
    struct stat st;
    DIR *dir = opendir(folder);
    spk_status status = SPK_OK;
    if (!dir)
        return SPK_OK;
    bool own = fstatat(dirfd(dir), SPK_MANIFEST_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
    while (!own && status == SPK_OK) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (!e && errno)
            status = spk_error_sys(err, errno, "%s", folder);
        if (!e)
            break;
        status = add_split(s, dirfd(dir), folder, e->d_name, err);
    }
    closedir(dir);
    if (s->n > 0)
        qsort(s->names, s->n, sizeof *s->names, compare_names);
    return status;
}

/* What the packing of splits leaves in the folder above them, then the splits. */
static spk_status prune_splits(prune *p, const void *arg, spk_error *err)
{
    const splits *s = arg;
    SPK_TRY(remove_one(p, ".bad-files.tsv.part", err));
    SPK_TRY(list(p, SPK_WORK_FOLDER, err));
    if (p->n > 0)
        qsort(p->names, p->n, sizeof *p->names, compare_names);
    for (size_t i = 0; i < p->n; i++)
        SPK_TRY(remove_one(p, p->names[i], err));
    for (size_t i = 0; i < s->n; i++) {
        char *path = NULL;
        SPK_TRY(spk_path_join(&path, p->folder, s->names[i], err));
        prune one = {.options = p->options, .result = p->result, .folder = path, .split = s->names[i], .dirfd = -1};
        spk_status status = with_lock(&one, path, prune_locked, err);
        drop_names(&one);
        free(path);
        if (status < 0)
            return status;
    }
    return SPK_OK;
}

spk_status spk_prune(const char *path, const spk_prune_options *options, spk_prune_result *result, spk_error *err)
{
    spk_prune_result unused = {0};
    prune p = {.result = result ? result : &unused, .dirfd = -1};
    splits s = {0};
    spk_dataset *d = NULL;
    spk_error missing;
    spk_error_clear(&missing);
    memset(p.result, 0, sizeof *p.result);
    SPK_TRY(spk_options_copy(&p.options, sizeof p.options, options, err));
    if (path && spk_url_is_remote(path))
        return spk_url_refuse(path, "must be a folder; `shardpack mirror --prune` removes old shards there", err);
    spk_status status = spk_dataset_open(&d, path, NULL, &missing); /* finds the folder; read again under the lock */
    spk_status found = status == SPK_E_NOT_FOUND ? find_splits(&s, path, err) : SPK_OK;
    if (found < 0) {
        status = found;
    } else if (status == SPK_OK) {
        p.folder = spk_dataset_folder(d);
        status = with_lock(&p, path, prune_locked, err);
    } else if (s.n > 0) {
        p.folder = path;
        status = with_lock(&p, &s, prune_splits, err);
    } else if (err) {
        *err = missing;
    }
    drop_names(&p);
    for (size_t i = 0; i < s.n; i++)
        free(s.names[i]);
    free(s.names);
    spk_dataset_close(d);
    return status;
}
