/* spk_pack on a target that holds something: up to date or not, and what is refused before the work begins. */
#include "check_main.h"

#include "pack_fixture.h"

#include <fcntl.h>

/* Time stamps of files move in steps of some milliseconds. */
static void let_time_pass(void)
{
    usleep(20000);
}

static void swap(const char *a, const char *b)
{
    ck_assert_int_eq(rename(in_dir(a), in_dir("swapped")), 0);
    ck_assert_int_eq(rename(in_dir(b), in_dir(a)), 0);
    ck_assert_int_eq(rename(in_dir("swapped"), in_dir(b)), 0);
}

static void put_two_classes(void)
{
    put_file("src/a/1.txt", "one", 3);
    put_file("src/b/1.txt", "two", 3);
}

static void packs_once(const char *dst, spk_pack_options o)
{
    spk_error err;
    spk_pack_result r;
    ck_ok(pack(dst, o, &r, &err), err);
    ck_assert_int_eq(r.up_to_date, 0);
    ck_ok(pack(dst, o, &r, &err), err);
    ck_assert_int_eq(r.up_to_date, 1);
    let_time_pass();
}

/* The files keep their names, sizes and times. */
START_TEST(swapped_folders_are_not_up_to_date)
{
    spk_error err;
    spk_pack_result r;
    put_two_classes();
    packs_once("out", (spk_pack_options){0});
    swap("src/a", "src/b");
    ck_fails(pack("out", (spk_pack_options){0}, &r, &err), err, SPK_E_EXISTS,
             ", and source files changed after packing (newest: ");
    ck_assert_ptr_nonnull(strstr(err.text, "/src"));
    ck_assert_ptr_nonnull(strstr(err.text, "; --force packs anew beside it"));
    ck_ok(pack("out", (spk_pack_options){.force = 1}, &r, &err), err);
    sound("out", 2);
}
END_TEST

START_TEST(swapped_sources_are_not_up_to_date)
{
    spk_error err;
    spk_pack_result r;
    put_two_classes();
    put_file("other/a/1.txt", "six", 3);
    put_file("other/b/1.txt", "ten", 3);
    packs_once("out", (spk_pack_options){0});
    swap("src", "other");
    ck_fails(pack("out", (spk_pack_options){0}, &r, &err), err, SPK_E_EXISTS, "changed after packing (newest: ");
}
END_TEST

START_TEST(swapped_folders_of_a_list_are_not_up_to_date)
{
    spk_error err;
    spk_pack_result r;
    char list[4096];
    put_file("src/deep/a/1.txt", "one", 3);
    put_file("src/deep/b/1.txt", "two", 3);
    put_file("list.csv", "path\ndeep/b/1.txt\ndeep/a/1.txt\n", 31);
    snprintf(list, sizeof list, "%s", in_dir("list.csv"));
    packs_once("out", (spk_pack_options){.list = list});
    swap("src/deep/a", "src/deep/b");
    ck_fails(pack("out", (spk_pack_options){.list = list}, &r, &err), err, SPK_E_EXISTS, "(newest: ");
}
END_TEST

/* What they lead to stays as it is. */
START_TEST(links_that_lead_elsewhere_are_not_up_to_date)
{
    static const char *const lists[] = {NULL, "path\nf.txt\n", "path\na/1.txt\n"};
    spk_error err;
    spk_pack_result r;
    char list[4096];
    put_file("kept/1/1.txt", "one", 3);
    put_file("kept/2/1.txt", "two", 3);
    put_file("src/c/plain.txt", "x", 1);
    snprintf(list, sizeof list, "%s", in_dir("list.csv"));
    for (int i = 0; i < 6; i++) {
        bool file = i % 2 == 0;
        char link[4096];
        const char *text = lists[i < 2 ? 0 : file ? 1 : 2];
        char dst[16];
        snprintf(link, sizeof link, "%s", in_dir(file ? "src/f.txt" : "src/a"));
        spk_pack_options o = {.follow_symlinks = 1, .list = i < 2 ? NULL : list};
        if (text)
            put_file("list.csv", text, strlen(text));
        snprintf(dst, sizeof dst, "out%d", i);
        ck_assert_int_eq(symlink(file ? "../kept/1/1.txt" : "../kept/1", link), 0);
        packs_once(dst, o);
        ck_assert_int_eq(symlink(file ? "../kept/2/1.txt" : "../kept/2", in_dir("link")), 0);
        ck_assert_int_eq(rename(in_dir("link"), link), 0);
        ck_fails(pack(dst, o, &r, &err), err, SPK_E_EXISTS, "changed after packing (newest: ");
        ck_assert_int_eq(unlink(link), 0);
    }
}
END_TEST

