/* image/: crop geometry by hand and in distribution, and number formats. */
#include "check_main.h"

#include <math.h>

#include "image/convert.h"
#include "image/exif.h"
#include "image/transform.h"
#include "plan/plan.h"

#define DRAWS 40000

static const double scale_default[2] = {0.08, 1}, ratio_default[2] = {3.0 / 4, 4.0 / 3};

START_TEST(draws_are_the_plan_s)
{
    spk_draw_key key = {0x123456789abcdefull, 77, 3, 1234567890123ull};
    for (unsigned k = 0; k < 64; k++) {
        uint64_t v = spk_draw(key.seed, key.epoch, SPK_DRAW_AUGMENT, key.repeat, key.index * 64 + k);
        ck_assert(spk_draw_uniform(&key, k) == (double)(v >> 11) / 9007199254740992.0);
    }
    ck_assert(!spk_draw_event(&key, SPK_DRAW_HFLIP, 0));
    ck_assert(spk_draw_event(&key, SPK_DRAW_HFLIP, 1));
}
END_TEST

/* Kolmogorov-Smirnov distance of n sorted values in [0, 1] from the uniform distribution; at level 1e-4 it stays below
 * 2.23 / sqrt(n) (Kolmogorov's limit: 2 exp(-2 x^2) = 1e-4). */
#define KS_LIMIT 2.23

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void ck_uniform(double *v, size_t n, const char *what)
{
    double most = 0;
    qsort(v, n, sizeof *v, ascending);
    for (size_t i = 0; i < n; i++) {
        double above = (double)(i + 1) / (double)n - v[i], below = v[i] - (double)i / (double)n;
        most = above > most ? above : most;
        most = below > most ? below : most;
    }
    ck_assert_msg(most * sqrt((double)n) < KS_LIMIT, "%s: distance %g of %zu values", what, most, n);
}

/* In an image so large that no try is rejected and rounding does not show, the crop's parameters have the distributions
 * they are drawn from: area uniform, log ratio uniform, place uniform given the size. */
START_TEST(crop_distribution)
{
    enum { AREA, RATIO, TOP, LEFT, KINDS };
    static const char *const names[KINDS] = {"area", "ratio", "top", "left"};
    static const double scale[2] = {0.08, 0.5};
    double *v[KINDS];
    uint32_t side = 60000;
    for (int k = 0; k < KINDS; k++)
        v[k] = malloc(DRAWS * sizeof **v);
    for (uint64_t i = 0; i < DRAWS; i++) {
        spk_draw_key key = {5, 1, 0, i};
        spk_rect r = spk_random_crop(side, side, scale, ratio_default, &key);
        double smear = spk_draw_uniform(&key, 63); /* spreads integers over the unit that they stand for */
        v[AREA][i] = ((double)r.w * r.h / ((double)side * side) - scale[0]) / (scale[1] - scale[0]);
        v[RATIO][i] = (log((double)r.w / r.h) - log(0.75)) / (log(4.0 / 3) - log(0.75));
        v[TOP][i] = (r.y + smear) / (side - r.h + 1);
        v[LEFT][i] = (r.x + smear) / (side - r.w + 1);
    }
    for (int k = 0; k < KINDS; k++) {
        ck_uniform(v[k], DRAWS, names[k]);
        free(v[k]);
    }
}
END_TEST

/* The same definition once more, with the C library's generator: what rejection and the fallback make of it. */
static spk_rect crop_by_definition(uint32_t w, uint32_t h)
{
    for (int t = 0; t < 10; t++) {
        double area = (double)w * h * (0.08 + 0.92 * drand48());
        double ratio = exp(log(0.75) + (log(4.0 / 3) - log(0.75)) * drand48());
        long cw = lrint(sqrt(area * ratio)), ch = lrint(sqrt(area / ratio));
        if (cw > 0 && cw <= w && ch > 0 && ch <= h) {
            uint32_t y = (uint32_t)(drand48() * (h - (uint32_t)ch + 1)),
                     x = (uint32_t)(drand48() * (w - (uint32_t)cw + 1));
            return (spk_rect){x, y, (uint32_t)cw, (uint32_t)ch};
        }
    }
    if ((double)w / h < 0.75)
        return (spk_rect){0, (h - (uint32_t)lrint(w / 0.75)) / 2, w, (uint32_t)lrint(w / 0.75)};
    if ((double)w / h > 4.0 / 3)
        return (spk_rect){(w - (uint32_t)lrint(h * 4.0 / 3)) / 2, 0, (uint32_t)lrint(h * 4.0 / 3), h};
    return (spk_rect){0, 0, w, h};
}

