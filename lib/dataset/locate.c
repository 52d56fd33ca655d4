/* From what the user names (folder, manifest, URL of either) to the manifest's path. Looks at the file system, changes
 * nothing. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "dataset/dataset.h"
#include "dataset/publish.h"
#include "io/url.h"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_url(const char *path)
{
    static const char scheme[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
    size_t n = strspn(path, scheme);
    return n > 0 && strncmp(path + n, "://", 3) == 0;
}

spk_status spk_path_join(char **out, const char *folder, const char *name, spk_error *err)
{
    size_t n = strlen(folder), m = strlen(name);
    char *path = malloc(n + m + 2);
    *out = path;
    if (!path)
        return spk_error_nomem(err, n + m + 2);
    memcpy(path, folder, n);
    path[n] = '/';
    memcpy(path + n + 1, name, m + 1);
    return SPK_OK;
}

spk_status spk_path_absolute(char **out, const char *path, spk_error *err)
{
    char *here = NULL;
    *out = NULL;
    if (*path == '/' || is_url(path)) {
        *out = strdup(path);
        return *out ? SPK_OK : spk_error_nomem(err, strlen(path) + 1);
    }
    for (size_t cap = 4096; !here; cap *= 2) {
        char *buffer = malloc(cap);
        if (!buffer)
            return spk_error_nomem(err, cap);
        here = getcwd(buffer, cap);
        if (!here) {
            free(buffer);
            if (errno != ERANGE)
                return spk_error_sys(err, errno, "getcwd");
        }
    }
    spk_status status = spk_path_join(out, here, path, err);
    free(here);
    return status;
}

/* path/manifest.json, with slashes at the end of path dropped. */
static spk_status join_manifest(const char *path, char **out, spk_error *err)
{
    char *folder = strdup(path);
    *out = NULL;
    if (!folder)
        return spk_error_nomem(err, strlen(path) + 1);
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        folder[--n] = '\0';
    spk_status status = spk_path_join(out, strcmp(folder, "/") == 0 ? "/." : folder, SPK_MANIFEST_NAME, err);
    free(folder);
    return status;
}

static bool is_unfinished(const char *folder)
{
    struct stat st;
    char *work = NULL;
    bool found = spk_path_join(&work, folder, SPK_WORK_FOLDER, NULL) == SPK_OK && stat(work, &st) == 0;
    free(work);
    return found;
}

static bool has_manifest(const char *folder, const char *sub)
{
    struct stat st;
    char *path = NULL, *manifest = NULL;
    bool found = sub[0] != '.' && spk_path_join(&path, folder, sub, NULL) == SPK_OK &&
                 join_manifest(path, &manifest, NULL) == SPK_OK && stat(manifest, &st) == 0;
    free(path);
    free(manifest);
    return found;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Names of the folders in it that are datasets, as splits are. */
static void list_splits(const char *folder, char *buf, size_t size)
{
    struct dirent **found = NULL;
    int n = scandir(folder, &found, NULL, compare_names);
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < n; i++) {
        const char *sub = found[i]->d_name;
        if (used < size && has_manifest(folder, sub)) {
            const char *shown = used + strlen(sub) + 8 < size ? sub : "...";
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", shown);
            used = shown == sub ? used : size;
        }
        free(found[i]);
    }
    free(found);
}

static spk_status no_manifest(const char *folder, const char *manifest, spk_error *err)
{
    char splits[256];
    list_splits(folder, splits, sizeof splits);
    if (splits[0])
        return spk_error_set(err, SPK_E_NOT_FOUND, "%s: holds no " SPK_MANIFEST_NAME " itself, but these datasets: %s",
                             folder, splits);
    return spk_error_set(err, SPK_E_NOT_FOUND, "%s: no dataset here: %s does not exist%s", folder, manifest,
                         is_unfinished(folder) ? ", packing into this folder has not finished" : "");
}

static spk_status locate_in_folder(const char *path, char **out, spk_error *err)
{
    struct stat st;
    SPK_TRY(join_manifest(path, out, err));
    if (stat(*out, &st) == 0)
        return SPK_OK;
    spk_status status = errno != ENOENT ? spk_error_sys(err, errno, "%s", *out) : no_manifest(path, *out, err);
    free(*out);
    *out = NULL;
    return status;
}

/* A query stays behind the manifest's name. */
static spk_status locate_remote(const char *url, char **out, spk_error *err)
{
    const char *query = strchr(url, '?');
    char *path = query ? strndup(url, (size_t)(query - url)) : strdup(url), *manifest = NULL;
    if (!path)
        return spk_error_nomem(err, strlen(url));
    spk_status status = SPK_OK;
    if (ends_with(path, ".json"))
        manifest = strdup(path);
    else
        status = join_manifest(path, &manifest, err);
    free(path);
    if (status == SPK_OK) {
        *out = manifest ? malloc(strlen(manifest) + (query ? strlen(query) : 0) + 1) : NULL;
        if (*out)
            strcat(strcpy(*out, manifest), query ? query : "");
        else
            status = spk_error_nomem(err, strlen(url));
    }
    free(manifest);
    return status;
}

spk_status spk_manifest_locate(const char *path, char **out, spk_error *err)
{
    struct stat st;
    *out = NULL;
    if (!path || !*path)
        return spk_error_set(err, SPK_E_INVALID, "the dataset's path is empty");
    if (spk_url_is_remote(path))
        return locate_remote(path, out, err);
    if (is_url(path) && !ends_with(path, ".json"))
        return join_manifest(path, out, err);
    if (!is_url(path)) {
        if (stat(path, &st) != 0)
            return errno == ENOENT
                       ? spk_error_set(err, SPK_E_NOT_FOUND, "%s: no such dataset (folder or manifest file)", path)
                       : spk_error_sys(err, errno, "%s", path);
        if (S_ISDIR(st.st_mode))
            return locate_in_folder(path, out, err);
    }
    *out = strdup(path);
    return *out ? SPK_OK : spk_error_nomem(err, strlen(path) + 1);
}

bool spk_path_is_shard(const char *path)
{
    struct stat st;
    if (!path || !*path || ends_with(path, ".json"))
        return false;
    if (spk_url_is_remote(path)) {
        size_t n = strcspn(path, "?"), m = strlen(".tar.zst");
        return n >= m && strncmp(path + n - m, ".tar.zst", m) == 0;
    }
    if (is_url(path))
        return ends_with(path, ".tar.zst");
    return stat(path, &st) == 0 ? !S_ISDIR(st.st_mode) : ends_with(path, ".tar.zst");
}
