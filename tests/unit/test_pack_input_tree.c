/* pack/input over folder trees: grouping, collisions, order, labels, filters, links, limits, errors. */
#include "check_main.h"

#include <fcntl.h>
#include <sys/time.h>

#include "pack/input.h"

static char *root;
static spk_input in;
static spk_error err;
static spk_pack_options o;

static void setup(void)
{
    root = check_temp_folder();
    in = (spk_input){0};
    o = (spk_pack_options){.size = sizeof o};
    spk_error_clear(&err);
}

/* The same with folders read side by side. */
static void setup_walkers(void)
{
    setup();
    o.jobs = 3;
}

static void teardown(void)
{
    spk_input_free(&in);
    check_remove_tree(root);
}

static void put(const char *path, const char *text)
{
    char full[6000];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(full, 0755);
        *p = '/';
    }
    if (full[strlen(full) - 1] == '/')
        return;
    FILE *f = fopen(full, "w");
    ck_assert_msg(f != NULL, "%s", full);
    fputs(text, f);
    fclose(f);
}

static spk_status scan_at(uint64_t dev, uint64_t ino)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY);
    spk_input_free(&in);
    spk_status status = spk_input_scan(&in, fd, "SRC", &o, dev, ino, NULL, &err);
    close(fd);
    return status;
}

static spk_status scan(void)
{
    return scan_at(0, 0);
}

/* "key=field:path,...;" */
static const char *samples(void)
{
    static char out[8192];
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < in.samples_n; i++) {
        const spk_input_sample *s = &in.samples[i];
        at += (size_t)snprintf(out + at, sizeof out - at, "%s", spk_input_str(&in, s->key));
        if (s->label >= 0)
            at += (size_t)snprintf(out + at, sizeof out - at, "#%d", s->label);
        for (uint32_t k = 0; k < s->files; k++) {
            const spk_input_file *f = &in.files[s->first + k];
            ck_assert_uint_eq(f->sample, i);
            at += (size_t)snprintf(out + at, sizeof out - at, "%c%s", k ? ',' : '=', in.fields[f->field]);
        }
        at += (size_t)snprintf(out + at, sizeof out - at, ";");
    }
    return out;
}

START_TEST(class_tree)
{
    put("dog/2.jpg", "1");
    put("dog/1.jpg", "22");
    put("cat/x/1.png", "333");
    put("empty/", "");
    put("top.txt", "");
    ck_ok(scan(), err);
    ck_assert_str_eq(samples(), "cat/x/1#0=png;dog/1#1=jpg;dog/2#1=jpg;top=txt;");
    ck_assert_uint_eq(in.classes_n, 3);
    ck_assert_str_eq(in.classes[2], "empty");
    ck_assert_uint_eq(in.unlabelled, 1);
    ck_assert_uint_eq(in.empty_folders, 1);
    ck_assert_uint_eq(in.files[in.samples[0].first].size, 3);
    ck_assert_int_gt(in.files[0].stamp, 1600000000000000000);
    o.labels = SPK_LABELS_NONE;
    ck_ok(scan(), err);
    ck_assert_str_eq(samples(), "cat/x/1=png;dog/1=jpg;dog/2=jpg;top=txt;");
    ck_assert_uint_eq(in.classes_n, 0);
}
END_TEST

START_TEST(an_image_on_top_means_no_classes)
{
    put("a.jpg", "");
    put("sub/b.jpg", "");
    ck_ok(scan(), err);
    ck_assert_str_eq(samples(), "a=jpg;sub/b=jpg;");
    o.labels = SPK_LABELS_FOLDERS;
    ck_ok(scan(), err);
    ck_assert_str_eq(samples(), "a=jpg;sub/b#0=jpg;");
}
END_TEST

START_TEST(files_of_one_stem_are_one_sample)
{
    put("a.txt", "");
    put("a.jpg", "");
    put("a.json", "");
    put("a.k/z.jpg", "");
    put("a", "");
    put("c/own.cls", "7");
    put("c/own.jpg", "");
    o.labels = SPK_LABELS_FOLDERS;
    ck_ok(scan(), err);
    ck_assert_ptr_nonnull(strstr(samples(), "a=bin,jpg,json,txt;"));
    ck_assert_ptr_nonnull(strstr(samples(), "c/own=cls,jpg;")); /* its own label */
    ck_assert_uint_eq(in.unlabelled, 1);
}
END_TEST

