/* An index frame around a list given byte by byte, for lists that the writer would not make. */
#ifndef INDEX_FIXTURE_H
#define INDEX_FIXTURE_H

#include "base/bytes.h"
#include "base/hash.h"
#include "shard_fixture.h"

static inline spk_status fixture_to_buf(void *ctx, const void *p, size_t n, spk_error *err)
{
    return spk_buf_append(ctx, p, n, err);
}

/* Makes the digest in the index frame of n bytes at p fit what the frame holds. */
static inline void fixture_index_seal(uint8_t *p, size_t n)
{
    uint8_t *fixed = p + SPK_SKIP_HEADER, digest[SPK_SHA256_BYTES];
    fixture_must(spk_sha256_once(fixed + SPK_INDEX_FIXED, n - SPK_SKIP_HEADER - SPK_INDEX_FIXED, digest, fe));
    memcpy(fixed + SPK_INDEX_DIGEST, digest, SPK_INDEX_DIGEST_BYTES);
}

/* counts[f] samples in each of the frames; the tar's size is the sum of contents. */
static inline void fixture_index(spk_buf *out, const void *list, size_t n, const uint32_t *counts,
                                 const uint32_t *contents, size_t frames)
{
    spk_buf z = {0};
    spk_frame_writer *w = NULL;
    spk_frame_info info;
    uint32_t samples = 0;
    uint64_t tar = 0;
    size_t start = out->len;
    for (size_t i = 0; i < frames; i++) {
        samples += counts[i];
        tar += contents[i];
    }
    fixture_must(spk_frame_writer_new(&w, fe));
    fixture_must(spk_frame_begin(w, 1, n, fixture_to_buf, &z, fe));
    fixture_must(spk_frame_write(w, list, n, fe));
    fixture_must(spk_frame_end(w, &info, fe));
    spk_frame_writer_free(w);
    const uint32_t head[] = {SPK_INDEX_FRAME_MAGIC, (uint32_t)(SPK_INDEX_FIXED + SPK_INDEX_PER_FRAME * frames + z.len)};
    const uint32_t fixed[] = {SPK_INDEX_VERSION, 0, (uint32_t)frames, samples};
    for (size_t i = 0; i < 2; i++)
        fixture_must(spk_buf_u32(out, head[i], fe));
    fixture_must(spk_buf_append(out, SPK_INDEX_MAGIC, 8, fe));
    for (size_t i = 0; i < 4; i++)
        fixture_must(spk_buf_u32(out, fixed[i], fe));
    fixture_must(spk_buf_u64(out, tar, fe));
    fixture_must(spk_buf_u32(out, (uint32_t)z.len, fe));
    fixture_must(spk_buf_u32(out, (uint32_t)n, fe));
    fixture_must(spk_buf_append(out, "digest, below...", SPK_INDEX_DIGEST_BYTES, fe));
    for (size_t i = 0; i < frames; i++) {
        fixture_must(spk_buf_u32(out, counts[i], fe));
        fixture_must(spk_buf_append(out, "0123456789abcdef", 16, fe));
    }
    fixture_must(spk_buf_append(out, z.data, z.len, fe));
    fixture_index_seal(out->data + start, out->len - start);
    spk_buf_free(&z);
}

#endif
