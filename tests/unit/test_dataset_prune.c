/* dataset/prune.c: what goes, what stays, and when nothing may be touched. */
#include "check_main.h"

#include "dataset_fixture.h"

#include <shardpack/dataset.h>

static char *folder;
static dataset_fixture d;
static spk_error err;
static char seen[4096];

static void setup(void)
{
    folder = check_temp_folder();
    dataset_small(&d, folder);
    spk_error_clear(&err);
    seen[0] = '\0';
}

static void teardown(void)
{
    dataset_free(&d);
    check_remove_tree(folder);
}

static void on_file(void *user, const char *name, uint64_t bytes)
{
    (void)user;
    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s %llu\n", name, (unsigned long long)bytes);
}

static bool exists(const char *name)
{
    char path[4200];
    struct stat st;
    fixture_path(path, sizeof path, folder, name);
    return lstat(path, &st) == 0;
}

static void make_work_folder(void)
{
    char path[4200];
    fixture_path(path, sizeof path, folder, SPK_WORK_FOLDER);
    ck_assert_int_eq(mkdir(path, 0777), 0);
}

static const char *const goes[] = {".manifest.json.part",       ".shardpack/000000.part",      ".shardpack/000001.done",
                                   ".shardpack/journal",        ".shards-0badcafe.tsv.part",   "shards-0badcafe.tsv",
                                   "t-0badcafe-000000.tar.zst", "x_Y-0badcafe-1234567.tar.zst"};
static const char *const stays[] = {"t-0BADCAFE-000000.tar.zst",
                                    "t-0badcafe-00000.tar.zst",
                                    "t-0badcafe-000000.tar",
                                    "t-0badcafe1-000000.tar.zst",
                                    "notes-2024.tsv",
                                    "shards-0badcafe.tsv.bak",
                                    "bad-files.tsv",
                                    "-0badcafe-000000.tar.zst",
                                    ".shardpack.txt",
                                    "journal"};

START_TEST(only_what_no_manifest_names_goes)
{
    spk_prune_options options = {.size = sizeof options, .dry_run = 1, .on_file = on_file};
    spk_prune_result result;
    const char *list = ".manifest.json.part 3\n.shardpack/000000.part 3\n.shardpack/000001.done 3\n"
                       ".shardpack/journal 3\n.shards-0badcafe.tsv.part 3\nshards-0badcafe.tsv 3\n"
                       "t-0badcafe-000000.tar.zst 3\nx_Y-0badcafe-1234567.tar.zst 3\n";
    make_work_folder();
    for (size_t i = 0; i < sizeof goes / sizeof goes[0]; i++)
        fixture_write(folder, goes[i], "old", 3);
    for (size_t i = 0; i < sizeof stays / sizeof stays[0]; i++)
        fixture_write(folder, stays[i], "mine", 4);
    ck_ok(spk_prune(folder, &options, &result, &err), err);
    ck_assert_str_eq(seen, list);
    ck_assert_uint_eq(result.files, 8);
    ck_assert_uint_eq(result.bytes, 24);
    for (size_t i = 0; i < sizeof goes / sizeof goes[0]; i++)
        ck_assert(exists(goes[i]));
    options.dry_run = 0;
    seen[0] = '\0';
    ck_ok(spk_prune(folder, &options, &result, &err), err);
    ck_assert_str_eq(seen, list);
    for (size_t i = 0; i < sizeof goes / sizeof goes[0]; i++)
        ck_assert_msg(!exists(goes[i]), "%s is still there", goes[i]);
    for (size_t i = 0; i < sizeof stays / sizeof stays[0]; i++)
        ck_assert_msg(exists(stays[i]), "%s is gone", stays[i]);
    ck_assert(!exists(SPK_WORK_FOLDER));
    ck_ok(spk_verify(folder, NULL, NULL, &err), err);
    spk_dataset *ds = NULL;
    ck_ok(spk_dataset_open(&ds, folder, NULL, &err), err);
    spk_dataset_close(ds);
    for (size_t i = 0; i < d.n; i++)
        ck_assert(exists(d.names[i]));
    ck_ok(spk_prune(folder, NULL, &result, &err), err);
    ck_assert_uint_eq(result.files, 0);
}
END_TEST

