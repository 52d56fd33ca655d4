/* image/: resampling. The fast kernels give the scalar ones' integers, a window of the output is the same part of the
 * whole, and weights are what they should be. */
#include "check_main.h"

#include "base/rng.h"
#include "image/nearest.h"
#include "image/resample.h"

static spk_error err;
static spk_rng rng;

static void setup(void)
{
    spk_error_clear(&err);
    rng = (spk_rng){11, 1, 0};
}

static uint32_t pick(uint32_t low, uint32_t high)
{
    return low + (uint32_t)spk_rng_below(&rng, high - low + 1);
}

/* Random, and often at its extremes, where sums clip. Exactly as long as the contract says may be read. */
static uint8_t *make_pixels(size_t n)
{
    uint8_t *p = malloc(n + SPK_ROW_PAD);
    ck_assert_ptr_nonnull(p);
    uint64_t v = spk_rng_u64(&rng);
    for (size_t i = 0; i < n + SPK_ROW_PAD; i++) {
        v = v * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator: its upper bits */
        p[i] = (uint8_t)(v >> 62 ? v >> 48 : v >> 61 & 1 ? 255 : 0);
    }
    return p;
}

static spk_axis random_axis(uint32_t in, uint32_t out)
{
    spk_axis a = spk_axis_whole(in, out);
    if (pick(0, 1)) {
        a.first = pick(0, out - 1);
        a.count = pick(1, out - a.first);
    }
    if (pick(0, 3) == 0 && in > 1) {
        a.box0 = pick(0, 3) * 0.25;
        a.box1 = in - pick(0, 3) * 0.25;
    }
    return a;
}

static void compare_horizontal(spk_weights *w, const spk_axis *a, spk_filter filter, uint32_t channels, bool flip)
{
    ck_ok(spk_weights_make(w, a, filter, &err), err);
    ck_ok(spk_weights_split(w, channels, &err), err);
    size_t n = (size_t)a->count * channels;
    uint8_t *in = make_pixels((size_t)w->in * channels), *one = malloc(n), *two = malloc(n);
    spk_horizontal_scalar(one, in, w, channels, flip);
    spk_horizontal_best()(two, in, w, channels, flip);
    ck_assert_msg(memcmp(one, two, n) == 0, "%u to %u (%u from %u), filter %d, %u channels, flip %d", a->in, a->out,
                  a->count, a->first, filter, channels, flip);
    free(in);
    free(one);
    free(two);
}

START_TEST(horizontal_kernels_agree)
{
    spk_weights w = {0};
    for (uint32_t in = 1; in <= 40; in++)
        for (uint32_t out = 1; out <= 13; out++) {
            spk_axis a = spk_axis_whole(in, out);
            for (int flip = 0; flip < 2; flip++) {
                compare_horizontal(&w, &a, SPK_FILTER_BILINEAR, 3, flip);
                compare_horizontal(&w, &a, SPK_FILTER_BICUBIC, 3, flip);
            }
        }
    for (int i = 0; i < 700; i++) {
        spk_axis a = random_axis(pick(1, i % 50 ? 700 : 9000), pick(1, 300));
        compare_horizontal(&w, &a, (spk_filter)(i & 1), i % 10 ? 3 : pick(1, 4), pick(0, 1));
    }
    spk_weights_free(&w);
}
END_TEST

START_TEST(vertical_kernels_agree)
{
    spk_weights w = {0};
    for (int i = 0; i < 400; i++) {
        spk_axis a = random_axis(pick(1, i % 20 ? 100 : 2000), pick(1, 60));
        ck_ok(spk_weights_make(&w, &a, (spk_filter)(i & 1), &err), err);
        uint32_t at = pick(0, a.count - 1), rows = w.count[at];
        size_t n = pick(1, i % 2 ? 70 : 700);
        uint8_t **row = malloc(rows * sizeof *row), *one = malloc(n), *two = malloc(n);
        for (uint32_t k = 0; k < rows; k++)
            row[k] = make_pixels(n);
        const int32_t *q = w.weight + (size_t)at * w.stride;
        spk_vertical_scalar(one, (const uint8_t *const *)row, q, rows, n);
        spk_vertical_best()(two, (const uint8_t *const *)row, q, rows, n);
        ck_assert_msg(memcmp(one, two, n) == 0, "%u rows of %zu bytes", rows, n);
        for (uint32_t k = 0; k < rows; k++)
            free(row[k]);
        free(row);
        free(one);
        free(two);
    }
    spk_weights_free(&w);
}
END_TEST