START_TEST(where_all_have_labels_folders_are_no_classes)
{
    put("000/a.jpg", "");
    put("000/a.cls", "7");
    put("001/b.jpg", "");
    put("001/b.cls", "3");
    ck_ok(scan(), err);
    ck_assert_uint_eq(in.classes_n, 0);
    o.labels = SPK_LABELS_FOLDERS;
    ck_ok(scan(), err);
    ck_assert_uint_eq(in.classes_n, 2);
    ck_assert_ptr_nonnull(strstr(samples(), "000/a=cls,jpg;"));
    o.labels = SPK_LABELS_AUTO;
    put("001/c.jpg", "");
    ck_ok(scan(), err);
    ck_assert_uint_eq(in.classes_n, 2);
}
END_TEST

START_TEST(equal_fields_move_out)
{
    put("a.jpg", "");
    put("a.JPG", "");
    put("a.jpeg", "");
    put("a.txt", "");
    put("b.JPG", "");
    put("b.jpe", "");
    ck_ok(scan(), err);
    ck_assert_uint_eq(in.samples_n, 5);
    ck_assert_ptr_nonnull(strstr(samples(), "a=jpg,txt;"));
    ck_assert_ptr_nonnull(strstr(samples(), "a_JPG-"));
    ck_assert_ptr_nonnull(strstr(samples(), "a_jpeg-"));
    ck_assert_ptr_nonnull(strstr(samples(), "b_JPG-"));
    ck_assert_ptr_nonnull(strstr(samples(), "b_jpe-"));
    ck_assert_ptr_null(strstr(samples(), ";b=jpg"));
}
END_TEST

/* A file that moves out and has no extension: its whole path is the stem of those that stay. */
START_TEST(a_moved_file_never_meets_its_stem)
{
    put("my file", "1");
    put("my file.bin", "2");
    put("my file.jpg", "3");
    put("A", "4");
    put("A.", "5");
    put("A.txt", "6");
    put("a.txt", "7");
    ck_ok(scan(), err);
    ck_assert_uint_eq(in.files_n, 7);
    ck_assert_uint_eq(in.samples_n, 6);
}
END_TEST

START_TEST(case_twins_get_hashes)
{
    put("x/Abc.jpg", "");
    put("x/abc.jpg", "");
    put("x/ABC.jpg", "");
    put("x/Only.jpg", "");
    ck_ok(scan(), err);
    ck_assert_ptr_nonnull(strstr(samples(), "x/abc#0=jpg;"));
    ck_assert_ptr_nonnull(strstr(samples(), "x/Only#0=jpg;"));
    ck_assert_ptr_nonnull(strstr(samples(), "x/ABC-"));
    ck_assert_ptr_nonnull(strstr(samples(), "x/Abc-"));
}
END_TEST

START_TEST(equal_keys_are_refused)
{
    put("a b.jpg", "");
    put("a_b-c8687a08aa5d6ed2.jpg", ""); /* spelled like the other's key */
    ck_fails(scan(), err, SPK_E_FORMAT, "duplicate key \"a_b-c8687a08aa5d6ed2\": from \"a");
}
END_TEST

START_TEST(junk_and_special_files_are_counted)
{
    put("a/._x.jpg", "");
    put("a/Thumbs.db", "");
    put("__MACOSX/a/y.jpg", "");
    put("__MACOSX/z", "");
    put("a/x.jpg", "");
    char path[5000];
    snprintf(path, sizeof path, "%s/a/pipe", root);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/a/link.jpg", root);
    ck_assert_int_eq(symlink("x.jpg", path), 0);
    ck_ok(scan(), err);
    ck_assert_uint_eq(in.junk, 4);
    ck_assert_uint_eq(in.other_skipped, 2);
    ck_assert_str_eq(samples(), "a/x#0=jpg;");
    ck_assert_uint_eq(in.classes_n, 1);
}
END_TEST

