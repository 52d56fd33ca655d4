/* The indices ascend, as the shards do: one pass over both finds what is where. */
#include "load/choice.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

#define PART 512u /* indices hashed at a time */

spk_status spk_choice_check(const spk_choice *c, uint64_t samples, spk_error *err)
{
    if (!c->indices && c->n > 0)
        return spk_error_set(err, SPK_E_INVALID, "index_count of %" PRIu64 " without indices", c->n);
    if (!c->indices)
        return SPK_OK;
    if (c->n == 0)
        return spk_error_set(err, SPK_E_INVALID, "indices: there are none; at least one sample must be chosen");
    for (uint64_t i = 0; i < c->n; i++) {
        uint64_t index = c->indices[i];
        if (index >= samples)
            return spk_error_set(err, SPK_E_INVALID,
                                 "indices: %" PRIu64 " at place %" PRIu64 ": the dataset has %" PRIu64 " samples",
                                 index, i, samples);
        if (i > 0 && index <= c->indices[i - 1])
            return spk_error_set(err, SPK_E_INVALID,
                                 "indices: %" PRIu64 " at place %" PRIu64 " comes after %" PRIu64
                                 ": they must ascend, each once",
                                 index, i, c->indices[i - 1]);
    }
    return SPK_OK;
}

uint64_t spk_choice_count(const spk_choice *c, const spk_shard_row *row, uint64_t *at)
{
    uint64_t begin = *at, end = row->first_sample + row->samples, low = *at, high = c->n;
    if (!c->indices)
        return row->samples;
    while (low < high) { /* the first one that is not in the shard */
        uint64_t middle = low + (high - low) / 2;
        if (c->indices[middle] < end)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return low - begin;
}

spk_status spk_choice_narrow(const spk_choice *c, const spk_dataset *dataset, spk_dataset_stat *stat, spk_error *err)
{
    spk_shard_row row;
    uint64_t at = 0, shards = 0, frames = 0;
    if (!c->indices)
        return SPK_OK;
    for (uint64_t i = 0; i < stat->shards; i++) {
        SPK_TRY(spk_dataset_get_shard(dataset, i, &row, err));
        uint64_t n = spk_choice_count(c, &row, &at);
        shards += n > 0;
        frames += n < row.frames ? n : row.frames;
    }
    stat->samples = c->n;
    stat->shards = shards;
    stat->frames = frames;
    return SPK_OK;
}

spk_status spk_choice_name(const spk_choice *c, char out[SPK_CHOICE_CHARS], spk_error *err)
{
    uint8_t part[PART * 8], digest[SPK_SHA256_BYTES];
    spk_sha256 *hash = NULL;
    out[0] = '\0';
    if (!c->indices)
        return SPK_OK;
    SPK_TRY(spk_sha256_new(&hash, err));
    spk_sha256_init(hash);
    for (uint64_t i = 0; i < c->n;) {
        size_t n = 0;
        for (; n < PART && i < c->n; n++, i++)
            spk_le64_store(part + 8 * n, c->indices[i]);
        spk_sha256_update(hash, part, 8 * n);
    }
    spk_sha256_final(hash, digest);
    spk_sha256_free(hash);
    spk_hex(out, digest, (SPK_CHOICE_CHARS - 1) / 2);
    return SPK_OK;
}