/* Weights are rounded one by one, so their sum is off by at most half a unit each. */
START_TEST(weights_sum_to_one)
{
    spk_weights w = {0};
    for (int i = 0; i < 250; i++) {
        uint32_t in = pick(1, 3000), out = pick(1, 600);
        spk_axis a = random_axis(in, out);
        ck_ok(spk_weights_make(&w, &a, (spk_filter)(i & 1), &err), err);
        for (uint32_t k = 0; k < w.n; k++) {
            int64_t sum = 0;
            for (uint32_t j = 0; j < w.stride; j++) {
                int32_t q = w.weight[(size_t)k * w.stride + j];
                ck_assert(j < w.count[k] || q == 0);
                ck_assert(q >= -(1 << 20) && q <= (1 << 22) + (1 << 20));
                sum += q;
            }
            ck_assert_int_le(llabs((long long)sum - (1 << 22)), (w.count[k] + 1) / 2);
            ck_assert_uint_le(w.first[k] + w.count[k], w.in);
        }
    }
    spk_weights_free(&w);
}
END_TEST

/* By hand: 4 to 2, triangle of support 2 around 1 and 3, cut at the border: 3/4, 3/4, 1/4 of 1.75. */
START_TEST(weights_by_hand)
{
    spk_weights w = {0};
    spk_axis a = spk_axis_whole(4, 2);
    ck_ok(spk_weights_make(&w, &a, SPK_FILTER_BILINEAR, &err), err);
    ck_assert_uint_eq(w.first[0], 0);
    ck_assert_uint_eq(w.count[0], 3);
    ck_assert_int_eq(w.weight[0], 1797559); /* 3/7 of 2^22, rounded */
    ck_assert_int_eq(w.weight[1], 1797559);
    ck_assert_int_eq(w.weight[2], 599186);
    ck_assert_uint_eq(w.first[1], 1);
    ck_assert_int_eq(w.weight[w.stride], 599186);
    spk_weights_free(&w);
}
END_TEST

typedef struct picture {
    uint8_t *p;
    size_t row;
    uint32_t rows;
} picture;

static void keep(void *ctx, uint32_t y, const uint8_t *row)
{
    picture *out = ctx;
    ck_assert_uint_eq(y, out->rows);
    memcpy(out->p + y * out->row, row, out->row);
    out->rows++;
}

/* Resizes the whole `in` (x.in by y.in); feeds only what the windows need. nearest NULL: the resampler. */
static picture resize(spk_resampler *r, spk_nearest *nearest, const spk_axis *x, const spk_axis *y, const uint8_t *in,
                      spk_filter filter, bool flip)
{
    uint32_t x0, x1, y0, y1;
    picture out = {NULL, (size_t)x->count * 3, 0};
    spk_resample_job job = {*x, *y, 3, filter, flip, keep, &out};
    out.p = malloc(out.row * y->count);
    if (nearest) {
        spk_nearest_needs(x, &x0, &x1);
        spk_nearest_needs(y, &y0, &y1);
        ck_ok(spk_nearest_begin(nearest, &job, &err), err);
    } else {
        spk_axis_needs(x, filter, &x0, &x1);
        spk_axis_needs(y, filter, &y0, &y1);
        ck_ok(spk_resampler_begin(r, &job, &err), err);
    }
    /* A copy of just these pixels, so that a read outside of them and their padding is seen. */
    size_t bytes = 3 * (size_t)(x1 - x0);
    uint8_t *row = malloc(bytes + SPK_ROW_PAD);
    memset(row + bytes, 0xEE, SPK_ROW_PAD);
    for (uint32_t i = y0; i < y1; i++) {
        memcpy(row, in + ((size_t)i * x->in + x0) * 3, bytes);
        if (nearest)
            spk_nearest_row(nearest, row);
        else
            spk_resampler_row(r, row);
    }
    free(row);
    ck_assert_uint_eq(out.rows, y->count);
    return out;
}

