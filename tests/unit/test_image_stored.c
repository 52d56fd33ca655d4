/* coef/ and image/: JPEG stored as coefficients. Files come back byte for byte, pixels are those of libjpeg, with
 * vectors and without; damaged forms are errors or the same nonsense for all. TEST_LONG=1 tries more. */
#include "check_main.h"

#include "stored_fixture.h"

static void setup(void)
{
    stored_setup(41);
}

typedef struct rows {
    uint8_t *p;
    size_t row, n, cap;
    uint32_t width, height;
} rows;

static void keep(void *ctx, const uint8_t *row)
{
    rows *out = ctx;
    ck_assert_uint_le(out->n + out->row + SPK_ROW_PAD, out->cap);
    memcpy(out->p + out->n, row, out->row + SPK_ROW_PAD);
    out->n += out->row;
}

/* data NULL: the image before, opened anew. */
static spk_status decode(const void *data, size_t n, const spk_rect *part, uint32_t denom, spk_jpeg_engine engine,
                         rows *out)
{
    spk_decoder_info info;
    out->n = 0;
    spk_decoder_use(decoder, engine);
    if (data)
        SPK_TRY(spk_decoder_open(decoder, data, n, 1u << 22, &info, &err));
    else
        ck_assert(spk_decoder_reopen(decoder, &info));
    out->width = info.width;
    out->height = info.height;
    spk_decode_job job = {
        {0, 0, (info.width + denom - 1) / denom, (info.height + denom - 1) / denom}, denom, 3, keep, out, false};
    if (part)
        job.part = *part;
    out->row = (size_t)job.part.w * 3;
    if (out->row * job.part.h + SPK_ROW_PAD > out->cap) {
        out->cap = out->row * job.part.h + SPK_ROW_PAD;
        out->p = realloc(out->p, out->cap);
    }
    return spk_decoder_run(decoder, &job, &err);
}

static rows expected, got;

/* The blob against the file that it was made from. */
static void compare_pixels(const void *data, size_t n, const spk_rect *part, uint32_t denom, const char *what)
{
    ck_ok(decode(data, n, part, denom, SPK_JPEG_LIBJPEG, &expected), err);
    for (int engine = SPK_JPEG_OWN; engine <= SPK_JPEG_LIBJPEG; engine++) {
        ck_ok(decode(blob.data, blob.len, part, denom, (spk_jpeg_engine)engine, &got), err);
        ck_assert_msg(got.n == expected.n && memcmp(got.p, expected.p, got.n) == 0,
                      "%s: engine %d, %u x %u, part %u x %u at %u, %u", what, engine, got.width, got.height,
                      part ? part->w : 0, part ? part->h : 0, part ? part->x : 0, part ? part->y : 0);
    }
}

static void check_file(const void *data, size_t n, uint32_t parts, const char *what)
{
    spk_transcode_result result;
    ck_ok(spk_transcode(transcoder, data, n, 1u << 22, &blob, &result, &err), err);
    ck_assert_msg(result == SPK_TRANSCODED || result == SPK_TRANSCODE_NO_GAIN, "%s: result %d", what, result);
    ck_assert((result == SPK_TRANSCODED) == (blob.len < n));
    file.len = 0;
    ck_ok(spk_coef_open(reader, blob.data, blob.len, &err), err);
    ck_ok(spk_coef_restore(reader, &file, &err), err);
    ck_assert_uint_eq(file.len, n);
    ck_assert_mem_eq(file.data, data, n);
    compare_pixels(data, n, NULL, 1, what);
    uint32_t w = got.width, h = got.height;
    for (uint32_t i = 0; i < parts; i++) {
        spk_rect r = {pick(0, w - 1), pick(0, h - 1), 1, 1};
        r.w = pick(1, w - r.x);
        r.h = pick(1, h - r.y);
        compare_pixels(data, n, &r, 1, what);
    }
}

static void check_variant(const jpeg_variant *v, uint32_t parts)
{
    char what[128];
    size_t n;
    unsigned char *p = encode_variant(v, &rng, &n);
    snprintf(what, sizeof what, "%u x %u, %d x %d, colours %d, q %d, restart %u, content %d", v->width, v->height, v->h,
             v->v, v->stored, v->quality, v->restart, v->content);
    check_file(p, n, parts, what);
    free(p);
}

