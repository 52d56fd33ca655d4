/* load/: storms of signals, closed standard descriptors, tight address space, workers that cannot be started again,
 * children that hold every descriptor. */
#include "check_main.h"

#include "load_fixture.h"

#include "base/cpu.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static double seconds(void)
{
    return (double)spk_now_ns() / 1e9;
}

/* ---- signals ---- */

static volatile sig_atomic_t storm_count;

static void on_alarm(int number)
{
    (void)number;
    storm_count++;
}

/* A signal every `us`, whose handler interrupts system calls; 0 ends it. */
static void storm(long us)
{
    struct sigaction a = {.sa_handler = on_alarm};
    struct itimerval t = {.it_interval = {.tv_usec = us}, .it_value = {.tv_usec = us}};
    sigaction(SIGALRM, &a, NULL);
    setitimer(ITIMER_REAL, &t, NULL);
}

START_TEST(waiting_takes_as_long_as_it_says)
{
    spk_exit how;
    for (int with_pidfd = 0; with_pidfd < 2; with_pidfd++) {
        pid_t pid = fork();
        if (pid == 0) {
            nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
            _exit(7);
        }
        spk_process p = {.pid = pid, .pidfd = with_pidfd ? spk_pidfd_open(pid) : -1};
        storm(200);
        bool gone = spk_process_wait(&p, 10000, &how);
        storm(0);
        ck_assert_msg(gone, "gave up after much less than 10 s");
        ck_assert_int_eq(how.value, 7);
    }
    ck_assert_int_gt(storm_count, 100);
}
END_TEST

START_TEST(a_storm_of_signals)
{
    spk_loader_options o = load_options(2);
    load_record *want = load_reference(o, 20), *have = calloc(1, sizeof *have);
    storm(150);
    for (int workers = 0; workers <= 3; workers += 3) {
        have->n = 0;
        o.workers = workers;
        spk_loader *l = load_open(o);
        for (int e = 0; e < 20; e++) {
            if (workers > 0)
                spk_process_kill(&l->workers[e % workers].process);
            ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        }
        same_record(want, have);
        spk_loader_close(l);
    }
    storm(0);
    no_children();
    free(want);
    free(have);
}
END_TEST

/* ---- workers ---- */

/* A folder of its own for the program, so that a test can take it away. */
static void use_link(void)
{
    char target[4200];
    snprintf(target, sizeof target, "%s", getenv("SHARDPACK_WORKER"));
    ck_assert_int_eq(symlink(target, in_dir("worker")), 0);
    setenv("SHARDPACK_WORKER", in_dir("worker"), 1);
}

START_TEST(workers_that_cannot_be_started_again)
{
    spk_loader_options o = load_options(2);
    load_record *want = load_reference(o, 1), *have = calloc(1, sizeof *have);
    spk_batch *b = NULL;
    char *state = NULL;
    o.batch_size = 16;
    o.timeout = 5;
    spk_loader *other = load_open(o);
    ck_ok(spk_loader_state_save(other, &state, &err), err);
    spk_loader_close(other);
    o.batch_size = 8;
    use_link();
    spk_loader *l = load_open(o);
    ck_assert_int_eq(rename(in_dir("worker"), in_dir("elsewhere")), 0);
    ck_fails(spk_loader_state_restore(l, state, &err), err, SPK_E_NOT_FOUND, "worker 0");
    ck_fails(spk_loader_next(l, &b, &err), err, SPK_E_NOT_FOUND, "worker 0");
    ck_fails(spk_loader_set_epoch(l, 0, &err), err, SPK_E_NOT_FOUND, "worker 0"); /* and not a loader without workers */
    ck_assert_int_eq(rename(in_dir("elsewhere"), in_dir("worker")), 0);
    ck_ok(spk_loader_set_epoch(l, 0, &err), err);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    ck_assert_uint_eq(have->n, want->n);
    spk_loader_close(l);
    no_children();
    spk_free(state);
    free(want);
    free(have);
}
END_TEST