/* Two samples of counts in 16 classes each of x, y, w, h: chi-square with 15 degrees of freedom is below 48.3 at level
 * 2.3e-5 (four sizes of image and four values: 4e-4 for the whole test). */
static void compare_crops(uint32_t width, uint32_t height)
{
    long counts[2][4][16] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        spk_draw_key key = {6, 2, 1, i};
        spk_rect r[2] = {spk_random_crop(width, height, scale_default, ratio_default, &key),
                         crop_by_definition(width, height)};
        for (int k = 0; k < 2; k++) {
            ck_assert(r[k].x + r[k].w <= width && r[k].y + r[k].h <= height);
            counts[k][0][r[k].x * 16 / width]++;
            counts[k][1][r[k].y * 16 / height]++;
            counts[k][2][(r[k].w - 1) * 16 / width]++;
            counts[k][3][(r[k].h - 1) * 16 / height]++;
        }
    }
    for (int what = 0; what < 4; what++) {
        double chi = 0;
        for (int c = 0; c < 16; c++) {
            double a = (double)counts[0][what][c], b = (double)counts[1][what][c];
            chi += a + b > 0 ? (a - b) * (a - b) / (a + b) : 0;
        }
        ck_assert_msg(chi < 48.3, "%u x %u, value %d: chi-square %g", width, height, what, chi);
    }
}

START_TEST(crops_as_defined)
{
    srand48(7);
    compare_crops(500, 375);
    compare_crops(224, 1000);
    compare_crops(64, 64);
    compare_crops(33, 20);
}
END_TEST

static void ck_rect(spk_rect r, uint32_t x, uint32_t y, uint32_t w, uint32_t h)
{
    ck_assert_msg(r.x == x && r.y == y && r.w == w && r.h == h, "%u, %u, %u x %u", r.x, r.y, r.w, r.h);
}

START_TEST(crop_fallback)
{
    spk_draw_key key = {1, 0, 0, 0};
    static const double big[2] = {0.9, 1}, tall[2] = {0.01, 0.02};
    /* 90 % of these areas never has a ratio within 3/4 to 4/3 that fits. */
    ck_rect(spk_random_crop(1000, 100, big, ratio_default, &key), 433, 0, 133, 100);
    ck_rect(spk_random_crop(101, 1001, big, ratio_default, &key), 0, 433, 101, 135);
    ck_rect(spk_random_crop(1, 1, big, tall, &key), 0, 0, 1, 1);
    for (uint64_t i = 0; i < 100; i++) {
        key.index = i;
        ck_rect(spk_random_crop(1, 1, scale_default, ratio_default, &key), 0, 0, 1, 1);
    }
}
END_TEST

START_TEST(resize_cuts_fractions)
{
    uint32_t w, h;
    spk_resize_shorter(500, 375, 256, &w, &h);
    ck_assert_msg(w == 341 && h == 256, "%u x %u", w, h);
    spk_resize_shorter(640, 427, 256, &w, &h);
    ck_assert_msg(w == 383 && h == 256, "%u x %u", w, h);
    spk_resize_shorter(427, 640, 256, &w, &h);
    ck_assert_msg(w == 256 && h == 383, "%u x %u", w, h);
    spk_resize_shorter(7, 7, 256, &w, &h);
    ck_assert_msg(w == 256 && h == 256, "%u x %u", w, h);
    spk_resize_shorter(1, 1000000, 16384, &w, &h);
    ck_assert_msg(w == 16384 && h == INT32_MAX, "%u x %u", w, h);
}
END_TEST

