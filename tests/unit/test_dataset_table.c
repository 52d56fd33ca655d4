/* dataset/table_*.c: what is written is read back, anything else is refused with line and column. */
#include "check_main.h"

#include "base/hash.h"
#include "dataset/table.h"

#define HEX64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define ROW "t-00112233-000000.tar.zst\t3\t2\t4000\t5120\t3000\t" HEX64 "\n"

static spk_status rewrite(void *ctx, const spk_table_row *row, spk_error *err)
{
    return spk_table_add(ctx, row, err);
}

static spk_status parse(const char *text, size_t n, spk_error *err)
{
    spk_buf out = {0};
    char *copy = malloc(n + 1); /* its own block, so that a read too far is seen */
    memcpy(copy, text, n);
    spk_status status = spk_table_parse(copy, n, rewrite, &out, err);
    free(copy);
    spk_buf_free(&out);
    return status;
}

START_TEST(rows_round_trip_in_any_pieces)
{
    static const char text[] = SPK_TABLE_HEADER ROW
        "sub/a.b-c_D\t4294967295\t1\t9007199254740992\t9007199254740992\t9007199254740991\t" HEX64 "\n" ROW;
    spk_error err;
    spk_error_clear(&err);
    for (size_t step = 1; step < sizeof text; step += step < 16 ? 1 : 37) {
        spk_buf out = {0};
        spk_table_parser p = {rewrite, &out, 0};
        size_t at = 0, end = 0;
        ck_ok(spk_table_begin(&out, &err), err);
        while (end < sizeof text - 1) {
            size_t used = 0;
            end = end + step < sizeof text - 1 ? end + step : sizeof text - 1;
            ck_ok(spk_table_feed(&p, text + at, end - at, &used, &err), err);
            at += used;
        }
        ck_ok(spk_table_end(&p, end - at, &err), err);
        ck_assert_uint_eq(out.len, sizeof text - 1);
        ck_assert_mem_eq(out.data, text, out.len);
        spk_buf_free(&out);
    }
}
END_TEST

static const struct bad {
    const char *from, *to, *message;
} bad[] = {
    {"\t4000\t", "\t12x\t", "line 2: column \"bytes\": \"12x\" is not a number"},
    {"\t4000\t", "\t+4000\t", "line 2: column \"bytes\": \"+4000\" is not a number"},
    {"\t4000\t", "\t-1\t", "line 2: column \"bytes\": \"-1\" is not a number"},
    {"\t4000\t", "\t04000\t", "line 2: column \"bytes\": \"04000\" is not a number"},
    {"\t4000\t", "\t\t", "line 2: column \"bytes\": \"\" is not a number"},
    {"\t4000\t", "\t 4000\t", "line 2: column \"bytes\": \" 4000\" is not a number"},
    {"\t4000\t", "\t9007199254740993\t", "\"9007199254740993\" is not from 1 to 9007199254740992"},
    {"\t4000\t", "\t18446744073709551616000\t", "is not from 1 to 9007199254740992"},
    {"\t4000\t", "\t0\t", "column \"bytes\": \"0\" is not from 1 to"},
    {"\t3\t2\t", "\t0\t2\t", "column \"samples\": \"0\" is not from 1 to 4294967295"},
    {"\t3\t2\t", "\t4294967296\t2\t", "column \"samples\": \"4294967296\" is not from 1 to 4294967295"},
    {"\t3\t2\t", "\t3\t4\t", "column \"frames\": \"4\" is not from 1 to 3"},
    {"\t3\t2\t", "\t4000000000\t134217728\t", "column \"frames\": \"134217728\" is not from 1 to 134217727"},
    {"\t3000\t", "\t4000\t", "column \"index_offset\": \"4000\" is not from 1 to 3999"},
    {"\t3000\t", "\t3000\t3000\t", "line 2: 8 columns, expected 7"},
    {"\t3000\t", "\t", "line 2: 6 columns, expected 7"},
    {"\t00112233", "\t0011223G", "column \"tail_sha256\": \"0011223G"},
    {"ddeeff\n", "ddeef\n", "column \"tail_sha256\": \"00112233"},
    {"ddeeff\n", "ddeeff\r\n", "is not 64 lower-case hex digits"},
    {"t-0", "../t-0", "column \"path\": \"../t-00112233-000000.tar.zst\" has a \".\" or \"..\" component"},
    {"t-0", "a/./t-0", "has a \".\" or \"..\" component"},
    {"t-0", "/t-0", "is absolute"},
    {"t-0", "a//t-0", "has an empty component"},
    {"t-0", "a b-0", "has a byte outside"},
    {"t-00112233-000000.tar.zst", "", "column \"path\": \"\" is empty"},
    {"#path", "path", "line 1: not the header of a shard table"},
};

START_TEST(what_is_wrong_is_told)
{
    static const char good[] = SPK_TABLE_HEADER ROW;
    const char *at = strstr(good, bad[_i].from);
    char text[2000];
    spk_error err;
    ck_assert_ptr_nonnull(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, bad[_i].to, at + strlen(bad[_i].from));
    ck_fails(parse(text, strlen(text), &err), err, SPK_E_FORMAT, bad[_i].message);
}
END_TEST

START_TEST(cut_tables_are_refused)
{
    static const char good[] = SPK_TABLE_HEADER ROW;
    spk_error err;
    size_t header = strlen(SPK_TABLE_HEADER);
    for (size_t n = 0; n < sizeof good - 1; n++)
        if (n != header)
            ck_fails(parse(good, n, &err), err, SPK_E_FORMAT, "line ");
    ck_fails(parse("", 0, &err), err, SPK_E_FORMAT, "line 1: missing");
    ck_fails(parse(good, sizeof good - 2, &err), err, SPK_E_FORMAT, "line 2: no newline at its end");
}
END_TEST

START_TEST(long_lines_and_paths_are_refused)
{
    char text[8192];
    spk_error err;
    size_t header = strlen(SPK_TABLE_HEADER);
    memset(text, 'a', sizeof text);
    memcpy(text, SPK_TABLE_HEADER, header);
    ck_fails(parse(text, sizeof text, &err), err, SPK_E_FORMAT, "line 2: longer than 1024 bytes");
    snprintf(text + header + 256, sizeof text - header - 256, "%s", strchr(ROW, '\t'));
    ck_fails(parse(text, strlen(text), &err), err, SPK_E_FORMAT, "is longer than 255 bytes");
    ck_assert_uint_lt(strlen(err.text), 300);
    spk_error_clear(&err);
    memmove(text + header, text + header + 1, strlen(text + header));
    ck_ok(parse(text, strlen(text), &err), err);
}
END_TEST

START_TEST(bad_paths_are_not_written)
{
    spk_buf out = {0};
    spk_table_row row = {.path = "../x", .samples = 1};
    spk_error err;
    ck_fails(spk_table_add(&out, &row, &err), err, SPK_E_INVALID, "shard path \"../x\" has a");
    ck_assert_uint_eq(out.len, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("dataset/table");
    TCase *c = tcase_create("table");
    tcase_add_test(c, rows_round_trip_in_any_pieces);
    tcase_add_loop_test(c, what_is_wrong_is_told, 0, (int)(sizeof bad / sizeof bad[0]));
    tcase_add_test(c, cut_tables_are_refused);
    tcase_add_test(c, long_lines_and_paths_are_refused);
    tcase_add_test(c, bad_paths_are_not_written);
    suite_add_tcase(s, c);
    return s;
}

CHECK_MAIN(suite)