START_TEST(links_and_folders_are_left_alone)
{
    char path[4200];
    spk_prune_result result;
    fixture_path(path, sizeof path, folder, "t-0badcafe-000000.tar.zst");
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
    fixture_path(path, sizeof path, folder, "t-0badcafe-000001.tar.zst");
    ck_assert_int_eq(mkdir(path, 0777), 0);
    fixture_path(path, sizeof path, folder, "manifest.json");
    ck_ok(spk_prune(path, NULL, &result, &err), err);
    ck_assert_uint_eq(result.files, 0);
    ck_assert(exists("t-0badcafe-000000.tar.zst"));
    ck_assert(exists("t-0badcafe-000001.tar.zst"));
}
END_TEST

START_TEST(a_work_folder_that_is_a_link_is_refused)
{
    char path[4200], *outside = check_temp_folder();
    fixture_write(outside, "journal", "x", 1);
    fixture_path(path, sizeof path, folder, SPK_WORK_FOLDER);
    ck_assert_int_eq(symlink(outside, path), 0);
    ck_fails(spk_prune(folder, NULL, NULL, &err), err, SPK_E_EXISTS, ".shardpack: not a folder");
    fixture_path(path, sizeof path, outside, "journal");
    ck_assert_int_eq(access(path, F_OK), 0);
    check_remove_tree(outside);
}
END_TEST

START_TEST(nothing_goes_while_a_packer_works)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY), lock = -1;
    spk_prune_options dry = {.size = sizeof dry, .dry_run = 1};
    ck_ok(spk_work_lock(fd, folder, &lock, &err), err);
    fixture_write(folder, "t-0badcafe-000000.tar.zst", "x", 1);
    ck_fails(spk_prune(folder, NULL, NULL, &err), err, SPK_E_BUSY, "another process");
    ck_fails(spk_prune(folder, &dry, NULL, &err), err, SPK_E_BUSY, "another process");
    ck_assert(exists("t-0badcafe-000000.tar.zst"));
    ck_assert(exists(SPK_WORK_LOCK));
    close(lock);
    close(fd);
}
END_TEST

START_TEST(without_a_good_manifest_nothing_goes)
{
    spk_prune_options dry = {.size = sizeof dry, .dry_run = 1};
    ck_ok(spk_prune(folder, &dry, NULL, &err), err);
    ck_assert(!exists(SPK_WORK_FOLDER)); /* a dry run makes nothing */
    fixture_write(folder, "manifest.json", "{}", 2);
    ck_fails(spk_prune(folder, NULL, NULL, &err), err, SPK_E_FORMAT, "not a shardpack manifest");
    ck_assert(exists(d.names[0]));
    ck_fails(spk_prune("/nowhere", NULL, NULL, &err), err, SPK_E_NOT_FOUND, "/nowhere");
}
END_TEST

static void make_folder(const char *name)
{
    char path[4200];
    fixture_path(path, sizeof path, folder, name);
    ck_assert_int_eq(mkdir(path, 0777), 0);
}

/* A dataset in a sub-folder, with an old shard beside it. */
static void make_split(const char *name, const char *pack)
{
    static char path[4200];
    char text[64], shard[128];
    dataset_fixture split;
    fixture_path(path, sizeof path, folder, name);
    make_folder(name);
    dataset_small(&split, path);
    snprintf(text, sizeof text, "%s", pack);
    split.m.pack = text;
    dataset_manifest(&split);
    dataset_free(&split);
    snprintf(shard, sizeof shard, "%s/t-0badcafe-000000.tar.zst", name);
    fixture_write(folder, shard, "old", 3);
}

