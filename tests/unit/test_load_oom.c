/* load/: a real memory cgroup: a loader that does not fit is refused, a worker killed for lack of memory is reported as
 * that. Needs the right to make cgroups and TEST_LONG=1; else it says so and passes. As a worker program it is its own,
 * one that takes memory without end in the batch at 24. */
#include "check_main.h"

#include "load_fixture.h"

#include <signal.h>
#include <sys/socket.h>

static char group[256];

static int greedy_worker(uint32_t number)
{
    spk_memory m;
    spk_engine *e = NULL;
    spk_run_packet run;
    spk_done_packet p = {.kind = SPK_PACKET_HELLO, .protocol = SPK_PROTOCOL};
    if (spk_memory_map(&m, SPK_WORKER_MEMORY, NULL) < 0 || spk_engine_new(&e, m.base, NULL, number, 8, NULL) < 0)
        return 1;
    do {
        if (send(SPK_WORKER_SOCKET, &p, sizeof p, MSG_NOSIGNAL) < 0 ||
            recv(SPK_WORKER_SOCKET, &run, sizeof run, 0) != (ssize_t)sizeof run)
            return 0;
        for (char *more = NULL; run.batch.first == 24;) {
            more = malloc(1 << 20);
            if (more)
                memset(more, 1, 1 << 20);
        }
        spk_engine_run(e, &run, &p);
    } while (1);
}

static bool write_to(const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", group, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

/* A cgroup of its own with that limit, and this process in it. */
static bool enter_group(const char *bytes)
{
    static const char *const mounts[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    static const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};
    for (int i = 0; i < 2; i++) {
        snprintf(group, sizeof group, "%s/shardpack-test-%ld", mounts[i], (long)getpid());
        if (access(mounts[i], W_OK) != 0 || mkdir(group, 0755) != 0)
            continue;
        if (write_to(limits[i], bytes) && write_to("cgroup.procs", "0"))
            return true;
        rmdir(group);
    }
    return false;
}

static void leave_group(void)
{
    char up[512];
    snprintf(up, sizeof up, "%s", group);
    snprintf(strrchr(up, '/'), 32, "/cgroup.procs");
    int fd = open(up, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(write(fd, "0", 1), 1);
    close(fd);
    ck_assert_int_eq(rmdir(group), 0);
}

START_TEST(a_real_memory_limit)
{
    spk_loader *l = NULL;
    spk_loader_options o = load_options(1);
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    if (!getenv("TEST_LONG") || !enter_group("150000000")) {
        fprintf(stderr, "no TEST_LONG, or no right to make a cgroup: not tested\n");
        return;
    }
    const spk_column image = {.kind = SPK_COLUMN_IMAGE, .field = "gif", .image = {.size = sizeof image.image}};
    o.columns = &image;
    o.column_count = 1;
    o.batch_size = 256;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_LIMIT, "6 slots of 38.5 MB");
    ck_assert_ptr_nonnull(strstr(err.text, "its limit is 150.0 MB"));
    setenv("SHARDPACK_WORKER", self, 1);
    setenv("FAKE_WORKER", "greedy", 1);
    l = load_open(load_options(1));
    load_record *have = calloc(1, sizeof *have);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_E_WORKER);
    ck_assert_uint_eq(have->n, 3);
    ck_assert_msg(strstr(err.text, "batch 3 of epoch 0 has ended its worker 3 times") != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, "killed by signal 9 (Killed) for lack of memory: oom_kill of cgroup ") != NULL, "%s",
                  err.text);
    spk_loader_close(l);
    free(have);
    leave_group();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_oom");
    TCase *t = tcase_create("oom");
    tcase_add_checked_fixture(t, load_setup, load_teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_real_memory_limit);
    suite_add_tcase(s, t);
    return s;
}

int main(int argc, char **argv)
{
    if (argc == 4 && getenv("FAKE_WORKER") && strcmp(argv[0], "shardpack-worker") == 0)
        return greedy_worker((uint32_t)atoi(argv[1]));
    SRunner *runner = srunner_create(suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
