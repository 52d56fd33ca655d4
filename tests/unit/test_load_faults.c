/* load/: workers and trainers that die, stop, cannot start or talk nonsense; few descriptors. As a
 * worker program this test is its own: under the name shardpack-worker it does what FAKE_WORKER says. */
#include "check_main.h"

#include "load_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

/* ---- the worker that this program can be ---- */

static void fake_send(spk_done_packet *p)
{
    if (send(SPK_WORKER_SOCKET, p, sizeof *p, MSG_NOSIGNAL) != (ssize_t)sizeof *p)
        _exit(0);
}

/* True for the first FAKE_KILLS processes that come here. */
static bool is_one_of_the_first(void)
{
    int fd = open(getenv("FAKE_COUNT"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    bool first = write(fd, "+", 1) == 1 && lseek(fd, 0, SEEK_CUR) <= atoi(getenv("FAKE_KILLS"));
    close(fd);
    return first;
}

static void misbehave(const char *how, const spk_memory *m, const spk_run_packet *run, uint32_t number)
{
    spk_activity *a = spk_memory_activity(m, number);
    if (run->batch.first != 24)
        return;
    a->row = 3;
    snprintf(a->text, sizeof a->text, "decoding sample \"c01/007\"");
    if (strcmp(how, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL); /* without a sanitizer's report */
        raise(SIGSEGV);
    }
    if ((strcmp(how, "killed") == 0 || strcmp(how, "late") == 0) && is_one_of_the_first())
        raise(SIGKILL);
    if (strcmp(how, "asked") == 0 && is_one_of_the_first())
        raise(SIGTERM);
    if (strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    if (strcmp(how, "hang") == 0)
        pause();
    if (strcmp(how, "slow") == 0)
        for (int i = 0; i < 20; i++) {
            atomic_fetch_add(&a->steps, 1);
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        }
}

static int fake_worker(const char *how, uint32_t number)
{
    spk_memory m;
    spk_engine *e = NULL;
    spk_run_packet run;
    spk_done_packet p = {.kind = SPK_PACKET_HELLO, .protocol = SPK_PROTOCOL};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (strcmp(how, "status") == 0)
        _exit(3);
    if (strcmp(how, "silent") == 0)
        return pause();
    if (strcmp(how, "late") == 0)
        nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
    if (strcmp(how, "protocol") == 0)
        p.protocol++;
    if (spk_memory_map(&m, SPK_WORKER_MEMORY, NULL) < 0 || spk_engine_new(&e, m.base, NULL, number, 8, NULL) < 0)
        return 1;
    fake_send(&p);
    while (recv(SPK_WORKER_SOCKET, &run, sizeof run, 0) == (ssize_t)sizeof run) {
        misbehave(how, &m, &run, number);
        spk_engine_run(e, &run, &p);
        if (strcmp(how, "order") == 0)
            p.serial += 5;
        if (strcmp(how, "unfilled") == 0)
            spk_slot_data(m.base, run.slot)[spk_memory_spec(&m)->rows_offset + 5] = 0xFF;
        fake_send(&p);
    }
    spk_engine_free(e);
    spk_memory_free(&m);
    return 0;
}

static void use_fake(const char *how)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    setenv("SHARDPACK_WORKER", self, 1);
    setenv("FAKE_WORKER", how, 1);
}

/* ---- workers that cannot start ---- */

static void refuses(int workers, spk_status status, const char *part)
{
    spk_loader *l = NULL;
    spk_loader_options o = load_options(workers);
    int fds = count_fds();
    o.timeout = 1;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, status, part);
    ck_assert_ptr_null(l);
    ck_assert_int_eq(count_fds(), fds);
    no_children();
}

START_TEST(a_worker_that_cannot_start)
{
    unsetenv("SHARDPACK_WORKER");
    refuses(1, SPK_E_NOT_FOUND, "the program shardpack-worker is in none of: ");
    ck_assert_ptr_nonnull(strstr(err.text, "/../libexec/shardpack/shardpack-worker"));
    setenv("SHARDPACK_WORKER", in_dir("none"), 1);
    refuses(2, SPK_E_NOT_FOUND, "worker 0: cannot start the worker program");
    put_file("text", "no program", 10);
    setenv("SHARDPACK_WORKER", in_dir("text"), 1);
    refuses(2, SPK_E_PERMISSION, "text: Permission denied");
    setenv("SHARDPACK_WORKER", "/bin/true", 1);
    refuses(1, SPK_E_WORKER, "ended with status 0 before it was ready; its program is /bin/true");
    use_fake("status");
    refuses(2, SPK_E_WORKER, "ended with status 3 before it was ready");
    use_fake("protocol");
    char protocols[64];
    snprintf(protocols, sizeof protocols, "speaks protocol %08x, this library %08x", SPK_PROTOCOL + 1, SPK_PROTOCOL);
    refuses(1, SPK_E_WORKER, protocols);
    use_fake("silent");
    refuses(1, SPK_E_WORKER, "a worker was not ready within 1 s");
}
END_TEST

/* ---- workers that end or stop ---- */

static void kill_and_compare(const char *said)
{
    spk_loader_options o = load_options(2);
    load_record *want = load_reference(o, 4), *have = calloc(1, sizeof *have);
    unsigned seed = 1;
    for (int round = 0; round < 3; round++) {
        spk_loader_stats s;
        have->n = 0;
        spk_loader *l = load_open(o);
        for (int i = 0; i < 64; i++) {
            seed = seed * 1664525u + 1013904223u;
            if (i % 3 == round)
                spk_process_kill(&l->workers[seed >> 31].process);
            nanosleep(&(struct timespec){.tv_nsec = (long)(seed >> 12) % 400000}, NULL);
            spk_status status = load_run(l, have, 1);
            ck_assert_msg(status >= 0, "%s", err.text);
        }
        same_record(want, have);
        spk_loader_get_stats(l, &s);
        ck_assert_uint_ge(s.restarts, 10);
        ck_assert_msg(strstr(last_note, said) != NULL, "%s", last_note);
        spk_loader_close(l);
    }
    free(want);
    free(have);
}

START_TEST(killed_workers_are_replaced)
{
    kill_and_compare("killed by signal 9 (Killed)");
}
END_TEST

/* The kernel reaps children by itself then. */
/* Its program was named from another folder than the one that the trainer is in when a worker is replaced. */
START_TEST(a_trainer_that_changes_its_folder)
{
    spk_loader_options o = load_options(2);
    load_record *want = load_reference(o, 1), *have = calloc(1, sizeof *have);
    char program[4200];
    snprintf(program, sizeof program, "%s", getenv("SHARDPACK_WORKER"));
    ck_assert_int_eq(chdir(dirname(program)), 0);
    for (int given = 0; given < 2; given++) {
        o.worker_program = given ? "shardpack-worker" : NULL;
        setenv("SHARDPACK_WORKER", given ? "/none" : "./shardpack-worker", 1);
        spk_loader *l = load_open(o);
        have->n = 0;
        ck_assert_int_eq(chdir("/"), 0);
        for (int i = 0; i < 2; i++)
            spk_process_kill(&l->workers[i].process);
        ck_assert_msg(load_run(l, have, LOAD_BATCHES_MAX) == SPK_END, "%s", err.text);
        same_record(want, have);
        ck_assert_uint_ge(l->stats.restarts, 2);
        spk_loader_close(l);
        ck_assert_int_eq(chdir(program), 0);
    }
    free(want);
    free(have);
}
END_TEST

START_TEST(killed_workers_with_sigchld_ignored)
{
    signal(SIGCHLD, SIG_IGN);
    kill_and_compare("setting hides how");
}
END_TEST

/* Batches before the one that fails are delivered, then the error, again and again; set_epoch goes on. */
static void fails_at_third(spk_loader *l, spk_status status, const char *part)
{
    load_record *have = calloc(1, sizeof *have);
    spk_batch *b = NULL;
    uint64_t at = 0;
    uint32_t epoch = 0;
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), status);
    ck_assert_uint_eq(have->n, 3);
    ck_assert_msg(strstr(err.text, part) != NULL, "\"%s\" lacks \"%s\"", err.text, part);
    ck_fails(spk_loader_next(l, &b, &err), err, status, part);
    spk_loader_position(l, &epoch, &at);
    ck_assert_uint_eq(at, 24);
    free(have);
}

