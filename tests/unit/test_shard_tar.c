/* shard/tar and shard/names: headers out and in, each refusal, the rules on keys and fields. */
#include "check_main.h"

#include "shard/tar.h"

static void refresh_checksum(uint8_t h[SPK_TAR_BLOCK])
{
    unsigned sum = 0;
    memset(h + 148, ' ', 8);
    for (unsigned i = 0; i < SPK_TAR_BLOCK; i++)
        sum += h[i];
    char text[8];
    snprintf(text, sizeof text, "%06o", sum);
    memcpy(h + 148, text, 7);
    h[155] = ' ';
}

START_TEST(headers_round_trip)
{
    const struct {
        const char *key, *field;
        uint64_t size;
    } cases[] = {{"a", "b", 0},
                 {"dir/sub-dir/IMG_1", "seg.png", 123456},
                 {"123456789012345678901234567890123456789012345678901234567890123456789012",
                  "123456789012345678901234567", 077777777777}};
    for (size_t i = 0; i < 3; i++) {
        uint8_t h[SPK_TAR_BLOCK];
        spk_tar_entry e;
        spk_error err;
        char name[128];
        snprintf(name, sizeof name, "%s.%s", cases[i].key, cases[i].field);
        ck_ok(spk_tar_header(h, cases[i].key, cases[i].field, cases[i].size, &err), err);
        ck_ok(spk_tar_parse(h, &e, &err), err);
        ck_assert_str_eq(e.name, name);
        ck_assert_uint_eq(e.size, cases[i].size);
    }
}
END_TEST

START_TEST(header_bytes_are_fixed)
{
    uint8_t h[SPK_TAR_BLOCK];
    spk_error err;
    ck_ok(spk_tar_header(h, "a", "jpg", 13, &err), err);
    ck_assert_mem_eq(h, "a.jpg\0", 6);
    ck_assert_mem_eq(h + 100, "0000444\0000000000\0000000000\00000000000015\00000000000000\0", 48);
    ck_assert_mem_eq(h + 156, "0", 1);
    ck_assert_mem_eq(h + 257, "ustar\00000", 8);
    ck_assert_mem_eq(h + 329, "0000000\0000000000", 16);
    refresh_checksum(h);
    spk_tar_entry e;
    ck_ok(spk_tar_parse(h, &e, &err), err);
}
END_TEST

START_TEST(writing_refuses_what_reading_would)
{
    uint8_t h[SPK_TAR_BLOCK];
    spk_error err;
    ck_fails(spk_tar_header(h, "a.b", "jpg", 1, &err), err, SPK_E_INVALID, "key \"a.b\" holds a byte outside");
    ck_fails(spk_tar_header(h, "a", "JPG", 1, &err), err, SPK_E_INVALID, "field \"JPG\" holds a byte outside");
    ck_fails(spk_tar_header(h, "a", "jpg", 077777777777ull + 1, &err), err, SPK_E_LIMIT, "at most 8589934591");
}
END_TEST

