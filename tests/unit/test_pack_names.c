/* pack/names, pack/filter: keys, fields, junk, kinds, splits, globs. */
#include "check_main.h"

#include "pack/filter.h"
#include "pack/input.h"
#include "pack/names.h"
#include "shard/tar.h"

static const char *key_of(const char *stem)
{
    static char key[SPK_KEY_MAX + 1];
    spk_error err;
    ck_ok(spk_name_key(stem, strlen(stem), SPK_KEY_PLAIN, key, &err), err);
    ck_assert_msg(!spk_key_problem(key, strlen(key)), "key \"%s\"", key);
    return key;
}

static const char *field_of(const char *path, spk_stem rule)
{
    static char field[SPK_FIELD_MAX + 1];
    size_t n = strlen(path);
    spk_name_field(path, n, spk_name_stem(path, n, rule), field);
    ck_assert_msg(!spk_field_problem(field, strlen(field)), "field \"%s\"", field);
    return field;
}

static void has_stem(const char *path, spk_stem rule, const char *stem)
{
    size_t n = spk_name_stem(path, strlen(path), rule);
    ck_assert_msg(n == strlen(stem) && memcmp(path, stem, n) == 0, "%s: %.*s", path, (int)n, path);
}

START_TEST(stems_end_at_a_dot_of_the_base_name)
{
    has_stem("a/b.jpg", SPK_STEM_LAST_DOT, "a/b");
    has_stem("a.d/b", SPK_STEM_LAST_DOT, "a.d/b");
    has_stem("a/.hidden", SPK_STEM_LAST_DOT, "a/.hidden");
    has_stem("a/.hidden.png", SPK_STEM_LAST_DOT, "a/.hidden");
    has_stem("b.seg.png", SPK_STEM_LAST_DOT, "b.seg");
    has_stem("b.seg.png", SPK_STEM_FIRST_DOT, "b");
    has_stem(".b.seg.png", SPK_STEM_FIRST_DOT, ".b");
    has_stem("x.", SPK_STEM_LAST_DOT, "x");
    has_stem("", SPK_STEM_LAST_DOT, "");
}
END_TEST

START_TEST(fields_are_lower_case_extensions)
{
    ck_assert_str_eq(field_of("a.JPG", SPK_STEM_LAST_DOT), "jpg");
    ck_assert_str_eq(field_of("a.jpeg", SPK_STEM_LAST_DOT), "jpg");
    ck_assert_str_eq(field_of("a.JFIF", SPK_STEM_LAST_DOT), "jpg");
    ck_assert_str_eq(field_of("a", SPK_STEM_LAST_DOT), "bin");
    ck_assert_str_eq(field_of("a.", SPK_STEM_LAST_DOT), "bin");
    ck_assert_str_eq(field_of("a.x-y z", SPK_STEM_LAST_DOT), "x_y_z");
    ck_assert_str_eq(field_of("a.__key__", SPK_STEM_LAST_DOT), "_key__");
    ck_assert_str_eq(field_of("a..seg..JPEG", SPK_STEM_FIRST_DOT), "seg.jpg");
    ck_assert_str_eq(field_of("a...", SPK_STEM_FIRST_DOT), "bin");
    ck_assert_uint_eq(strlen(field_of("a.0123456789012345678901234567890", SPK_STEM_LAST_DOT)), SPK_FIELD_MAX);
    ck_assert_str_eq(field_of("a.abcdefghijklmnopqrstuvwxyz.f", SPK_STEM_FIRST_DOT), "abcdefghijklmnopqrstuvwxyz");
}
END_TEST

START_TEST(clean_keys_stay_and_others_carry_a_hash)
{
    ck_assert_str_eq(key_of("n01/Img-1_x"), "n01/Img-1_x");
    ck_assert_str_eq(key_of("a b"), "a_b-c8687a08aa5d6ed2"); /* SHA-256("a b") */
    ck_assert_uint_eq(strlen(key_of("\xc3\xa9")), 1 + 17);   /* one character, one '_' */
    ck_assert_ptr_eq(strstr(key_of("__x/__y"), "_x/_y-"), key_of("__x/__y"));
    ck_assert_ptr_eq(strstr(key_of("..x"), "_x-"), key_of("..x"));
    ck_assert_ptr_eq(strstr(key_of("/a//b/"), "a/b-"), key_of("/a//b/"));
    ck_assert_uint_eq(key_of("")[0], '-');
    char same[SPK_KEY_MAX + 1], other[SPK_KEY_MAX + 1];
    snprintf(same, sizeof same, "%s", key_of("x.y"));
    snprintf(other, sizeof other, "%s", key_of("x,y"));
    ck_assert_str_ne(same, other);
}
END_TEST

