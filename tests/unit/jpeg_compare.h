/* Our JPEG decoders against libjpeg-turbo: the same pixels, errors and texts, with vectors and without. */
#ifndef JPEG_COMPARE_H
#define JPEG_COMPARE_H

#include "image/decoder.h"
#include "image/jpeg_kernels.h"
#include "jpeg_variants.h"

static spk_decoder *decoder;
static spk_error err;
static spk_rng rng;
static bool long_run;
/* Whether coefficients beyond those of any picture are decoded, too (jpeg_kernels.h). */
#ifdef __x86_64__
static const bool no_limits = true;
#else
static const bool no_limits = false;
#endif

static void compare_setup(uint64_t seed)
{
    spk_error_clear(&err);
    ck_ok(spk_decoder_new(&decoder, &err), err);
    rng = (spk_rng){seed, 1, 0};
    long_run = getenv("TEST_LONG") != NULL;
}

static void teardown(void)
{
    spk_decoder_free(decoder);
}

static uint32_t pick(uint32_t low, uint32_t high)
{
    return low + (uint32_t)spk_rng_below(&rng, high - low + 1);
}

typedef struct rows {
    uint8_t *p;
    size_t row, n, cap;
    bool own;
    uint32_t width, height;
    char text[sizeof err.text];
} rows;

static void keep(void *ctx, const uint8_t *row)
{
    rows *out = ctx;
    ck_assert_uint_le(out->n + out->row + SPK_ROW_PAD, out->cap);
    memcpy(out->p + out->n, row, out->row + SPK_ROW_PAD);
    out->n += out->row;
}

/* part NULL: the whole. */
static spk_status decode(const void *data, size_t n, const spk_rect *part, uint32_t channels, spk_jpeg_engine engine,
                         rows *out)
{
    spk_decoder_info info;
    out->n = 0;
    out->text[0] = '\0';
    spk_error_clear(&err);
    spk_decoder_use(decoder, engine);
    spk_status status = spk_decoder_open(decoder, data, n, 1u << 22, &info, &err);
    if (status == SPK_OK) {
        spk_decode_job job = {{0, 0, info.width, info.height}, 1, channels, keep, out, false};
        if (part)
            job.part = *part;
        out->row = (size_t)job.part.w * channels;
        size_t want = out->row * job.part.h + SPK_ROW_PAD;
        if (want > out->cap) {
            out->p = realloc(out->p, want);
            ck_assert_ptr_nonnull(out->p);
            out->cap = want;
        }
        out->width = info.width;
        out->height = info.height;
        status = spk_decoder_run(decoder, &job, &err);
        out->own = spk_decoder_did_own(decoder);
    }
    snprintf(out->text, sizeof out->text, "%s", err.text);
    return status;
}

static rows expected, got;

/* All engines, and that ours did the work if `own`. */
static void compare(const void *data, size_t n, const spk_rect *part, uint32_t channels, bool own, const char *what)
{
    spk_status want = decode(data, n, part, channels, SPK_JPEG_LIBJPEG, &expected);
    ck_assert(want < 0 || !expected.own);
    for (int engine = SPK_JPEG_OWN; engine <= SPK_JPEG_PLAIN; engine++) {
        spk_status status = decode(data, n, part, channels, (spk_jpeg_engine)engine, &got);
        ck_assert_msg(status == want && strcmp(got.text, expected.text) == 0, "%s: \"%s\", libjpeg: \"%s\"", what,
                      got.text, expected.text);
        if (want < 0)
            continue;
        ck_assert_msg(got.n == expected.n && memcmp(got.p, expected.p, got.n) == 0,
                      "%s: engine %d, %u x %u, part %u x %u at %u, %u", what, engine, got.width, got.height,
                      part ? part->w : 0, part ? part->h : 0, part ? part->x : 0, part ? part->y : 0);
        if (own && (engine == SPK_JPEG_PLAIN || spk_jpeg_kernels_vector()))
            ck_assert_msg(got.own, "%s: left to libjpeg", what);
    }
}

#endif