START_TEST(links_are_followed_on_request)
{
    char path[5000];
    put("a/x.jpg", "12345");
    snprintf(path, sizeof path, "%s/a/y.jpg", root);
    ck_assert_int_eq(symlink("x.jpg", path), 0);
    snprintf(path, sizeof path, "%s/b", root);
    ck_assert_int_eq(symlink("a", path), 0);
    o.follow_symlinks = 1;
    ck_ok(scan(), err);
    ck_assert_str_eq(samples(), "a/x#0=jpg;a/y#0=jpg;b/x#1=jpg;b/y#1=jpg;");
    ck_assert_uint_eq(in.files[3].size, 5);
    snprintf(path, sizeof path, "%s/a/up", root);
    ck_assert_int_eq(symlink("..", path), 0);
    ck_fails(scan(), err, SPK_E_INVALID, "up: symlink loop: leads back to a folder 2 levels above");
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(symlink("nowhere", path), 0);
    ck_fails(scan(), err, SPK_E_NOT_FOUND, "up: No such file");
}
END_TEST

START_TEST(filters_and_limit)
{
    put("a/1.jpg", "");
    put("a/2.jpg", "");
    put("a/2.txt", "");
    put("b/3.jpg", "");
    put("skip/4.jpg", "");
    static const char *const exclude[] = {"skip", "1.*"};
    o.exclude = exclude;
    o.exclude_count = 2;
    ck_ok(scan(), err);
    ck_assert_str_eq(samples(), "a/2#0=jpg,txt;b/3#1=jpg;");
    ck_assert_uint_eq(in.excluded, 1);
    ck_assert_uint_eq(in.excluded_folders, 1);
    o.exclude_count = 0;
    o.limit = 1;
    ck_ok(scan(), err);
    ck_assert_str_eq(samples(), "a/1#0=jpg;");
    ck_assert_uint_eq(in.files_n, 1);
    ck_assert_uint_eq(in.fields_n, 1);
    ck_assert_uint_eq(in.classes_n, 3);
}
END_TEST

START_TEST(nothing_to_pack)
{
    put("x/.DS_Store", "");
    put("y/", "");
    ck_fails(scan(), err, SPK_E_INVALID,
             "SRC: no files to pack; empty folders: 2, system files (such as .DS_Store): 1");
}
END_TEST

START_TEST(the_target_inside_is_refused)
{
    struct stat st;
    char path[5000];
    put("a/x.jpg", "");
    put("a/out/shard", "");
    snprintf(path, sizeof path, "%s/a/out", root);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_fails(scan_at(st.st_dev, st.st_ino), err, SPK_E_INVALID, "SRC/a/out: DST lies inside SRC");
}
END_TEST

START_TEST(a_file_beyond_the_limit)
{
    char path[5000];
    put("big.bin", "");
    snprintf(path, sizeof path, "%s/big.bin", root);
    ck_assert_int_eq(truncate(path, 8589934593), 0);
    ck_fails(scan(), err, SPK_E_LIMIT,
             "SRC/big.bin: 8589934593 bytes: larger than the limit of 1073740288 bytes for one sample");
    ck_assert_int_eq(truncate(path, 1073740288), 0);
    ck_ok(scan(), err);
    put("big.txt", "");
    ck_fails(scan(), err, SPK_E_LIMIT, "sample \"big\": 1073742336 bytes in 2 files");
}
END_TEST

START_TEST(unreadable_folders_are_errors)
{
    char path[5000];
    put("a/x.jpg", "");
    put("locked/y.jpg", "");
    snprintf(path, sizeof path, "%s/locked", root);
    ck_assert_int_eq(chmod(path, 0), 0);
    if (access(path, R_OK) != 0) /* root may read it all the same */
        ck_fails(scan(), err, SPK_E_PERMISSION, "SRC/locked: Permission denied");
    ck_assert_int_eq(chmod(path, 0755), 0);
}
END_TEST