/* The first ten processes of a crew are killed before they say hello. */
START_TEST(killed_while_starting)
{
    char script[9000];
    spk_loader_options o = load_options(2);
    load_record *want = load_reference(o, 1), *have = calloc(1, sizeof *have);
    snprintf(script, sizeof script,
             "#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9 10; do mkdir '%s'$i 2>/dev/null && kill -9 $$; done\n"
             "exec '%s' \"$@\"\n",
             in_dir("once"), getenv("SHARDPACK_WORKER"));
    put_file("killed", script, strlen(script));
    ck_assert_int_eq(chmod(in_dir("killed"), 0755), 0);
    setenv("SHARDPACK_WORKER", in_dir("killed"), 1);
    spk_loader *l = load_open(o);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    same_record(want, have);
    spk_loader_close(l);
    free(want);
    free(have);
}
END_TEST

/* A worker that is stopped cannot notice that its trainer is gone. */
START_TEST(a_stopped_worker_goes_with_its_trainer)
{
    int ends[2];
    pid_t worker = 0;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t trainer = fork();
    if (trainer == 0) {
        spk_batch *b = NULL;
        spk_loader *l = load_open(load_options(2));
        ck_ok(spk_loader_next(l, &b, &err), err);
        kill(l->workers[0].process.pid, SIGSTOP);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        if (write(ends[1], &l->workers[0].process.pid, sizeof worker) != (ssize_t)sizeof worker)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(ends[0], &worker, sizeof worker), sizeof worker);
    kill(trainer, SIGKILL);
    ck_assert_int_eq(waitpid(trainer, NULL, 0), trainer);
    pid_t ended = 0;
    for (int i = 0; i < 400 && ended == 0; i++) { /* orphans come to this process */
        ended = waitpid(worker, NULL, WNOHANG);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    if (ended == 0)
        kill(worker, SIGKILL);
    ck_assert_int_eq(ended, worker);
    for (int i = 0; i < 400 && waitpid(-1, NULL, WNOHANG) != -1; i++) /* and the other one */
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

static void *open_in_thread(void *out)
{
    *(spk_loader **)out = load_open(load_options(2));
    return NULL;
}

/* The thread that opened a loader may end before it. */
START_TEST(a_thread_that_opens_and_ends)
{
    pthread_t thread;
    spk_loader_stats s;
    spk_loader *l = NULL;
    load_record *have = calloc(1, sizeof *have);
    ck_assert_int_eq(pthread_create(&thread, NULL, open_in_thread, &l), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    spk_loader_get_stats(l, &s);
    ck_assert_uint_eq(s.restarts, 0);
    spk_loader_close(l);
    free(have);
}
END_TEST

/* A child of the trainer that holds the sockets does not hold up the end of the workers. */
START_TEST(closing_with_a_child_that_holds_all)
{
    load_record *have = calloc(1, sizeof *have);
    spk_loader *l = load_open(load_options(4));
    ck_assert_int_eq(load_run(l, have, 3), SPK_OK);
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* until the workers are idle */
    double start = seconds();
    spk_loader_close(l);
    double took = seconds() - start;
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_msg(took < 0.9, "closing took %.1f s", took);
    no_children();
    free(have);
}
END_TEST

/* ---- descriptors and memory ---- */

START_TEST(standard_descriptors_closed)
{
    spk_loader_options o = load_options(2);
    load_record *want = load_reference(o, 2), *have = calloc(1, sizeof *have);
    for (unsigned which = 1; which < 8; which++) {
        pid_t child = fork();
        if (child == 0) {
            for (int fd = 0; fd < 3; fd++)
                if (which >> fd & 1)
                    close(fd);
            for (o.workers = 0; o.workers < 3; o.workers++) {
                have->n = 0;
                spk_loader *l = NULL;
                if (spk_loader_open(&l, ds, &o, &err) < 0 || load_run(l, have, LOAD_BATCHES_MAX) != SPK_END)
                    _exit(1);
                if (o.workers == 1)
                    spk_process_kill(&l->workers[0].process);
                if (load_run(l, have, LOAD_BATCHES_MAX) != SPK_END)
                    _exit(2);
                if (have->n != want->n || memcmp(have->digests, want->digests, have->n * 8) != 0)
                    _exit(3);
                spk_loader_close(l);
            }
            _exit(0);
        }
        int status = -1;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(status == 0, "descriptors %x closed: %x", which, (unsigned)status);
    }
    free(want);
    free(have);
}
END_TEST

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
static uint64_t address_space(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%llu", &pages), 1);
    fclose(f);
    return pages * 4096;
}

/* 0: it worked; 1: an error with a text. */
static int in_tight_space(const spk_loader_options *o, uint64_t bytes, const load_record *want)
{
    load_record *have = calloc(1, sizeof *have);
    struct rlimit r = {.rlim_cur = address_space(), .rlim_max = RLIM_INFINITY};
    int failed = setrlimit(RLIMIT_AS, &r);
    while (malloc(65536)) /* what lies free within the process is no part of what it may still get */
        continue;
    r.rlim_cur += bytes;
    spk_loader *l = NULL;
    if (failed != 0 || setrlimit(RLIMIT_AS, &r) != 0)
        return 9;
    spk_status status = spk_loader_open(&l, ds, o, &err);
    if (status == SPK_OK)
        status = load_run(l, have, LOAD_BATCHES_MAX);
    if (status == SPK_END && (have->n != want->n || memcmp(have->digests, want->digests, 8 * have->n) != 0))
        return 8;
    spk_loader_close(l);
    free(have);
    return status == SPK_END ? 0 : *err.text ? 1 : 7;
}

START_TEST(tight_address_space)
{
    unsigned worked = 0, refused = 0;
    spk_loader_options o = load_options(0);
    load_record *want = load_reference(o, 1);
    for (int many = 0; many < 3; many++)
        for (uint64_t kb = 0; kb < (1u << 21); kb = kb < 4096 ? kb + 160 : kb * 2) {
            o.workers = many == 2 ? 1024 : many;
            o.prefetch = many == 0 ? 1024 : 0;
            if (many == 2 && kb > 8192)
                break;
            pid_t child = fork();
            if (child == 0)
                _exit(in_tight_space(&o, kb << 10, want));
            int status = -1;
            ck_assert_int_eq(waitpid(child, &status, 0), child);
            ck_assert_msg(status == 0 || status == 1 << 8, "%d, %llu KiB: %x", many, (unsigned long long)kb,
                          (unsigned)status);
            worked += status == 0;
            refused += status != 0;
        }
    ck_assert_uint_gt(worked, 2);
    ck_assert_uint_gt(refused, 20);
    free(want);
}
END_TEST
#endif

/* ---- hints ---- */

/* Every rank's lanes are dealt evenly, whatever the number of ranks: nothing to tell. */
START_TEST(no_hint_where_lanes_are_even)
{
    spk_loader_options o = load_options(4);
    o.world_size = 2;
    o.batch_size = 8;
    o.chunk = 4;
    o.lane_groups = 4;
    notes = 0;
    *last_note = '\0';
    spk_loader *l = load_open(o);
    ck_assert_msg(strstr(last_note, "evenly") == NULL, "%s", last_note);
    spk_loader_close(l);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_harsh");
    TCase *t = tcase_create("harsh");
    tcase_add_checked_fixture(t, load_setup, load_teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, waiting_takes_as_long_as_it_says);
    tcase_add_test(t, a_storm_of_signals);
    if (!check_valgrind())
        tcase_add_test(t, workers_that_cannot_be_started_again);
    tcase_add_test(t, killed_while_starting);
    tcase_add_test(t, a_stopped_worker_goes_with_its_trainer);
    tcase_add_test(t, a_thread_that_opens_and_ends);
    tcase_add_test(t, closing_with_a_child_that_holds_all);
    tcase_add_test(t, standard_descriptors_closed);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    if (!check_valgrind())
        tcase_add_test(t, tight_address_space);
#endif
    tcase_add_test(t, no_hint_where_lanes_are_even);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
