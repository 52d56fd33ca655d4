/* image/: our baseline JPEG decoder against libjpeg-turbo: the same pixels, errors and texts, with vectors and without,
 * for whole images and parts. TEST_LONG=1 tries more sizes and crops. */
#include "check_main.h"

#include "jpeg_compare.h"

static void setup(void)
{
    compare_setup(31);
}

/* ---- kernels ---- */

#define PIXELS 203u
#define ROOM (3 * (PIXELS + 2 * SPK_JPEG_SLACK))

START_TEST(inverse_transforms_agree)
{
    static int16_t coef[2][64], quant[64];
    uint8_t one[2][64], two[2][64];
    const spk_jpeg_kernels *vector = spk_jpeg_kernels_vector();
    spk_idct_item items[2] = {{coef[0], one[0]}, {coef[1], one[1]}}, same[2] = {{coef[0], two[0]}, {coef[1], two[1]}};
    for (int i = 0; i < 200000 && vector; i++) {
        memset(coef, 0, sizeof coef);
        uint32_t range = i % 3 == 0 ? 60 : i % 3 == 1 ? 1024 : 32767, many = pick(0, 64);
        for (size_t k = 0; k < 64; k++)
            quant[k] = (int16_t)pick(1, i % 5 == 0 ? 65535 : 40);
        for (uint32_t k = 0; k < many; k++)
            coef[pick(0, 1)][i % 7 ? pick(0, 63) : pick(0, 7)] = (int16_t)((int)pick(0, 2 * range) - (int)range);
        size_t n = i % 2 ? 2 : 1;
        ck_assert(spk_jpeg_kernels_plain.idct(items, n, quant, 8));
        ck_assert(vector->idct(same, n, quant, 8));
        ck_assert_mem_eq(one, two, n * 64);
    }
}
END_TEST

/* Side by side: the same samples as one by one, and not one beyond an odd number of blocks. */
START_TEST(pairs_are_transformed_like_single_blocks)
{
    static _Alignas(32) int16_t pairs[6 * 64];
    static int16_t coef[5][64], quant[64];
    static uint8_t one[6][64], two[6][64];
    const spk_jpeg_kernels *plain = &spk_jpeg_kernels_plain, *vector = spk_jpeg_kernels_vector();
    for (int i = 0; i < 20000; i++) {
        uint8_t *out[5];
        spk_idct_item items[5];
        uint32_t range = i % 3 == 0 ? 60 : i % 3 == 1 ? 1024 : 32767, n = pick(1, 5);
        for (size_t k = 0; k < 64; k++)
            quant[k] = (int16_t)pick(1, i % 5 == 0 ? 65535 : 40);
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
            pairs[k] = (int16_t)((int)pick(0, 2 * range) - (int)range);
        for (uint32_t b = 0; b < n; b++) {
            for (size_t k = 0; k < 64; k++)
                coef[b][k] = pairs[128 * (b / 2) + 8 * (b % 2) + k / 8 * 16 + k % 8];
            items[b] = (spk_idct_item){coef[b], one[b]};
            out[b] = two[b];
        }
        memset(one, 1, sizeof one);
        bool done = plain->idct(items, n, quant, 8);
        ck_assert(done || !no_limits);
        memset(two, 1, sizeof two);
        ck_assert(plain->idct_pairs(pairs, out, n, quant, 8) == done);
        ck_assert(!done || memcmp(one, two, sizeof one) == 0);
        memset(two, 1, sizeof two);
        ck_assert(!vector || vector->idct_pairs(pairs, out, n, quant, 8));
        ck_assert(!vector || memcmp(one, two, sizeof one) == 0);
    }
}
END_TEST

static void fill_random(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)pick(0, 255);
}

