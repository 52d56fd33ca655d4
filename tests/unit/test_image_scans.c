/* coef/ and image/: files of several scans stored as coefficients, progressive ones and others. They come back byte for
 * byte, pixels are those of libjpeg; what a scan leaves out or tells twice stays as it is. TEST_LONG=1 tries more. */
#include "check_main.h"

#include "coef/optimal.h"
#include "jpeg_scripts.h"
#include "stored_fixture.h"

static void setup(void)
{
    stored_setup(43);
}

/* ---- checks ---- */

typedef struct rows {
    uint8_t *p;
    size_t row, n, cap;
    uint32_t width, height;
} rows;

static void keep(void *ctx, const uint8_t *row)
{
    rows *out = ctx;
    ck_assert_uint_le(out->n + out->row, out->cap);
    memcpy(out->p + out->n, row, out->row);
    out->n += out->row;
}

static void decode(const void *data, size_t n, const spk_rect *part, uint32_t denom, spk_jpeg_engine engine, rows *out)
{
    spk_decoder_info info;
    out->n = 0;
    spk_decoder_use(decoder, engine);
    ck_ok(spk_decoder_open(decoder, data, n, 1u << 22, &info, &err), err);
    out->width = info.width;
    out->height = info.height;
    spk_decode_job job = {
        {0, 0, (info.width + denom - 1) / denom, (info.height + denom - 1) / denom}, denom, 3, keep, out, false};
    if (part)
        job.part = *part;
    out->row = (size_t)job.part.w * 3;
    if (out->row * job.part.h > out->cap) {
        out->cap = out->row * job.part.h;
        out->p = realloc(out->p, out->cap);
    }
    ck_ok(spk_decoder_run(decoder, &job, &err), err);
}

static rows expected, got;

static void compare_pixels(const void *data, size_t n, const spk_rect *part, uint32_t denom, const char *what)
{
    decode(data, n, part, denom, SPK_JPEG_LIBJPEG, &expected);
    for (int engine = SPK_JPEG_OWN; engine <= SPK_JPEG_LIBJPEG; engine++) {
        decode(blob.data, blob.len, part, denom, (spk_jpeg_engine)engine, &got);
        ck_assert_msg(got.n == expected.n && memcmp(got.p, expected.p, got.n) == 0, "%s: engine %d", what, engine);
    }
}