START_TEST(centre_rounds_to_even)
{
    static const uint32_t cases[][5] = {/* have, want, first, count, pad */
                                        {256, 224, 16, 224, 0}, {257, 224, 16, 224, 0}, {259, 224, 18, 224, 0},
                                        {255, 224, 16, 224, 0}, {261, 224, 18, 224, 0}, {224, 224, 0, 224, 0},
                                        {223, 224, 0, 223, 0},  {221, 224, 0, 221, 1},  {1, 4, 0, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spk_centre c = spk_centre_crop(cases[i][0], cases[i][1]);
        ck_assert_msg(c.first == cases[i][2] && c.count == cases[i][3] && c.pad == cases[i][4], "%u in %u: %u %u %u",
                      cases[i][1], cases[i][0], c.first, c.count, c.pad);
    }
}
END_TEST

/* A 2 x 3 image 012345 in all orientations, and parts of it. */
START_TEST(turns)
{
    static const char *const turned[9] = {"",       "012345", "103254", "543210", "452301",
                                          "024135", "420531", "531420", "135024"};
    const uint8_t *stored = (const uint8_t *)"012345";
    for (int o = 1; o <= 8; o++) {
        spk_turn t = spk_turn_of(o);
        uint32_t w = t.swap ? 3 : 2, h = t.swap ? 2 : 3;
        uint8_t out[7] = {0};
        for (uint32_t y = 0; y < h; y++)
            spk_turn_row(t, out + y * w, y, stored, 2, 3, 1);
        ck_assert_msg(strcmp((char *)out, turned[o]) == 0, "orientation %d: %s", o, (char *)out);
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++) {
                spk_rect r = spk_turn_back(t, (spk_rect){x, y, 1, 1}, 2, 3);
                ck_assert_int_eq(stored[r.y * 2 + r.x], out[y * w + x]);
            }
    }
}
END_TEST

