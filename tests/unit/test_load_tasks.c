/* load/tasks.c: brute force over small cases. Whatever the ranks, workers, batch sizes and the place of a resume: every
 * position below the end is one row, padding repeats what its lane delivered last, and a lane has one reader per rank.
 */
#include "check_main.h"

#include "base/rng.h"
#include "load/tasks.h"
#include "plan/lane.h"

#define CASES 400 /* a part; with TEST_LONG set ten times as many */
#define N_MAX 200
#define SHARDS_MAX 12

/* A case, and what is known of it without tasks.c. */
typedef struct world {
    uint64_t first[SHARDS_MAX + 1], shards;
    spk_load_spec spec; /* of rank 0 */
    spk_plan *plan;
    uint64_t from;          /* the epoch goes on here */
    uint64_t *samples;      /* of each position of E */
    unsigned char *covered; /* positions */
    uint32_t *owner;        /* per rank and lane: worker + 1 */
} world;

static uint64_t below(spk_rng *r, uint64_t n)
{
    return spk_rng_below(r, n);
}

static uint64_t one_of(spk_rng *r, const uint64_t *v, size_t n)
{
    return v[below(r, n)];
}

static void make_shards(world *w, spk_rng *r)
{
    w->shards = 1 + below(r, SHARDS_MAX);
    uint64_t left = 1 + below(r, N_MAX);
    for (uint64_t s = 0; s < w->shards; s++) {
        uint64_t take = s + 1 == w->shards ? left : below(r, 4) == 0 ? 0 : below(r, left + 1);
        w->first[s + 1] = w->first[s] + take;
        left -= take;
    }
}

static void find_samples(world *w)
{
    const spk_plan *p = w->plan;
    spk_error err;
    w->samples = malloc((size_t)(p->total + 1) * sizeof *w->samples);
    spk_lane *lanes = calloc((size_t)p->lanes + 1, sizeof *lanes);
    for (uint64_t l = 0; l < p->lanes; l++)
        ck_ok(spk_lane_enter(&lanes[l], p, l, 0, &err), err);
    for (uint64_t x = 0; x < p->total; x++) {
        uint64_t lane = 0, output = 0;
        spk_lane_step step = {.sample = x / p->spec.echo};
        if (p->spec.shuffle) {
            spk_plan_locate(p, x, &lane, &output);
            ck_assert_uint_eq(lanes[lane].output, output);
            ck_assert_int_eq(spk_lane_next(&lanes[lane], &step), SPK_OK);
        }
        w->samples[x] = step.sample;
    }
    for (uint64_t l = 0; l < p->lanes; l++)
        spk_lane_leave(&lanes[l]);
    free(lanes);
}

static void make_world(world *w, spk_rng *r)
{
    static const uint64_t chunks[] = {0, 1, 2, 3, 5, 8, 16, 40}, buffers[] = {1, 2, 8, 16, 64, 1000};
    static const uint64_t groups[] = {0, 1, 2, 3, 7};
    spk_error err;
    memset(w, 0, sizeof *w);
    make_shards(w, r);
    spk_load_spec *s = &w->spec;
    s->plan = (spk_plan_spec){.seed = spk_rng_u64(r),
                              .epoch = (uint32_t)below(r, 3),
                              .chunk = (uint32_t)one_of(r, chunks, 8),
                              .groups = (uint32_t)one_of(r, groups, 5),
                              .buffer = (uint32_t)one_of(r, buffers, 6),
                              .echo = below(r, 3) == 0 ? (uint32_t)(1 + below(r, 4)) : 1,
                              .shuffle = below(r, 4) != 0};
    s->world_size = (uint32_t)(1 + below(r, 4));
    s->batch_size = (uint32_t)(1 + below(r, 40));
    s->workers = (uint32_t)below(r, 5);
    s->samples = w->first[w->shards];
    s->shards = w->shards;
    /* Half of the plans were made for other ranks and another batch size, as after a resume. */
    bool other = below(r, 2) == 0;
    s->plan.global_batch = other ? 1 + below(r, 100) : (uint64_t)s->world_size * s->batch_size;
    ck_ok(spk_plan_new(&w->plan, w->first, w->shards, &s->plan, &err), err);
    s->plan = w->plan->spec;
    s->total = below(r, 3) == 0 ? 1 + below(r, w->plan->total) : w->plan->total;
    s->tail = s->world_size > 1 ? (uint32_t)(1 + below(r, 2)) : (uint32_t)(1 + below(r, 3));
    w->from = below(r, 3) == 0 ? below(r, s->total + 1) : 0;
    find_samples(w);
    w->covered = calloc((size_t)w->plan->total + 1, 1);
    w->owner = calloc((size_t)((w->plan->lanes + 1) * s->world_size), sizeof *w->owner);
}

static void free_world(world *w)
{
    spk_plan_free(w->plan);
    free(w->samples);
    free(w->covered);
    free(w->owner);
}