/* Every pair of chroma values, and every luma value. */
START_TEST(colours_agree)
{
    static uint8_t y[ROOM], cb[ROOM], cr[ROOM], one[ROOM], two[ROOM];
    const spk_jpeg_kernels *plain = &spk_jpeg_kernels_plain, *vector = spk_jpeg_kernels_vector();
    for (unsigned b = 0; b < 256 && vector; b++)
        for (unsigned r = 0; r < 256; r += 64) {
            for (unsigned i = 0; i < 64; i++) {
                y[i] = (uint8_t)pick(0, 255);
                cb[i] = (uint8_t)b;
                cr[i] = (uint8_t)(r + i);
            }
            plain->rgb(one, y, cb, cr, 64);
            vector->rgb(two, y, cb, cr, 64);
            ck_assert_mem_eq(one, two, 192);
        }
}
END_TEST

START_TEST(row_kernels_agree)
{
    static uint8_t a[ROOM], b[ROOM], c[ROOM], one[ROOM], two[ROOM];
    static uint16_t wide_one[2][ROOM], wide_two[2][ROOM];
    const spk_jpeg_kernels *plain = &spk_jpeg_kernels_plain, *vector = spk_jpeg_kernels_vector();
    static const spk_jpeg_widening ways[2] = {{8, 7, 4}, {1, 2, 2}};
    for (uint32_t n = 1; n <= PIXELS && vector; n++) {
        fill_random(a, ROOM);
        fill_random(b, ROOM);
        fill_random(c, ROOM);
        plain->mix(one, a, b, 1 + n % 2, n);
        vector->mix(two, a, b, 1 + n % 2, n);
        ck_assert_mem_eq(one, two, n);
        plain->interleave(one, a, b, c, n);
        vector->interleave(two, a, b, c, n);
        ck_assert_mem_eq(one, two, 3 * n);
        for (int way = 0; way < 2; way++) {
            for (int i = 0; i < 2; i++) {
                const uint8_t *from = i ? a : c;
                if (way == 0) {
                    plain->sum(wide_one[i], from, b, n + 2);
                    vector->sum(wide_two[i], from, b, n + 2);
                } else {
                    plain->copy(wide_one[i], from, n + 2);
                    vector->copy(wide_two[i], from, n + 2);
                }
                ck_assert_mem_eq(wide_one[i], wide_two[i], 2 * (n + 2));
            }
            plain->rgb_wide(one, a, wide_one[0] + 1, wide_one[1] + 1, n, ways[way]);
            vector->rgb_wide(two, a, wide_two[0] + 1, wide_two[1] + 1, n, ways[way]);
            ck_assert_mem_eq(one, two, 3 * n);
        }
    }
}
END_TEST

/* ---- whole decoder ---- */

static void compare_variant(const jpeg_variant *v, uint32_t parts, bool own)
{
    char what[128];
    size_t n;
    unsigned char *p = encode_variant(v, &rng, &n);
    snprintf(what, sizeof what, "%u x %u, %d x %d, colours %d, q %d, restart %u, content %d", v->width, v->height, v->h,
             v->v, v->stored, v->quality, v->restart, v->content);
    compare(p, n, NULL, 3, own, what);
    compare(p, n, NULL, 1, own, what);
    for (uint32_t i = 0; i < parts; i++) {
        spk_rect r = {pick(0, v->width - 1), pick(0, v->height - 1), 1, 1};
        r.w = pick(1, i % 3 ? v->width - r.x : v->width - r.x < 4 ? v->width - r.x : 4);
        r.h = pick(1, i % 4 ? v->height - r.y : v->height - r.y < 4 ? v->height - r.y : 4);
        compare(p, n, &r, i % 5 ? 3 : 1, own, what);
    }
    free(p);
}

