/* Compressing one zstd frame after another through a bounded buffer. Only libzstd's stable interface. The same input,
 * level and libzstd give the same bytes: nothing here depends on how the caller cuts its writes, since libzstd fills
 * whole blocks before it compresses. */
#include "shard/frame.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"
#include "base/hash.h"
#include "shard/format.h"

#define OUT_BYTES ((size_t)256 << 10)
#define WINDOW_LOG 21 /* 2 MiB: larger frames gain little from more, and memory grows with it */
#define TABLE_LOG 20

struct spk_frame_writer {
    ZSTD_CCtx *ctx;
    spk_sha256 *sha;
    spk_sink_fn sink;
    void *sink_ctx;
    uint64_t content; /* promised */
    uint64_t given;   /* so far */
    uint64_t bytes;   /* handed to the sink */
    uint8_t last[4];  /* of the compressed bytes: the frame's checksum at its end */
    int open;         /* between begin and end */
    size_t fill;      /* of out */
    uint8_t out[OUT_BYTES];
};

const char *spk_zstd_version(void)
{
    return ZSTD_versionString();
}

void spk_frame_writer_free(spk_frame_writer *w)
{
    if (!w)
        return;
    ZSTD_freeCCtx(w->ctx);
    spk_sha256_free(w->sha);
    free(w);
}

spk_status spk_frame_writer_new(spk_frame_writer **out, spk_error *err)
{
    *out = NULL;
    spk_frame_writer *w = calloc(1, sizeof *w);
    if (!w)
        return spk_error_nomem(err, sizeof *w);
    w->ctx = ZSTD_createCCtx();
    spk_status st = w->ctx ? spk_sha256_new(&w->sha, err) : spk_error_nomem(err, sizeof *w);
    if (st < 0) {
        spk_frame_writer_free(w);
        return st;
    }
    *out = w;
    return SPK_OK;
}

static spk_status zstd_failed(size_t code, const char *what, spk_error *err)
{
    return spk_error_set(err, SPK_E_INVALID, "%s: %s", what, ZSTD_getErrorName(code));
}

static spk_status set_parameters(spk_frame_writer *w, int level, uint64_t content, spk_error *err)
{
    size_t r = ZSTD_CCtx_reset(w->ctx, ZSTD_reset_session_and_parameters);
    if (ZSTD_isError(r))
        return zstd_failed(r, "zstd reset", err);
    /* The levels up to 4 stay within the window by themselves; setting it would enlarge theirs. libzstd still shrinks
     * all of these to what the promised content needs. */
    const struct {
        ZSTD_cParameter name;
        int value;
        int from_level;
    } set[] = {{ZSTD_c_compressionLevel, level, INT32_MIN},
               {ZSTD_c_contentSizeFlag, 1, INT32_MIN},
               {ZSTD_c_checksumFlag, 1, INT32_MIN},
               {ZSTD_c_dictIDFlag, 0, INT32_MIN},
               {ZSTD_c_windowLog, WINDOW_LOG, 5},
               {ZSTD_c_hashLog, TABLE_LOG, 9},
               {ZSTD_c_chainLog, TABLE_LOG, 9}};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        if (level < set[i].from_level)
            continue;
        r = ZSTD_CCtx_setParameter(w->ctx, set[i].name, set[i].value);
        if (ZSTD_isError(r))
            return zstd_failed(r, "zstd parameter", err);
    }
    r = ZSTD_CCtx_setPledgedSrcSize(w->ctx, content);
    return ZSTD_isError(r) ? zstd_failed(r, "zstd content size", err) : SPK_OK;
}

spk_status spk_frame_begin(spk_frame_writer *w, int level, uint64_t content, spk_sink_fn sink, void *ctx,
                           spk_error *err)
{
    w->open = 0;
    if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel())
        return spk_error_set(err, SPK_E_INVALID, "compression level %d is outside %d to %d", level, ZSTD_minCLevel(),
                             ZSTD_maxCLevel());
    if (content > SPK_FRAME_CONTENT_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "frame of %llu bytes: at most %u fit one frame",
                             (unsigned long long)content, SPK_FRAME_CONTENT_MAX);
    SPK_TRY(set_parameters(w, level, content, err));
    w->sink = sink;
    w->sink_ctx = ctx;
    w->content = content;
    w->given = 0;
    w->bytes = 0;
    w->fill = 0;
    spk_sha256_init(w->sha);
    w->open = 1;
    return SPK_OK;
}

static spk_status flush(spk_frame_writer *w, spk_error *err)
{
    if (w->fill == 0)
        return SPK_OK;
    spk_sha256_update(w->sha, w->out, w->fill);
    size_t keep = w->fill < 4 ? w->fill : 4;
    memmove(w->last, w->last + keep, 4 - keep);
    memcpy(w->last + 4 - keep, w->out + w->fill - keep, keep);
    w->bytes += w->fill;
    size_t n = w->fill;
    w->fill = 0;
    return w->sink(w->sink_ctx, w->out, n, err);
}

/* Feeds in to libzstd until it is used up and, with ZSTD_e_end, the frame is complete. */
static spk_status run(spk_frame_writer *w, ZSTD_inBuffer *in, ZSTD_EndDirective mode, spk_error *err)
{
    for (;;) {
        ZSTD_outBuffer o = {w->out, OUT_BYTES, w->fill};
        size_t left = ZSTD_compressStream2(w->ctx, &o, in, mode);
        if (ZSTD_isError(left))
            return zstd_failed(left, "zstd", err);
        w->fill = o.pos;
        if (w->fill == OUT_BYTES)
            SPK_TRY(flush(w, err));
        if (mode == ZSTD_e_end ? left == 0 : in->pos == in->size)
            return SPK_OK;
    }
}

spk_status spk_frame_write(spk_frame_writer *w, const void *p, size_t n, spk_error *err)
{
    if (!w->open)
        return spk_error_set(err, SPK_E_STATE, "no frame was begun");
    if (n > w->content - w->given)
        return spk_error_set(err, SPK_E_INVALID, "frame of %llu bytes is given more", (unsigned long long)w->content);
    ZSTD_inBuffer in = {p, n, 0};
    spk_status st = n == 0 ? SPK_OK : run(w, &in, ZSTD_e_continue, err);
    if (st < 0)
        w->open = 0;
    else
        w->given += n;
    return st;
}

spk_status spk_frame_end(spk_frame_writer *w, spk_frame_info *out, spk_error *err)
{
    if (!w->open)
        return spk_error_set(err, SPK_E_STATE, "no frame was begun");
    w->open = 0;
    if (w->given != w->content)
        return spk_error_set(err, SPK_E_INVALID, "frame of %llu bytes is ended after %llu",
                             (unsigned long long)w->content, (unsigned long long)w->given);
    ZSTD_inBuffer in = {NULL, 0, 0};
    SPK_TRY(run(w, &in, ZSTD_e_end, err));
    SPK_TRY(flush(w, err));
    uint8_t digest[SPK_SHA256_BYTES];
    spk_sha256_final(w->sha, digest);
    out->bytes = w->bytes;
    out->content = w->content;
    out->checksum =
        (uint32_t)w->last[0] | (uint32_t)w->last[1] << 8 | (uint32_t)w->last[2] << 16 | (uint32_t)w->last[3] << 24;
    memcpy(out->digest, digest, sizeof out->digest);
    return SPK_OK;
}
