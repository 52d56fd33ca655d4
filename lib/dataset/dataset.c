/* Opening a dataset: manifest, then table, then each against the other. Nothing of a shard is read. */
#include "dataset/dataset.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/options.h"
#include "dataset/table.h"
#include "io/url.h"

#define LOADS_MIN 3 /* of a manifest by URL that comes out damaged */

/* Tells err to the sink, if there is one, and forgets it; else it stays the result. */
static spk_status report(const spk_problem_sink *sink, spk_status status, spk_error *err)
{
    if (!sink || status == SPK_OK || status == SPK_E_NOMEM)
        return status;
    sink->on_problem(sink->ctx, err);
    spk_error_clear(err);
    return SPK_OK;
}

spk_status spk_dataset_parse(spk_dataset *d, spk_source *source, spk_error *err)
{
    uint64_t size = spk_source_size(source);
    if (size > SPK_MANIFEST_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "%" PRIu64 " bytes, more than the %u a manifest may have", size,
                             SPK_MANIFEST_MAX);
    free(d->text);
    spk_manifest_free(&d->manifest);
    memset(&d->manifest, 0, sizeof d->manifest);
    d->text = malloc((size_t)size + 1);
    if (!d->text)
        return spk_error_nomem(err, (size_t)size + 1);
    SPK_TRY(spk_source_pread(source, d->text, (size_t)size, 0, err));
    d->text[size] = '\0';
    return spk_manifest_parse(&d->manifest, d->text, (size_t)size, err);
}

static spk_status set_folder(spk_dataset *d, spk_error *err)
{
    char *slash = strrchr(d->manifest_path, '/');
    size_t n = slash ? (size_t)(slash - d->manifest_path) : 0;
    d->folder = n > 0 ? strndup(d->manifest_path, n) : strdup(slash ? "/." : ".");
    return d->folder ? SPK_OK : spk_error_nomem(err, n + 1);
}

static spk_status read_manifest(spk_dataset *d, const char *path, const spk_dataset_options *options, size_t attempt,
                                spk_error *err)
{
    char *located = NULL;
    spk_source *source = NULL;
    SPK_TRY(spk_manifest_locate(path, &located, err));
    if (spk_url_is_remote(located)) {
        spk_status remote = spk_dataset_connect(d, located, options, attempt, err);
        free(located);
        return remote;
    }
    if (options->mirror_count > 0) {
        free(located);
        return spk_error_set(err, SPK_E_INVALID, "%s: mirrors are for a dataset that is opened by URL", path);
    }
    spk_status status = spk_source_open(&source, located, err);
    free(located);
    if (status < 0)
        return status;
    d->manifest_path = strdup(spk_source_name(source)); /* decoded, if it was a file URL */
    if (!d->manifest_path)
        status = spk_error_nomem(err, strlen(spk_source_name(source)) + 1);
    if (status == SPK_OK)
        status = set_folder(d, err);
    if (status == SPK_OK) {
        status = spk_dataset_parse(d, source, err);
        if (status < 0)
            spk_error_prefix(err, "%s", d->manifest_path);
    }
    spk_source_close(source);
    return status;
}

static spk_status check_digest(const spk_dataset *d, const uint8_t digest[32], spk_error *err)
{
    char want[SPK_SHA256_HEX], have[SPK_SHA256_HEX];
    if (memcmp(digest, d->manifest.table_sha256, 32) == 0)
        return SPK_OK;
    spk_hex(want, d->manifest.table_sha256, 32);
    spk_hex(have, digest, 32);
    return spk_error_set(err, SPK_E_CHECKSUM, "%s: SHA-256 mismatch: manifest says %s, file has %s", d->table_path,
                         want, have);
}

/* A damaged table is told as such, not by the first line that the damage broke. */
static spk_status read_rows(spk_dataset *d, spk_source *source, const spk_problem_sink *sink, spk_error *err)
{
    uint8_t digest[32] = {0};
    bool whole = false;
    uint64_t size = spk_source_size(source);
    if (size != d->manifest.table_bytes) {
        spk_error_set(err, SPK_E_FORMAT, "%s: %" PRIu64 " bytes, manifest says %" PRIu64, d->table_path, size,
                      d->manifest.table_bytes);
        SPK_TRY(report(sink, SPK_E_FORMAT, err));
    }
    spk_status parsed = spk_catalog_read(&d->catalog, source, d->manifest.shards, digest, &whole, err);
    if (parsed < 0)
        spk_error_prefix(err, "%s", d->table_path);
    if (!whole || parsed == SPK_E_NOMEM)
        return parsed;
    spk_error mismatch;
    spk_error_clear(&mismatch);
    spk_status checked = check_digest(d, digest, &mismatch);
    if (checked < 0 && !sink)
        *err = mismatch;
    else if (checked < 0)
        sink->on_problem(sink->ctx, &mismatch);
    return checked < 0 && !sink ? checked : parsed;
}

