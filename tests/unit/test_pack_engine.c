/* spk_pack end to end on small trees: the same bytes for any number of threads, bad files, splits, refusals. */
#include "check_main.h"

#include "pack_fixture.h"

#include "pack/read.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

START_TEST(jobs_do_not_change_the_bytes)
{
    spk_error err;
    spk_pack_result r, four;
    put_tree(5, 30, 3000);
    spk_pack_options o = {.shard_size = 20000, .frame_size = 8192, .jobs = 1};
    ck_ok(pack("one", o, &r, &err), err);
    ck_assert_uint_eq(r.samples, 150);
    ck_assert_uint_eq(r.files, 200);
    ck_assert_uint_eq(r.classes, 5);
    ck_assert_uint_gt(r.shards, 5);
    ck_assert_uint_gt(r.frames, r.shards);
    o.jobs = 4;
    ck_ok(pack("four", o, &four, &err), err);
    same_tree("one", "four");
    ck_assert_str_eq(r.fingerprint, four.fingerprint);
    sound("four", 150);
    o.shard_size = 0; /* one shard, many workers */
    ck_ok(pack("whole", o, &r, &err), err);
    ck_assert_uint_eq(r.shards, 1);
    o.jobs = 1;
    ck_ok(pack("whole1", o, &r, &err), err);
    same_tree("whole", "whole1");
}
END_TEST

/* The three ways to build a frame: small, beside the largest file, in pieces. */
START_TEST(large_frames_and_files)
{
    spk_error err;
    spk_pack_result r;
    char name[64];
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "src/a/%d.gif", i);
        put_noise(name, 100000 + (size_t)i, (uint32_t)i, i % 20 != 7);
    }
    put_noise("src/a/large.gif", 6u << 20, 1, true);
    put_noise("src/b/late.bin", 3u << 20, 1, true);
    spk_pack_options o = {.single_frame = 1, .on_bad = SPK_ON_BAD_SKIP, .jobs = 2};
    ck_ok(pack("single", o, &r, &err), err);
    ck_assert_uint_eq(r.samples, 59);
    ck_assert_uint_eq(r.frames, 1);
    ck_assert_uint_eq(r.bad_skipped_samples, 3);
    sound("single", 59);
    o = (spk_pack_options){.frame_size = 12u << 20, .frame_samples = 1000, .on_bad = SPK_ON_BAD_SKIP, .jobs = 2};
    ck_ok(pack("some", o, &r, &err), err);
    sound("some", 59);
    o = (spk_pack_options){.on_bad = SPK_ON_BAD_SKIP, .jobs = 2};
    ck_ok(pack("many", o, &r, &err), err);
    sound("many", 59);
}
END_TEST

START_TEST(bad_files)
{
    spk_error err;
    spk_pack_result r;
    char text[4096];
    put_tree(2, 20, 2000);
    put_noise("src/c01/x%.gif", 100, 1, false);
    put_noise("src/c00/y.gif", 100, 1, false);
    put_file("src/c00/y.txt", "t", 1);
    spk_pack_options o = {.jobs = 2, .shard_size = 8000};
    ck_fails(pack("out", o, &r, &err), err, SPK_E_FORMAT, "src/c0");
    ck_assert(!exists("out") || exists("out/.shardpack/journal"));
    o.on_bad = SPK_ON_BAD_SKIP;
    o.force = 1;
    ck_ok(pack("out", o, &r, &err), err);
    ck_assert_uint_eq(r.samples, 40);
    ck_assert_uint_eq(r.bad, 2);
    ck_assert_uint_eq(r.bad_skipped_samples, 2);
    sound("out", 40);
    read_text("out/bad-files.tsv", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "\nc00/y.gif\tskipped\t"));
    ck_assert_ptr_nonnull(strstr(text, "\nc01/x%25.gif\tskipped\t"));
    ck_assert_ptr_null(strstr(text, "y.txt"));
    o.on_bad = SPK_ON_BAD_KEEP;
    ck_ok(pack("out", o, &r, &err), err);
    ck_assert_uint_eq(r.samples, 42);
    ck_assert_uint_eq(r.bad, 2);
    sound("out", 42);
    read_text("out/bad-files.tsv", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "\nc00/y.gif\tkept\t"));
    o.check = SPK_CHECK_NONE;
    ck_ok(pack("out", o, &r, &err), err);
    ck_assert_uint_eq(r.bad, 0);
    ck_assert(!exists("out/bad-files.tsv"));
}
END_TEST

