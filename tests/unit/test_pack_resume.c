/* spk_pack interrupted: killed, out of space, changed in between; and on a target that is finished or in use. */
#include "check_main.h"

#include "pack_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <xxhash.h>

static int stop_at_publish(void *user, const spk_pack_progress *p)
{
    (void)user;
    if (p->phase == SPK_PACK_PUBLISH)
        kill(getpid(), SIGKILL);
    return 0;
}

/* Runs a pack in a process of its own and kills it after `us` (0: it kills itself); true if it came to its end first.
 */
static bool run_and_kill(const char *dst, spk_pack_options o, useconds_t us)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        spk_pack_result r;
        spk_error err;
        _exit(pack(dst, o, &r, &err) == SPK_OK ? 0 : 1);
    }
    if (us > 0) {
        usleep(us);
        kill(pid, SIGKILL);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(!WIFEXITED(status) || WEXITSTATUS(status) == 0, "the pack failed");
    return WIFEXITED(status);
}

START_TEST(killed_at_any_moment)
{
    spk_error err;
    spk_pack_result r;
    spk_split splits[] = {{"train", 0.7}, {"val", 0.3}};
    put_tree(5, 30, 4000);
    put_noise("src/c00/bad.gif", 500, 3, false);
    put_noise("src/c03/bad.gif", 500, 3, false);
    spk_pack_options o = {.shard_size = 30000, .frame_size = 4096, .jobs = 3, .on_bad = SPK_ON_BAD_SKIP};
    for (int with_splits = 0; with_splits < 2; with_splits++) {
        o.splits = splits;
        o.split_count = with_splits ? 2 : 0;
        const char *want = with_splits ? "wants" : "want";
        ck_ok(pack(want, o, &r, &err), err);
        uint32_t seed = 7;
        int kills = 0;
        for (int round = 0; round < 3; round++) {
            char dst[32];
            snprintf(dst, sizeof dst, "got%d%d", with_splits, round);
            useconds_t us = 1000;
            while (!run_and_kill(dst, o, us)) {
                seed = seed * 1664525u + 1013904223u;
                us = (useconds_t)(1000 + (seed >> 8) % (20000 + 5000 * (unsigned)kills++));
            }
            same_tree(want, dst);
        }
        ck_assert_int_gt(kills, 2);
    }
}
END_TEST

START_TEST(killed_before_publishing)
{
    spk_error err;
    spk_pack_result r;
    char done[256], final[256];
    put_tree(3, 30, 3000);
    spk_pack_options o = {.shard_size = 12000, .jobs = 2};
    ck_ok(pack("want", o, &r, &err), err);
    spk_pack_options stop = o;
    stop.on_progress = stop_at_publish;
    ck_assert(!run_and_kill("got", stop, 0));
    ck_assert(!exists("got/manifest.json"));
    /* as if it had been killed with one shard moved, one lost, one cut and a partial one left */
    snprintf(final, sizeof final, "got/shard-%.8s-000000.tar.zst", r.fingerprint);
    ck_assert_int_eq(rename(in_dir("got/.shardpack/000000.done"), in_dir(final)), 0);
    ck_assert_int_eq(unlink(in_dir("got/.shardpack/000001.done")), 0);
    snprintf(done, sizeof done, "got/.shardpack/000002.done");
    ck_assert_int_eq(truncate(in_dir(done), 100), 0);
    put_file("got/.shardpack/000003.part", "x", 1);
    uint64_t shards = r.shards;
    ck_ok(pack("got", o, &r, &err), err);
    ck_assert_uint_eq(r.shards_resumed, shards - 3);
    same_tree("want", "got");
}
END_TEST