static const jpeg_variant layouts[] = {{0, 0, JCS_YCbCr, 2, 2, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                       {0, 0, JCS_YCbCr, 2, 1, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                       {0, 0, JCS_YCbCr, 1, 2, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                       {0, 0, JCS_YCbCr, 1, 1, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                       {0, 0, JCS_RGB, 1, 1, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                       {0, 0, JCS_GRAYSCALE, 1, 1, 90, 0, 0, 0, 0, CONTENT_SMOOTH}};
#define LAYOUTS (sizeof layouts / sizeof *layouts)

START_TEST(sizes)
{
    uint32_t largest = long_run ? 70 : 34, step = long_run ? 1 : 3;
    for (size_t k = 0; k < LAYOUTS; k++)
        for (uint32_t h = 1; h <= largest; h++)
            for (uint32_t w = 5 + h % step; w <= largest; w += step) {
                jpeg_variant v = layouts[k];
                v.width = w;
                v.height = h;
                check_variant(&v, 1);
            }
}
END_TEST

START_TEST(makes)
{
    static const int qualities[] = {1, 5, 30, 50, 75, 90, 100};
    for (size_t k = 0; k < LAYOUTS; k++)
        for (size_t q = 0; q < sizeof qualities / sizeof *qualities; q++)
            for (int content = CONTENT_SMOOTH; content <= CONTENT_FLAT; content++) {
                jpeg_variant v = layouts[k];
                v.width = pick(60, 200);
                v.height = pick(60, 200);
                v.quality = qualities[q];
                v.content = (jpeg_content)content;
                v.optimize = (int)q % 2;
                v.restart = q % 3 == 0 ? pick(1, 40) : 0;
                v.wide_step = q == 5 ? pick(1, 500) : 0;
                check_variant(&v, long_run ? 40 : 4);
            }
}
END_TEST

START_TEST(parts)
{
    for (size_t k = 0; k < LAYOUTS; k++) {
        jpeg_variant v = layouts[k];
        v.width = 300 + pick(0, 40);
        v.height = 200 + pick(0, 40);
        check_variant(&v, long_run ? 1000 : 60);
    }
}
END_TEST

START_TEST(fractions_of_the_size)
{
    jpeg_variant v = layouts[0];
    size_t n;
    v.width = 131;
    v.height = 67;
    unsigned char *p = encode_variant(&v, &rng, &n);
    check_file(p, n, 0, "scaled");
    for (uint32_t denom = 2; denom <= 8; denom *= 2)
        compare_pixels(p, n, NULL, denom, "scaled");
    free(p);
}
END_TEST

/* Bytes that belong to the file and to no picture. */
START_TEST(opened_anew)
{
    jpeg_variant v = layouts[0];
    size_t n;
    v.width = 101;
    v.height = 83;
    unsigned char *p = encode_variant(&v, &rng, &n);
    check_file(p, n, 0, "opened anew");
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t denom = i % 8 == 5 ? 2 : 1;
        spk_jpeg_engine engine = (spk_jpeg_engine)(i % 7 == 3 ? SPK_JPEG_LIBJPEG : i % 2);
        spk_rect part = {pick(0, 20), pick(0, 20), pick(1, 30), pick(1, 20)};
        ck_ok(decode(p, n, &part, denom, SPK_JPEG_LIBJPEG, &expected), err);
        ck_ok(decode(blob.data, blob.len, NULL, 1, engine, &got), err);
        ck_ok(decode(NULL, 0, &part, denom, engine, &got), err);
        ck_assert_uint_eq(got.n, expected.n);
        ck_assert_mem_eq(got.p, expected.p, got.n);
        ck_ok(decode(NULL, 0, &part, denom, SPK_JPEG_OWN, &got), err);
        ck_assert_mem_eq(got.p, expected.p, got.n);
    }
    spk_decoder_info info;
    ck_ok(decode(p, n, NULL, 1, SPK_JPEG_OWN, &got), err);
    ck_assert_msg(!spk_decoder_reopen(decoder, &info), "a plain JPEG, which the decoder does not hold");
    ck_ok(decode(blob.data, blob.len, NULL, 1, SPK_JPEG_OWN, &got), err);
    ck_fails(decode("BM", 2, NULL, 1, SPK_JPEG_OWN, &got), err, SPK_E_FORMAT, "not an image");
    ck_assert_msg(!spk_decoder_reopen(decoder, &info), "after another one that failed");
    free(p);
}
END_TEST

START_TEST(odd_ends)
{
    jpeg_variant v = layouts[0];
    size_t n;
    v.width = v.height = 60;
    unsigned char *p = encode_variant(&v, &rng, &n);
    p = realloc(p, n + 100);
    memset(p + n, 0x5A, 100);
    check_file(p, n + 100, 2, "bytes behind the end");
    free(p);
}
END_TEST

START_TEST(others_stay_as_they_are)
{
    spk_transcode_result result;
    jpeg_variant v = layouts[0];
    size_t n;
    v.width = v.height = 60;
    unsigned char *p = encode_variant(&v, &rng, &n);
    ck_ok(spk_transcode(transcoder, p, n / 2, 1u << 22, &blob, &result, &err), err);
    ck_assert_int_eq(result, SPK_TRANSCODE_DAMAGED);
    ck_ok(spk_transcode(transcoder, p, n, 100, &blob, &result, &err), err);
    ck_assert_int_eq(result, SPK_TRANSCODE_UNEQUAL); /* its pixels are over the limit, so nothing is known of them */
    memmove(p + n - 1, p + n - 2, 2);                /* a byte of padding before the end marker */
    p[n - 2] = 0;
    ck_ok(spk_transcode(transcoder, p, n, 1u << 22, &blob, &result, &err), err);
    ck_assert_int_ne(result, SPK_TRANSCODED);
    v.width = 4; /* chroma of two columns: libjpeg decodes it in another way */
    free(p);
    p = encode_variant(&v, &rng, &n);
    ck_ok(spk_transcode(transcoder, p, n, 1u << 22, &blob, &result, &err), err);
    ck_assert_int_ne(result, SPK_TRANSCODED);
    free(p);
}
END_TEST

/* The frame's content changed, and packed again so that zstd has nothing against it; or the frame itself. */
START_TEST(damage)
{
    int good = 0, bad = 0;
    for (int i = 0; i < (long_run ? 50000 : 5000); i++) {
        jpeg_variant v = layouts[(size_t)i % LAYOUTS];
        spk_transcode_result result;
        size_t n;
        v.width = pick(5, 60);
        v.height = pick(5, 60);
        unsigned char *p = encode_variant(&v, &rng, &n);
        ck_ok(spk_transcode(transcoder, p, n, 1u << 22, &blob, &result, &err), err);
        free(p);
        n = i % 4 ? blob.len : pick(0, (uint32_t)blob.len);
        unsigned char *exact = malloc(n ? n : 1);
        memcpy(exact, blob.data, n);
        for (uint32_t k = pick(0, 3); k > 0 && n > 12; k--)
            exact[pick(12, (uint32_t)n - 1)] ^= (unsigned char)(1u << pick(0, 7));
        spk_status one = decode(exact, n, NULL, 1, SPK_JPEG_OWN, &expected);
        spk_status two = decode(exact, n, NULL, 1, SPK_JPEG_PLAIN, &got);
        ck_assert_int_eq(one, two);
        if (one == SPK_OK)
            ck_assert(got.n == expected.n && memcmp(got.p, expected.p, got.n) == 0);
        *(one == SPK_OK ? &good : &bad) += 1;
        free(exact);
    }
    ck_assert_int_gt(good, 100);
    ck_assert_int_gt(bad, 100);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image/stored");
    TCase *t = tcase_create("stored");
    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, sizes);
    tcase_add_test(t, makes);
    tcase_add_test(t, parts);
    tcase_add_test(t, fractions_of_the_size);
    tcase_add_test(t, opened_anew);
    tcase_add_test(t, odd_ends);
    tcase_add_test(t, others_stay_as_they_are);
    tcase_add_test(t, damage);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