/* Frames, last frames and whole shards without a good sample. */
START_TEST(empty_frames_and_shards)
{
    spk_error err;
    spk_pack_result r;
    char name[64];
    for (unsigned pattern = 0; pattern < 16; pattern++) {
        char dst[2][32];
        spk_pack_options o = {.shard_samples = 4, .frame_samples = 1, .no_shuffle = 1, .on_bad = SPK_ON_BAD_SKIP};
        for (unsigned i = 0; i < 12; i++) {
            snprintf(name, sizeof name, "src/%03u.gif", i);
            put_noise(name, 200, i, i >= 4 && i < 8 ? (pattern >> (i - 4) & 1) : i < 4);
        }
        for (int k = 0; k < 2; k++) {
            o.jobs = k ? 4 : 1;
            snprintf(dst[k], sizeof dst[k], "out%u-%d", pattern, k);
            ck_ok(pack(dst[k], o, &r, &err), err);
            unsigned good = 4 + (unsigned)__builtin_popcount(pattern);
            ck_assert_uint_eq(r.samples, good);
            ck_assert_uint_eq(r.frames, good);
            ck_assert_uint_eq(r.bad, 12 - good);
            ck_assert_uint_eq(r.shards, pattern ? 2 : 1);
            sound(dst[k], good);
        }
        same_tree(dst[0], dst[1]);
    }
}
END_TEST

START_TEST(no_sample_is_left)
{
    spk_error err;
    spk_pack_result r;
    put_noise("src/a.gif", 100, 1, false);
    put_noise("src/b.gif", 100, 1, false);
    spk_pack_options o = {.on_bad = SPK_ON_BAD_SKIP};
    ck_fails(pack("out", o, &r, &err), err, SPK_E_FORMAT, "out: no sample is left: all 2 were left out");
    ck_assert(!exists("out"));
    ck_assert_uint_eq(r.bad, 2);
}
END_TEST

START_TEST(splits_are_datasets)
{
    spk_error err;
    spk_pack_result r;
    spk_split splits[] = {{"train", 0.75}, {"val-1", 0.25}};
    put_tree(4, 30, 2000);
    spk_pack_options o = {.splits = splits, .split_count = 2, .shard_size = 20000};
    ck_ok(pack("out", o, &r, &err), err);
    ck_assert_uint_eq(r.samples, 120);
    spk_dataset *d[2];
    spk_dataset_stat s[2];
    ck_ok(spk_dataset_open(&d[0], in_dir("out/train"), NULL, &err), err);
    ck_ok(spk_dataset_open(&d[1], in_dir("out/val-1"), NULL, &err), err);
    for (int i = 0; i < 2; i++) {
        spk_dataset_get_stat(d[i], &s[i]);
        ck_assert_uint_eq(spk_dataset_class_count(d[i]), 4);
    }
    ck_assert_uint_eq(s[0].samples + s[1].samples, 120);
    ck_assert_str_eq(spk_dataset_fingerprint(d[0]), r.fingerprint);
    spk_shard_row row;
    ck_ok(spk_dataset_get_shard(d[1], 0, &row, &err), err);
    ck_assert_ptr_eq(strstr(row.path, "val_1-"), row.path);
    spk_dataset_close(d[0]);
    spk_dataset_close(d[1]);
    sound("out/train", s[0].samples);
    sound("out/val-1", s[1].samples);
    ck_assert(!exists("out/.shardpack"));
    ck_ok(pack("out", o, &r, &err), err);
    ck_assert_int_eq(r.up_to_date, 1);
    ck_assert_uint_eq(r.samples, 120);
}
END_TEST

