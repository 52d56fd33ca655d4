/* load/: every row of every batch is what an independent reading of the order's specification (load_model.h) says, for
 * random plans, ranks, workers, batch sizes, echo, limits and tails; and a run goes on from every state of every run as
 * if nothing had been, whoever goes on. TEST_LONG=1 tries ten times as many plans. */
#include "check_main.h"

#include "load_exact.h"

#define PLANS 70u
#define CUTS_MAX 2048u

static uint64_t states_resumed;

static spk_loader_options any_options(uint64_t samples)
{
    spk_loader_options o = {.size = sizeof o, .has_workers = 1, .columns = exact_columns, .column_count = EX_COLUMNS};
    static const uint32_t chunks[] = {0, 1, 2, 3, 5, 16, 1000}, buffers[] = {0, 1, 2, 7, 9, 64, 1 << 24};
    o.workers = throw(0, 2) ? 0 : (int) throw(1, 4);
    o.world_size = throw(0, 1) ? 1 : throw(2, 4);
    o.batch_size = throw(0, 7) ? throw(1, 12) : throw(1, (uint32_t)samples + 9);
    o.chunk = chunks[throw(0, 6)];
    o.lane_groups = throw(0, 3);
    o.lane_buffer = buffers[throw(0, 6)];
    o.echo = throw(0, 1) ? 1 : throw(2, 4);
    o.prefetch = throw(0, 5);
    o.shuffle = throw(0, 5) > 0;
    o.seed = throw(0, 3) ? throw(0, 1000) : UINT64_MAX - throw(0, 9);
    o.epoch = throw(0, 3) ? throw(0, 3) : (1u << 30) - 3;
    o.limit = throw(0, 2) ? 0 : throw(1, (uint32_t)(samples * o.echo) + 2);
    o.tail = (spk_tail) throw(SPK_TAIL_DEFAULT, o.world_size == 1 ? SPK_TAIL_KEEP : SPK_TAIL_PAD);
    return o;
}

/* ---- exact epochs, and resuming at every cut ---- */

/* Somebody else goes on with a state of `was` at position x: other ranks, rows and workers. */
static void resume(const exact_run *was, spk_loader *l, exact_run *now, const char *state, uint32_t epoch, uint64_t x)
{
    char *again = NULL;
    ck_ok(spk_loader_state_restore(l, state, &err), err);
    ck_ok(spk_loader_state_save(l, &again, &err), err);
    if (was->o.shuffle)
        ck_assert_str_eq(state, again);
    spk_free(again);
    now->plan_batch = was->plan_batch;
    now->plan_groups = was->plan_groups;
    if (follow(now, l, epoch, x, 8, NULL))
        (void)follow(now, l, epoch + 1, 0, 2, NULL);
    states_resumed++;
}

static void resume_everywhere(exact_run *was, char **states, size_t n, uint32_t epoch)
{
    exact_run same = *was, other = *was;
    if (was->o.indices) {
        same.o.indices = same.chosen;
        other.o.indices = other.chosen;
    }
    same.order.place = other.order.place = NULL;
    other.o.world_size = throw(1, 4);
    other.o.rank = throw(0, other.o.world_size - 1);
    other.o.batch_size = throw(1, 12);
    other.o.workers = throw(0, 3) ? 0 : (int) throw(1, 4);
    if (other.o.world_size > 1 && other.o.tail == SPK_TAIL_KEEP)
        other.o.tail = SPK_TAIL_DEFAULT;
    if (throw(0, 1))
        other.o.lane_groups = 0; /* takes that of the state */
    same.o.workers = throw(0, 3) ? 0 : (int) throw(1, 4);
    spk_loader *a = open_run(&same), *b = open_run(&other);
    model_epoch(was, epoch);
    for (size_t i = 0; i < n; i++) {
        uint64_t x = model_least(i * step_of(was), was->end);
        resume(was, a, &same, states[i], epoch, x);
        resume(was, b, &other, states[i], epoch, x);
        if (i % 5 == 0) /* twice */
            resume(was, b, &other, states[i], epoch, x);
    }
    spk_loader_close(a);
    spk_loader_close(b);
    model_free(&same.order);
    model_free(&other.order);
}

static size_t run_ranks(exact_run *r, uint32_t epoch, spk_loader **ranks, char **states)
{
    size_t n = 0;
    for (uint32_t k = 0; k < r->o.world_size; k++) {
        char **mine = calloc(CUTS_MAX + 1, sizeof *mine);
        r->o.rank = k;
        model_epoch(r, epoch);
        n = batches_of(r, 0) + 1;
        ck_assert_uint_le(n, CUTS_MAX);
        ck_assert_uint_eq(spk_loader_length(ranks[k]), n - 1);
        ck_assert(follow(r, ranks[k], epoch, 0, UINT64_MAX, mine));
        for (size_t i = 0; i < n; i++) {
            ck_assert(k == 0 || strcmp(mine[i], states[i]) == 0); /* any rank's state is everybody's */
            if (k == 0)
                states[i] = mine[i];
            else
                spk_free(mine[i]);
        }
        free(mine);
    }
    return n;
}

static void try_plan(unsigned number)
{
    dice = number * 2654435761u + 12345;
    exact_run r = {.set = &sets[throw(0, DATASETS - 1)]};
    spk_loader *ranks[4] = {NULL};
    char **states = calloc(CUTS_MAX + 1, sizeof *states);
    r.o = any_options(r.set->samples);
    choose(&r, throw(0, 5));
    for (uint32_t k = 0; k < r.o.world_size; k++) {
        r.o.rank = k;
        ranks[k] = open_run(&r);
    }
    for (uint32_t e = 0; e < 2; e++) {
        size_t n = run_ranks(&r, r.o.epoch + e, ranks, states);
        resume_everywhere(&r, states, n, r.o.epoch + e);
        for (size_t i = 0; i < n; i++)
            spk_free(states[i]);
    }
    for (uint32_t k = 0; k < r.o.world_size; k++)
        spk_loader_close(ranks[k]);
    model_free(&r.order);
    free(states);
}

START_TEST(every_row_is_the_one_of_the_specification)
{
    unsigned plans = getenv("TEST_LONG") ? 10 * PLANS : PLANS;
    for (unsigned i = 0; i < plans; i++)
        try_plan(i);
    ck_assert_uint_gt(rows_checked, 1000 * (uint64_t)plans);
    ck_assert_uint_gt(states_resumed, 10 * (uint64_t)plans);
    if (getenv("TEST_VERBOSE"))
        printf("%u plans, %llu rows, %llu states gone on from\n", plans, (unsigned long long)rows_checked,
               (unsigned long long)states_resumed);
    no_children();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load exact");
    TCase *t = tcase_create("load exact");
    tcase_set_timeout(t, 3600);
    tcase_add_checked_fixture(t, exact_setup, exact_teardown);
    tcase_add_test(t, every_row_is_the_one_of_the_specification);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