START_TEST(a_batch_that_kills_its_worker)
{
    for (int workers = 1; workers <= 2; workers++) {
        use_fake("crash");
        spk_loader_options o = load_options(workers);
        spk_loader *l = load_open(o);
        fails_at_third(l, SPK_E_WORKER, "batch 3 of epoch 0 has ended its worker 3 times, the last time worker ");
        ck_assert_ptr_nonnull(
            strstr(err.text, "killed by signal 11 (Segmentation fault); it was decoding sample \"c01/007\""));
        spk_loader_close(l);
    }
}
END_TEST

static void use_kills(const char *how, const char *kills)
{
    use_fake(how);
    (void)unlink(in_dir("count"));
    setenv("FAKE_COUNT", in_dir("count"), 1);
    setenv("FAKE_KILLS", kills, 1);
}

/* Twenty kills at one row say nothing about the sample there. */
START_TEST(a_batch_whose_workers_are_killed)
{
    spk_loader_options o = load_options(0);
    load_record *want = load_reference(o, 1), *have = calloc(1, sizeof *have);
    for (o.workers = 1; o.workers <= 2; o.workers++) {
        spk_loader_stats s;
        use_kills(o.workers == 1 ? "killed" : "asked", "20");
        have->n = 0;
        spk_loader *l = load_open(o);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        same_record(want, have);
        spk_loader_get_stats(l, &s);
        ck_assert_uint_eq(s.restarts, 20);
        spk_loader_close(l);
    }
    free(want);
    free(have);
}
END_TEST