/* The last byte but three lies in the seek table, whose digest the journal has. */
static void flip_byte(const char *name)
{
    FILE *f = fopen(in_dir(name), "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, -3, SEEK_END), 0);
    int c = fgetc(f);
    ck_assert_int_eq(fseek(f, -3, SEEK_END), 0);
    ck_assert_int_eq(fputc(c ^ 1, f), c ^ 1);
    ck_assert_int_eq(fclose(f), 0);
}

/* What a run notes in its journal before it moves the first shard. */
static void note_publishing(const char *dst, const char *fingerprint)
{
    char line[128], name[64];
    int n = snprintf(line, sizeof line, "publish\t0\t%s", fingerprint);
    snprintf(name, sizeof name, "%s/.shardpack/journal", dst);
    FILE *f = fopen(in_dir(name), "a");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%s\t%016llx\n", line, (unsigned long long)XXH64(line, (size_t)n, 0));
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(damaged_between_runs)
{
    spk_error err;
    spk_pack_result r;
    char final[256];
    put_tree(3, 30, 3000);
    spk_pack_options o = {.shard_size = 12000, .jobs = 2}, stop = o;
    ck_ok(pack("want", o, &r, &err), err);
    uint64_t shards = r.shards;
    snprintf(final, sizeof final, "got/shard-%.8s-000000.tar.zst", r.fingerprint);
    stop.on_progress = stop_at_publish;
    ck_assert(!run_and_kill("got", stop, 0));
    /* publishing began, and the moved file is not the one that was moved */
    note_publishing("got", r.fingerprint);
    ck_assert_int_eq(rename(in_dir("got/.shardpack/000000.done"), in_dir(final)), 0);
    flip_byte(final);
    ck_fails(pack("got", o, &r, &err), err, SPK_E_EXISTS, "-000000.tar.zst: exists with other contents");
    ck_assert_ptr_nonnull(strstr(err.text, "got/shard-"));
    ck_assert_int_eq(truncate(in_dir(final), 100), 0);
    ck_fails(pack("got", o, &r, &err), err, SPK_E_EXISTS, "-000000.tar.zst: exists with other contents");
    ck_assert_int_eq(unlink(in_dir(final)), 0);
    flip_byte("got/.shardpack/000001.done");
    ck_ok(pack("got", o, &r, &err), err);
    ck_assert_uint_eq(r.shards_resumed, shards - 2);
    same_tree("want", "got");
}
END_TEST

START_TEST(another_run_is_refused)
{
    spk_error err;
    spk_pack_result r;
    put_tree(3, 30, 3000);
    spk_pack_options o = {.shard_size = 12000, .jobs = 2}, stop = o, other = o;
    stop.on_progress = stop_at_publish;
    ck_assert(!run_and_kill("got", stop, 0));
    other.seed = 1;
    ck_fails(pack("got", other, &r, &err), err, SPK_E_CHANGED, "changed: options); --force discards it");
    other = o;
    other.check = SPK_CHECK_NONE;
    ck_fails(pack("got", other, &r, &err), err, SPK_E_CHANGED, "changed: options)");
    put_noise("src/c00/new.gif", 100, 1, true);
    ck_fails(pack("got", other, &r, &err), err, SPK_E_CHANGED, "changed: options, files)");
    ck_fails(pack("got", o, &r, &err), err, SPK_E_CHANGED, "changed: files)");
    o.force = 1;
    ck_ok(pack("got", o, &r, &err), err);
    ck_assert_uint_eq(r.shards_resumed, 0);
    sound("got", 91);
}
END_TEST

START_TEST(up_to_date_or_beside)
{
    spk_error err;
    spk_pack_result r, again;
    char old[256];
    put_tree(3, 10, 3000);
    spk_pack_options o = {.jobs = 2};
    ck_ok(pack("out", o, &r, &err), err);
    ck_assert_int_eq(r.up_to_date, 0);
    ck_ok(pack("out", o, &again, &err), err);
    ck_assert_int_eq(again.up_to_date, 1);
    again.up_to_date = 0;
    ck_assert_mem_eq(&r, &again, sizeof r);
    snprintf(old, sizeof old, "out/shard-%.8s-000000.tar.zst", r.fingerprint);
    o.seed = 9;
    ck_fails(pack("out", o, &r, &err), err, SPK_E_EXISTS, "already holds a dataset (30 samples, fingerprint ");
    ck_assert(!exists("out/.shardpack"));
    o.force = 1;
    ck_ok(pack("out", o, &r, &err), err);
    ck_assert(exists(old)); /* a reader may hold it */
    sound("out", 30);
    ck_ok(pack("out", o, &again, &err), err); /* forced: packed again, to the same names */
    ck_assert_str_eq(r.fingerprint, again.fingerprint);
    o.force = 0;
    snprintf(old, sizeof old, "out/shard-%.8s-000000.tar.zst", r.fingerprint);
    ck_assert_int_eq(unlink(in_dir(old)), 0); /* a shard went missing: not up to date */
    ck_ok(pack("out", o, &again, &err), err);
    ck_assert_int_eq(again.up_to_date, 0);
    sound("out", 30);
    put_noise("src/c00/000.gif", 0, 77, true); /* the same size, written to since */
    ck_fails(pack("out", o, &r, &err), err, SPK_E_EXISTS, "--force packs anew");
}
END_TEST

/* What is refused leaves nothing of its own behind. */
START_TEST(refused_leaves_nothing)
{
    spk_error err;
    spk_pack_result r;
    spk_split splits[] = {{"train", 0.7}, {"val", 0.3}};
    put_tree(3, 30, 300);
    spk_pack_options plain = {.jobs = 2}, o = {.jobs = 2, .splits = splits, .split_count = 2}, other = o;
    ck_ok(pack("out", o, &r, &err), err);
    ck_ok(pack("want", o, &r, &err), err);
    other.seed = 9;
    ck_fails(pack("out", other, &r, &err), err, SPK_E_EXISTS, "out/train: already holds a dataset");
    same_tree("want", "out");
    other.dry_run = 1;
    ck_fails(pack("out", other, &r, &err), err, SPK_E_EXISTS, "out/train: already holds a dataset");
    same_tree("want", "out");
    put_file("src/c00/000.jpg", "no image", 8);
    ck_assert_int_eq(mkdir(in_dir("empty"), 0777), 0);
    ck_fails(pack("empty", plain, &r, &err), err, SPK_E_FORMAT, "src/c00/000.jpg");
    ck_assert_int_eq(rmdir(in_dir("empty")), 0);
    ck_fails(pack("fresh", plain, &r, &err), err, SPK_E_FORMAT, "src/c00/000.jpg");
    ck_assert(!exists("fresh"));
    put_file("taken/val", "a file where a folder is to be", 30);
    ck_fails(pack("taken", o, &r, &err), err, SPK_E_NOT_FOUND, "taken/val: Not a directory");
    ck_assert(!exists("taken/train"));
    ck_assert(!exists("taken/.shardpack"));
}
END_TEST

/* A limit on file sizes stands in for a full disk. */
START_TEST(no_space_left)
{
    spk_error err;
    spk_pack_result r;
    put_tree(3, 20, 20000);
    put_noise("src/c01/large.gif", 400000, 1, true);
    spk_pack_options o = {.jobs = 2, .shard_size = 100000};
    ck_ok(pack("want", o, &r, &err), err);
    struct rlimit before, small = {.rlim_cur = 300000};
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_fails(pack("out", o, &r, &err), err, SPK_E_IO, ".part");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "out/.shardpack/0"));
    ck_assert_ptr_nonnull(strstr(err.text, "File too large"));
    ck_ok(pack("out", o, &r, &err), err);
    same_tree("want", "out");
}
END_TEST

START_TEST(locked_target_is_busy)
{
    spk_error err;
    spk_pack_result r;
    put_tree(2, 3, 100);
    put_file("out/.shardpack/lock", "", 0);
    int fd = open(in_dir("out/.shardpack/lock"), O_RDWR);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0); /* flock is per open file: a second open in this process waits */
    ck_fails(pack("out", (spk_pack_options){0}, &r, &err), err, SPK_E_BUSY, "another process");
    ck_ok(pack("out", (spk_pack_options){.dry_run = 1}, &r, &err), err);
    close(fd);
    ck_ok(pack("out", (spk_pack_options){0}, &r, &err), err);
    sound("out", 6);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pack_resume");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, killed_at_any_moment);
    tcase_add_test(t, killed_before_publishing);
    tcase_add_test(t, damaged_between_runs);
    tcase_add_test(t, another_run_is_refused);
    tcase_add_test(t, up_to_date_or_beside);
    tcase_add_test(t, refused_leaves_nothing);
    tcase_add_test(t, no_space_left);
    tcase_add_test(t, locked_target_is_busy);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