START_TEST(deep_trees)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY);
    char name[201];
    memset(name, 'd', 200);
    name[200] = '\0';
    int dirs[22];
    dirs[0] = fd;
    for (int i = 1; i < 22; i++) {
        ck_assert_int_eq(mkdirat(dirs[i - 1], name, 0755), 0);
        dirs[i] = openat(dirs[i - 1], name, O_RDONLY | O_DIRECTORY);
    }
    int f = openat(dirs[20], "x.jpg", O_CREAT | O_WRONLY, 0644); /* 20 * 201 + 5 = 4025 bytes */
    close(f);
    ck_fails(scan(), err, SPK_E_LIMIT, "path of 4220 bytes: longer than the limit of 4095");
    ck_assert_int_eq(unlinkat(dirs[20], name, AT_REMOVEDIR), 0);
    ck_ok(scan(), err);
    ck_assert_uint_eq(in.samples_n, 1);
    unlinkat(dirs[20], "x.jpg", 0);
    for (int i = 20; i > 0; i--)
        unlinkat(dirs[i - 1], name, AT_REMOVEDIR);
    for (int i = 0; i < 22; i++)
        close(dirs[i]);
}
END_TEST

START_TEST(odd_names)
{
    static const char *const names[] = {"a/n\nl.jpg",  "a/\xff\xfe.jpg", "a/x # ? ; % { }.jpg",
                                        "__u/__v.jpg", ".h/.g.jpg",      "c d/e.f/g.jpg"};
    for (size_t i = 0; i < 6; i++)
        put(names[i], "");
    ck_ok(scan(), err);
    ck_assert_uint_eq(in.samples_n, 6);
    ck_assert_uint_eq(in.classes_n, 4);
    ck_assert_str_eq(in.classes[0], ".h");
    ck_assert_uint_eq(in.unlabelled, 0);
    put("\xe9/x.jpg", "");
    ck_ok(scan(), err);
    ck_assert_str_eq(in.classes[4], "%e9");
}
END_TEST

static int cancel(void *ctx, uint64_t files)
{
    (void)ctx;
    (void)files;
    return 1;
}

START_TEST(the_hook_cancels)
{
    spk_input_hooks hooks = {.on_files = cancel};
    put("a.jpg", "");
    int fd = open(root, O_RDONLY | O_DIRECTORY);
    ck_fails(spk_input_scan(&in, fd, "SRC", &o, 0, 0, &hooks, &err), err, SPK_E_CANCELLED, "cancelled");
    close(fd);
}
END_TEST

START_TEST(many_files_come_out_in_order)
{
    char path[64];
    for (int i = 0; i < 3000; i++) {
        int x = i * 7919 % 3000;
        snprintf(path, sizeof path, "c%d/common_prefix_%04d%s.%s", x % 7, x, x % 3 ? "" : "_longer_tail", "jpg");
        put(path, "");
    }
    ck_ok(scan(), err);
    ck_assert_uint_eq(in.samples_n, 3000);
    for (size_t i = 1; i < in.samples_n; i++)
        ck_assert_int_lt(strcmp(spk_input_str(&in, in.samples[i - 1].key), spk_input_str(&in, in.samples[i].key)), 0);
    for (size_t i = 0; i < in.samples_n; i++)
        ck_assert_int_eq(in.samples[i].label, spk_input_str(&in, in.samples[i].key)[1] - '0');
}
END_TEST

static void add_all(Suite *s, const char *name, void (*before)(void))
{
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, before, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, class_tree);
    tcase_add_test(t, an_image_on_top_means_no_classes);
    tcase_add_test(t, files_of_one_stem_are_one_sample);
    tcase_add_test(t, where_all_have_labels_folders_are_no_classes);
    tcase_add_test(t, equal_fields_move_out);
    tcase_add_test(t, a_moved_file_never_meets_its_stem);
    tcase_add_test(t, case_twins_get_hashes);
    tcase_add_test(t, equal_keys_are_refused);
    tcase_add_test(t, junk_and_special_files_are_counted);
    tcase_add_test(t, links_are_followed_on_request);
    tcase_add_test(t, filters_and_limit);
    tcase_add_test(t, nothing_to_pack);
    tcase_add_test(t, the_target_inside_is_refused);
    tcase_add_test(t, a_file_beyond_the_limit);
    tcase_add_test(t, unreadable_folders_are_errors);
    tcase_add_test(t, deep_trees);
    tcase_add_test(t, odd_names);
    tcase_add_test(t, the_hook_cancels);
    tcase_add_test(t, many_files_come_out_in_order);
    suite_add_tcase(s, t);
}

static Suite *suite(void)
{
    Suite *s = suite_create("pack/input: trees");
    add_all(s, "alone", setup);
    add_all(s, "walkers", setup_walkers);
    return s;
}

CHECK_MAIN(suite)