START_TEST(what_differs_is_told)
{
    spk_error err;
    spk_pack_result r;
    put_two_classes();
    packs_once("out", (spk_pack_options){0});
    ck_fails(pack("out", (spk_pack_options){.seed = 3}, &r, &err), err, SPK_E_EXISTS,
             ", packed with other files, options or versions; --force packs anew beside it");
    put_file("src/b/1.txt", "new", 3);
    ck_fails(pack("out", (spk_pack_options){0}, &r, &err), err, SPK_E_EXISTS, "/src/b/1.txt); --force packs");
    put_file("src/b/2.txt", "new", 3);
    ck_fails(pack("out", (spk_pack_options){0}, &r, &err), err, SPK_E_EXISTS, "packed with other files");
    ck_assert_ptr_null(strchr(err.text, '\n'));
}
END_TEST

START_TEST(a_damaged_shard_is_told_before_the_work)
{
    spk_error err;
    spk_pack_result r;
    char shard[256], want[512];
    put_two_classes();
    packs_once("out", (spk_pack_options){0});
    ck_ok(pack("out", (spk_pack_options){0}, &r, &err), err);
    snprintf(shard, sizeof shard, "out/shard-%.8s-000000.tar.zst", r.fingerprint);
    ck_assert_int_eq(truncate(in_dir(shard), 50), 0);
    snprintf(want, sizeof want, "%s: has 50 bytes, by the dataset's table it has ", shard);
    for (int force = 0; force < 2; force++) {
        ck_fails(pack("out", (spk_pack_options){.force = force}, &r, &err), err, SPK_E_EXISTS, want);
        ck_assert_ptr_nonnull(strstr(err.text, "; if it is damaged, remove it, and packing makes it anew"));
        ck_assert(!exists("out/.shardpack"));
    }
    ck_assert_int_eq(unlink(in_dir(shard)), 0);
    ck_ok(pack("out", (spk_pack_options){0}, &r, &err), err);
    ck_assert_int_eq(r.up_to_date, 0);
    sound("out", 2);
}
END_TEST

START_TEST(a_manifest_that_is_no_file_is_refused)
{
    spk_error err;
    spk_pack_result r;
    spk_split splits[] = {{"one", 0.5}, {"two", 0.5}};
    put_two_classes();
    put_file("src/b/2.txt", "three", 5);
    put_file("out/manifest.json/x", "mine", 4);
    put_file("splits/one/keep", "mine", 4);
    ck_assert_int_eq(mkfifo(in_dir("splits/one/manifest.json"), 0666), 0);
    for (int force = 0; force < 2; force++) {
        spk_pack_options o = {.force = force};
        ck_fails(pack("out", o, &r, &err), err, SPK_E_EXISTS, "out/manifest.json: is not a regular file; move it away");
        o.dry_run = 1;
        ck_fails(pack("out", o, &r, &err), err, SPK_E_EXISTS, "out/manifest.json: is not a regular file");
        o = (spk_pack_options){.force = force, .splits = splits, .split_count = 2};
        ck_fails(pack("splits", o, &r, &err), err, SPK_E_EXISTS, "one/manifest.json: is not a regular file");
        ck_assert(!exists("out/.shardpack"));
        ck_assert(!exists("splits/.shardpack"));
        ck_assert(!exists("splits/two"));
    }
    put_file("out2/manifest.json", "{}", 2);
    ck_fails(pack("out2", (spk_pack_options){0}, &r, &err), err, SPK_E_FORMAT, "--force replaces it");
    ck_ok(pack("out2", (spk_pack_options){.force = 1}, &r, &err), err);
}
END_TEST