START_TEST(places_that_are_refused)
{
    spk_error err;
    spk_pack_result r;
    put_tree(2, 3, 100);
    ck_fails(pack("src", (spk_pack_options){0}, &r, &err), err, SPK_E_INVALID, "is the source folder");
    ck_fails(pack("src/c00/out", (spk_pack_options){0}, &r, &err), err, SPK_E_INVALID, "lies inside the source folder");
    ck_assert(!exists("src/c00/out"));
    ck_fails(pack("src/c00", (spk_pack_options){0}, &r, &err), err, SPK_E_INVALID, "lies inside the source folder");
    ck_fails(pack("no/out", (spk_pack_options){0}, &r, &err), err, SPK_E_NOT_FOUND, "/no: No such file");
    put_file("file", "x", 1);
    ck_fails(pack("file", (spk_pack_options){0}, &r, &err), err, SPK_E_NOT_FOUND, "file: Not a directory");
    ck_ok(pack("src/../out/", (spk_pack_options){.dry_run = 1}, &r, &err), err);
    ck_assert_uint_eq(r.samples, 6);
    ck_assert(!exists("out"));
    ck_assert_int_eq(mkdir(in_dir("empty"), 0777), 0);
    spk_pack_options o = {.size = sizeof o};
    ck_fails(spk_pack(in_dir("empty"), in_dir("out"), &o, &r, &err), err, SPK_E_INVALID, "no files to pack");
    ck_assert(!exists("out"));
    ck_fails(spk_pack(in_dir("gone"), in_dir("out"), &o, NULL, &err), err, SPK_E_NOT_FOUND, "gone: No such file");
}
END_TEST

/* Class names that no manifest can hold are told before a shard is built. */
START_TEST(too_much_for_a_manifest)
{
    enum { ROWS = 70, NAME = 1000000 };
    spk_error err;
    spk_pack_result r;
    char file[32], *name = malloc(NAME + 1);
    memset(name, 'n', NAME);
    name[NAME] = '\0';
    FILE *list = fopen(in_dir("list.csv"), "w");
    ck_assert_ptr_nonnull(list);
    fprintf(list, "path,label\n");
    for (int i = 0; i < ROWS; i++) {
        snprintf(file, sizeof file, "src/%02d.txt", i);
        put_file(file, "x", 1);
        fprintf(list, "%02d.txt,%02d%s\n", i, i, name);
    }
    ck_assert_int_eq(fclose(list), 0);
    free(name);
    spk_pack_options o = {.list = in_dir("list.csv")};
    ck_fails(pack("out", o, &r, &err), err, SPK_E_LIMIT, "src: 70 classes and 1 fields: manifest");
    ck_assert(!exists("out"));
    o.dry_run = 1;
    o.list = in_dir("list.csv");
    ck_fails(pack("out", o, &r, &err), err, SPK_E_LIMIT, "above the limit of 67108864");
}
END_TEST

static int cancel(void *user, const spk_pack_progress *p)
{
    return p->phase == *(spk_pack_phase *)user;
}

START_TEST(cancelled_without_a_trace)
{
    spk_error err;
    spk_pack_result r;
    put_tree(2, 3, 100);
    for (int phase = SPK_PACK_SCAN; phase <= SPK_PACK_BUILD; phase++) {
        spk_pack_phase at = (spk_pack_phase)phase;
        spk_pack_options o = {.on_progress = cancel, .user = &at, .jobs = 2};
        spk_status status = pack("out", o, &r, &err);
        ck_assert(status == SPK_E_CANCELLED);
    }
    spk_pack_options o = {.jobs = 2};
    ck_ok(pack("out", o, &r, &err), err);
    sound("out", 6);
}
END_TEST