static void compare_window(spk_resampler *r, spk_nearest *nearest, int i)
{
    uint32_t w = pick(1, 60), h = pick(1, 60);
    spk_axis x = spk_axis_whole(w, i % 7 ? pick(1, 60) : w), y = spk_axis_whole(h, i % 5 ? pick(1, 60) : h);
    uint8_t *in = make_pixels((size_t)w * h * 3);
    bool flip = pick(0, 1);
    picture whole = resize(r, nearest, &x, &y, in, (spk_filter)(i & 1), false);
    x.first = pick(0, x.out - 1), x.count = pick(1, x.out - x.first);
    y.first = pick(0, y.out - 1), y.count = pick(1, y.out - y.first);
    picture part = resize(r, nearest, &x, &y, in, (spk_filter)(i & 1), flip);
    for (uint32_t v = 0; v < y.count; v++)
        for (uint32_t u = 0; u < x.count; u++) {
            uint32_t from = x.first + (flip ? x.count - 1 - u : u);
            ck_assert_mem_eq(part.p + v * part.row + 3 * u, whole.p + (y.first + v) * whole.row + 3 * from, 3);
        }
    free(in);
    free(whole.p);
    free(part.p);
}

START_TEST(windows_are_parts_of_the_whole)
{
    spk_resampler *r;
    spk_nearest *nearest;
    ck_ok(spk_resampler_new(&r, &err), err);
    ck_ok(spk_nearest_new(&nearest, &err), err);
    for (int i = 0; i < 300; i++) {
        compare_window(r, NULL, i);
        compare_window(r, nearest, i);
    }
    spk_resampler_free(r);
    spk_nearest_free(nearest);
}
END_TEST

START_TEST(sizes_are_checked)
{
    spk_resampler *r;
    spk_resample_job job = {spk_axis_whole(10, 5), spk_axis_whole(10, 5), 3, SPK_FILTER_BILINEAR, false, keep, NULL};
    ck_ok(spk_resampler_new(&r, &err), err);
    job.x.out = 0;
    ck_fails(spk_resampler_begin(r, &job, &err), err, SPK_E_INVALID, "of 10 pixels to 5 of 0");
    job.x = spk_axis_whole(10, 5);
    job.y.count = 6;
    ck_fails(spk_resampler_begin(r, &job, &err), err, SPK_E_INVALID, "cannot resample");
    job.y = spk_axis_whole(10, 5);
    job.filter = SPK_FILTER_NEAREST;
    ck_fails(spk_resampler_begin(r, &job, &err), err, SPK_E_INVALID, "filter 2");
    job.filter = SPK_FILTER_BICUBIC;
    job.x = spk_axis_whole(16384, 16384);
    job.y = spk_axis_whole(1 << 24, 1);
    ck_fails(spk_resampler_begin(r, &job, &err), err, SPK_E_LIMIT, "more than 1073741824 bytes");
    job.y = spk_axis_whole(4, 2);
    ck_ok(spk_resampler_begin(r, &job, &err), err);
    spk_resampler_free(r);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image/resample");
    TCase *t = tcase_create("resample");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, horizontal_kernels_agree);
    tcase_add_test(t, vertical_kernels_agree);
    tcase_add_test(t, weights_sum_to_one);
    tcase_add_test(t, weights_by_hand);
    tcase_add_test(t, windows_are_parts_of_the_whole);
    tcase_add_test(t, sizes_are_checked);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
