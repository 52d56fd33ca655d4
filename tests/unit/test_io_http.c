/* io/: what is taken from reply headers and from URLs, and the shared files of S3. */
#include "check_main.h"

#include <stdlib.h>

#include "io/net.h"
#include "io/reply.h"
#include "io/s3.h"
#include "io/url.h"

static spk_error err;

static void lines(spk_reply *r, const char *const *text)
{
    for (; *text; text++)
        spk_reply_line(r, *text, strlen(*text));
}

START_TEST(headers_are_read)
{
    spk_reply r;
    lines(&r, (const char *const[]){"HTTP/1.1 206 Partial Content\r\n", "content-RANGE: bytes 10-19/100\r\n",
                                    "Content-Length: 10\r\n", "ETag: \"abc\"\r\n", "Retry-After: 7\r\n",
                                    "Content-Type: text/html; charset=x\r\n", "X-Amz-Bucket-Region: eu-west-1\r\n",
                                    "\r\n", NULL});
    ck_assert_int_eq(r.status, 206);
    ck_assert(r.has_range);
    ck_assert_uint_eq(r.from, 10);
    ck_assert_uint_eq(r.to, 20);
    ck_assert_uint_eq(r.total, 100);
    ck_assert_uint_eq(r.length, 10);
    ck_assert_str_eq(r.etag, "\"abc\"");
    ck_assert_str_eq(r.region, "eu-west-1");
    ck_assert_uint_eq(r.retry_after, 7);
    ck_assert(r.is_html);
    lines(&r, (const char *const[]){"HTTP/1.1 416 Range\r\n", "Content-Range: bytes */123\r\n", NULL});
    ck_assert_int_eq(r.status, 416); /* a new reply forgets the one before, as after a redirect */
    ck_assert(!r.has_range);
    ck_assert_uint_eq(r.total, 123);
    ck_assert_uint_eq(r.length, SPK_REPLY_UNKNOWN);
    ck_assert_str_eq(r.etag, "");
}
END_TEST

START_TEST(a_date_to_retry_after_is_by_the_servers_clock)
{
    static const char *const date = "Date: Mon, 30 Nov 2026 12:00:00 GMT\r\n",
                             *const retry = "Retry-After: Mon, 30 Nov 2026 12:01:30 GMT\r\n",
                             *const past = "Retry-After: Mon, 30 Nov 2026 11:59:59 GMT\r\n",
                             *const years = "Retry-After: Sat, 30 Nov 2036 12:00:00 GMT\r\n",
                             *const status = "HTTP/1.1 503 Busy\r\n";
    spk_reply r;
    lines(&r, (const char *const[]){status, date, retry, NULL});
    ck_assert_uint_eq(r.retry_after, 90);
    lines(&r, (const char *const[]){status, retry, date, NULL});
    ck_assert_uint_eq(r.retry_after, 90);
    lines(&r, (const char *const[]){status, date, past, NULL});
    ck_assert_uint_eq(r.retry_after, 0);
    lines(&r, (const char *const[]){status, retry, NULL});
    ck_assert_uint_eq(r.retry_after, 0);
    lines(&r, (const char *const[]){status, date, years, NULL});
    ck_assert_uint_eq(r.retry_after, 86400);
}
END_TEST

START_TEST(headers_that_make_no_sense_say_nothing)
{
    static const char *const bad[] = {"Content-Range: bytes 19-10/100",
                                      "Content-Range: bytes 0-100/100",
                                      "Content-Range: bytes 0-1",
                                      "Content-Range: bytes -1-2/3",
                                      "Content-Range: lines 0-1/2",
                                      "Content-Range: bytes 0-99999999999999999999999/2",
                                      "Content-Range: bytes 0-1/2 x",
                                      "Content-Length: 1e3",
                                      "Content-Length: -1",
                                      "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT",
                                      "ETag: \"\x01\"",
                                      "no colon",
                                      ":",
                                      ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        spk_reply r;
        lines(&r, (const char *const[]){"HTTP/1.1 200", bad[i], NULL});
        ck_assert_int_eq(r.status, 200);
        ck_assert_msg(!r.has_range && r.length == SPK_REPLY_UNKNOWN && r.retry_after == 0 && !r.etag[0], "%s", bad[i]);
    }
    spk_reply r;
    lines(&r, (const char *const[]){"HTTP/9.9 nonsense", NULL});
    ck_assert_int_eq(r.status, 0);
    char *is_long = malloc(5000);
    memset(is_long, 'x', 5000);
    memcpy(is_long, "ETag: ", 6);
    spk_reply_line(&r, is_long, 5000);
    ck_assert_str_eq(r.etag, "");
    free(is_long);
}
END_TEST