START_TEST(a_report_of_someone_else_stays)
{
    static const char head[] = "#path\taction\treason\n";
    static const char *const theirs[] = {"", "my notes\n", "#path\taction\n", "#path\taction\treason"};
    spk_error err;
    spk_pack_result r;
    char text[64];
    put_two_classes();
    for (size_t i = 0; i < 4; i++) {
        put_file("out/bad-files.tsv", theirs[i], strlen(theirs[i]));
        for (int force = 0; force < 2; force++)
            ck_fails(pack("out", (spk_pack_options){.force = force}, &r, &err), err, SPK_E_EXISTS,
                     "out/bad-files.tsv: is not a list of bad files that shardpack wrote; move it away");
        read_text("out/bad-files.tsv", text, sizeof text);
        ck_assert_str_eq(text, theirs[i]);
        ck_assert(!exists("out/manifest.json"));
        ck_assert(!exists("out/.shardpack"));
    }
    put_file("out/bad-files.tsv", head, strlen(head));
    ck_ok(pack("out", (spk_pack_options){0}, &r, &err), err);
    ck_assert(!exists("out/bad-files.tsv"));
    put_file("out2/bad-files.tsv/x", "mine", 4);
    ck_fails(pack("out2", (spk_pack_options){0}, &r, &err), err, SPK_E_EXISTS, "out2/bad-files.tsv: is not a list");
    /* nothing to do: it stays as it is */
    put_file("out/bad-files.tsv", "my notes\n", 9);
    ck_ok(pack("out", (spk_pack_options){0}, &r, &err), err);
    ck_assert_int_eq(r.up_to_date, 1);
    ck_assert(exists("out/bad-files.tsv"));
}
END_TEST

/* A file in the place of the work folder stands in for a disk that cannot be written to, also for root. */
START_TEST(up_to_date_without_a_lock)
{
    spk_error err;
    spk_pack_result r;
    put_two_classes();
    packs_once("out", (spk_pack_options){0});
    put_file("out/.shardpack", "in the way", 10);
    ck_ok(pack("out", (spk_pack_options){0}, &r, &err), err);
    ck_assert_int_eq(r.up_to_date, 1);
    put_file("src/b/1.txt", "new", 3);
    ck_fails(pack("out", (spk_pack_options){0}, &r, &err), err, SPK_E_EXISTS, "source files changed");
    ck_fails(pack("out", (spk_pack_options){.force = 1}, &r, &err), err, SPK_E_EXISTS, ".shardpack: not a folder");
    put_file("empty/.shardpack", "in the way", 10);
    ck_fails(pack("empty", (spk_pack_options){0}, &r, &err), err, SPK_E_EXISTS, ".shardpack: not a folder");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pack_existing");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, swapped_folders_are_not_up_to_date);
    tcase_add_test(t, swapped_sources_are_not_up_to_date);
    tcase_add_test(t, swapped_folders_of_a_list_are_not_up_to_date);
    tcase_add_test(t, links_that_lead_elsewhere_are_not_up_to_date);
    tcase_add_test(t, what_differs_is_told);
    tcase_add_test(t, a_damaged_shard_is_told_before_the_work);
    tcase_add_test(t, a_manifest_that_is_no_file_is_refused);
    tcase_add_test(t, a_report_of_someone_else_stays);
    tcase_add_test(t, up_to_date_without_a_lock);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