static spk_status read_table(spk_dataset *d, const spk_problem_sink *sink, spk_error *err)
{
    spk_source *source = NULL;
    uint8_t *text = NULL;
    SPK_TRY(spk_path_join(&d->table_path, d->folder, d->manifest.table_name, err));
    spk_status status =
        d->net ? spk_dataset_fetch_table(d, &text, &source, err) : spk_source_open(&source, d->table_path, err);
    if (status == SPK_OK)
        status = read_rows(d, source, sink, err);
    spk_source_close(source);
    free(text);
    return status;
}

static spk_status check_totals(const spk_dataset *d, const spk_problem_sink *sink, spk_error *err)
{
    const spk_manifest *m = &d->manifest;
    const spk_catalog *c = &d->catalog;
    const struct total {
        const char *name;
        uint64_t want, have;
    } totals[] = {{"shards", m->shards, c->n},
                  {"samples", m->samples, c->samples},
                  {"frames", m->frames, c->frames},
                  {"bytes", m->bytes, c->bytes},
                  {"tar_bytes", m->tar_bytes, c->tar_bytes}};
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        if (totals[i].want == totals[i].have)
            continue;
        spk_error_set(err, SPK_E_FORMAT, "%s: %s is %" PRIu64 ", the shard table %s %" PRIu64, d->manifest_path,
                      totals[i].name, totals[i].want, i == 0 ? "has" : "adds up to", totals[i].have);
        SPK_TRY(report(sink, SPK_E_FORMAT, err));
    }
    char hex[SPK_SHA256_HEX];
    spk_hex(hex, c->fingerprint, sizeof c->fingerprint);
    if (strcmp(hex, m->fingerprint) == 0)
        return SPK_OK;
    spk_error_set(err, SPK_E_FORMAT, "%s: fingerprint is %s, the shard table's digests give %s", d->manifest_path,
                  m->fingerprint, hex);
    return report(sink, SPK_E_FORMAT, err);
}

/* One attempt. *again: what came over the network was damaged, and may be sound the next time or from another mirror.
 */
static spk_status load_once(spk_dataset **out, const char *path, const spk_dataset_options *options,
                            const spk_problem_sink *sink, size_t attempt, bool *again, spk_error *err)
{
    spk_dataset *d = calloc(1, sizeof *d);
    *again = false;
    if (!d)
        return spk_error_nomem(err, sizeof *d);
    d->verify_full = options->verify_full;
    spk_status status = read_manifest(d, path, options, attempt, err);
    if (status == SPK_OK)
        status = read_table(d, sink, err);
    if (status == SPK_OK)
        status = check_totals(d, sink, err);
    if (status < 0) {
        bool damaged = status == SPK_E_FORMAT || status == SPK_E_CHECKSUM || status == SPK_E_UNSUPPORTED;
        *again = d->net && damaged && !d->vote.agreed && (attempt + 1 < LOADS_MIN || attempt + 1 < d->vote.different);
        spk_dataset_close(d);
        return status;
    }
    *out = d;
    return SPK_OK;
}

spk_status spk_dataset_load(spk_dataset **out, const char *path, const spk_dataset_options *options,
                            const spk_problem_sink *sink, spk_error *err)
{
    spk_dataset_options opt = {0};
    spk_error local; /* problems need a record also if the caller wants none */
    bool again = true;
    *out = NULL;
    SPK_TRY(spk_options_copy(&opt, sizeof opt, options, err));
    spk_error_clear(&local);
    spk_status status = SPK_OK;
    for (size_t attempt = 0; again; attempt++)
        status = load_once(out, path, &opt, sink, attempt, &again, &local);
    if (status < 0 && err)
        *err = local;
    return status;
}

spk_status spk_dataset_open(spk_dataset **out, const char *path, const spk_dataset_options *options, spk_error *err)
{
    return spk_dataset_load(out, path, options, NULL, err);
}

void spk_dataset_close(spk_dataset *d)
{
    if (!d)
        return;
    spk_shard_close(d->shard);
    spk_keytab_free(&d->keys);
    spk_catalog_free(&d->catalog);
    spk_manifest_free(&d->manifest);
    free(d->text);
    free(d->table_path);
    free(d->manifest_path);
    free(d->folder);
    spk_net_free(d->net);
    free(d);
}
