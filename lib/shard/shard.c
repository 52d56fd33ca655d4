/* Asking an open shard about its samples. Everything is in memory; read-shareable. */
#include "shard/shard.h"

#include <string.h>

#include "shard/shard_impl.h"

void spk_shard_get_stat(const spk_shard *shard, spk_shard_stat *out)
{
    *out = (spk_shard_stat){shard->index->samples_n, shard->frames, shard->bytes, shard->index->tar_bytes,
                            shard->index_offset};
}

const char *spk_shard_key(const spk_shard *shard, uint64_t i)
{
    return i < shard->index->samples_n ? shard->index->strings + shard->index->samples[i].key : NULL;
}

uint64_t spk_shard_frame_of(const spk_shard *shard, uint64_t i)
{
    const uint32_t *first = shard->index->frame_first;
    size_t low = 0, high = shard->frames; /* first[low] <= i < first[high] */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (first[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

size_t spk_shard_member_count(const spk_shard *shard, uint64_t i)
{
    return i < shard->index->samples_n ? shard->index->samples[i].members : 0;
}

spk_status spk_shard_get_member(const spk_shard *shard, uint64_t i, size_t m, spk_member *out, spk_error *err)
{
    const spk_index *x = shard->index;
    if (i >= x->samples_n || m >= x->samples[i].members)
        return spk_error_set(err, SPK_E_INVALID, "%s: no member %zu of sample %llu", shard->name, m,
                             (unsigned long long)i);
    const spk_index_member *member = &x->members[x->samples[i].first + m];
    *out = (spk_member){x->fields[member->field].name,
                        x->fields[member->field].encoding,
                        member->path_len > 0 ? x->strings + member->path : NULL,
                        member->offset,
                        member->size,
                        member->original};
    return SPK_OK;
}

spk_status spk_shard_find(const spk_shard *shard, const char *key, uint64_t *out, spk_error *err)
{
    const spk_index *x = shard->index;
    size_t len = strlen(key);
    for (uint64_t i = 0; i < x->samples_n; i++) {
        if (x->samples[i].key_len != len || memcmp(x->strings + x->samples[i].key, key, len) != 0)
            continue;
        *out = i;
        return SPK_OK;
    }
    return spk_error_set(err, SPK_E_NOT_FOUND, "%s: no sample has the key \"%s\"", shard->name, key);
}

const spk_index *spk_shard_index(const spk_shard *shard)
{
    return shard->index;
}

spk_source *spk_shard_source(const spk_shard *shard)
{
    return shard->source;
}

const char *spk_shard_name(const spk_shard *shard)
{
    return shard->name;
}

void spk_shard_frame_range(const spk_shard *shard, uint64_t f, uint64_t *offset, uint32_t *bytes, uint32_t *content)
{
    *offset = shard->offsets[f];
    *bytes = shard->entries[f].bytes;
    *content = shard->entries[f].content;
}
