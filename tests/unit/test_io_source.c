/* io/: opening by path and URL, reads inside and outside the size, files that change. */
#include "check_main.h"

#include "io/source.h"

#include <fcntl.h>

static char *folder;

static void setup(void)
{
    folder = check_temp_folder();
}

static void teardown(void)
{
    check_remove_tree(folder);
}

static void path_in(char *out, const char *name)
{
    snprintf(out, 4096, "%s/%s", folder, name);
}

static void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(files_are_read_by_offset)
{
    char path[4096], url[4200], got[8] = "";
    path_in(path, "a b%.txt");
    put_file(path, "0123456789");
    spk_source *s = NULL;
    spk_error err;
    ck_ok(spk_source_open(&s, path, &err), err);
    ck_assert_uint_eq(spk_source_size(s), 10);
    ck_assert_str_eq(spk_source_name(s), path);
    ck_ok(spk_source_pread(s, got, 4, 6, &err), err);
    ck_assert_str_eq(got, "6789");
    ck_ok(spk_source_pread(s, got, 0, 10, &err), err);
    ck_fails(spk_source_pread(s, got, 4, 7, &err), err, SPK_E_FORMAT, "ends at byte 10, need 4 bytes at 7");
    ck_assert_int_eq(err.offset, 7);
    ck_fails(spk_source_pread(s, got, 1, UINT64_MAX, &err), err, SPK_E_FORMAT, "ends at byte 10");
    spk_source_close(s);
    snprintf(url, sizeof url, "file://localhost%s/a%%20b%%25.txt", folder);
    ck_ok(spk_source_open(&s, url, &err), err);
    ck_assert_uint_eq(spk_source_size(s), 10);
    spk_source_close(s);
    spk_source_close(NULL);
}
END_TEST

START_TEST(what_is_no_readable_file_is_refused)
{
    char path[4096];
    spk_source *s = NULL;
    spk_error err;
    path_in(path, "missing");
    ck_fails(spk_source_open(&s, path, &err), err, SPK_E_NOT_FOUND, "missing: No such file");
    ck_assert_ptr_null(s);
    ck_fails(spk_source_open(&s, folder, &err), err, SPK_E_INVALID, "not a regular file");
    path_in(path, "pipe");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_fails(spk_source_open(&s, path, &err), err, SPK_E_INVALID, "not a regular file");
    ck_fails(spk_source_open(&s, "", &err), err, SPK_E_INVALID, "empty path");
    ck_fails(spk_source_open(&s, "ftp://host/x", &err), err, SPK_E_UNSUPPORTED, "\"ftp\" is not supported");
    ck_fails(spk_source_open(&s, "file://host/x", &err), err, SPK_E_INVALID, "absolute path");
    ck_fails(spk_source_open(&s, "file:///x%2", &err), err, SPK_E_INVALID, "without two hex digits");
    ck_fails(spk_source_open(&s, "file:///x%00y", &err), err, SPK_E_INVALID, "%00");
}
END_TEST

START_TEST(a_file_that_shrinks_is_an_error)
{
    char path[4096], got[10];
    path_in(path, "shrinks");
    put_file(path, "0123456789");
    spk_source *s = NULL;
    spk_error err;
    ck_ok(spk_source_open(&s, path, &err), err);
    ck_assert_int_eq(truncate(path, 5), 0);
    ck_fails(spk_source_pread(s, got, 10, 0, &err), err, SPK_E_FORMAT,
             "ends at byte 5, had 10 bytes when it was opened");
    spk_source_close(s);
}
END_TEST

START_TEST(memory_is_a_source)
{
    spk_source *s = NULL;
    spk_error err;
    char got[4] = "";
    ck_ok(spk_source_memory(&s, "abcdef", 6, "memory", &err), err);
    ck_ok(spk_source_pread(s, got, 3, 3, &err), err);
    ck_assert_str_eq(got, "def");
    ck_assert_str_eq(spk_source_name(s), "memory");
    ck_fails(spk_source_pread(s, got, 1, 6, &err), err, SPK_E_FORMAT, "ends at byte 6");
    spk_source_close(s);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("io/source");
    TCase *t = tcase_create("source");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, files_are_read_by_offset);
    tcase_add_test(t, what_is_no_readable_file_is_refused);
    tcase_add_test(t, a_file_that_shrinks_is_an_error);
    tcase_add_test(t, memory_is_a_source);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
