/* Decompressing one whole zstd frame into a buffer of its known size. The header is checked before anything is written,
 * against RFC 8878 section 3.1.1.1; only libzstd's stable interface. */
#include "shard/frame.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/bytes.h"
#include "base/error.h"
#include "shard/format.h"

#define ZSTD_FRAME_MAGIC 0xFD2FB528u
#define FLAG_CHECKSUM 0x04u
#define FLAG_RESERVED 0x18u /* one reserved, one "unused": a bit that nobody reads could flip unseen */
#define FLAG_SINGLE 0x20u
#define BLOCK_MAX 131072u /* most content bytes of a block, RFC 8878 section 3.1.1.2.4 */
#define BLOCK_MIN 4u      /* least bytes of a block that holds content */

struct spk_frame_reader {
    ZSTD_DCtx *ctx;
};

spk_status spk_frame_reader_new(spk_frame_reader **out, spk_error *err)
{
    *out = NULL;
    spk_frame_reader *r = calloc(1, sizeof *r);
    if (!r)
        return spk_error_nomem(err, sizeof *r);
    r->ctx = ZSTD_createDCtx();
    if (!r->ctx) {
        free(r);
        return spk_error_nomem(err, sizeof *r);
    }
    *out = r;
    return SPK_OK;
}

void spk_frame_reader_free(spk_frame_reader *r)
{
    if (!r)
        return;
    ZSTD_freeDCtx(r->ctx);
    free(r);
}

uint64_t spk_frame_content_bound(uint64_t bytes)
{
    return bytes / BLOCK_MIN >= UINT64_MAX / BLOCK_MAX ? UINT64_MAX : (bytes / BLOCK_MIN) * BLOCK_MAX;
}

/* What our frames must say of themselves: content size, checksum, no dictionary, a window that every decoder takes. */
static spk_status check_header(const uint8_t *p, size_t n, uint64_t *content, spk_error *err)
{
    if (n < 6 || spk_le32_load(p) != ZSTD_FRAME_MAGIC)
        return spk_error_set(err, SPK_E_FORMAT, "not a zstd frame");
    uint8_t flags = p[4];
    if (flags & FLAG_RESERVED)
        return spk_error_set(err, SPK_E_FORMAT, "zstd header: reserved bits are set");
    if (!(flags & FLAG_CHECKSUM))
        return spk_error_set(err, SPK_E_FORMAT, "zstd header: no checksum recorded");
    if (flags & 3)
        return spk_error_set(err, SPK_E_FORMAT, "zstd header: names a dictionary");
    unsigned long long size = ZSTD_getFrameContentSize(p, n);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR)
        return spk_error_set(err, SPK_E_FORMAT, "zstd header: no content size recorded");
    uint64_t window = size;
    if (!(flags & FLAG_SINGLE)) {
        unsigned log = 10 + (p[5] >> 3);
        window = ((uint64_t)1 << log) + (((uint64_t)1 << log) >> 3) * (p[5] & 7);
    }
    if (window > (uint64_t)1 << SPK_WINDOW_LOG_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "zstd header: window of %llu bytes, at most %llu are allowed",
                             (unsigned long long)window, 1ull << SPK_WINDOW_LOG_MAX);
    *content = size;
    return SPK_OK;
}

spk_status spk_frame_probe(const void *p, size_t n, size_t *bytes, uint64_t *content, spk_error *err)
{
    if (n < 18) /* no header is longer */
        return SPK_END;
    SPK_TRY(check_header(p, n, content, err));
    size_t end = ZSTD_findFrameCompressedSize(p, n);
    if (!ZSTD_isError(end)) {
        *bytes = end;
        return SPK_OK;
    }
    if (ZSTD_getErrorCode(end) == ZSTD_error_srcSize_wrong)
        return SPK_END;
    return spk_error_set(err, SPK_E_FORMAT, "zstd: %s", ZSTD_getErrorName(end));
}

spk_status spk_frame_decode(spk_frame_reader *r, const void *p, size_t n, void *out, size_t content, spk_error *err)
{
    uint64_t recorded = 0;
    SPK_TRY(check_header(p, n, &recorded, err));
    if (recorded != content)
        return spk_error_set(err, SPK_E_FORMAT, "zstd header: content of %llu bytes, expected %zu",
                             (unsigned long long)recorded, content);
    size_t end = ZSTD_findFrameCompressedSize(p, n);
    if (ZSTD_isError(end))
        return spk_error_set(err, SPK_E_FORMAT, "zstd: %s", ZSTD_getErrorName(end));
    if (end != n)
        return spk_error_set(err, SPK_E_FORMAT, "zstd frame ends after %zu bytes, expected %zu", end, n);
    size_t got = ZSTD_decompressDCtx(r->ctx, out, content, p, n);
    if (ZSTD_isError(got)) {
        if (ZSTD_getErrorCode(got) == ZSTD_error_checksum_wrong)
            return spk_error_set(err, SPK_E_CHECKSUM, "checksum mismatch");
        if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
            return spk_error_nomem(err, content);
        return spk_error_set(err, SPK_E_FORMAT, "zstd: %s", ZSTD_getErrorName(got));
    }
    if (got != content)
        return spk_error_set(err, SPK_E_FORMAT, "zstd frame holds %zu bytes, expected %zu", got, content);
    return SPK_OK;
}
