/* pack/input over lists: paths, labels, extra columns, errors with file and row. */
#include "check_main.h"

#include <fcntl.h>

#include "pack/input.h"

static char *root;
static char list[5000];
static spk_input in;
static spk_error err;
static spk_pack_options o;

static void put(const char *name, const char *text)
{
    char path[5000];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void setup(void)
{
    char path[5000];
    root = check_temp_folder();
    snprintf(path, sizeof path, "%s/d", root);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    put("d/b.jpg", "22");
    put("a.jpg", "1");
    put("c.json", "{}");
    put("n.cls", "1");
    in = (spk_input){0};
    o = (spk_pack_options){.size = sizeof o, .list = list};
    spk_error_clear(&err);
}

static void teardown(void)
{
    spk_input_free(&in);
    check_remove_tree(root);
}

static spk_status scan(const char *name, const char *text)
{
    put(name, text);
    snprintf(list, sizeof list, "%s/%s", root, name);
    int fd = open(root, O_RDONLY | O_DIRECTORY);
    spk_input_free(&in);
    spk_status status = spk_input_scan(&in, fd, "SRC", &o, 0, 0, NULL, &err);
    close(fd);
    return status;
}

START_TEST(numbers_as_labels)
{
    ck_ok(scan("l.csv", "path,label\nd/b.jpg,5\n./a.jpg,0\nc.json,\n"), err);
    ck_assert(in.list);
    ck_assert_uint_eq(in.samples_n, 3);
    ck_assert_str_eq(spk_input_str(&in, in.samples[0].key), "d/b");
    ck_assert_int_eq(in.samples[0].label, 5);
    ck_assert_uint_eq(in.files[0].size, 2);
    ck_assert_str_eq(spk_input_str(&in, in.files[in.samples[1].first].path), "a.jpg");
    ck_assert_int_eq(in.samples[2].label, -1);
    ck_assert_uint_eq(in.unlabelled, 1);
    ck_assert_uint_eq(in.classes_n, 0);
}
END_TEST

START_TEST(names_as_labels_and_other_columns)
{
    ck_ok(scan("l.jsonl",
               "{\"path\":\"d/b.jpg\",\"label\":\"zebra\",\"w\":1.50}\n{\"path\":\"a.jpg\",\"label\":\"ant\"}"),
          err);
    ck_assert_uint_eq(in.classes_n, 2);
    ck_assert_str_eq(in.classes[0], "ant");
    ck_assert_int_eq(in.samples[0].label, 1);
    ck_assert_int_eq(in.samples[1].label, 0);
    ck_assert_str_eq(spk_input_str(&in, in.samples[0].json - 1), "{\"w\":1.50}");
    ck_assert_uint_eq(in.samples[1].json, 0);
    o.labels = SPK_LABELS_NONE;
    ck_ok(scan("l.jsonl", "{\"path\":\"d/b.jpg\",\"label\":\"zebra\"}"), err);
    ck_assert_int_eq(in.samples[0].label, -1);
    ck_assert_uint_eq(in.classes_n, 0);
}
END_TEST

START_TEST(bad_rows_are_named)
{
    ck_fails(scan("l.csv", "path\n../x.jpg\n"), err, SPK_E_FORMAT,
             "l.csv: row 2: path \"../x.jpg\": leaves the source folder");
    ck_fails(scan("l.csv", "path\nd/../../x.jpg\n"), err, SPK_E_FORMAT, "\"d/../../x.jpg\": leaves the source folder");
    ck_fails(scan("l.csv", "path\nd/../d/b.jpg\n"), err, SPK_E_FORMAT,
             "l.csv: row 2: path \"d/../d/b.jpg\": has a \"..\" component");
    ck_fails(scan("l.csv", "path\n/x.jpg\n"), err, SPK_E_FORMAT, "l.csv: row 2: path \"/x.jpg\": absolute");
    ck_fails(scan("l.csv", "path,label\n,1\n"), err, SPK_E_FORMAT, "l.csv: row 2: path \"\": empty");
    ck_fails(scan("l.csv", "path\n./\n"), err, SPK_E_FORMAT, "names the source folder itself");
    ck_fails(scan("l.csv", "path\na.jpg\nnope.jpg\n"), err, SPK_E_NOT_FOUND,
             "l.csv: row 3: path \"nope.jpg\": No such file or directory");
    ck_fails(scan("l.csv", "path\nd\n"), err, SPK_E_INVALID, "l.csv: row 2: path \"d\": is a folder");
    ck_fails(scan("l.csv", "path\nd/b.jpg\n\na.jpg\n.//a.jpg\n"), err, SPK_E_FORMAT,
             "l.csv: row 5: path \"a.jpg\": named before, in row 4");
    ck_fails(scan("l.csv", "path,label\na.jpg,cat\nd/b.jpg,3\n"), err, SPK_E_FORMAT,
             "l.csv: row 3: the label is a number, that of row 2 is a name");
    ck_fails(scan("l.csv", "path,x\nc.json,3\n"), err, SPK_E_FORMAT, "l.csv: row 2: path \"c.json\": the row itself");
    ck_fails(scan("l.csv", "path,label\nn.cls,3\n"), err, SPK_E_FORMAT, "l.csv: row 2: path \"n.cls\": the row itself");
    ck_fails(scan("l.csv", "path\n"), err, SPK_E_INVALID, "l.csv: no files to pack");
    ck_fails(scan("l.txt", "path\n"), err, SPK_E_INVALID, "l.txt: unknown kind of list");
    o.list = "/nonexistent/l.csv";
    ck_fails(scan("l.csv", "path\n"), err, SPK_E_NOT_FOUND, "/nonexistent/l.csv: No such file or directory");
}
END_TEST

START_TEST(one_row_is_one_sample)
{
    put("a.png", "");
    ck_fails(scan("l.csv", "path\na.jpg\na.png\n"), err, SPK_E_FORMAT,
             "duplicate key \"a\": from \"a.jpg\" and from \"a.png\"");
    o.limit = 1;
    ck_ok(scan("l.csv", "path\nd/b.jpg\na.jpg\n"), err);
    ck_assert_uint_eq(in.samples_n, 1);
    ck_assert_str_eq(spk_input_str(&in, in.samples[0].key), "d/b");
}
END_TEST

START_TEST(links_need_the_option)
{
    char path[5000];
    snprintf(path, sizeof path, "%s/l.jpg", root);
    ck_assert_int_eq(symlink("a.jpg", path), 0);
    ck_fails(scan("l.csv", "path\nl.jpg\n"), err, SPK_E_INVALID, "path \"l.jpg\": is a symlink");
    o.follow_symlinks = 1;
    ck_ok(scan("l.csv", "path\nl.jpg\n"), err);
    o.follow_symlinks = 0;
    snprintf(path, sizeof path, "%s/d/deep", root);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    put("d/deep/c.jpg", "");
    snprintf(path, sizeof path, "%s/e", root);
    ck_assert_int_eq(symlink("d", path), 0);
    ck_fails(scan("l.csv", "path\nd/b.jpg\ne/deep/c.jpg\n"), err, SPK_E_INVALID,
             "l.csv: row 3: path \"e/deep/c.jpg\": \"e\" is a symlink, and --follow-symlinks is not given");
    snprintf(path, sizeof path, "%s/d/f", root);
    ck_assert_int_eq(symlink("deep", path), 0);
    ck_fails(scan("l.csv", "path\nd/f/c.jpg\n"), err, SPK_E_INVALID, "row 2: path \"d/f/c.jpg\": \"d/f\" is a symlink");
    ck_fails(scan("l.csv", "path\na.jpg/c.jpg\n"), err, SPK_E_NOT_FOUND,
             "row 2: path \"a.jpg/c.jpg\": Not a directory");
    o.follow_symlinks = 1;
    ck_ok(scan("l.csv", "path\ne/deep/c.jpg\nd/f/c.jpg\n"), err);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pack/input: lists");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, numbers_as_labels);
    tcase_add_test(t, names_as_labels_and_other_columns);
    tcase_add_test(t, bad_rows_are_named);
    tcase_add_test(t, one_row_is_one_sample);
    tcase_add_test(t, links_need_the_option);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