START_TEST(long_keys_are_cut_at_55_bytes)
{
    char stem[400];
    memset(stem, 'k', sizeof stem);
    stem[SPK_KEY_MAX] = '\0';
    ck_assert_str_eq(key_of(stem), stem);
    stem[SPK_KEY_MAX] = 'k';
    stem[SPK_KEY_MAX + 1] = '\0';
    ck_assert_uint_eq(strlen(key_of(stem)), SPK_KEY_MAX);
    stem[54] = '/';
    ck_assert_uint_eq(strlen(key_of(stem)), SPK_KEY_MAX - 1);
    ck_assert_uint_eq(key_of(stem)[54], '-');
}
END_TEST

START_TEST(junk_kinds_and_compression)
{
    ck_assert(spk_name_is_junk("._a.jpg") && spk_name_is_junk(".DS_Store") && spk_name_is_junk("THUMBS.DB"));
    ck_assert(spk_name_is_junk("Desktop.ini") && !spk_name_is_junk("thumbs.db2") && !spk_name_is_junk(".ds"));
    ck_assert_str_eq(spk_field_kind("jpg"), "image");
    ck_assert_str_eq(spk_field_kind("seg.png"), "image");
    ck_assert_str_eq(spk_field_kind("cls"), "label");
    ck_assert_str_eq(spk_field_kind("txt"), "text");
    ck_assert_str_eq(spk_field_kind("json"), "json");
    ck_assert_str_eq(spk_field_kind("npy"), "bytes");
    ck_assert(spk_field_is_compressed("tar.gz") && !spk_field_is_compressed("bmp"));
}
END_TEST

START_TEST(split_positions_are_even_and_fixed)
{
    double sum = 0;
    char stem[32];
    for (int i = 0; i < 10000; i++) {
        double p = spk_split_position(stem, (size_t)snprintf(stem, sizeof stem, "class/%d", i));
        ck_assert(p >= 0 && p < 1);
        sum += p;
    }
    ck_assert(sum > 4850 && sum < 5150);
    ck_assert(spk_split_position("a", 1) == spk_split_position("a", 1));
}
END_TEST

static bool glob(const char *pattern, const char *text)
{
    return spk_glob_match(pattern, strlen(pattern), text, strlen(text));
}

START_TEST(globs)
{
    ck_assert(glob("*.jpg", "a.jpg") && glob("*", "") && !glob("*.jpg", "a.jpeg") && glob("a/*", "a/b/c"));
    ck_assert(glob("a**b", "ab") && glob("*a*b*c", "xaybzc") && !glob("*a*b*c", "xaybz"));
    ck_assert(glob("?", "\xc3\xa9") && glob("?", "\xff") && !glob("?", "") && !glob("?", "ab"));
    ck_assert(glob("[a-c]x", "bx") && !glob("[!a-c]x", "bx") && glob("[^a-c]x", "dx") && glob("[]a]", "]"));
    ck_assert(glob("[\xc3\xa0-\xc3\xbf]", "\xc3\xa9") && glob("[a-]", "-") && glob("[ab", "[ab"));
    ck_assert(glob("\\*", "*") && !glob("\\*", "a") && glob("a\\", "a\\") && glob("\xff*", "\xff\xfe"));
    char text[4001];
    memset(text, 'a', 4000);
    text[4000] = '\0';
    ck_assert(!glob("*a*a*a*a*a*a*a*a*a*a*b", text)); /* would take ages with recursion */
}
END_TEST

START_TEST(filters)
{
    static const char *const include[] = {"*.jpg", "./x/*"}, *const exclude[] = {"bad*", "x/skip/"};
    spk_pack_options o = {.include = include, .include_count = 2, .exclude = exclude, .exclude_count = 2};
    ck_assert(spk_filter_file(&o, "a/b.jpg", 7, 2));
    ck_assert(!spk_filter_file(&o, "a/b.png", 7, 2));
    ck_assert(spk_filter_file(&o, "x/b.png", 7, 2));
    ck_assert(!spk_filter_file(&o, "a/bad.jpg", 9, 2));
    ck_assert(!spk_filter_folder(&o, "x/skip", 6, 2));
    ck_assert(spk_filter_folder(&o, "y/skip", 6, 2));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pack/names");
    TCase *t = tcase_create("all");
    tcase_add_test(t, stems_end_at_a_dot_of_the_base_name);
    tcase_add_test(t, fields_are_lower_case_extensions);
    tcase_add_test(t, clean_keys_stay_and_others_carry_a_hash);
    tcase_add_test(t, long_keys_are_cut_at_55_bytes);
    tcase_add_test(t, junk_kinds_and_compression);
    tcase_add_test(t, split_positions_are_even_and_fixed);
    tcase_add_test(t, globs);
    tcase_add_test(t, filters);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
