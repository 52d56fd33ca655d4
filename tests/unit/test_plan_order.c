/* plan/: brute force over small cases: each sample exactly echo times, lanes entered anywhere go on alike, positions
 * map. */
#include "check_main.h"

#include "base/rng.h"
#include "plan/lane.h"
#include "plan/plan.h"

#include <stdint.h>

#define CASES 1000

/* A caller's buffer, driven by the steps alone: what comes out must be what the step says. */
typedef struct follower {
    uint64_t *slots;
    spk_lane lane;
} follower;

static void follow_enter(follower *f, const spk_plan *p, uint64_t lane, uint64_t output)
{
    spk_error err;
    ck_ok(spk_lane_enter(&f->lane, p, lane, output, &err), err);
    f->slots = malloc(((size_t)p->spec.buffer + 1) * sizeof *f->slots);
    uint64_t *order = malloc(((size_t)f->lane.fill + 1) * sizeof *order), last = 0;
    ck_ok(spk_lane_fill_order(&f->lane, order, &err), err);
    for (uint64_t i = 0; i < f->lane.fill; i++) {
        ck_assert(i == 0 || f->lane.slots[order[i]] > last); /* forward in Q, each input once */
        last = f->lane.slots[order[i]];
        f->slots[order[i]] = spk_lane_slot_sample(&f->lane, order[i]);
    }
    free(order);
}

static spk_status follow_next(follower *f, uint64_t *sample, uint32_t *repeat)
{
    spk_lane_step s;
    spk_status status = spk_lane_next(&f->lane, &s);
    if (status != SPK_OK)
        return status;
    *sample = s.sample;
    *repeat = s.repeat;
    if (s.slot == SPK_LANE_DIRECT)
        return SPK_OK;
    ck_assert_uint_eq(f->slots[s.slot], s.sample);
    if (s.refill != SPK_NO_SAMPLE)
        f->slots[s.slot] = s.refill;
    else if (s.move)
        f->slots[s.slot] = f->slots[s.move_from];
    if (s.append != SPK_NO_SAMPLE)
        f->slots[s.append_slot] = s.append;
    return SPK_OK;
}

static void follow_leave(follower *f)
{
    spk_lane_leave(&f->lane);
    free(f->slots);
}

static uint64_t *whole_lane(const spk_plan *p, uint64_t lane)
{
    uint64_t n = spk_plan_lane_size(p, lane), sample = 0, *out = malloc((size_t)(2 * n + 1) * sizeof *out);
    uint32_t repeat = 0;
    follower f;
    follow_enter(&f, p, lane, 0);
    for (uint64_t i = 0; i < n; i++) {
        ck_assert_int_eq(follow_next(&f, &sample, &repeat), SPK_OK);
        out[2 * i] = sample;
        out[2 * i + 1] = repeat;
    }
    ck_assert_int_eq(follow_next(&f, &sample, &repeat), SPK_END);
    follow_leave(&f);
    return out;
}

static void check_entries(const spk_plan *p, uint64_t lane, const uint64_t *whole)
{
    uint64_t n = spk_plan_lane_size(p, lane), sample = 0;
    uint32_t repeat = 0;
    for (uint64_t from = 0; from <= n; from++) {
        follower f;
        follow_enter(&f, p, lane, from);
        for (uint64_t i = from; i < n && i < from + 3 * p->spec.echo; i++) {
            ck_assert_int_eq(follow_next(&f, &sample, &repeat), SPK_OK);
            ck_assert_uint_eq(sample, whole[2 * i]);
            ck_assert_uint_eq(repeat, whole[2 * i + 1]);
        }
        follow_leave(&f);
    }
}

