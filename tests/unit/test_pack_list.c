/* pack/list_*: rows of CSV, TSV and JSON Lines from memory, a few bytes at a time. */
#include "check_main.h"

#include "pack/list.h"

typedef struct memory {
    const char *p;
    size_t n, step;
} memory;

static ssize_t fill(void *ctx, void *buf, size_t n)
{
    memory *m = ctx;
    n = n < m->n ? n : m->n;
    n = n < m->step ? n : m->step;
    memcpy(buf, m->p, n);
    m->p += n;
    m->n -= n;
    return (ssize_t)n;
}

/* Rows as "number:path:label:json;" or the error's text. */
static const char *rows_n(spk_list_format format, const char *text, size_t n, size_t step)
{
    static char out[4096];
    memory m = {text, n, step};
    spk_error err;
    spk_list *l = NULL;
    spk_list_row row;
    size_t at = 0;
    spk_status status = SPK_OK;
    spk_error_clear(&err);
    ck_ok(spk_list_new(&l, format, fill, &m, &err), err);
    out[0] = '\0';
    while ((status = spk_list_next(l, &row, &err)) == SPK_OK) {
        char number[16];
        snprintf(number, sizeof number, "%d", row.label_number);
        const char *label = row.label == SPK_LABEL_TEXT ? row.label_text : row.label == SPK_LABEL_NUMBER ? number : "";
        at += (size_t)snprintf(out + at, sizeof out - at, "%d:%s:%s:%s;", (int)row.number, row.path, label,
                               row.json ? row.json : "");
    }
    if (status < 0)
        snprintf(out, sizeof out, "%s", err.text);
    spk_list_free(l);
    return out;
}

static void gives(spk_list_format format, const char *text, const char *want)
{
    for (size_t step = 1; step < 100; step += 7)
        ck_assert_str_eq(rows_n(format, text, strlen(text), step), want);
}

static void says(spk_list_format format, const char *text, const char *part)
{
    const char *got = rows_n(format, text, strlen(text), 1000);
    ck_assert_msg(strstr(got, part) != NULL, "\"%s\" lacks \"%s\"", got, part);
}

START_TEST(csv)
{
    gives(SPK_LIST_CSV, "path,label\na.jpg,3\nb.jpg,dog", "2:a.jpg:3:;3:b.jpg:dog:;");
    gives(SPK_LIST_CSV, "\xef\xbb\xbfpath\r\na b.jpg\r\n\r\nc.jpg\r\n", "2:a b.jpg::;4:c.jpg::;");
    gives(SPK_LIST_CSV, "\xef\xbb\xbf\"a\nb\",path\n1,p\n", "2:p::{\"a\\nb\":\"1\"};");
    gives(SPK_LIST_CSV, "\xef\xbb\xbf", "");
    gives(SPK_LIST_CSV, "x,path\n\"q\"\"r\"\"\n,s\",\"p,1\"\n", "2:p,1::{\"x\":\"q\\\"r\\\"\\n,s\"};");
    gives(SPK_LIST_CSV, "path,label,a,b\np,,,\"\"\n", "2:p::{\"a\":\"\",\"b\":\"\"};");
    gives(SPK_LIST_CSV, "path,label\np,007\n", "2:p:7:;");
    gives(SPK_LIST_CSV, "", "");
    gives(SPK_LIST_CSV, "path\n", "");
}
END_TEST

START_TEST(csv_errors)
{
    says(SPK_LIST_CSV, "path,a,b,c\n1,2,3\n", "row 2: 3 columns, the header has 4");
    says(SPK_LIST_CSV, "file,label\n", "row 1: the header has no column \"path\"; its first column is \"file\"");
    says(SPK_LIST_CSV, "path,x,x\n", "row 1: two columns are named \"x\"");
    says(SPK_LIST_CSV, "path\n\"abc\n", "row 2: a quoted cell has no end");
    says(SPK_LIST_CSV, "path\n\"abc\"d\n", "row 2: column 1: text behind a closing quote");
    says(SPK_LIST_CSV, "path\nab\"c\n", "row 2: column 1: a quote inside a cell that is not quoted");
    says(SPK_LIST_CSV, "path,label\na,-1\n", "row 2: label -1: less than 0");
    says(SPK_LIST_CSV, "path,label\na,7.0\n", "row 2: label 7.0: neither a whole number nor a name");
    says(SPK_LIST_TSV, "path\tlabel\na\t-0.5\n", "row 2: label -0.5: neither a whole number nor a name");
    gives(SPK_LIST_CSV, "path,label\np,v1.0\nq,1.0.1\nr,.5\n", "2:p:v1.0:;3:q:1.0.1:;4:r:.5:;");
    says(SPK_LIST_CSV, "path,label\na,2147483648\n", "row 2: label 2147483648: larger than the limit of 2147483647");
    says(SPK_LIST_CSV, "path,x\na,\xff\n", "row 2: column \"x\": not UTF-8");
    ck_assert_str_eq(rows_n(SPK_LIST_CSV, "path\na\0b\n", 9, 9), "row 2: holds a NUL byte");
}
END_TEST