/* Last output of a lane below the end, found by looking at every position. */
static uint64_t last_output(const world *w, uint64_t lane)
{
    for (uint64_t x = w->spec.total; x-- > 0;) {
        uint64_t l = 0, output = 0;
        spk_plan_locate(w->plan, x, &l, &output);
        if (l == lane)
            return output;
    }
    return SPK_ROW_NONE;
}

static void check_row(world *w, uint32_t rank, const spk_task *t, uint64_t x, uint64_t output)
{
    uint64_t lane = 0, at = x;
    if (w->plan->spec.shuffle)
        spk_plan_locate(w->plan, x, &lane, &at);
    ck_assert_uint_eq(t->lane, lane);
    ck_assert_int_eq(t->pad, x >= w->spec.total);
    if (t->pad) {
        uint64_t last = w->plan->spec.shuffle ? last_output(w, lane) : w->spec.total - 1;
        ck_assert_uint_eq(t->output, last);
        return;
    }
    ck_assert_uint_eq(output, at);
    ck_assert_uint_eq(w->covered[x], 0);
    w->covered[x] = (unsigned char)(1 + rank);
}

static void check_owner(world *w, uint32_t rank, uint32_t worker, uint64_t lane)
{
    uint32_t *owner = &w->owner[rank * (w->plan->lanes + 1) + lane];
    if (!w->plan->spec.shuffle)
        return;
    ck_assert(*owner == 0 || *owner == worker + 1);
    *owner = worker + 1;
}

/* One rank's batch: rows taken by the tasks of its workers, each once. */
static void check_batch(world *w, uint32_t rank, uint64_t x)
{
    spk_load_spec spec = w->spec;
    spk_task *tasks = NULL;
    size_t n = 0, cap = 0;
    spk_error err;
    spec.rank = rank;
    spk_batch_range part = spk_batch_part(&spec, x);
    ck_assert_uint_eq(part.first, x + (uint64_t)rank * spec.batch_size);
    unsigned char *rows = calloc((size_t)part.rows + 1, 1);
    uint32_t workers = spec.workers > 0 ? spec.workers : 1;
    for (uint32_t worker = 0; worker < workers; worker++) {
        uint64_t next = 0;
        ck_ok(spk_tasks_of(&spec, w->plan, part, worker, &tasks, &n, &cap, &err), err);
        for (size_t i = 0; i < n; i++) {
            const spk_task *t = &tasks[i];
            ck_assert(t->row >= next && t->count > 0 && t->row + (uint64_t)t->count <= part.rows);
            next = t->row + t->count;
            check_owner(w, rank, worker, t->lane);
            ck_assert_uint_eq(spk_worker_of(&spec, w->plan, part, t->lane, part.first + t->row), worker);
            for (uint32_t k = 0; k < t->count; k++) {
                ck_assert_uint_eq(rows[t->row + k]++, 0);
                check_row(w, rank, t, part.first + t->row + k, t->output + k);
            }
        }
    }
    for (uint64_t r = 0; r < part.rows; r++)
        ck_assert_uint_eq(rows[r], 1);
    if (spec.tail != SPK_TAIL_KEEP)
        ck_assert_uint_eq(part.rows, spec.batch_size);
    free(rows);
    free(tasks);
}

static void check_epoch(world *w)
{
    const spk_load_spec *s = &w->spec;
    uint64_t g = (uint64_t)s->world_size * s->batch_size, batches = spk_batches_left(s, w->from), end = s->total;
    uint64_t left = s->total - w->from;
    ck_assert_uint_eq(batches, s->tail == SPK_TAIL_DROP ? left / g : (left + g - 1) / g);
    for (uint64_t b = 0; b < batches; b++)
        for (uint32_t rank = 0; rank < s->world_size; rank++)
            check_batch(w, rank, w->from + b * g);
    if (s->tail == SPK_TAIL_DROP)
        end = w->from + batches * g;
    uint32_t *seen = calloc((size_t)s->samples + 1, sizeof *seen);
    for (uint64_t x = 0; x < w->plan->total; x++) {
        ck_assert_int_eq(w->covered[x] != 0, x >= w->from && x < end);
        seen[w->samples[x]] += w->covered[x] != 0;
    }
    for (uint64_t i = 0; w->from == 0 && end == w->plan->total && i < s->samples; i++)
        ck_assert_uint_eq(seen[i], s->plan.echo);
    free(seen);
}

/* Lanes that two ranks read, by what check_owner has noted. */
static void check_shared(world *w)
{
    for (uint32_t rank = 0; rank < w->spec.world_size; rank++) {
        uint64_t shared = 0;
        for (uint64_t l = 0; l < w->plan->lanes; l++) {
            unsigned others = 0, mine = 0;
            for (uint32_t r = 0; r < w->spec.world_size; r++)
                *(r == rank ? &mine : &others) += w->owner[r * (w->plan->lanes + 1) + l] != 0;
            shared += mine && others;
        }
        spk_load_spec spec = w->spec;
        spec.rank = rank;
        ck_assert_uint_eq(spk_shared_lanes(&spec, w->plan, w->from), shared);
    }
}