START_TEST(places_are_taken_apart)
{
    spk_place p;
    char *name = NULL;
    ck_ok(spk_place_parse(&p, "HTTPS://us%65r:p%40ss@Host.Example:8443/a/b//?sig=1", &err), err);
    ck_assert(p.secure && p.secret && p.kind == SPK_PLACE_HTTP);
    ck_assert_str_eq(p.prefix, "https://host.example:8443/a/b");
    ck_assert_str_eq(p.user, "user");
    ck_assert_str_eq(p.password, "p@ss");
    ck_assert_str_eq(p.query, "?sig=1");
    spk_place_free(&p);
    ck_ok(spk_place_parse_object(&p, &name, "s3://bucket/pre/fix/x.tar.zst", &err), err);
    ck_assert_str_eq(p.prefix, "s3://bucket/pre/fix");
    ck_assert_str_eq(name, "x.tar.zst");
    spk_place_free(&p);
    free(name);
    ck_ok(spk_place_parse(&p, "http://[::1]:80", &err), err);
    ck_assert_str_eq(p.host, "[::1]:80");
    spk_place_free(&p);
    char *shown = spk_url_shown("http://user:secret@host/path?token=secret");
    ck_assert_str_eq(shown, "http://host/path");
    free(shown);
    ck_assert(spk_url_is_remote("S3://x") && !spk_url_is_remote("file:///x") && !spk_url_is_remote("/x"));
}
END_TEST

START_TEST(bad_places_are_refused_without_secrets)
{
    static const char *const bad[] = {"http://",         "http:///x",          "http://a b/",  "http://h/x#y",
                                      "ftp://h/",        "http://u:secret@/x", "http://h:p%/", "s3://u:secret@bucket/x",
                                      "s3://b/x?secret", "http://h%0a/"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        spk_place p;
        spk_error_clear(&err);
        ck_assert_msg(spk_place_parse(&p, bad[i], &err) < 0, "%s was taken", bad[i]);
        ck_assert_msg(!strstr(err.text, "secret"), "%s", err.text);
        ck_assert_ptr_null(p.prefix);
    }
    char *name = NULL;
    spk_place p;
    ck_fails(spk_place_parse_object(&p, &name, "http://host/", &err), err, SPK_E_INVALID, "names no object");
}
END_TEST

START_TEST(names_are_encoded_and_decoded)
{
    char out[64];
    char *text = spk_url_encode("a b/\xc3\xbc~+");
    ck_assert_str_eq(text, "a%20b/%C3%BC~%2B");
    ck_ok(spk_url_decode(out, text, &err), err);
    ck_assert_str_eq(out, "a b/\xc3\xbc~+");
    free(text);
    ck_fails(spk_url_decode(out, "%4", &err), err, SPK_E_INVALID, "without two hex digits");
}
END_TEST

static void has(const char *text, const char *section, const char *parent, const char *key, const char *want)
{
    char *out = NULL;
    ck_ok(spk_ini_get(text, section, parent, key, &out, &err), err);
    if (want)
        ck_assert_str_eq(out, want);
    else
        ck_assert_ptr_null(out);
    free(out);
}

START_TEST(shared_files_are_read)
{
    static const char text[] = "; comment\nkey = before any section\n[default]\nregion=eu-west-1\r\n# key = no\n"
                               "[ profile   two ]\nregion = us-west-2  \ns3 =\n  addressing_style = path\n"
                               "  region = nested\nother = 1\n  addressing_style = virtual\n[x\nregion = torn";
    has(text, "default", NULL, "region", "eu-west-1");
    has(text, "profile two", NULL, "region", "us-west-2");
    has(text, "profile two", "s3", "addressing_style", "path");
    has(text, "profile two", NULL, "addressing_style", NULL);
    has(text, "profile two", "other", "addressing_style", "virtual");
    has(text, "default", NULL, "key", NULL);
    has(text, "profile three", NULL, "region", NULL);
    has("", "default", NULL, "region", NULL);
    ck_assert(spk_ini_has(text, "default") && !spk_ini_has(text, "x"));
}
END_TEST

/* Also of a cache that the caller names. */
START_TEST(the_environment_limits_the_cache)
{
    char *folder = check_temp_folder();
    spk_net_options o = {.cache_dir = folder};
    spk_net *net = NULL;
    setenv("SHARDPACK_CACHE_LIMIT", "1 apple", 1);
    ck_fails(spk_net_new(&net, &o, &err), err, SPK_E_INVALID, "SHARDPACK_CACHE_LIMIT is \"1 apple\"");
    setenv("SHARDPACK_CACHE_LIMIT", "20GiB", 1);
    ck_ok(spk_net_new(&net, &o, &err), err);
    spk_net_free(net);
    check_remove_tree(folder);
    unsetenv("SHARDPACK_CACHE_DIR");
    o = (spk_net_options){.cache_limit = 5};
    ck_fails(spk_net_new(&net, &o, &err), err, SPK_E_INVALID, "cache_limit: there is no cache");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("io/http");
    TCase *t = tcase_create("http");
    tcase_add_test(t, headers_are_read);
    tcase_add_test(t, a_date_to_retry_after_is_by_the_servers_clock);
    tcase_add_test(t, headers_that_make_no_sense_say_nothing);
    tcase_add_test(t, places_are_taken_apart);
    tcase_add_test(t, bad_places_are_refused_without_secrets);
    tcase_add_test(t, names_are_encoded_and_decoded);
    tcase_add_test(t, shared_files_are_read);
    tcase_add_test(t, the_environment_limits_the_cache);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