static const jpeg_variant layouts[] = {{0, 0, JCS_YCbCr, 2, 2, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                       {0, 0, JCS_YCbCr, 2, 1, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                       {0, 0, JCS_YCbCr, 1, 2, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                       {0, 0, JCS_YCbCr, 1, 1, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                       {0, 0, JCS_RGB, 1, 1, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                       {0, 0, JCS_GRAYSCALE, 1, 1, 90, 0, 0, 0, 0, CONTENT_SMOOTH}};
#define LAYOUTS (sizeof layouts / sizeof *layouts)

/* All sizes modulo the MCU, borders included. libjpeg repeats chroma of one or two columns, so those are its own. */
START_TEST(sizes)
{
    uint32_t largest = long_run ? 70 : 34;
    for (size_t k = 0; k < LAYOUTS; k++)
        for (uint32_t h = 1; h <= largest; h++)
            for (uint32_t w = 1; w <= largest; w++) {
                jpeg_variant v = layouts[k];
                v.width = w;
                v.height = h;
                compare_variant(&v, 1, v.h == 1 || w > 4);
            }
}
END_TEST

START_TEST(qualities_and_contents)
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
                compare_variant(&v, long_run ? 40 : 6, true);
            }
}
END_TEST

START_TEST(tables_and_markers)
{
    for (size_t k = 0; k < LAYOUTS; k++)
        for (unsigned i = 0; i < 48; i++) {
            jpeg_variant v = layouts[k];
            v.width = pick(30, 150);
            v.height = pick(30, 150);
            v.optimize = i % 2;
            v.restart = i % 3 == 0 ? 0 : pick(1, i % 3 == 1 ? 3 : 40);
            v.wide_step = i % 4 == 3 ? pick(1, 1000) : 0;
            v.content = i % 5 ? CONTENT_SMOOTH : CONTENT_NOISE;
            compare_variant(&v, 6, v.wide_step == 0 || no_limits);
        }
}
END_TEST

/* Parts of an image as large as those of data sets, above all its borders. */
START_TEST(parts)
{
    for (size_t k = 0; k < LAYOUTS; k++) {
        jpeg_variant v = layouts[k];
        v.width = 300 + pick(0, 40);
        v.height = 200 + pick(0, 40);
        compare_variant(&v, long_run ? 3000 : 250, true);
    }
}
END_TEST

START_TEST(others_are_left_to_libjpeg)
{
    jpeg_variant v = layouts[0];
    size_t n;
    v.width = 4;
    v.height = 50;
    unsigned char *p = encode_variant(&v, &rng, &n);
    compare(p, n, NULL, 3, false, "narrow");
    ck_assert(!got.own);
    free(p);
}
END_TEST

START_TEST(wild_coefficients)
{
    for (unsigned i = 0; i < 400; i++) {
        jpeg_variant v = layouts[i % LAYOUTS];
        size_t n;
        v.width = pick(5, 80);
        v.height = pick(1, 80);
        unsigned char *p = encode_wild(&v, NULL, 0, &rng, &n);
        compare(p, n, NULL, 3, false, "wild");
        free(p);
    }
}
END_TEST

/* Bits flipped, bytes inserted, lost and cut off: what libjpeg says of it, and its pixels where it says nothing. */
START_TEST(damage)
{
    int sound = 0, bad = 0;
    for (unsigned i = 0; i < (long_run ? 40000 : 4000); i++) {
        jpeg_variant v = layouts[i % LAYOUTS];
        size_t n;
        v.width = pick(5, 60);
        v.height = pick(5, 60);
        v.optimize = i % 7 == 0;
        v.restart = i % 3 ? 0 : pick(1, 9);
        unsigned char *p = encode_variant(&v, &rng, &n);
        spk_rect r = {0, 0, v.width, v.height};
        if (i % 2)
            r = (spk_rect){pick(0, v.width - 1), pick(0, v.height - 1), 1, 1};
        size_t at = i % 4 ? pick((uint32_t)n / 2, (uint32_t)n - 2) : pick(2, (uint32_t)n - 2);
        if (i % 6 == 0)
            n = at;
        else if (i % 6 == 1)
            memmove(p + at, p + at + 1, --n - at);
        else if (i % 6 == 2)
            p[at] = (unsigned char)pick(0, 255);
        else if (i % 6 == 3)
            p[at] = 0xFF;
        else if (i % 6 == 4) /* fill bytes and no marker, or none that ends the scan */
            memset(p + at, 0xFF, i % 4 && n - at > 9 ? pick(1, 8) : n - at);
        else
            p[at] ^= (unsigned char)(1u << pick(0, 7));
        unsigned char *exact = malloc(n);
        memcpy(exact, p, n);
        compare(exact, n, v.width == r.w && v.height == r.h ? NULL : &r, 3, false, "damaged");
        *(got.text[0] ? &bad : &sound) += 1;
        free(exact);
        free(p);
    }
    ck_assert_int_gt(sound, 500);
    ck_assert_int_gt(bad, 500);
}
END_TEST

/* No code may be all ones: libjpeg refuses such a table, also if the code is never used. */
START_TEST(code_of_all_ones)
{
    static const unsigned char sound[] = {0, 1, 5, 1, 1, 1, 1, 1, 1, 0}; /* codes of each length, of luma's DC */
    jpeg_variant v = layouts[0];
    size_t n, at = 0;
    v.width = v.height = 50;
    unsigned char *p = encode_variant(&v, &rng, &n);
    while (at + sizeof sound < n && memcmp(p + at, sound, sizeof sound) != 0)
        at++;
    ck_assert_uint_lt(at + sizeof sound, n);
    p[at + 7] = 2;
    p[at + 8] = 0;
    compare(p, n, NULL, 3, false, "code of all ones");
    ck_assert_ptr_nonnull(strstr(expected.text, "Huffman table"));
    free(p);
}
END_TEST

/* Where the scan breaks off, in all ways; the first rows may be decoded, or libjpeg looks ahead and complains. */
START_TEST(ends_of_the_scan)
{
    static const struct {
        const char *bytes;
        size_t n;
    } ends[] = {{"", 0},
                {"\xFF", 1},
                {"\xFF\xFF\xFF", 3},
                {"\xFF\x00", 2},
                {"\xFF\xFF\xFF\x00\x00\xD9", 6},
                {"\xFF\xFF\x00\xFF\xD9", 5},
                {"\xFF\xD9", 2},
                {"\xFF\xFF\xD9", 3},
                {"\xFF\xD0", 2}};
    jpeg_variant v = {48, 64, JCS_YCbCr, 1, 1, 90, 0, 0, 0, 0, CONTENT_SMOOTH};
    spk_rect top = {3, 0, 30, 8};
    size_t n;
    unsigned char *p = encode_variant(&v, &rng, &n);
    for (size_t at = n / 4; at < n; at += at < n / 2 ? 1 : 9)
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
            unsigned char *cut = malloc(at + ends[k].n);
            memcpy(cut, p, at);
            memcpy(cut + at, ends[k].bytes, ends[k].n);
            compare(cut, at + ends[k].n, &top, 3, false, "end of the scan");
            compare(cut, at + ends[k].n, NULL, 3, false, "end of the scan");
            free(cut);
        }
    free(p);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image/jpeg");
    TCase *t = tcase_create("jpeg");
    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, inverse_transforms_agree);
    tcase_add_test(t, pairs_are_transformed_like_single_blocks);
    tcase_add_test(t, colours_agree);
    tcase_add_test(t, row_kernels_agree);
    tcase_add_test(t, sizes);
    tcase_add_test(t, qualities_and_contents);
    tcase_add_test(t, tables_and_markers);
    tcase_add_test(t, parts);
    tcase_add_test(t, others_are_left_to_libjpeg);
    tcase_add_test(t, wild_coefficients);
    tcase_add_test(t, damage);
    tcase_add_test(t, code_of_all_ones);
    tcase_add_test(t, ends_of_the_scan);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