START_TEST(a_folder_of_splits_is_pruned_whole)
{
    spk_prune_options options = {.size = sizeof options, .dry_run = 1, .on_file = on_file};
    spk_prune_result result;
    char path[4200];
    const char *list = ".bad-files.tsv.part 3\n.shardpack/000003.done 3\n.shardpack/journal 3\n"
                       "train/t-0badcafe-000000.tar.zst 3\nval/.shardpack/000000.part 3\n"
                       "val/t-0badcafe-000000.tar.zst 3\n";
    char *above = folder;
    folder = check_temp_folder();
    ck_fails(spk_prune(folder, NULL, NULL, &err), err, SPK_E_NOT_FOUND, folder);
    make_split("other", "{\"plan\":\"0\"}");
    make_split("renamed", "{\"split\":\"test\"}");
    ck_fails(spk_prune(folder, NULL, NULL, &err), err, SPK_E_NOT_FOUND, folder);
    make_split("val", "{\"split\":\"val\"}");
    make_split("train", "{\"split\":\"train\"}");
    make_folder("empty");
    make_work_folder();
    make_folder("val/.shardpack");
    fixture_write(folder, "val/.shardpack/000000.part", "old", 3);
    fixture_write(folder, ".shardpack/journal", "old", 3);
    fixture_write(folder, ".shardpack/000003.done", "old", 3);
    fixture_write(folder, ".bad-files.tsv.part", "old", 3);
    fixture_write(folder, "bad-files.tsv", "mine", 4);
    fixture_write(folder, "t-0badcafe-000000.tar.zst", "mine", 4);
    for (int dry = 1; dry >= 0; dry--) {
        options.dry_run = dry;
        seen[0] = '\0';
        ck_ok(spk_prune(folder, &options, &result, &err), err);
        ck_assert_str_eq(seen, list);
        ck_assert_uint_eq(result.files, 6);
        ck_assert_uint_eq(result.bytes, 18);
        ck_assert(exists("val/t-0badcafe-000000.tar.zst") == dry);
    }
    ck_assert(!exists(SPK_WORK_FOLDER));
    ck_assert(!exists("val/.shardpack"));
    ck_assert(exists("other/t-0badcafe-000000.tar.zst"));
    ck_assert(exists("renamed/t-0badcafe-000000.tar.zst"));
    ck_assert(exists("t-0badcafe-000000.tar.zst"));
    ck_assert(exists("bad-files.tsv"));
    fixture_path(path, sizeof path, folder, "val");
    ck_ok(spk_verify(path, NULL, NULL, &err), err);
    check_remove_tree(folder);
    folder = above;
}
END_TEST

START_TEST(splits_are_left_alone_while_a_packer_works)
{
    int lock = -1;
    char *above = folder;
    folder = check_temp_folder();
    make_split("train", "{\"split\":\"train\"}");
    int fd = open(folder, O_RDONLY | O_DIRECTORY);
    ck_ok(spk_work_lock(fd, folder, &lock, &err), err);
    ck_fails(spk_prune(folder, NULL, NULL, &err), err, SPK_E_BUSY, "another process");
    ck_assert(exists("train/t-0badcafe-000000.tar.zst"));
    close(lock);
    close(fd);
    fixture_write(folder, "train/manifest.json", "{}", 2);
    ck_fails(spk_prune(folder, NULL, NULL, &err), err, SPK_E_FORMAT, "train/manifest.json: not a shardpack manifest");
    check_remove_tree(folder);
    folder = above;
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("dataset/prune");
    TCase *c = tcase_create("prune");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, only_what_no_manifest_names_goes);
    tcase_add_test(c, links_and_folders_are_left_alone);
    tcase_add_test(c, a_work_folder_that_is_a_link_is_refused);
    tcase_add_test(c, nothing_goes_while_a_packer_works);
    tcase_add_test(c, without_a_good_manifest_nothing_goes);
    tcase_add_test(c, a_folder_of_splits_is_pruned_whole);
    tcase_add_test(c, splits_are_left_alone_while_a_packer_works);
    suite_add_tcase(s, c);
    return s;
}

CHECK_MAIN(suite)
