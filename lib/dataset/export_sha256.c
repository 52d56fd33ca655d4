/* Lines for `sha256sum -c`: the only digests of whole files, made by reading them. Each frame's digest is compared on
 * the way, and the tail's when the shard is opened, so a sum is given only to a file that is as it was packed.
 * Confined. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "dataset/dataset.h"
#include "shard/format.h"

#define PIECE ((size_t)64 << 10)

typedef struct summing {
    spk_sha256 *file;
    spk_sha256 *frame;
    uint8_t *piece;
} summing;

static spk_status add_range(const summing *s, const spk_shard *shard, uint64_t from, uint64_t n, spk_error *err)
{
    spk_sha256_init(s->frame);
    for (uint64_t at = from; at < from + n;) {
        size_t k = from + n - at < PIECE ? (size_t)(from + n - at) : PIECE;
        spk_status status = spk_source_pread(spk_shard_source(shard), s->piece, k, at, err);
        if (status < 0) {
            spk_error_prefix(err, "%s", spk_shard_name(shard));
            return status;
        }
        spk_sha256_update(s->file, s->piece, k);
        spk_sha256_update(s->frame, s->piece, k);
        at += k;
    }
    return SPK_OK;
}

static spk_status sum_shard(const summing *s, const spk_shard *shard, uint8_t out[SPK_SHA256_BYTES], spk_error *err)
{
    const spk_index *index = spk_shard_index(shard);
    uint64_t end = 0;
    spk_sha256_init(s->file);
    for (uint64_t f = 0; f < index->frames; f++) {
        uint64_t offset = 0;
        uint32_t bytes = 0, content = 0;
        uint8_t digest[SPK_SHA256_BYTES];
        spk_shard_frame_range(shard, f, &offset, &bytes, &content);
        SPK_TRY(add_range(s, shard, offset, bytes, err));
        spk_sha256_final(s->frame, digest);
        if (memcmp(digest, index->digests[f], SPK_FRAME_DIGEST) != 0)
            return spk_error_at(err, SPK_E_CHECKSUM, offset, "%s: frame %" PRIu64 ": SHA-256 mismatch at byte %" PRIu64,
                                spk_shard_name(shard), f, offset);
        end = offset + bytes;
    }
    SPK_TRY(add_range(s, shard, end, spk_source_size(spk_shard_source(shard)) - end, err));
    spk_sha256_final(s->file, out);
    return SPK_OK;
}

static spk_status add_line(const summing *s, const spk_dataset *d, size_t i, spk_buf *out, spk_error *err)
{
    spk_shard *shard = NULL;
    uint8_t digest[SPK_SHA256_BYTES];
    char hex[SPK_SHA256_HEX];
    SPK_TRY(spk_dataset_open_shard(d, i, &shard, err));
    spk_status status = sum_shard(s, shard, digest, err);
    spk_shard_close(shard);
    if (status < 0)
        return status;
    spk_hex(hex, digest, sizeof digest);
    return spk_buf_printf(out, err, "%s  %s\n", hex, spk_catalog_path(&d->catalog, i));
}

spk_status spk_export_sha256(const spk_dataset *d, spk_buf *out, spk_error *err)
{
    summing s = {0};
    spk_status status = spk_sha256_new(&s.file, err);
    if (status == SPK_OK)
        status = spk_sha256_new(&s.frame, err);
    if (status < 0)
        goto out;
    s.piece = malloc(PIECE);
    if (!s.piece)
        status = spk_error_nomem(err, PIECE);
    for (size_t i = 0; i < d->catalog.n && status == SPK_OK; i++)
        status = add_line(&s, d, i, out, err);
out:
    free(s.piece);
    spk_sha256_free(s.frame);
    spk_sha256_free(s.file);
    return status;
}
