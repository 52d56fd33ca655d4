/* base/: error text, UTF-8, buffers, varints, hex, SHA-256, Philox. */
#include "check_main.h"

#include "base/buf.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>

START_TEST(error_text_is_one_printable_line)
{
    spk_error err;
    spk_error_clear(&err);
    ck_assert_int_eq(spk_error_set(&err, SPK_E_FORMAT, "file \"%s\": bad", "a\nb\xff\x1b[31m"), SPK_E_FORMAT);
    ck_assert_str_eq(err.text, "file \"a\\x0ab\\xff\\x1b[31m\": bad");
    spk_error_prefix(&err, "frame %d", 7);
    ck_assert_str_eq(err.text, "frame 7: file \"a\\x0ab\\xff\\x1b[31m\": bad");
    ck_assert_int_eq(spk_error_sys(&err, ENOENT, "x"), SPK_E_NOT_FOUND);
    ck_assert_str_eq(err.text, "x: No such file or directory");
    ck_assert_int_eq(err.sys_errno, ENOENT);
    ck_assert_int_eq(spk_error_set(NULL, SPK_E_IO, "no record"), SPK_E_IO);
}
END_TEST

START_TEST(long_error_text_keeps_object_and_cause)
{
    char name[3 * SPK_ERROR_TEXT];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    spk_error err;
    spk_error_clear(&err);
    spk_error_set(&err, SPK_E_FORMAT, "cause at byte 73400320");
    spk_error_prefix(&err, "%.900s", name);
    spk_error_prefix(&err, "shard.tar.zst: %.900s", name);
    ck_assert_uint_lt(strlen(err.text), SPK_ERROR_TEXT);
    ck_assert_ptr_eq(strstr(err.text, "shard.tar.zst: n"), err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "cause at byte 73400320"));
}
END_TEST

/* Paths are longer than any message, and control bytes in them quadruple. */
START_TEST(cause_survives_paths_of_any_length)
{
    spk_error err;
    char path[70000];
    for (size_t n = 400; n < sizeof path; n = n * 5 / 4) {
        for (int c = 0; c < 3; c++) {
            memset(path, "d\001\xff"[c], n);
            path[n] = '\0';
            ck_assert_int_eq(spk_error_set(&err, SPK_E_CHANGED, "src/%s: changed: now %d", path, 17), SPK_E_CHANGED);
            ck_assert(strncmp(err.text, "src/", 4) == 0 && strstr(err.text, ": changed: now 17"));
            ck_assert_int_eq(spk_error_at(&err, SPK_E_FORMAT, 9, "src/%s: bad byte 9", path), SPK_E_FORMAT);
            ck_assert(strncmp(err.text, "src/", 4) == 0 && strstr(err.text, ": bad byte 9"));
            ck_assert_int_eq(spk_error_sys(&err, ENOENT, "src/%s: vanished", path), SPK_E_NOT_FOUND);
            ck_assert(strncmp(err.text, "src/", 4) == 0 && strstr(err.text, ": vanished: No such file"));
            ck_assert_int_eq(spk_error_set(&err, SPK_E_FORMAT, "not an image"), SPK_E_FORMAT);
            spk_error_prefix(&err, "src/%s", path);
            ck_assert(strncmp(err.text, "src/", 4) == 0 && strstr(err.text, ": not an image"));
            ck_assert_uint_lt(strlen(err.text), SPK_ERROR_TEXT);
            ck_assert(spk_utf8_valid(err.text, strlen(err.text)));
        }
    }
}
END_TEST

/* The longest texts on both sides, one byte more each time: under a sanitizer nothing is written behind a buffer. */
START_TEST(a_full_text_takes_prefixes_of_any_length)
{
    spk_error err;
    char path[3 * SPK_ERROR_TEXT];
    for (size_t n = 1; n < sizeof path; n++) {
        memset(path, 'd', sizeof path);
        path[sizeof path - 1] = '\0';
        ck_assert_int_eq(spk_error_set(&err, SPK_E_IO, "%s: cause", path), SPK_E_IO);
        ck_assert_uint_eq(strlen(err.text), SPK_ERROR_TEXT - 1);
        path[n] = '\0';
        spk_error_prefix(&err, "%s", path);
        ck_assert(strlen(err.text) == SPK_ERROR_TEXT - 1 && strstr(err.text, ": cause"));
    }
}
END_TEST