static void check_plan(const uint64_t *first, uint64_t shards, const spk_plan_spec *spec)
{
    spk_error err;
    spk_plan *p = NULL;
    ck_ok(spk_plan_new(&p, first, shards, spec, &err), err);
    uint64_t e = p->spec.echo;
    unsigned char *seen = calloc((size_t)(p->total + 1), 1);
    uint64_t **lanes = calloc((size_t)p->lanes, sizeof *lanes);
    ck_assert_uint_eq(p->lane_start[p->lanes], p->total);
    ck_assert_uint_ge(spk_plan_bytes(&p->spec, p->samples, shards),
                      p->lanes * sizeof *p->lane_start + p->spans_n * sizeof *p->spans);
    for (uint64_t l = 0; l < p->lanes; l++) {
        lanes[l] = whole_lane(p, l);
        check_entries(p, l, lanes[l]);
    }
    for (uint64_t x = 0; x < p->total; x++) {
        uint64_t lane = 0, output = 0;
        spk_plan_locate(p, x, &lane, &output);
        ck_assert_uint_lt(lane, p->lanes);
        ck_assert_uint_lt(output, spk_plan_lane_size(p, lane));
        uint64_t sample = lanes[lane][2 * output], repeat = lanes[lane][2 * output + 1];
        ck_assert_uint_lt(sample, p->samples);
        ck_assert_uint_lt(repeat, e);
        ck_assert_uint_eq(seen[sample * e + repeat], 0);
        seen[sample * e + repeat] = 1;
    }
    for (uint64_t l = 0; l < p->lanes; l++)
        free(lanes[l]);
    free(lanes);
    free(seen);
    spk_plan_free(p);
}

START_TEST(every_small_plan_is_exact_and_enters_anywhere)
{
    spk_rng r = {7, (uint64_t)_i, 0};
    static const uint32_t chunks[] = {1, 2, 3, 4, 16, 0}, buffers[] = {1, 2, 3, 5, 8, 64, 0},
                          echoes[] = {1, 1, 1, 2, 3, 5};
    for (int c = 0; c < CASES / 10; c++) {
        uint64_t first[7] = {0}, shards = 1 + spk_rng_below(&r, 6);
        for (uint64_t s = 0; s < shards; s++)
            first[s + 1] = first[s] + (spk_rng_below(&r, 4) ? spk_rng_below(&r, c % 8 ? 36 : 900) : 0);
        spk_plan_spec spec = {.seed = spk_rng_below(&r, 9),
                              .epoch = (uint32_t)spk_rng_below(&r, 3),
                              .global_batch = 1 + spk_rng_below(&r, 24),
                              .chunk = chunks[spk_rng_below(&r, 6)],
                              .groups = (uint32_t)spk_rng_below(&r, 5),
                              .buffer = buffers[spk_rng_below(&r, 7)],
                              .span = (uint32_t)spk_rng_below(&r, 12),
                              .echo = echoes[spk_rng_below(&r, 6)],
                              .shuffle = true};
        check_plan(first, shards, &spec);
    }
}
END_TEST

START_TEST(epochs_and_seeds_differ)
{
    uint64_t first[] = {0, 500, 1000};
    spk_error err;
    uint64_t *orders[3];
    spk_plan_spec specs[] = {{.global_batch = 32, .shuffle = true, .seed = 1, .epoch = 0},
                             {.global_batch = 32, .shuffle = true, .seed = 1, .epoch = 1},
                             {.global_batch = 32, .shuffle = true, .seed = 2, .epoch = 0}};
    spk_plan *p[3];
    for (int i = 0; i < 3; i++) {
        ck_ok(spk_plan_new(&p[i], first, 2, &specs[i], &err), err);
        orders[i] = whole_lane(p[i], 5);
    }
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < i; k++)
            ck_assert_int_ne(memcmp(orders[i], orders[k], 16), 0);
    for (int i = 0; i < 3; i++) {
        free(orders[i]);
        spk_plan_free(p[i]);
    }
}
END_TEST

START_TEST(bad_specs_name_the_range)
{
    uint64_t first[] = {0, 10};
    spk_error err;
    spk_plan *p = NULL;
    spk_plan_spec none = {.shuffle = true}, echo = {.global_batch = 1, .echo = 70000}, epoch = {.global_batch = 1};
    epoch.epoch = UINT32_MAX;
    spk_plan_spec buffer = {.global_batch = 1, .buffer = UINT32_MAX};
    ck_fails(spk_plan_new(&p, first, 1, &none, &err), err, SPK_E_INVALID, "must be 1 to");
    ck_fails(spk_plan_new(&p, first, 1, &echo, &err), err, SPK_E_INVALID, "echo of 70000");
    ck_fails(spk_plan_new(&p, first, 1, &epoch, &err), err, SPK_E_INVALID, "epoch 4294967295");
    ck_fails(spk_plan_new(&p, first, 1, &buffer, &err), err, SPK_E_INVALID, "lane buffer of");
    ck_assert_ptr_null(p);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("plan/order");
    TCase *t = tcase_create("order");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, every_small_plan_is_exact_and_enters_anywhere, 0, 10);
    tcase_add_test(t, epochs_and_seeds_differ);
    tcase_add_test(t, bad_specs_name_the_range);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
