/* Parsing the fixed part of the shard index and unpacking its sample list; the list itself is index_list.c. Nothing is
 * trusted: counts are held against the bytes that are really there before memory is taken for them. Confined. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "shard/format.h"
#include "shard/frame.h"
#include "shard/index_list.h"

void spk_index_free(spk_index *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->fields_n; i++) {
        free(x->fields[i].name);
        free(x->fields[i].encoding);
    }
    free(x->fields);
    free(x->frame_first);
    free(x->digests);
    free(x->samples);
    free(x->members);
    free(x->strings);
    free(x);
}

/* What the fixed part says, besides what goes into the index. */
struct fixed {
    const uint8_t *frames;
    const uint8_t *list;
    uint32_t list_bytes;
    uint32_t list_content;
};

static spk_status check_magic(const uint8_t *p, size_t bytes, spk_error *err)
{
    if (bytes < SPK_SKIP_HEADER + SPK_INDEX_FIXED)
        return spk_error_set(err, SPK_E_FORMAT, "%zu bytes are too few", bytes);
    if (spk_le32_load(p) != SPK_INDEX_FRAME_MAGIC || memcmp(p + SPK_SKIP_HEADER, SPK_INDEX_MAGIC, 8) != 0)
        return spk_error_set(err, SPK_E_FORMAT, "magic not found, not a shardpack shard");
    if (spk_le32_load(p + 4) != bytes - SPK_SKIP_HEADER)
        return spk_error_set(err, SPK_E_FORMAT, "header says %u bytes, the seek table %zu", spk_le32_load(p + 4),
                             bytes - SPK_SKIP_HEADER);
    uint32_t version = spk_le32_load(p + SPK_SKIP_HEADER + 8), flags = spk_le32_load(p + SPK_SKIP_HEADER + 12);
    if (version > SPK_INDEX_VERSION)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "version %u is newer than this library reads (%u)", version,
                             SPK_INDEX_VERSION);
    if (version != SPK_INDEX_VERSION)
        return spk_error_set(err, SPK_E_FORMAT, "version %u does not exist", version);
    if (flags != 0)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "flags 0x%08x are unknown to this library", flags);
    return SPK_OK;
}

static spk_status parse_fixed(spk_index *x, struct fixed *out, const uint8_t *p, size_t bytes, size_t frames,
                              spk_error *err)
{
    SPK_TRY(check_magic(p, bytes, err));
    const uint8_t *f = p + SPK_SKIP_HEADER;
    size_t body = bytes - SPK_SKIP_HEADER;
    x->frames = spk_le32_load(f + 16);
    x->samples_n = spk_le32_load(f + 20);
    x->tar_bytes = spk_le64_load(f + 24);
    out->list_bytes = spk_le32_load(f + 32);
    out->list_content = spk_le32_load(f + 36);
    if (x->frames == 0 || x->samples_n < x->frames)
        return spk_error_set(err, SPK_E_FORMAT, "%llu samples in %llu frames: none may be empty",
                             (unsigned long long)x->samples_n, (unsigned long long)x->frames);
    if (x->frames != frames)
        return spk_error_set(err, SPK_E_FORMAT, "lists %llu data frames, the seek table %zu",
                             (unsigned long long)x->frames, frames);
    uint64_t want = SPK_INDEX_FIXED + SPK_INDEX_PER_FRAME * x->frames + out->list_bytes;
    if (want != body)
        return spk_error_set(err, SPK_E_FORMAT, "%llu frames and a list of %u bytes take %llu bytes, there are %zu",
                             (unsigned long long)x->frames, out->list_bytes, (unsigned long long)want, body);
    out->frames = f + SPK_INDEX_FIXED;
    out->list = out->frames + SPK_INDEX_PER_FRAME * x->frames;
    if (out->list_content > SPK_INDEX_LIST_MAX || out->list_bytes > SPK_FRAME_BYTES_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "sample list of %u bytes in %u, at most %u in %u are allowed",
                             out->list_content, out->list_bytes, SPK_INDEX_LIST_MAX, SPK_FRAME_BYTES_MAX);
    if (out->list_content > spk_frame_content_bound(out->list_bytes))
        return spk_error_set(err, SPK_E_FORMAT, "sample list: %u bytes cannot hold %u", out->list_bytes,
                             out->list_content);
    if (x->samples_n > out->list_content / SPK_LIST_SAMPLE_MIN)
        return spk_error_set(err, SPK_E_FORMAT, "%llu samples cannot stand in a list of %u bytes",
                             (unsigned long long)x->samples_n, out->list_content);
    return SPK_OK;
}