START_TEST(a_batch_whose_workers_are_killed_for_ever)
{
    use_kills("killed", "1000");
    spk_loader *l = load_open(load_options(1));
    l->workers[0].deaths.serial = 3; /* 96 of the 100 have been */
    l->workers[0].deaths.killed = 96;
    fails_at_third(l, SPK_E_WORKER, "batch 3 of epoch 0 is not done: its worker was killed 100 times, the last time ");
    ck_assert_ptr_nonnull(strstr(err.text, "killed by signal 9 (Killed); it was decoding sample \"c01/007\""));
    spk_loader_close(l);
}
END_TEST

START_TEST(a_worker_that_stops)
{
    spk_loader_options o = load_options(2);
    o.timeout = 0.4;
    use_fake("stop");
    spk_loader *l = load_open(o);
    fails_at_third(l, SPK_E_WORKER, "which is stopped, has made no progress for 0.");
    ck_assert_ptr_nonnull(strstr(err.text, "it was decoding sample \"c01/007\""));
    ck_ok(spk_loader_set_epoch(l, 0, &err), err); /* with new workers */
    fails_at_third(l, SPK_E_WORKER, "which is stopped, has made no progress for 0.");
    spk_loader_close(l);
    use_fake("hang");
    l = load_open(o);
    fails_at_third(l, SPK_E_WORKER, " has made no progress for 0.");
    spk_loader_close(l);
    no_children();
    use_fake("slow"); /* progress, however slow */
    load_record *have = calloc(1, sizeof *have);
    l = load_open(o);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    spk_loader_close(l);
    free(have);
}
END_TEST

/* A timeout for batches that is shorter than a start, at the beginning and when a worker is replaced. */
START_TEST(a_worker_that_starts_late)
{
    spk_loader_options o = load_options(0);
    load_record *want = load_reference(o, 1), *have = calloc(1, sizeof *have);
    spk_loader_stats s;
    o.workers = 1;
    o.timeout = 0.4;
    use_kills("late", "1");
    spk_loader *l = load_open(o);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    same_record(want, have);
    spk_loader_get_stats(l, &s);
    ck_assert_uint_eq(s.restarts, 1);
    spk_loader_close(l);
    free(want);
    free(have);
}
END_TEST

START_TEST(a_worker_that_talks_nonsense)
{
    spk_batch *b = NULL;
    use_fake("order");
    spk_loader *l = load_open(load_options(1));
    ck_fails(spk_loader_next(l, &b, &err), err, SPK_E_WORKER, "sent an answer out of order");
    spk_loader_close(l);
    use_fake("unfilled");
    l = load_open(load_options(1));
    ck_fails(spk_loader_next(l, &b, &err), err, SPK_E_WORKER, "row 5 was not filled");
    spk_loader_close(l);
}
END_TEST

/* ---- the trainer ---- */