START_TEST(every_row_once)
{
    spk_rng r = {.seed = 11, .stream = (uint64_t)_i};
    for (int i = 0; i < (getenv("TEST_LONG") ? 10 * CASES : CASES); i++) {
        world w;
        make_world(&w, &r);
        check_epoch(&w);
        free_world(&w);
    }
}
END_TEST

START_TEST(shared_lanes)
{
    spk_rng r = {.seed = 12};
    for (int i = 0; i < 300; i++) {
        world w;
        make_world(&w, &r);
        bool count = w.plan->spec.shuffle && w.spec.tail == SPK_TAIL_DROP &&
                     (w.spec.total - w.from) % ((uint64_t)w.spec.world_size * w.spec.batch_size) == 0;
        if (count) { /* no padding, nothing dropped: the owners are just the readers */
            check_epoch(&w);
            check_shared(&w);
        }
        free_world(&w);
    }
}
END_TEST

/* Workers get equal parts when the chunks of a rank's batch, or of some batches, can be dealt evenly. */
static void check_balance(uint32_t ranks, uint32_t batch, uint32_t workers, bool shuffle, uint32_t chunk, uint64_t most)
{
    uint64_t first[2] = {0, 12000}, rows[8] = {0};
    spk_load_spec spec = {.samples = 12000, .shards = 1, .total = 12000, .tail = SPK_TAIL_DROP};
    spk_plan *plan = NULL;
    spk_task *tasks = NULL;
    size_t n = 0, cap = 0;
    spk_error err;
    spec.plan = (spk_plan_spec){.global_batch = (uint64_t)ranks * batch, .shuffle = shuffle, .chunk = chunk};
    spec.world_size = ranks;
    spec.batch_size = batch;
    spec.workers = workers;
    ck_ok(spk_plan_new(&plan, first, 1, &spec.plan, &err), err);
    spec.plan = plan->spec;
    uint64_t batches = 12000 / (ranks * batch);
    for (spec.rank = 0; spec.rank < ranks; spec.rank++) {
        memset(rows, 0, sizeof rows);
        for (uint64_t b = 0; b < batches; b++)
            for (uint32_t w = 0; w < workers; w++) {
                spk_batch_range part = spk_batch_part(&spec, b * ranks * batch);
                ck_ok(spk_tasks_of(&spec, plan, part, w, &tasks, &n, &cap, &err), err);
                for (size_t i = 0; i < n; i++)
                    rows[w] += tasks[i].count;
            }
        for (uint32_t w = 0; w < workers; w++)
            ck_assert_msg(rows[w] * workers * 100 <= batches * batch * most, "rank %u: worker %u has %llu of %llu rows",
                          spec.rank, w, (unsigned long long)rows[w], (unsigned long long)(batches * batch));
    }
    free(tasks);
    spk_plan_free(plan);
}

START_TEST(equal_parts)
{
    check_balance(1, 256, 2, true, 0, 110);
    check_balance(1, 256, 3, true, 0, 110);
    check_balance(2, 32, 4, true, 0, 110);
    check_balance(4, 32, 4, true, 0, 110);
    check_balance(8, 32, 6, true, 0, 110);
    check_balance(1, 64, 4, false, 16, 110);
    check_balance(1, 64, 3, false, 1, 110);
    check_balance(2, 64, 4, false, 64, 110);
    check_balance(1, 64, 4, false, 32, 110);
}
END_TEST

/* Of the lanes of a rank; a smaller number that leaves the busiest worker as many is taken. */
START_TEST(workers_that_are_of_use)
{
    static const uint32_t cases[][3] = {/* ranks, quota, workers: 48 lanes for one, 16 for each of eight */
                                        {1, 1, 1},   {1, 2, 2},   {1, 5, 5},     {1, 9, 8},   {1, 16, 16}, {1, 40, 24},
                                        {1, 48, 48}, {1, 64, 48}, {1, 1024, 48}, {8, 64, 16}, {8, 8, 8},   {8, 9, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spk_load_spec spec = {.batch_size = 256, .world_size = cases[i][0], .rank = cases[i][0] - 1};
        spec.plan = (spk_plan_spec){.global_batch = 256u * cases[i][0], .chunk = 16, .shuffle = true};
        spec.plan.groups = cases[i][0] == 1 ? 3 : 1;
        ck_assert_uint_eq(spk_workers_for(&spec, cases[i][1]), cases[i][2]);
        spec.plan.shuffle = false;
        ck_assert_uint_eq(spk_workers_for(&spec, cases[i][1]), cases[i][1]);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_tasks");
    TCase *t = tcase_create("tasks");
    tcase_set_timeout(t, 600);
    tcase_add_loop_test(t, every_row_once, 0, 4);
    tcase_add_test(t, shared_lanes);
    tcase_add_test(t, equal_parts);
    tcase_add_test(t, workers_that_are_of_use);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