START_TEST(tsv)
{
    gives(SPK_LIST_TSV, "path\tlabel\tn\na\"b\tcat\t\"x\n", "2:a\"b:cat:{\"n\":\"\\\"x\"};");
    says(SPK_LIST_TSV, "path\tlabel\na\n", "row 2: 1 columns, the header has 2");
}
END_TEST

START_TEST(json_lines)
{
    gives(SPK_LIST_JSONL, "{\"path\":\"a\"}\n\n{\"label\": 4, \"path\":\"b\"}\n", "1:a::;3:b:4:;");
    gives(SPK_LIST_JSONL,
          " { \"w\" : 0.10 , \"path\":\"\\u00e9\",\"label\":\"x\", \"o\": {\"path\":[\"}\",\"\\\"\"]} } ",
          "1:\xc3\xa9:x:{\"w\" : 0.10,\"o\": {\"path\":[\"}\",\"\\\"\"]}};");
    gives(SPK_LIST_JSONL, "{\"path\":\"a\",\"label\":null}", "1:a::;");
    gives(SPK_LIST_JSONL, "{\"p\\u0061th\":\"a\",\"z\":[1,2]}", "1:a::{\"z\":[1,2]};");
}
END_TEST

START_TEST(json_errors)
{
    says(SPK_LIST_JSONL, "{\"path\":1}", "row 1: path is not a string");
    says(SPK_LIST_JSONL, "{\"file\":1}", "row 1: no member \"path\"");
    says(SPK_LIST_JSONL, "[1]", "row 1: not a JSON object");
    says(SPK_LIST_JSONL, "{\"path\":\"a\"}\nnope\n", "row 2: bad JSON: ");
    says(SPK_LIST_JSONL, "{\"path\":\"a\",\"path\":\"b\"}", "row 1: bad JSON: ");
    says(SPK_LIST_JSONL, "{\"path\":\"a\",\"label\":1.5}", "label is neither an integer nor a string");
    says(SPK_LIST_JSONL, "{\"path\":\"a\",\"label\":-1}", "label -1: not from 0");
}
END_TEST

START_TEST(long_rows_are_refused)
{
    size_t n = SPK_LIST_ROW_MAX + 100;
    char *text = malloc(n);
    memset(text, 'x', n);
    ck_assert_str_eq(rows_n(SPK_LIST_CSV, text, n, n), "row 1: longer than the limit of 1048576 bytes");
    free(text);
}
END_TEST

START_TEST(formats_by_name)
{
    spk_list_format f;
    spk_error err;
    ck_ok(spk_list_format_of("a.CSV", &f, &err), err);
    ck_assert_int_eq(f, SPK_LIST_CSV);
    ck_ok(spk_list_format_of("a.tsv", &f, &err), err);
    ck_assert_int_eq(f, SPK_LIST_TSV);
    ck_ok(spk_list_format_of("-", &f, &err), err);
    ck_assert_int_eq(f, SPK_LIST_JSONL);
    ck_fails(spk_list_format_of("a.txt", &f, &err), err, SPK_E_INVALID, "a.txt: unknown kind of list");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pack/list");
    TCase *t = tcase_create("all");
    tcase_add_test(t, csv);
    tcase_add_test(t, csv_errors);
    tcase_add_test(t, tsv);
    tcase_add_test(t, json_lines);
    tcase_add_test(t, json_errors);
    tcase_add_test(t, long_rows_are_refused);
    tcase_add_test(t, formats_by_name);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