START_TEST(source_files_that_change)
{
    spk_error err;
    char data[64];
    struct stat st;
    put_file("src/f", "0123456789", 10);
    ck_assert_int_eq(stat(in_dir("src/f"), &st), 0);
    spk_input_file file = {.size = 10, .stamp = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec};
    spk_reading reading = {.src_fd = open(in_dir("src"), O_RDONLY | O_DIRECTORY), .src = "S"};
    ck_ok(spk_read_whole(&reading, "f", &file, (uint8_t *)data, &err), err);
    ck_assert_mem_eq(data, "0123456789", 10);
    file.stamp--;
    ck_fails(spk_read_whole(&reading, "f", &file, (uint8_t *)data, &err), err, SPK_E_CHANGED,
             "S/f: changed while packing: written to since");
    ck_assert_int_eq(truncate(in_dir("src/f"), 7), 0);
    ck_fails(spk_read_whole(&reading, "f", &file, (uint8_t *)data, &err), err, SPK_E_CHANGED,
             "S/f: changed while packing: had 10 bytes, now 7");
    ck_assert_int_eq(truncate(in_dir("src/f"), 20), 0);
    ck_fails(spk_read_whole(&reading, "f", &file, (uint8_t *)data, &err), err, SPK_E_CHANGED, "had 10 bytes, now 20");
    ck_assert_int_eq(unlink(in_dir("src/f")), 0);
    ck_fails(spk_read_whole(&reading, "f", &file, (uint8_t *)data, &err), err, SPK_E_CHANGED,
             "S/f: vanished while packing: No such file or directory");
    ck_assert_int_eq(symlink("/etc/passwd", in_dir("src/f")), 0);
    ck_fails(spk_read_whole(&reading, "f", &file, (uint8_t *)data, &err), err, SPK_E_CHANGED, "now a symbolic link");
    ck_assert_int_eq(unlink(in_dir("src/f")), 0);
    ck_assert_int_eq(mkfifo(in_dir("src/f"), 0666), 0);
    ck_fails(spk_read_whole(&reading, "f", &file, (uint8_t *)data, &err), err, SPK_E_CHANGED, "no regular file");
    close(reading.src_fd);
}
END_TEST

/* From here on the kernel seems to lack openat2(2). */
static void hide_openat2(void)
{
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 4, .filter = code};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        fprintf(stderr, "no seccomp: the way without openat2 is not tested\n");
}

START_TEST(links_on_the_way_are_refused)
{
    spk_error err;
    char data[64], *long_name = calloc(300, 1);
    put_file("src/a/b/f", "0123456789", 10);
    put_file("src/f", "0123456789", 10);
    ck_assert_int_eq(symlink("a", in_dir("src/link")), 0);
    ck_assert_int_eq(symlink("b", in_dir("src/a/link")), 0);
    snprintf(long_name, 300, "%0280d/f", 0);
    spk_input_file file = {.size = 10, .stamp = INT64_MAX};
    spk_reading reading = {.src_fd = open(in_dir("src"), O_RDONLY | O_DIRECTORY), .src = "S"};
    for (int i = 0; i < 2; i++) {
        uint8_t *out = (uint8_t *)data;
        ck_ok(spk_read_whole(&reading, "f", &file, out, &err), err);
        ck_ok(spk_read_whole(&reading, "a/b/f", &file, out, &err), err);
        ck_fails(spk_read_whole(&reading, "link/b/f", &file, out, &err), err, SPK_E_CHANGED,
                 "S/link/b/f: changed while packing: now a symbolic link, or in a folder that is one");
        ck_fails(spk_read_whole(&reading, "a/link/f", &file, out, &err), err, SPK_E_CHANGED, "a folder that is one");
        ck_fails(spk_read_whole(&reading, "f/b/f", &file, out, &err), err, SPK_E_CHANGED, "Not a directory");
        ck_fails(spk_read_whole(&reading, "a/c/f", &file, out, &err), err, SPK_E_CHANGED, "vanished while packing");
        ck_fails(spk_read_whole(&reading, long_name, &file, out, &err), err, SPK_E_IO, "File name too long");
        reading.follow = true;
        ck_ok(spk_read_whole(&reading, "link/link/f", &file, out, &err), err);
        reading.follow = false;
        hide_openat2();
    }
    close(reading.src_fd);
    free(long_name);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pack_engine");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, jobs_do_not_change_the_bytes);
    tcase_add_test(t, large_frames_and_files);
    tcase_add_test(t, bad_files);
    tcase_add_test(t, empty_frames_and_shards);
    tcase_add_test(t, no_sample_is_left);
    tcase_add_test(t, splits_are_datasets);
    tcase_add_test(t, places_that_are_refused);
    tcase_add_test(t, too_much_for_a_manifest);
    tcase_add_test(t, cancelled_without_a_trace);
    tcase_add_test(t, source_files_that_change);
    tcase_add_test(t, links_on_the_way_are_refused);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