static bool is_gone(pid_t pid)
{
    for (int i = 0; i < 400; i++) {
        (void)waitpid(pid, NULL, WNOHANG); /* orphans come to this process */
        if (kill(pid, 0) != 0)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return false;
}

/* A trainer in the middle of an epoch, with a child that holds all its descriptors. Tells the worker's pids. */
static void be_trainer(int out)
{
    pid_t pids[3];
    spk_batch *b = NULL;
    spk_loader *l = load_open(load_options(2));
    ck_ok(spk_loader_next(l, &b, &err), err);
    pids[0] = l->workers[0].process.pid;
    pids[1] = l->workers[1].process.pid;
    pids[2] = fork();
    if (pids[2] > 0 && write(out, pids, sizeof pids) != (ssize_t)sizeof pids)
        _exit(1);
    for (;;)
        pause();
}

START_TEST(a_killed_trainer_leaves_nothing)
{
    int ends[2], shm = count_entries("/dev/shm");
    pid_t pids[3];
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (int slow = 0; slow < 2; slow++) {
        if (slow)
            use_fake("none");
        ck_assert_int_eq(pipe(ends), 0);
        pid_t trainer = fork();
        if (trainer == 0)
            be_trainer(ends[1]);
        ck_assert_int_eq(read(ends[0], pids, sizeof pids), sizeof pids);
        ck_assert_int_eq(kill(pids[0], 0), 0);
        kill(trainer, SIGKILL);
        ck_assert(is_gone(trainer));
        if (!slow) {
            ck_assert(is_gone(pids[0]));
            ck_assert(is_gone(pids[1]));
        }
        ck_assert_int_eq(kill(pids[2], 0), 0); /* the grandchild is none of our business */
        kill(pids[2], SIGKILL);
        ck_assert(is_gone(pids[2]));
        ck_assert(is_gone(pids[0])); /* without a watch it ends when the last holder of its socket does */
        ck_assert(is_gone(pids[1]));
        close(ends[0]);
        close(ends[1]);
    }
    ck_assert_int_eq(count_entries("/dev/shm"), shm);
}
END_TEST

START_TEST(a_forked_child_does_no_harm)
{
    for (int workers = 0; workers <= 2; workers += 2) {
        spk_loader_options o = load_options(workers);
        load_record *want = load_reference(o, 1), *have = calloc(1, sizeof *have);
        spk_loader *l = load_open(o);
        spk_batch *held = NULL, *b = NULL;
        char *state = NULL, belongs[64];
        int status = -1;
        ck_ok(spk_loader_next(l, &held, &err), err);
        have->digests[have->n++] = digest_batch(held);
        snprintf(belongs, sizeof belongs, "the loader belongs to process %ld", (long)getpid());
        pid_t child = fork();
        if (child == 0) {
            ck_fails(spk_loader_next(l, &b, &err), err, SPK_E_STATE, belongs);
            ck_fails(spk_loader_set_epoch(l, 1, &err), err, SPK_E_STATE, belongs);
            ck_fails(spk_loader_state_save(l, &state, &err), err, SPK_E_STATE, belongs);
            ck_fails(spk_loader_state_restore(l, "{}", &err), err, SPK_E_STATE, belongs);
            spk_batch_release(held);
            spk_loader_close(l);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        ck_assert_uint_eq(digest_batch(held), want->digests[0]);
        spk_batch_release(held);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        same_record(want, have);
        spk_loader_close(l);
        free(want);
        free(have);
    }
}
END_TEST

/* ---- limits ---- */

START_TEST(few_descriptors)
{
    const struct rlimit few = {.rlim_cur = 64, .rlim_max = 64}, fewer = {.rlim_cur = 20, .rlim_max = 64};
    spk_loader_options o = load_options(2);
    load_record *want = load_reference(o, 2), *have = calloc(1, sizeof *have);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int workers = 0; workers <= 2; workers++) {
        have->n = 0;
        o.workers = workers;
        spk_loader *l = load_open(o);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        same_record(want, have);
        spk_loader_close(l);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &fewer), 0);
    refuses(12, SPK_E_IO, "12 workers need 28 file descriptors, RLIMIT_NOFILE is 20");
    free(want);
    free(have);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_faults");
    TCase *t = tcase_create("faults");
    tcase_add_checked_fixture(t, load_setup, load_teardown);
    tcase_set_timeout(t, 120);
    if (!check_valgrind())
        tcase_add_test(t, a_worker_that_cannot_start);
    tcase_add_test(t, killed_workers_are_replaced);
    tcase_add_test(t, a_trainer_that_changes_its_folder);
    tcase_add_test(t, killed_workers_with_sigchld_ignored);
    tcase_add_test(t, a_batch_that_kills_its_worker);
    tcase_add_test(t, a_batch_whose_workers_are_killed);
    tcase_add_test(t, a_batch_whose_workers_are_killed_for_ever);
    tcase_add_test(t, a_worker_that_stops);
    tcase_add_test(t, a_worker_that_starts_late);
    tcase_add_test(t, a_worker_that_talks_nonsense);
    tcase_add_test(t, a_killed_trainer_leaves_nothing);
    tcase_add_test(t, a_forked_child_does_no_harm);
    if (!check_valgrind())
        tcase_add_test(t, few_descriptors);
    suite_add_tcase(s, t);
    return s;
}

int main(int argc, char **argv)
{
    const char *how = getenv("FAKE_WORKER");
    if (argc == 4 && how && strcmp(argv[0], "shardpack-worker") == 0)
        return fake_worker(how, (uint32_t)atoi(argv[1]));
    SRunner *runner = srunner_create(suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
