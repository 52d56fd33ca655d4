/* A dataset by URL: mirrors and options from the caller, the manifest and the environment; manifest and table, each
 * fetched whole. The table has its digest in the manifest; the manifest has none, so mirrors vote on it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dataset/dataset.h"
#include "dataset/table.h"
#include "io/cache.h"

static spk_status make_net(spk_dataset *d, const char *url, const spk_dataset_options *o, char **name, spk_error *err)
{
    const spk_net_options options = {.deadline = o->deadline,
                                     .cache_dir = o->cache_dir,
                                     .cache_limit = o->cache_limit,
                                     .plain_credentials = o->plain_credentials,
                                     .on_wait = o->on_wait,
                                     .user = o->user};
    SPK_TRY(spk_net_new(&d->net, &options, err));
    SPK_TRY(spk_net_add_folder_of(d->net, url, name, err));
    for (size_t i = 0; i < o->mirror_count; i++)
        SPK_TRY(spk_net_add_mirror(d->net, o->mirrors[i], err));
    return SPK_OK;
}

static spk_status fetch_manifest(spk_dataset *d, const char *name, size_t attempt, spk_error *err)
{
    spk_source *source = NULL;
    char *text = NULL;
    size_t n = 0;
    SPK_TRY(spk_net_fetch(d->net, name, SPK_MANIFEST_MAX, attempt, &text, &n, &d->vote, err));
    spk_status status = spk_source_memory(&source, text, n, d->manifest_path, err);
    if (status == SPK_OK)
        status = spk_dataset_parse(d, source, err);
    if (status < 0)
        d->vote.agreed = false; /* on something that is no manifest */
    spk_source_close(source);
    free(text);
    return status;
}

spk_status spk_dataset_connect(spk_dataset *d, const char *url, const spk_dataset_options *options, size_t attempt,
                               spk_error *err)
{
    char *name = NULL;
    spk_status status = make_net(d, url, options, &name, err);
    if (status == SPK_OK) {
        d->folder = strdup(spk_net_mirror_name(d->net, 0));
        status = d->folder ? spk_path_join(&d->manifest_path, d->folder, name, err) : spk_error_nomem(err, 0);
    }
    if (status == SPK_OK)
        status = fetch_manifest(d, name, attempt, err);
    if (status < 0 && d->manifest_path)
        spk_error_prefix(err, "%s", d->manifest_path);
    for (size_t i = 0; i < d->manifest.mirrors_n && status == SPK_OK; i++) {
        status = spk_net_add_mirror(d->net, d->manifest.mirrors[i], err);
        if (status < 0)
            spk_error_prefix(err, "%s: key \"mirrors\"", d->manifest_path);
    }
    free(name);
    return status;
}

spk_status spk_dataset_fetch_table(const spk_dataset *d, uint8_t **text, spk_source **out, spk_error *err)
{
    const spk_manifest *m = &d->manifest;
    const spk_source_check check = {m->table_sha256, sizeof m->table_sha256, 0};
    const spk_net_object object = {.size = m->table_bytes, .units = 1, .digest = m->table_sha256};
    spk_source *source = NULL;
    *out = NULL;
    *text = NULL;
    if (m->table_bytes == 0 || m->table_bytes / SPK_TABLE_LINE_MAX > m->shards + 1)
        return spk_error_set(err, SPK_E_FORMAT, "%s: key \"table.bytes\" is %" PRIu64 ", for %" PRIu64 " shards",
                             d->manifest_path, m->table_bytes, m->shards);
    *text = malloc((size_t)m->table_bytes);
    if (!*text)
        return spk_error_nomem(err, (size_t)m->table_bytes);
    SPK_TRY(spk_net_open(d->net, m->table_name, &object, &source, err));
    spk_status status = spk_source_pread_checked(source, *text, (size_t)m->table_bytes, 0, &check, err);
    spk_source_close(source);
    if (status < 0) {
        spk_error_prefix(err, "%s", d->table_path);
        return status;
    }
    return spk_source_memory(out, *text, (size_t)m->table_bytes, d->table_path, err);
}

static spk_status look_at_cache(const char *folder, bool clear, spk_cache_stat *out, spk_error *err)
{
    spk_cache_look_result found;
    memset(out, 0, sizeof *out);
    if (!folder || !*folder)
        return spk_error_set(err, SPK_E_INVALID, "the cache folder is empty");
    SPK_TRY(spk_cache_look(folder, clear, &found, err));
    *out = (spk_cache_stat){found.entries, found.bytes, found.in_use};
    return SPK_OK;
}

spk_status spk_cache_get_stat(const char *cache_dir, spk_cache_stat *out, spk_error *err)
{
    return look_at_cache(cache_dir, false, out, err);
}

spk_status spk_cache_clear(const char *cache_dir, spk_cache_stat *out, spk_error *err)
{
    return look_at_cache(cache_dir, true, out, err);
}
