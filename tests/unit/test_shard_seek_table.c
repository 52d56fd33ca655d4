/* shard/seek_table: round trip and every refusal. */
#include "check_main.h"

#include "base/bytes.h"
#include "shard/format.h"
#include "shard/seek_table.h"

static const spk_seek_entry two[] = {{1000, 4096, 0x12345678}, {77, 0, SPK_SEEK_EMPTY_CHECKSUM}};
#define TWO_FILE (1077 + 17 + 24)

static void encode(spk_buf *b, const spk_seek_entry *e, size_t n)
{
    spk_error err;
    ck_ok(spk_seek_table_encode(b, e, n, &err), err);
    ck_assert_uint_eq(b->len, spk_seek_table_bytes(n));
}

START_TEST(tables_round_trip)
{
    spk_buf b = {0};
    spk_error err;
    uint64_t count = 0;
    size_t n = 0;
    spk_seek_entry *e = NULL;
    encode(&b, two, 2);
    ck_assert_uint_eq(spk_le32_load(b.data), SPK_SEEK_FRAME_MAGIC);
    ck_assert_uint_eq(spk_le32_load(b.data + 4), 33);
    ck_ok(spk_seek_footer_parse(b.data + b.len - 9, TWO_FILE, &count, &err), err);
    ck_assert_uint_eq(count, 2);
    ck_ok(spk_seek_table_parse(b.data, b.len, TWO_FILE, &e, &n, &err), err);
    ck_assert_uint_eq(n, 2);
    ck_assert_mem_eq(e, two, sizeof two);
    free(e);
    spk_buf_free(&b);
}
END_TEST

START_TEST(footers_are_told_apart)
{
    uint8_t f[9] = {2, 0, 0, 0, 0x80, 0xB1, 0xEA, 0x92, 0x8F};
    uint64_t n = 0;
    spk_error err;
    ck_ok(spk_seek_footer_parse(f, 1000, &n, &err), err);
    ck_fails(spk_seek_footer_parse(f, 40, &n, &err), err, SPK_E_FORMAT, "2 entries need 41 bytes, the file has 40");
    f[4] = 0;
    ck_fails(spk_seek_footer_parse(f, 1000, &n, &err), err, SPK_E_FORMAT, "has no checksums");
    for (int bit = 0; bit < 7; bit++) {
        f[4] = (uint8_t)(0x80 | 1 << bit);
        ck_fails(spk_seek_footer_parse(f, 1000, &n, &err), err, SPK_E_FORMAT, "reserved bits");
    }
    f[4] = 0x80;
    spk_le32_store(f, 0x8000000);
    ck_fails(spk_seek_footer_parse(f, 1000, &n, &err), err, SPK_E_FORMAT, "134217728 entries need 1610612753 bytes");
    spk_le32_store(f, 0x8000001);
    ck_fails(spk_seek_footer_parse(f, UINT64_MAX, &n, &err), err, SPK_E_LIMIT, "at most 134217728 are allowed");
    spk_le32_store(f, 0xFFFFFFFF);
    ck_fails(spk_seek_footer_parse(f, UINT64_MAX, &n, &err), err, SPK_E_LIMIT, "4294967295 entries");
    f[8] ^= 1;
    ck_fails(spk_seek_footer_parse(f, 1000, &n, &err), err, SPK_E_FORMAT,
             "no seek table at the end: truncated, or not a shardpack shard");
    memset(f, 0, sizeof f);
    ck_fails(spk_seek_footer_parse(f, 1000, &n, &err), err, SPK_E_FORMAT, "ends with zeros");
}
END_TEST

START_TEST(tables_must_add_up)
{
    spk_buf b = {0};
    spk_error err;
    size_t n = 0;
    spk_seek_entry *e = NULL;
    encode(&b, two, 2);
    ck_fails(spk_seek_table_parse(b.data, b.len, TWO_FILE + 5, &e, &n, &err), err, SPK_E_FORMAT,
             "accounts for 1118 of the file's 1123 bytes: 5 stand in front of them (two shards concatenated?)");
    ck_fails(spk_seek_table_parse(b.data, b.len, TWO_FILE - 1, &e, &n, &err), err, SPK_E_FORMAT, "do not fit");
    ck_fails(spk_seek_table_parse(b.data, 16, TWO_FILE, &e, &n, &err), err, SPK_E_FORMAT, "16 bytes are too few");
    ck_fails(spk_seek_table_parse(b.data + 12, b.len - 12, TWO_FILE, &e, &n, &err), err, SPK_E_FORMAT,
             "do not fill its 29 bytes");
    b.data[0] ^= 1;
    ck_fails(spk_seek_table_parse(b.data, b.len, TWO_FILE, &e, &n, &err), err, SPK_E_FORMAT, "does not begin where");
    b.data[0] ^= 1;
    b.data[4] ^= 1;
    ck_fails(spk_seek_table_parse(b.data, b.len, TWO_FILE, &e, &n, &err), err, SPK_E_FORMAT,
             "header says 32 bytes, footer 33");
    ck_assert_ptr_null(e);
    spk_buf_free(&b);
    /* Sums that would wrap in 32 bits. */
    spk_seek_entry big[8];
    for (size_t i = 0; i < 8; i++)
        big[i] = (spk_seek_entry){0x80000000u, 512, 0};
    spk_buf w = {0};
    encode(&w, big, 8);
    ck_fails(spk_seek_table_parse(w.data, w.len, w.len, &e, &n, &err), err, SPK_E_FORMAT, "17179869184 bytes");
    spk_buf_free(&w);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("shard/seek_table");
    TCase *t = tcase_create("seek_table");
    tcase_add_test(t, tables_round_trip);
    tcase_add_test(t, footers_are_told_apart);
    tcase_add_test(t, tables_must_add_up);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
