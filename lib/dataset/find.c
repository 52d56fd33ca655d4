/* Finding a sample by its key. The first search reads the index of every shard into a table of hashes; each search then
 * compares the real key of the samples whose hash is equal. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "dataset/dataset.h"

static spk_status add_shard_keys(spk_dataset *d, uint64_t number, spk_error *err)
{
    spk_shard *shard = NULL;
    SPK_TRY(spk_dataset_open_shard(d, number, &shard, err));
    const spk_index *index = spk_shard_index(shard);
    uint64_t first = d->catalog.rows[number].first_sample;
    spk_status status = SPK_OK;
    for (uint64_t i = 0; i < index->samples_n && status == SPK_OK; i++) {
        const spk_index_sample *s = &index->samples[i];
        status = spk_keytab_add(&d->keys, spk_key_hash(index->strings + s->key, s->key_len), first + i, err);
    }
    spk_shard_close(shard);
    return status;
}

static spk_status load_keys(spk_dataset *d, spk_error *err)
{
    if (d->have_keys)
        return SPK_OK;
    spk_status status = SPK_OK;
    for (uint64_t i = 0; i < d->catalog.n && status == SPK_OK; i++)
        status = add_shard_keys(d, i, err);
    if (status < 0) {
        spk_keytab_free(&d->keys);
        return status;
    }
    spk_keytab_sort(&d->keys);
    d->have_keys = true;
    return SPK_OK;
}

/* Key of a sample, borrowed from the shard that stays open until the next call. */
static spk_status key_of(spk_dataset *d, uint64_t number, const char **out, spk_error *err)
{
    uint64_t shard = 0, within = 0;
    SPK_TRY(spk_dataset_locate(d, number, &shard, &within, err));
    if (!d->shard || d->shard_number != shard) {
        spk_shard_close(d->shard);
        d->shard = NULL;
        SPK_TRY(spk_dataset_open_shard(d, shard, &d->shard, err));
        d->shard_number = shard;
    }
    *out = spk_shard_key(d->shard, within);
    return *out ? SPK_OK
                : spk_error_set(err, SPK_E_CHANGED, "%s: sample %" PRIu64 " is gone", spk_shard_name(d->shard), within);
}

spk_status spk_dataset_find(spk_dataset *d, const char *key, uint64_t *out, spk_error *err)
{
    size_t n = 0;
    if (!key)
        return spk_error_set(err, SPK_E_INVALID, "no key given");
    SPK_TRY(load_keys(d, err));
    const spk_keytab_entry *entry = spk_keytab_find(&d->keys, spk_key_hash(key, strlen(key)), &n);
    for (size_t i = 0; i < n; i++) {
        const char *have = NULL;
        SPK_TRY(key_of(d, entry[i].number, &have, err));
        if (strcmp(have, key) == 0) {
            *out = entry[i].number;
            return SPK_OK;
        }
    }
    return spk_error_set(err, SPK_E_NOT_FOUND, "%s: no sample has the key \"%s\"", d->folder, key);
}