START_TEST(halves_by_hand)
{
    static const struct {
        float v;
        uint16_t half;
    } cases[] = {{0, 0},
                 {-0.0f, 0x8000},
                 {1, 0x3C00},
                 {-2, 0xC000},
                 {65504, 0x7BFF},
                 {65519.996f, 0x7BFF},
                 {65520, 0x7C00},
                 {1e30f, 0x7C00},
                 {INFINITY, 0x7C00},
                 {1.00048828125f, 0x3C00}, /* half way: to even */
                 {1.00146484375f, 0x3C02},
                 {1.0004884f, 0x3C01},
                 {6.1035156e-05f, 0x0400},
                 {6.0975552e-05f, 0x03FF},
                 {5.9604645e-08f, 0x0001},
                 {2.9802322e-08f, 0x0000},
                 {2.9802326e-08f, 0x0001},
                 {8.9406967e-08f, 0x0002},
                 {1e-9f, 0x0000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(spk_float16(cases[i].v) == cases[i].half, "%.9g: %04x, expected %04x", (double)cases[i].v,
                      spk_float16(cases[i].v), cases[i].half);
    ck_assert((spk_float16(NAN) & 0x7C00) == 0x7C00 && (spk_float16(NAN) & 0x3FF));
}
END_TEST

/* Every half is a float that must come back, and between two neighbours the nearer one wins. */
START_TEST(halves_round_trip)
{
    for (uint32_t h = 0; h < 0x7C00; h++) {
        int exponent = (int)(h >> 10);
        double v = exponent ? ldexp(1024 + (h & 0x3FF), exponent - 25) : ldexp(h & 0x3FF, -24);
        double step = ldexp(1, (exponent ? exponent : 1) - 25);
        ck_assert_uint_eq(spk_float16((float)v), h);
        ck_assert_uint_eq(spk_float16((float)-v), h | 0x8000);
        ck_assert_uint_eq(spk_float16((float)(v + 0.49 * step)), h);
        ck_assert_uint_eq(spk_float16((float)(v + 0.5 * step)), h + (h & 1));
        ck_assert_uint_eq(spk_float16((float)(v + 0.51 * step)), h + 1);
    }
}
END_TEST

START_TEST(rows_in_all_layouts)
{
    spk_pixel_format f = {
        .width = 2, .height = 2, .channels = 3, .normalize = true, .mean = {0.5f, 0.25f, 0}, .std = {0.5f, 0.25f, 2}};
    static const uint8_t row[6] = {0, 51, 102, 153, 204, 255};
    spk_converter c;
    for (int type = SPK_PIXEL_UINT8; type <= SPK_PIXEL_FLOAT32; type++)
        for (int order = 0; order < 2; order++) {
            float image[12];
            uint8_t *bytes = (uint8_t *)image;
            f.type = (spk_pixel_type)type;
            f.order = (spk_pixel_order)order;
            spk_converter_init(&c, &f);
            memset(image, 0x55, sizeof image);
            spk_convert_row(&c, image, 1, row);
            for (int i = 0; i < 12; i++) { /* element i of the image is channel ch of pixel x of row y */
                int ch = order ? i / 4 : i % 3, x = order ? i % 2 : i / 3 % 2, y = order ? i / 2 % 2 : i / 6;
                float want = ((float)row[3 * x + ch] / 255.0f - f.mean[ch]) / f.std[ch];
                uint16_t half = spk_float16(want);
                if (y == 0)
                    ck_assert_int_eq(bytes[i << type], 0x55);
                else if (type == SPK_PIXEL_UINT8)
                    ck_assert_int_eq(bytes[i], row[3 * x + ch]);
                else if (type == SPK_PIXEL_FLOAT16)
                    ck_assert_mem_eq(bytes + 2 * i, &half, 2);
                else
                    ck_assert(image[i] == want);
            }
            ck_assert_uint_eq(spk_pixel_bytes(&f), 12u << type);
        }
}
END_TEST

/* With and without the kernel, at widths that leave a rest. */
START_TEST(kernels_agree_with_tables)
{
    uint8_t row[3 * 61];
    for (size_t i = 0; i < sizeof row; i++)
        row[i] = (uint8_t)(i * 37 + i / 7);
    for (int i = 0; i < 12 * 61; i++) {
        spk_pixel_format f = {.type = (spk_pixel_type)(i % 3),
                              .order = (spk_pixel_order)(i / 3 % 2),
                              .width = 1 + (uint32_t)i / 12,
                              .height = 2,
                              .channels = i / 6 % 2 ? 3 : 1,
                              .normalize = i % 3 && i % 5,
                              .mean = {0.485f, 0.456f, 0.406f},
                              .std = {0.229f, 0.224f, 0.225f}};
        spk_converter c;
        float one[3 * 61 * 2] = {0}, two[3 * 61 * 2] = {0};
        spk_converter_init(&c, &f);
        ck_assert(!c.kernel == !spk_convert_best(&f));
        for (uint32_t y = 0; y < 2; y++)
            spk_convert_row(&c, one, y, row);
        c.kernel = NULL;
        for (uint32_t y = 0; y < 2; y++)
            spk_convert_row(&c, two, y, row);
        ck_assert_mem_eq(one, two, sizeof one);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image/transform");
    TCase *t = tcase_create("geometry");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, draws_are_the_plan_s);
    tcase_add_test(t, crop_distribution);
    tcase_add_test(t, crops_as_defined);
    tcase_add_test(t, crop_fallback);
    tcase_add_test(t, resize_cuts_fractions);
    tcase_add_test(t, centre_rounds_to_even);
    tcase_add_test(t, turns);
    suite_add_tcase(s, t);
    t = tcase_create("numbers");
    tcase_add_test(t, halves_by_hand);
    tcase_add_test(t, halves_round_trip);
    tcase_add_test(t, rows_in_all_layouts);
    tcase_add_test(t, kernels_agree_with_tables);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