/* Of frame table and list, before either is looked into: a decompressor need not notice every flipped bit. */
static spk_status check_digest(const uint8_t *p, size_t bytes, spk_error *err)
{
    const uint8_t *fixed = p + SPK_SKIP_HEADER, *rest = fixed + SPK_INDEX_FIXED;
    uint8_t digest[SPK_SHA256_BYTES];
    SPK_TRY(spk_sha256_once(rest, bytes - (size_t)(rest - p), digest, err));
    if (memcmp(digest, fixed + SPK_INDEX_DIGEST, SPK_INDEX_DIGEST_BYTES) != 0)
        return spk_error_set(err, SPK_E_CHECKSUM, "SHA-256 mismatch of frame table and sample list");
    return SPK_OK;
}

/* Samples and digest of each frame. */
static spk_status parse_frames(spk_index *x, const uint8_t *p, spk_error *err)
{
    x->frame_first = malloc((size_t)(x->frames + 1) * sizeof *x->frame_first);
    x->digests = malloc((size_t)x->frames * sizeof *x->digests);
    if (!x->frame_first || !x->digests)
        return spk_error_nomem(err, (size_t)x->frames * SPK_INDEX_PER_FRAME);
    uint64_t first = 0;
    for (uint64_t i = 0; i < x->frames; i++, p += SPK_INDEX_PER_FRAME) {
        uint32_t samples = spk_le32_load(p);
        if (samples == 0)
            return spk_error_set(err, SPK_E_FORMAT, "frame %llu has no samples", (unsigned long long)i);
        x->frame_first[i] = (uint32_t)first;
        first += samples;
        if (first > x->samples_n)
            break;
        memcpy(x->digests[i], p + 4, SPK_FRAME_DIGEST);
    }
    if (first != x->samples_n)
        return spk_error_set(err, SPK_E_FORMAT, "samples of the frames add up to %s%llu, not to %llu",
                             first > x->samples_n ? "at least " : "", (unsigned long long)first,
                             (unsigned long long)x->samples_n);
    x->frame_first[x->frames] = (uint32_t)first;
    return SPK_OK;
}

static spk_status parse_list(spk_index *x, const struct fixed *fixed, const uint32_t *contents, spk_error *err)
{
    uint8_t *list = malloc((size_t)fixed->list_content + 1);
    if (!list)
        return spk_error_nomem(err, fixed->list_content);
    spk_frame_reader *z = NULL;
    spk_status st = spk_frame_reader_new(&z, err);
    if (st == SPK_OK)
        st = spk_frame_decode(z, fixed->list, fixed->list_bytes, list, fixed->list_content, err);
    spk_frame_reader_free(z);
    if (st == SPK_OK)
        st = spk_index_list_parse(x, list, fixed->list_content, contents, err);
    if (st < 0)
        spk_error_prefix(err, "sample list");
    free(list);
    return st == SPK_OK ? spk_index_check_keys(x, err) : st;
}

static spk_status check_contents(const spk_index *x, const uint32_t *contents, spk_error *err)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < x->frames; i++)
        sum += contents[i];
    if (sum != x->tar_bytes)
        return spk_error_set(err, SPK_E_FORMAT, "tar of %llu bytes, the seek table's frames hold %llu",
                             (unsigned long long)x->tar_bytes, (unsigned long long)sum);
    return SPK_OK;
}

spk_status spk_index_parse(spk_index **out, const uint8_t *p, size_t bytes, const uint32_t *contents, size_t frames,
                           spk_error *err)
{
    *out = NULL;
    struct fixed fixed = {0};
    spk_index *x = calloc(1, sizeof *x);
    if (!x)
        return spk_error_nomem(err, sizeof *x);
    spk_status st = parse_fixed(x, &fixed, p, bytes, frames, err);
    if (st == SPK_OK)
        st = check_contents(x, contents, err);
    if (st == SPK_OK)
        st = check_digest(p, bytes, err);
    if (st == SPK_OK)
        st = parse_frames(x, fixed.frames, err);
    if (st == SPK_OK)
        st = parse_list(x, &fixed, contents, err);
    if (st < 0) {
        spk_error_prefix(err, "shard index");
        spk_index_free(x);
        return st;
    }
    *out = x;
    return SPK_OK;
}
