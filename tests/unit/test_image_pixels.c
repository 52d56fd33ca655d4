/* image/transcode_pixels: JPEG files that cannot be made anew, as other files with their pixels. TEST_LONG=1 tries
 * more. */
#include "check_main.h"

#include "base/error.h"
#include "coef/coef.h"
#include "image/decoder.h"
#include "image/transcode_pixels.h"
#include "jpeg_variants.h"

static spk_pixel_transcoder *pixels;
static spk_transcoder *plain;
static spk_coef_reader *reader;
static spk_buf blob, file;
static spk_error err;
static spk_rng rng;
static int tries;

static void setup(void)
{
    spk_error_clear(&err);
    ck_ok(spk_pixel_transcoder_new(&pixels, &err), err);
    ck_ok(spk_transcoder_new(&plain, &err), err);
    ck_ok(spk_coef_reader_new(&reader, &err), err);
    rng = (spk_rng){43, 1, 0};
    tries = getenv("TEST_LONG") ? 30000 : 1000;
}

static void teardown(void)
{
    spk_pixel_transcoder_free(pixels);
    spk_transcoder_free(plain);
    spk_coef_reader_free(reader);
    spk_buf_free(&blob);
    spk_buf_free(&file);
}

typedef struct image {
    spk_buf bytes;
    size_t row;
} image;

static void keep(void *ctx, const uint8_t *row)
{
    image *out = ctx;
    ck_ok(spk_buf_append(&out->bytes, row, out->row, &err), err);
}

/* Pixels by libjpeg. */
static void decode(const void *data, size_t n, image *out)
{
    spk_decoder *d = NULL;
    spk_decoder_info info;
    ck_ok(spk_decoder_new(&d, &err), err);
    spk_decoder_use(d, SPK_JPEG_LIBJPEG);
    ck_ok(spk_decoder_open(d, data, n, 1u << 22, &info, &err), err);
    spk_decode_job job = {{0, 0, info.width, info.height}, 1, info.components == 1 ? 1 : 3, keep, out, false};
    out->row = (size_t)info.width * job.channels;
    out->bytes.len = 0;
    ck_ok(spk_decoder_run(d, &job, &err), err);
    spk_decoder_free(d);
}

static spk_transcode_result transcode(const void *data, size_t n)
{
    spk_transcode_result result;
    uint64_t bytes = 0;
    ck_ok(spk_transcode_pixels(pixels, plain, data, n, 1u << 22, &blob, &bytes, &result, &err), err);
    if (result != SPK_TRANSCODED)
        return result;
    image a = {0}, b = {0};
    ck_assert_uint_lt(blob.len, n);
    file.len = 0;
    ck_ok(spk_coef_open(reader, blob.data, blob.len, &err), err);
    ck_ok(spk_coef_restore(reader, &file, &err), err);
    ck_assert_uint_eq(file.len, bytes);
    decode(data, n, &a);
    decode(file.data, file.len, &b);
    ck_assert_uint_eq(a.bytes.len, b.bytes.len);
    ck_assert_mem_eq(a.bytes.data, b.bytes.data, a.bytes.len);
    spk_buf_free(&a.bytes);
    spk_buf_free(&b.bytes);
    return result;
}

static const jpeg_variant layouts[] = {{200, 160, JCS_YCbCr, 2, 2, 90, 0, 1, 0, 0, CONTENT_SMOOTH},
                                       {203, 161, JCS_YCbCr, 2, 1, 95, 0, 1, 0, 0, CONTENT_SMOOTH},
                                       {199, 170, JCS_YCbCr, 1, 2, 90, 0, 1, 5, 0, CONTENT_SMOOTH},
                                       {177, 160, JCS_YCbCr, 1, 1, 75, 0, 1, 0, 0, CONTENT_NOISE},
                                       {200, 160, JCS_RGB, 1, 1, 90, 0, 1, 0, 0, CONTENT_SMOOTH},
                                       {200, 160, JCS_YCbCr, 2, 2, 90, 0, 1, 0, 3, CONTENT_SMOOTH},
                                       {201, 163, JCS_GRAYSCALE, 1, 1, 90, 0, 1, 0, 0, CONTENT_SMOOTH}};
static const jpeg_variant baseline = {200, 160, JCS_YCbCr, 2, 2, 90, 0, 0, 0, 0, CONTENT_SMOOTH};
#define LAYOUTS (sizeof layouts / sizeof *layouts)

START_TEST(progressive)
{
    int stored = 0;
    for (size_t k = 0; k < LAYOUTS; k++) {
        size_t n;
        unsigned char *p = encode_variant(&layouts[k], &rng, &n);
        spk_transcode_result result = transcode(p, n);
        ck_assert_msg(result == SPK_TRANSCODED || result == SPK_TRANSCODE_NO_GAIN, "layout %zu: %d", k, result);
        stored += result == SPK_TRANSCODED;
        free(p);
    }
    ck_assert_int_ge(stored, 2); /* the others gain nothing */
}
END_TEST