START_TEST(utf8_is_told_from_other_bytes)
{
    ck_assert(spk_utf8_valid("h\xc3\xa9llo \xf0\x9f\x98\x80", 11));
    ck_assert(!spk_utf8_valid("\xc0\x80", 2));     /* overlong */
    ck_assert(!spk_utf8_valid("\xed\xa0\x80", 3)); /* surrogate */
    ck_assert(!spk_utf8_valid("\xf4\x90\x80\x80", 4));
    ck_assert(!spk_utf8_valid("\xe2\x82", 2));
    char out[64];
    spk_utf8_percent(out, sizeof out, "100% \xc3\xa9\xff\n", 9);
    ck_assert_str_eq(out, "100%25 \xc3\xa9%ff%0a");
    ck_assert_uint_eq(spk_utf8_escape(out, 5, "abcdefgh", 8), 4);
    ck_assert_str_eq(out, "abcd");
    ck_assert_uint_eq(spk_utf8_escape(out, 5, "ab\n", 3), 2);
}
END_TEST

START_TEST(varints_round_trip_and_reject_other_forms)
{
    uint64_t values[] = {0, 1, 127, 128, 300, 1u << 21, UINT32_MAX, UINT64_MAX};
    spk_buf b = {0};
    spk_error err;
    for (size_t i = 0; i < 8; i++)
        ck_ok(spk_buf_varint(&b, values[i], &err), err);
    spk_cursor c = {b.data, b.data + b.len};
    uint64_t v = 0;
    for (size_t i = 0; i < 8; i++) {
        ck_assert(spk_cursor_varint(&c, &v));
        ck_assert_uint_eq(v, values[i]);
    }
    ck_assert(!spk_cursor_varint(&c, &v));
    spk_buf_free(&b);
    static const uint8_t padded[] = {0x80, 0x00}, cut[] = {0x80};
    static const uint8_t large[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    c = (spk_cursor){padded, padded + sizeof padded};
    ck_assert(!spk_cursor_varint(&c, &v));
    c = (spk_cursor){cut, cut + sizeof cut};
    ck_assert(!spk_cursor_varint(&c, &v));
    c = (spk_cursor){large, large + sizeof large};
    ck_assert(!spk_cursor_varint(&c, &v));
}
END_TEST

START_TEST(sha256_and_hex_match_known_answers)
{
    /* FIPS 180-4 example "abc". */
    uint8_t digest[32], back[32];
    char hex[SPK_SHA256_HEX];
    spk_error err;
    ck_ok(spk_sha256_once("abc", 3, digest, &err), err);
    spk_hex(hex, digest, 32);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert(spk_unhex(back, 32, hex, 64));
    ck_assert_mem_eq(back, digest, 32);
    ck_assert(!spk_unhex(back, 32, hex, 63));
    hex[0] = 'B';
    ck_assert(!spk_unhex(back, 32, hex, 64));
}
END_TEST

START_TEST(philox_matches_the_published_answers)
{
    /* Known-answer vectors of the Random123 distribution for philox4x32-10. */
    const uint32_t zero[4] = {0}, ones[4] = {~0u, ~0u, ~0u, ~0u};
    const uint32_t pi[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, pi_key[2] = {0xa4093822, 0x299f31d0};
    uint32_t out[4];
    spk_philox(zero, zero, out);
    ck_assert_uint_eq(out[0], 0x6627e8d5u);
    ck_assert_uint_eq(out[3], 0x9b00dbd8u);
    spk_philox(ones, ones, out);
    ck_assert_uint_eq(out[0], 0x408f276du);
    ck_assert_uint_eq(out[3], 0x6d5451fdu);
    spk_philox(pi, pi_key, out);
    ck_assert_uint_eq(out[0], 0xd16cfe09u);
    ck_assert_uint_eq(out[1], 0x94fdccebu);
    ck_assert_uint_eq(out[2], 0x5001e420u);
    ck_assert_uint_eq(out[3], 0x24126ea1u);
}
END_TEST

START_TEST(bounded_numbers_are_in_range_and_cover_it)
{
    spk_rng r = {42, 1, 0};
    unsigned seen[7] = {0};
    for (int i = 0; i < 7000; i++)
        seen[spk_rng_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        ck_assert(seen[i] > 800 && seen[i] < 1200);
    ck_assert_uint_eq(spk_rng_below(&r, 1), 0);
    ck_assert_int_ge(spk_cpu_quota(), 1);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("base");
    TCase *t = tcase_create("base");
    tcase_add_test(t, error_text_is_one_printable_line);
    tcase_add_test(t, long_error_text_keeps_object_and_cause);
    tcase_add_test(t, a_full_text_takes_prefixes_of_any_length);
    tcase_add_test(t, cause_survives_paths_of_any_length);
    tcase_add_test(t, utf8_is_told_from_other_bytes);
    tcase_add_test(t, varints_round_trip_and_reject_other_forms);
    tcase_add_test(t, sha256_and_hex_match_known_answers);
    tcase_add_test(t, philox_matches_the_published_answers);
    tcase_add_test(t, bounded_numbers_are_in_range_and_cover_it);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