START_TEST(other_dialects_are_refused)
{
    const struct {
        unsigned at;
        const char *bytes;
        unsigned len;
        const char *text;
    } cases[] = {
        {257, "ustar  ", 8, "not a ustar header"},
        {156, "2", 1, "type is not that of a regular file"},
        {156, "\0", 1, "type is not that of a regular file"},
        {156, "x", 1, "type is not that of a regular file"},
        {100, "0000644", 8, "mode is not"},
        {108, "0000001", 8, "owner number"},
        {116, "0001750", 8, "group number"},
        {124, "0000000001 ", 11, "size is not 11 octal digits"},
        {124, "\x80", 1, "size is not 11 octal digits"},
        {136, "14371573043", 12, "time is not 0"},
        {157, "target", 6, "link name is in use"},
        {265, "root", 4, "owner name"},
        {297, "root", 4, "group name"},
        {329, "0000001", 8, "device numbers"},
        {345, "dir", 3, "prefix is in use"},
        {511, "x", 1, "behind the header's fields"},
        {0, "../x.jpg", 9, "key is empty"}, /* split at the first dot */
        {0, "/x.jpg", 7, "key has an empty component"},
        {0, "a__/__b.jpg", 12, "starts with \"__\""},
        {0, "nofield", 8, "name has no field"},
        {0, "a.jpg\0x", 7, "bytes behind the name"},
        {0, "a.JPG", 6, "field holds a byte outside"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t h[SPK_TAR_BLOCK];
        spk_tar_entry e;
        spk_error err;
        ck_ok(spk_tar_header(h, "a", "jpg", 13, &err), err);
        memcpy(h + cases[i].at, cases[i].bytes, cases[i].len);
        refresh_checksum(h);
        ck_fails(spk_tar_parse(h, &e, &err), err, SPK_E_FORMAT, cases[i].text);
    }
}
END_TEST

START_TEST(every_flipped_bit_of_a_header_is_seen)
{
    uint8_t h[SPK_TAR_BLOCK];
    spk_tar_entry e;
    spk_error err;
    ck_ok(spk_tar_header(h, "key", "jpg", 13, &err), err);
    for (unsigned bit = 0; bit < 8 * SPK_TAR_BLOCK; bit++) {
        h[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_int_eq(spk_tar_parse(h, &e, &err), SPK_E_FORMAT);
        h[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    memset(h, 0, sizeof h);
    ck_assert_int_eq(spk_tar_parse(h, &e, &err), SPK_END);
}
END_TEST

START_TEST(checksum_must_have_one_form)
{
    uint8_t h[SPK_TAR_BLOCK];
    spk_tar_entry e;
    spk_error err;
    ck_ok(spk_tar_header(h, "a", "jpg", 13, &err), err);
    h[155] = 0;
    ck_fails(spk_tar_parse(h, &e, &err), err, SPK_E_FORMAT, "checksum is written in another form");
    h[150] ^= 1;
    ck_fails(spk_tar_parse(h, &e, &err), err, SPK_E_FORMAT, "checksum does not match");
}
END_TEST

START_TEST(keys_and_fields_follow_the_rules)
{
    const char *good_keys[] = {"a", "A-b_c/9", "_a", "a__b", "a/_b", "-"};
    const char *bad_keys[] = {"", "/a", "a/", "a//b", "__a", "a/__b", "a.b", "a b", "\xc3\xa9", "a\n", "..", "__"};
    const char *good_fields[] = {"jpg", "seg.png", "_a", "0", "a_.b"};
    const char *bad_fields[] = {"", ".jpg", "jpg.", "a..b", "__a", "JPG", "a-b", "a/b", "."};
    for (size_t i = 0; i < sizeof good_keys / sizeof *good_keys; i++)
        ck_assert_msg(!spk_key_problem(good_keys[i], strlen(good_keys[i])), "%s", good_keys[i]);
    for (size_t i = 0; i < sizeof bad_keys / sizeof *bad_keys; i++)
        ck_assert_msg(spk_key_problem(bad_keys[i], strlen(bad_keys[i])), "%s", bad_keys[i]);
    for (size_t i = 0; i < sizeof good_fields / sizeof *good_fields; i++)
        ck_assert_msg(!spk_field_problem(good_fields[i], strlen(good_fields[i])), "%s", good_fields[i]);
    for (size_t i = 0; i < sizeof bad_fields / sizeof *bad_fields; i++)
        ck_assert_msg(spk_field_problem(bad_fields[i], strlen(bad_fields[i])), "%s", bad_fields[i]);
    char longest[SPK_KEY_MAX + 1];
    memset(longest, 'k', sizeof longest);
    ck_assert_ptr_null(spk_key_problem(longest, SPK_KEY_MAX));
    ck_assert_ptr_nonnull(spk_key_problem(longest, SPK_KEY_MAX + 1));
    ck_assert_ptr_null(spk_field_problem(longest, SPK_FIELD_MAX));
    ck_assert_ptr_nonnull(spk_field_problem(longest, SPK_FIELD_MAX + 1));
    ck_assert_ptr_nonnull(spk_key_problem("a\0b", 3));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("shard/tar");
    TCase *t = tcase_create("tar");
    tcase_add_test(t, headers_round_trip);
    tcase_add_test(t, header_bytes_are_fixed);
    tcase_add_test(t, writing_refuses_what_reading_would);
    tcase_add_test(t, other_dialects_are_refused);
    tcase_add_test(t, every_flipped_bit_of_a_header_is_seen);
    tcase_add_test(t, checksum_must_have_one_form);
    tcase_add_test(t, keys_and_fields_follow_the_rules);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