/* What belongs to the file beside its pixels goes with them. */
START_TEST(metadata)
{
    static const char exif[] = "\xff\xe1\x00\x0a"
                               "Exif\0\0MM",
                      comment[] = "\xff\xfe\x00\x07"
                                  "words";
    size_t n;
    unsigned char *p = encode_variant(&baseline, &rng, &n);
    size_t more = sizeof exif - 1 + sizeof comment - 1;
    unsigned char *q = malloc(n + more);
    memcpy(q, p, 20); /* SOI and JFIF */
    memcpy(q + 20, exif, sizeof exif - 1);
    memcpy(q + 20 + sizeof exif - 1, comment, sizeof comment - 1);
    memcpy(q + 20 + more, p + 20, n - 20);
    ck_assert_int_eq(transcode(q, n + more), SPK_TRANSCODED);
    ck_assert_ptr_nonnull(memmem(file.data, file.len, exif, sizeof exif - 1));
    ck_assert_ptr_nonnull(memmem(file.data, file.len, comment, sizeof comment - 1));
    unsigned char *jfif = memmem(file.data, file.len, "JFIF", 5);
    ck_assert_ptr_nonnull(jfif);
    ck_assert_ptr_null(memmem(jfif + 1, file.len - (size_t)(jfif + 1 - file.data), "JFIF", 5)); /* once */
    free(p);
    free(q);
}
END_TEST

START_TEST(others_stay_as_they_are)
{
    size_t n;
    unsigned char *p = encode_variant(&baseline, &rng, &n);
    uint64_t bytes;
    spk_transcode_result result;
    ck_assert_int_eq(transcode(p, n / 2), SPK_TRANSCODE_DAMAGED);
    ck_assert_int_eq(transcode("no JPEG", 7), SPK_TRANSCODE_DAMAGED);
    ck_ok(spk_transcode_pixels(pixels, plain, p, n, 100, &blob, &bytes, &result, &err), err);
    ck_assert_int_eq(result, SPK_TRANSCODE_UNEQUAL);   /* over the limit */
    ck_assert_int_eq(transcode(p, n), SPK_TRANSCODED); /* an error leaves nothing behind */
    free(p);
    jpeg_variant wide = baseline;
    wide.h = 4; /* more than the form can hold */
    p = encode_variant(&wide, &rng, &n);
    ck_assert_int_eq(transcode(p, n), SPK_TRANSCODE_OTHER);
    free(p);
}
END_TEST

/* A gray block with a coefficient of 14 bits, behind metadata: libjpeg reads it and gives up in the middle of writing
 * it, after what it writes to has grown. */
START_TEST(coefficients_that_cannot_be_written)
{
    static const uint8_t app[] = {0xFF, 0xE1, 0xEA, 0x60},
                         rest[] = {0xFF, 0xC0, 0, 11,   8,    0,   8,    0, 8,  1, 1, 0x11, 0, /* SOF */
                                   0xFF, 0xC4, 0, 20,   0x00, 1,   0,    0, 0,  0, 0, 0,    0,
                                   0,    0,    0, 0,    0,    0,   0,    0, 0, /* DC: size 0 */
                                   0xFF, 0xC4, 0, 21,   0x10, 0,   2,    0, 0,  0, 0, 0,    0,
                                   0,    0,    0, 0,    0,    0,   0,    0, 14, 0, /* AC: size 14; end of block */
                                   0xFF, 0xDA, 0, 8,    1,    1,   0x00, 0, 63, 0, /* SOS */
                                   0x1F, 0xFF, 0, 0xBF, 0xFF, 0xD9};
    const size_t body = 0xEA60 - 2;
    uint8_t *p = calloc(1, 2 + sizeof app + body + 69 + sizeof rest), *at = p;
    *at++ = 0xFF, *at++ = 0xD8;
    memcpy(at, app, sizeof app);
    at += sizeof app + body;
    memcpy(at, "\xff\xdb\0\x43", 4);
    memset(at + 5, 1, 64);
    at += 69;
    memcpy(at, rest, sizeof rest);
    at += sizeof rest;
    ck_assert_int_eq(transcode(p, (size_t)(at - p)), SPK_TRANSCODE_DAMAGED);
    ck_assert_int_eq(transcode(p, (size_t)(at - p)), SPK_TRANSCODE_DAMAGED);
    image pixel = {0};
    decode(p, (size_t)(at - p), &pixel); /* it is no damage to the decoder */
    spk_buf_free(&pixel.bytes);
    free(p);
}
END_TEST

/* A bit changed anywhere: whatever is stored has the pixels of the file. */
START_TEST(damage)
{
    int stored = 0, others = 0;
    for (int i = 0; i < tries; i++) {
        jpeg_variant v = layouts[(size_t)i % LAYOUTS];
        size_t n;
        v.width = 16 + (unsigned)spk_rng_below(&rng, 60);
        v.height = 16 + (unsigned)spk_rng_below(&rng, 60);
        v.progressive = i % 3 > 0;
        unsigned char *p = encode_variant(&v, &rng, &n);
        p[2 + spk_rng_below(&rng, n - 2)] ^= (unsigned char)(1u << spk_rng_below(&rng, 8));
        *(transcode(p, n) == SPK_TRANSCODED ? &stored : &others) += 1;
        free(p);
    }
    ck_assert_int_gt(stored, 20);
    ck_assert_int_gt(others, 20);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image/pixels");
    TCase *t = tcase_create("pixels");
    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, progressive);
    tcase_add_test(t, metadata);
    tcase_add_test(t, others_stay_as_they_are);
    tcase_add_test(t, coefficients_that_cannot_be_written);
    tcase_add_test(t, damage);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