static void check_file(const void *data, size_t n, uint32_t parts, const char *what)
{
    spk_transcode_result result;
    ck_ok(spk_transcode(transcoder, data, n, 1u << 22, &blob, &result, &err), err);
    ck_assert_msg(result == SPK_TRANSCODED || result == SPK_TRANSCODE_NO_GAIN, "%s: result %d", what, result);
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

static void check_variant(const jpeg_variant *v, const script *s, uint32_t parts)
{
    char what[160];
    size_t n;
    unsigned char *p = encode_scans(v, s->scan, s->scans, &rng, &n);
    snprintf(what, sizeof what, "%d scans: %u x %u, %d x %d, colours %d, q %d, restart %u, content %d", s->scans,
             v->width, v->height, v->h, v->v, v->stored, v->quality, v->restart, v->content);
    check_file(p, n, parts, what);
    free(p);
}

static void check_kept(const script *s, spk_transcode_result wanted)
{
    spk_transcode_result result;
    jpeg_variant v = variant_of(s, 0);
    size_t n;
    v.width = v.height = 90;
    unsigned char *p = encode_scans(&v, s->scan, s->scans, &rng, &n);
    ck_ok(spk_transcode(transcoder, p, n, 1u << 22, &blob, &result, &err), err);
    ck_assert_int_eq(result, wanted);
    free(p);
}

/* ---- tests ---- */

START_TEST(sizes)
{
    for (const script *s = scripts; s < scripts + SCRIPTS; s++)
        for (size_t k = 0; k < (s->gray ? 1 : LAYOUTS); k++)
            for (uint32_t i = 1; i <= 40; i += long_run ? 1 : pick(1, 6))
                for (uint32_t j = 1; j <= 40; j += long_run ? 1 : pick(4, 12)) {
                    jpeg_variant v = variant_of(s, k);
                    v.width = i + (v.h == 2) * 4; /* narrower ones are for libjpeg alone */
                    v.height = j;
                    v.restart = pick(0, 2) == 0 ? pick(1, 9) : 0;
                    check_variant(&v, s, 0);
                }
}
END_TEST

START_TEST(makes)
{
    static const int qualities[] = {5, 30, 50, 75, 90, 100};
    for (const script *s = scripts; s < scripts + SCRIPTS; s++)
        for (size_t k = 0; k < (s->gray ? 1 : LAYOUTS); k++)
            for (size_t q = 0; q < sizeof qualities / sizeof *qualities; q++)
                for (int content = CONTENT_SMOOTH; content <= CONTENT_FLAT; content += long_run ? 1 : (int)pick(1, 3)) {
                    jpeg_variant v = variant_of(s, k);
                    v.width = pick(60, long_run ? 200 : 130);
                    v.height = pick(60, long_run ? 200 : 130);
                    v.quality = qualities[q];
                    v.content = (jpeg_content)content;
                    v.optimize = (int)q % 2;
                    v.restart = q % 3 == 0 ? pick(1, 40) : 0;
                    v.wide_step = q == 5 ? 2 * pick(1, 250) : 0; /* libjpeg divides by 0 at a step of 8192 */
                    check_variant(&v, s, long_run ? 8 : 2);
                }
}
END_TEST

/* Up to where libjpeg ends a run of blocks: at 32,767 of them, and at more than 937 corrections. */
START_TEST(long_runs)
{
    const script *s = scripts + 4;
    jpeg_variant v = variant_of(s, 3);
    v.width = v.height = 1480;
    v.quality = 10;
    check_variant(&v, s, 0);
    s = scripts + 2;
    v = variant_of(s, 3);
    v.width = v.height = 500;
    v.quality = 96;
    check_variant(&v, s, 0);
}
END_TEST

START_TEST(fractions_of_the_size)
{
    jpeg_variant v = variant_of(scripts, 0);
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

/* The factors of an only component, which Pillow sets as for colours, mean nothing. */
START_TEST(gray_with_factors)
{
    for (int h = 1; h <= 2; h++)
        for (int f = 1; f <= 2; f++)
            for (uint32_t i = 1; i < 40; i += long_run ? 1 : 5)
                for (int progressive = 0; progressive < 2; progressive++) {
                    jpeg_variant v = variant_of(scripts + 8, 0);
                    v.h = h;
                    v.v = f;
                    v.width = pick(1, 60);
                    v.height = i;
                    v.progressive = progressive;
                    check_variant(&v, scripts + 8, 3);
                }
}
END_TEST

/* Each scan is a pass over the image, so there is a limit. */
START_TEST(number_of_scans)
{
    jpeg_scan_info scan[101] = {{ONE(0), 0, 0, 0, 0}};
    for (int finer = 36; finer <= 37; finer++) {
        script s = {scan, 64 + finer, true, true};
        for (int k = 1; k < 64; k++)
            scan[k] = (jpeg_scan_info){ONE(0), k, k, 0, k <= finer};
        for (int k = 1; k <= finer; k++)
            scan[63 + k] = (jpeg_scan_info){ONE(0), k, k, 1, 0};
        jpeg_variant v = variant_of(&s, 0);
        v.width = v.height = 90;
        if (s.scans <= 100)
            check_variant(&v, &s, 1);
        else
            check_kept(&s, SPK_TRANSCODE_OTHER);
    }
}
END_TEST

/* The scans of a file must tell all of it; libjpeg makes up what is missing. */
START_TEST(others_stay_as_they_are)
{
    check_kept(&(script){SCRIPT(unfinished), false, true}, SPK_TRANSCODE_OTHER);
    check_kept(&(script){SCRIPT(luma_alone), false, true}, SPK_TRANSCODE_OTHER);
}
END_TEST

static size_t stored_size(int optimize)
{
    const script *s = scripts + 5; /* in sequence: tables of annex K unless optimised */
    jpeg_variant v = variant_of(s, 0);
    v.width = v.height = 200;
    v.optimize = optimize;
    v.quality = 20;
    check_variant(&v, s, 0);
    return blob.len;
}

/* Tables are stored unless they are the best ones. */
START_TEST(tables)
{
    spk_coef_huffman h;
    uint32_t counts[256] = {0};
    spk_coef_huffman_best(&h, counts);
    ck_assert(spk_coef_huffman_is_open(&h));
    counts[7] = 1;
    spk_coef_huffman_best(&h, counts);
    ck_assert(h.bits[1] == 1 && h.values[0] == 7);
    for (uint32_t i = 0, a = 1, b = 1, c; i < 40; i++, c = a + b, a = b, b = c) /* codes of 40 bits if they could be */
        counts[i] = a;
    spk_coef_huffman_best(&h, counts);
    uint32_t n = 0, code = 0;
    for (uint32_t i = 1; i <= 16; i++, code <<= 1) {
        n += h.bits[i];
        code += h.bits[i];
        ck_assert_uint_lt(code, 1u << i);
    }
    ck_assert_uint_eq(n, 40);
    ck_assert_uint_gt(stored_size(0), stored_size(1));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image/scans");
    TCase *t = tcase_create("scans");
    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, sizes);
    tcase_add_test(t, makes);
    tcase_add_test(t, long_runs);
    tcase_add_test(t, fractions_of_the_size);
    tcase_add_test(t, gray_with_factors);
    tcase_add_test(t, number_of_scans);
    tcase_add_test(t, others_stay_as_they_are);
    tcase_add_test(t, tables);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
