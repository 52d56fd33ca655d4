/* What an open dataset tells of itself, and its shards. All of it is read-only on the dataset. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dataset/dataset.h"

void spk_dataset_get_stat(const spk_dataset *d, spk_dataset_stat *out)
{
    const spk_manifest *m = &d->manifest;
    *out = (spk_dataset_stat){.samples = d->catalog.samples,
                              .shards = d->catalog.n,
                              .frames = d->catalog.frames,
                              .bytes = d->catalog.bytes,
                              .tar_bytes = d->catalog.tar_bytes,
                              .payload_bytes = m->payload_bytes,
                              .shuffled = m->shuffled};
}

const char *spk_dataset_fingerprint(const spk_dataset *d)
{
    return d->manifest.fingerprint;
}

const char *spk_dataset_folder(const spk_dataset *d)
{
    return d->folder;
}

const char *spk_dataset_manifest(const spk_dataset *d)
{
    return d->text;
}

size_t spk_dataset_class_count(const spk_dataset *d)
{
    return d->manifest.classes_n;
}

const char *spk_dataset_class_name(const spk_dataset *d, size_t i)
{
    return i < d->manifest.classes_n ? d->manifest.classes[i] : NULL;
}

size_t spk_dataset_field_count(const spk_dataset *d)
{
    return d->manifest.fields_n;
}

spk_status spk_dataset_get_field(const spk_dataset *d, size_t i, spk_field_stat *out, spk_error *err)
{
    if (i >= d->manifest.fields_n)
        return spk_error_set(err, SPK_E_INVALID, "field %zu of %zu", i, d->manifest.fields_n);
    const spk_manifest_field *f = &d->manifest.fields[i];
    *out = (spk_field_stat){f->name, f->kind, f->samples};
    return SPK_OK;
}

static spk_status check_number(const spk_dataset *d, uint64_t i, spk_error *err)
{
    if (i >= d->catalog.n)
        return spk_error_set(err, SPK_E_INVALID, "%s: shard %" PRIu64 " of %zu", d->folder, i, d->catalog.n);
    return SPK_OK;
}

spk_status spk_dataset_get_shard(const spk_dataset *d, uint64_t i, spk_shard_row *out, spk_error *err)
{
    SPK_TRY(check_number(d, i, err));
    const spk_catalog_row *row = &d->catalog.rows[i];
    *out = (spk_shard_row){.path = spk_catalog_path(&d->catalog, (size_t)i),
                           .first_sample = row->first_sample,
                           .samples = row->samples,
                           .frames = row->frames,
                           .bytes = row->bytes,
                           .tar_bytes = row->tar_bytes,
                           .index_offset = row->index_offset};
    memcpy(out->tail_sha256, row->tail_sha256, sizeof out->tail_sha256);
    return SPK_OK;
}

spk_status spk_dataset_open_shard_source(const spk_dataset *d, uint64_t i, spk_source **out, spk_shard_expect *expect,
                                         spk_error *err)
{
    char *path = NULL;
    *out = NULL;
    SPK_TRY(check_number(d, i, err));
    const spk_catalog_row *row = &d->catalog.rows[i];
    *expect = (spk_shard_expect){.samples = row->samples,
                                 .frames = row->frames,
                                 .bytes = row->bytes,
                                 .tar_bytes = row->tar_bytes,
                                 .index_offset = row->index_offset};
    memcpy(expect->tail_sha256, row->tail_sha256, sizeof expect->tail_sha256);
    if (d->net) {
        const spk_net_object object = {
            .size = row->bytes, .units = (uint64_t)row->frames + 1, .digest = row->tail_sha256};
        return spk_net_open(d->net, spk_catalog_path(&d->catalog, (size_t)i), &object, out, err);
    }
    spk_status status = spk_path_join(&path, d->folder, spk_catalog_path(&d->catalog, (size_t)i), err);
    if (status == SPK_OK)
        status = spk_source_open(out, path, err);
    free(path);
    return status;
}

spk_status spk_dataset_open_shard(const spk_dataset *d, uint64_t i, spk_shard **out, spk_error *err)
{
    spk_source *source = NULL;
    spk_shard_expect expect;
    spk_shard_options options = {.size = sizeof options, .verify_full = d->verify_full};
    *out = NULL;
    SPK_TRY(spk_dataset_open_shard_source(d, i, &source, &expect, err));
    return spk_shard_open_source(out, source, &expect, &options, err);
}

spk_status spk_dataset_locate(const spk_dataset *d, uint64_t number, uint64_t *shard, uint64_t *within, spk_error *err)
{
    if (number >= d->catalog.samples)
        return spk_error_set(err, SPK_E_INVALID, "%s: sample %" PRIu64 " of %" PRIu64, d->folder, number,
                             d->catalog.samples);
    size_t row = spk_catalog_find(&d->catalog, number);
    *shard = row;
    *within = number - d->catalog.rows[row].first_sample;
    return SPK_OK;
}
