/* load/: a caller that does not want to wait any more, and batches that are passed over. */
#include "load_fixture.h"

#include <sys/time.h>

static unsigned asked;    /* calls of on_wait */
static unsigned patience; /* the call that ends the wait; 0: none */
static volatile sig_atomic_t alarms;
static int alarms_when_asked; /* at the first call */

static int on_wait(void *user)
{
    (void)user;
    if (asked++ == 0)
        alarms_when_asked = alarms;
    return asked == patience;
}

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void signal_crew(const spk_loader *l, int number)
{
    for (uint32_t i = 0; i < l->workers_n; i++)
        kill(l->workers[i].process.pid, number);
}

/* Takes what is ready of a crew that was stopped; the first call that has to wait is cancelled. */
static void run_until_cancelled(spk_loader *l, load_record *have)
{
    asked = 0;
    patience = 3;
    ck_fails(load_run(l, have, LOAD_BATCHES_MAX), err, SPK_E_CANCELLED, "cancelled while waiting for batch");
    ck_assert_uint_eq(asked, 3);
}

START_TEST(a_cancelled_wait_loses_nothing)
{
    spk_loader_options o = load_options(2);
    load_record *want = load_reference(o, 1), *have = calloc(1, sizeof *have);
    o.on_wait = on_wait;
    spk_loader *l = load_open(o);
    signal_crew(l, SIGSTOP);
    run_until_cancelled(l, have);
    run_until_cancelled(l, have); /* again, without harm */
    signal_crew(l, SIGCONT);
    patience = 0;
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    same_record(want, have);
    spk_loader_close(l);
    free(want);
    free(have);
}
END_TEST

/* A signal is told of at once, not when the next tenth of a second is over. */
START_TEST(a_signal_ends_the_wait)
{
    load_record have = {.n = 0};
    spk_loader_options o = load_options(2);
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    o.on_wait = on_wait;
    spk_loader *l = load_open(o);
    signal_crew(l, SIGSTOP);
    run_until_cancelled(l, &have);
    alarms = 0;
    asked = 0;
    patience = 1;
    ck_assert_int_eq(sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
    ck_assert_int_eq(load_run(l, &have, 1), SPK_E_CANCELLED);
    ck_assert_int_eq(alarms_when_asked, 1);
    spk_loader_close(l);
    no_children();
}
END_TEST

START_TEST(workers_that_do_not_start)
{
    spk_loader *l = NULL;
    spk_loader_options o = load_options(2);
    put_file("silent", "#!/bin/sh\nexec sleep 100\n", 24);
    ck_assert_int_eq(chmod(in_dir("silent"), 0755), 0);
    o.worker_program = in_dir("silent");
    o.on_wait = on_wait;
    asked = 0;
    patience = 2;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_CANCELLED, "while the workers were started");
    ck_assert_ptr_null(l);
    no_children();
}
END_TEST

/* `stride` readers take turns, as the processes of another loader do: together they get each batch once. */
static void take_turns(spk_loader_options o, uint64_t stride, const load_record *want)
{
    load_record *have = calloc(1, sizeof *have);
    for (uint64_t turn = 0; turn < stride; turn++) {
        spk_loader *l = load_open(o);
        spk_status status = SPK_OK;
        for (int epoch = 0; epoch < 2; epoch++) {
            have->n = 0;
            ck_ok(spk_loader_skip(l, turn, &err), err);
            while ((status = load_run(l, have, 1)) == SPK_OK) {
                size_t at = turn + (have->n - 1) * stride + (size_t)epoch * 15;
                ck_assert_msg(have->digests[have->n - 1] == want->digests[at], "batch %zu differs", at);
                ck_ok(spk_loader_skip(l, stride - 1, &err), err);
            }
            ck_assert_int_eq(status, SPK_END);
            ck_assert_uint_eq(have->n, (15 - turn + stride - 1) / stride);
        }
        spk_loader_close(l);
    }
    free(have);
}

START_TEST(batches_are_passed_over)
{
    for (int workers = 0; workers <= 2; workers += 2) {
        spk_loader_options o = load_options(workers);
        load_record *want = load_reference(o, 2);
        for (uint64_t stride = 1; stride <= 4; stride++)
            take_turns(o, stride, want);
        free(want);
    }
}
END_TEST

static void check_position(const spk_loader *l, uint32_t epoch, uint64_t samples)
{
    uint32_t e = 0;
    uint64_t x = 0;
    spk_loader_position(l, &e, &x);
    ck_assert_uint_eq(e, epoch);
    ck_assert_uint_eq(x, samples);
}

START_TEST(skip_ends_with_the_epoch)
{
    for (int drop = 0; drop < 2; drop++) {
        load_record have = {.n = 0};
        spk_loader_options o = load_options(0);
        o.batch_size = 7; /* 17 whole batches and one sample */
        o.tail = drop ? SPK_TAIL_DROP : SPK_TAIL_KEEP;
        spk_loader *l = load_open(o);
        ck_ok(spk_loader_skip(l, 3, &err), err);
        check_position(l, 0, 21);
        ck_ok(spk_loader_skip(l, UINT64_MAX, &err), err);
        check_position(l, 0, drop ? 119 : 120);
        ck_ok(spk_loader_skip(l, 1, &err), err);
        ck_assert_int_eq(load_run(l, &have, 1), SPK_END);
        check_position(l, 1, 0);
        ck_assert_int_eq(load_run(l, &have, 1), SPK_OK);
        check_position(l, 1, 7);
        spk_loader_close(l);
    }
}
END_TEST

/* A state behind skipped batches goes on behind them. */
START_TEST(skip_is_part_of_the_state)
{
    char *state = NULL;
    spk_loader_options o = load_options(0);
    load_record *want = load_reference(o, 1), have = {.n = 0};
    spk_loader *l = load_open(o), *other = load_open(load_options(2));
    ck_ok(spk_loader_skip(l, 11, &err), err);
    ck_ok(spk_loader_state_save(l, &state, &err), err);
    ck_ok(spk_loader_state_restore(other, state, &err), err);
    ck_assert_int_eq(load_run(other, &have, LOAD_BATCHES_MAX), SPK_END);
    ck_assert_uint_eq(have.n, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(have.digests[i], want->digests[11 + i]);
    spk_free(state);
    spk_loader_close(l);
    spk_loader_close(other);
    free(want);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_waiting");
    TCase *t = tcase_create("waiting");
    tcase_add_checked_fixture(t, load_setup, load_teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_cancelled_wait_loses_nothing);
    tcase_add_test(t, a_signal_ends_the_wait);
    tcase_add_test(t, workers_that_do_not_start);
    tcase_add_test(t, batches_are_passed_over);
    tcase_add_test(t, skip_ends_with_the_epoch);
    tcase_add_test(t, skip_is_part_of_the_state);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
