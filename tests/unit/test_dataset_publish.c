/* dataset/publish.c: the lock, replacing and moving files, names. */
#include "check_main.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "dataset/publish.h"

#define HEX64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static char *folder;
static int dirfd_;
static spk_error err;

static void setup(void)
{
    folder = check_temp_folder();
    dirfd_ = open(folder, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(dirfd_, 0);
    spk_error_clear(&err);
}

static void teardown(void)
{
    close(dirfd_);
    check_remove_tree(folder);
}

static void put(const char *name, const char *text)
{
    int fd = openat(dirfd_, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void expect(const char *name, const char *text)
{
    char got[256] = {0};
    int fd = openat(dirfd_, name, O_RDONLY);
    if (!text) {
        ck_assert_int_lt(fd, 0);
        return;
    }
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(read(fd, got, sizeof got - 1), 0);
    ck_assert_str_eq(got, text);
    close(fd);
}

START_TEST(the_lock_is_exclusive)
{
    int first = -1, second = -1;
    ck_ok(spk_work_lock(dirfd_, folder, &first, &err), err);
    ck_fails(spk_work_lock(dirfd_, folder, &second, &err), err, SPK_E_BUSY, "another process is packing");
    ck_assert_int_eq(second, -1);
    close(first);
    ck_ok(spk_work_lock(dirfd_, folder, &second, &err), err);
    close(second);
}
END_TEST

START_TEST(the_lock_goes_with_its_process)
{
    int fd = -1, status = 0;
    pid_t child = fork();
    if (child == 0) {
        int mine = -1;
        _exit(spk_work_lock(dirfd_, folder, &mine, NULL) == SPK_OK ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_ok(spk_work_lock(dirfd_, folder, &fd, &err), err);
    close(fd);
}
END_TEST

START_TEST(a_lock_file_that_was_removed_holds_nobody_back)
{
    int first = -1, second = -1;
    ck_ok(spk_work_lock(dirfd_, folder, &first, &err), err);
    ck_assert_int_eq(unlinkat(dirfd_, SPK_WORK_LOCK, 0), 0);
    ck_assert_int_eq(unlinkat(dirfd_, SPK_WORK_FOLDER, AT_REMOVEDIR), 0);
    ck_ok(spk_work_lock(dirfd_, folder, &second, &err), err);
    close(first);
    close(second);
}
END_TEST

START_TEST(a_work_folder_that_is_none_is_refused)
{
    int fd = -1;
    ck_assert_int_eq(symlinkat("/tmp", dirfd_, SPK_WORK_FOLDER), 0);
    ck_fails(spk_work_lock(dirfd_, folder, &fd, &err), err, SPK_E_EXISTS, ".shardpack: not a folder");
}
END_TEST

START_TEST(publishing_replaces)
{
    ck_ok(spk_publish_file(dirfd_, folder, "manifest.json", "one", 3, &err), err);
    expect("manifest.json", "one");
    put(".manifest.json.part", "left by a killed run, and longer");
    ck_ok(spk_publish_file(dirfd_, folder, "manifest.json", "two", 3, &err), err);
    expect("manifest.json", "two");
    expect(".manifest.json.part", NULL);
    ck_assert_int_eq(mkdirat(dirfd_, "taken", 0777), 0);
    ck_fails(spk_publish_file(dirfd_, folder, "taken", "x", 1, &err), err, SPK_E_IO, "/taken: ");
    expect(".taken.part", NULL);
}
END_TEST

START_TEST(moving_never_overwrites)
{
    put("from", "data");
    ck_ok(spk_publish_move(dirfd_, folder, "from", "to", &err), err);
    expect("from", NULL);
    expect("to", "data");
    ck_fails(spk_publish_move(dirfd_, folder, "from", "to", &err), err, SPK_E_NOT_FOUND, "/from: ");
    put("from", "data");
    ck_ok(spk_publish_move(dirfd_, folder, "from", "to", &err), err); /* the same file is there */
    expect("from", NULL);
    put("from", "longer");
    ck_fails(spk_publish_move(dirfd_, folder, "from", "to", &err), err, SPK_E_EXISTS,
             "/to: exists with 4 bytes, the new file has 6");
    put("from", "atad");
    ck_fails(spk_publish_move(dirfd_, folder, "from", "to", &err), err, SPK_E_EXISTS,
             "/to: exists with other contents");
    expect("from", "atad");
    expect("to", "data");
    ck_fails(spk_publish_move(dirfd_, folder, "none", "none-too", &err), err, SPK_E_NOT_FOUND, "/none: ");
    ck_assert_int_eq(symlinkat("to", dirfd_, "link"), 0);
    ck_assert_int_lt(spk_publish_move(dirfd_, folder, "from", "link", &err), 0);
    expect("from", "atad");
}
END_TEST

START_TEST(names)
{
    char name[64];
    ck_ok(spk_shard_file_name(name, sizeof name, "train", HEX64, 17, &err), err);
    ck_assert_str_eq(name, "train-00112233-000017.tar.zst");
    ck_ok(spk_shard_file_name(name, sizeof name, "A_1", HEX64, 12345678, &err), err);
    ck_assert_str_eq(name, "A_1-00112233-12345678.tar.zst");
    ck_ok(spk_table_file_name(name, sizeof name, HEX64, &err), err);
    ck_assert_str_eq(name, "shards-00112233.tsv");
    ck_fails(spk_shard_file_name(name, sizeof name, "a-b", HEX64, 0, &err), err, SPK_E_INVALID, "prefix \"a-b\"");
    ck_fails(spk_shard_file_name(name, sizeof name, "", HEX64, 0, &err), err, SPK_E_INVALID, "prefix \"\"");
    char prefix[66] = {0};
    memset(prefix, 'p', 65);
    ck_fails(spk_shard_file_name(name, sizeof name, prefix, HEX64, 0, &err), err, SPK_E_LIMIT, "prefix of 65 bytes");
    ck_fails(spk_shard_file_name(name, 20, "train", HEX64, 0, &err), err, SPK_E_LIMIT, "too long");
    ck_fails(spk_table_file_name(name, sizeof name, "xyz", &err), err, SPK_E_INVALID, "fingerprint \"xyz\"");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("dataset/publish");
    TCase *c = tcase_create("publish");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, the_lock_is_exclusive);
    tcase_add_test(c, the_lock_goes_with_its_process);
    tcase_add_test(c, a_lock_file_that_was_removed_holds_nobody_back);
    tcase_add_test(c, a_work_folder_that_is_none_is_refused);
    tcase_add_test(c, publishing_replaces);
    tcase_add_test(c, moving_never_overwrites);
    tcase_add_test(c, names);
    suite_add_tcase(s, c);
    return s;
}

CHECK_MAIN(suite)
