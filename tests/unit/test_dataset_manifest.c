/* dataset/manifest_*.c, json_guard.c: what is written is read back; what is wrong is told with its key and numbers. */
#include "check_main.h"

#include <sys/resource.h>

#include "base/cpu.h"
#include "dataset/json_guard.h"
#include "dataset/manifest.h"

#define HEX64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const char good[] = "{\n"
                           "  \"format\": \"shardpack\",\n"
                           "  \"version\": \"1.0\",\n"
                           "  \"fingerprint\": \"" HEX64 "\",\n"
                           "  \"samples\": 8000,\n"
                           "  \"shards\": 3,\n"
                           "  \"frames\": 130,\n"
                           "  \"bytes\": 900000,\n"
                           "  \"tar_bytes\": 1000000,\n"
                           "  \"payload_bytes\": 800000,\n"
                           "  \"table\": {\n"
                           "    \"file\": \"shards-00112233.tsv\",\n"
                           "    \"bytes\": 700,\n"
                           "    \"sha256\": \"" HEX64 "\"\n"
                           "  },\n"
                           "  \"order\": \"shuffled\",\n"
                           "  \"fields\": [\n"
                           "    {\n"
                           "      \"name\": \"jpg\",\n"
                           "      \"kind\": \"image\",\n"
                           "      \"samples\": 8000\n"
                           "    }\n"
                           "  ],\n"
                           "  \"classes\": [\n"
                           "    \"cat\",\n"
                           "    \"d\xc3\xa9j\xc3\xa0%ff\"\n"
                           "  ],\n"
                           "  \"images\": {\n"
                           "    \"count\": 3,\n"
                           "    \"jpeg\": 2,\n"
                           "    \"png\": 1,\n"
                           "    \"other\": 0,\n"
                           "    \"width\": {\n"
                           "      \"min\": 1,\n"
                           "      \"max\": 9,\n"
                           "      \"sum\": 15\n"
                           "    },\n"
                           "    \"height\": {\n"
                           "      \"min\": 2,\n"
                           "      \"max\": 4,\n"
                           "      \"sum\": 9\n"
                           "    },\n"
                           "    \"longer_side\": [\n"
                           "      0,\n      0,\n      1,\n      0,\n      2,\n      0,\n      0,\n      0,\n      0,\n"
                           "      0,\n      0,\n      0,\n      0,\n      0,\n      0,\n      0,\n      0,\n      0\n"
                           "    ]\n"
                           "  },\n"
                           "  \"pack\": {\n"
                           "    \"seed\": 7,\n"
                           "    \"share\": 0.9\n"
                           "  }\n"
                           "}\n";

/* good with one piece of text replaced; malloc'ed. */
static char *changed(const char *from, const char *to)
{
    const char *at = strstr(good, from);
    ck_assert_msg(at != NULL, "no \"%s\" in the manifest", from);
    char *text = malloc(sizeof good + strlen(to));
    sprintf(text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    return text;
}

static spk_status parse(const char *text, size_t n, spk_error *err)
{
    spk_manifest m = {0};
    spk_status status = spk_manifest_parse(&m, text, n, err);
    spk_manifest_free(&m);
    return status;
}

START_TEST(text_and_struct_round_trip)
{
    spk_manifest m = {0};
    spk_buf out = {0};
    spk_error err;
    spk_error_clear(&err);
    ck_ok(spk_manifest_parse(&m, good, sizeof good - 1, &err), err);
    ck_assert_uint_eq(m.samples, 8000);
    ck_assert_uint_eq(m.images.longer_side[4], 2);
    ck_assert_uint_eq(m.images.sum_height, 9);
    ck_assert_str_eq(m.fields[0].kind, "image");
    ck_assert_uint_eq(m.classes_n, 2);
    ck_assert_str_eq(m.pack, "{\"seed\":7,\"share\":0.9}");
    ck_assert(m.shuffled);
    ck_ok(spk_manifest_encode(&m, &out, &err), err);
    ck_ok(spk_buf_terminate(&out, &err), err);
    ck_assert_str_eq((char *)out.data, good);
    spk_buf_free(&out);
    spk_manifest_free(&m);
}
END_TEST

START_TEST(unknown_keys_and_minor_versions_are_accepted)
{
    spk_error err;
    char *text = changed("\"version\": \"1.0\"", "\"version\": \"1.17\", \"later\": {\"x\": [1.5, null]}");
    spk_error_clear(&err);
    ck_ok(parse(text, strlen(text), &err), err);
    free(text);
}
END_TEST

START_TEST(kinds_of_later_versions_are_bytes)
{
    spk_error err;
    spk_manifest m = {0};
    char *text = changed("\"image\"", "\"sound\"");
    spk_error_clear(&err);
    ck_ok(spk_manifest_parse(&m, text, strlen(text), &err), err);
    ck_assert_str_eq(m.fields[0].kind, "bytes");
    spk_manifest_free(&m);
    free(text);
}
END_TEST

static const struct bad {
    const char *from, *to, *message;
    spk_status code;
} bad[] = {
    {"\"format\": \"shardpack\",", "", "not a shardpack manifest: key \"format\" is missing", SPK_E_FORMAT},
    {"\"shardpack\"", "\"other\"", "not a shardpack manifest: key \"format\" is \"other\"", SPK_E_FORMAT},
    {"{\n  \"format\"", "[{\n  \"format\"", "not a shardpack manifest: line", SPK_E_FORMAT},
    {"\"1.0\"", "\"2.0\"", "format version 2.0; this library reads 1.x", SPK_E_UNSUPPORTED},
    {"\"1.0\"", "\"1\"", "key \"version\": \"1\" is not MAJOR.MINOR", SPK_E_FORMAT},
    {"\"1.0\"", "1.0", "key \"version\" is a number with a fraction or exponent, not a string", SPK_E_FORMAT},
    {"\"fingerprint\": \"0", "\"fingerprint\": \"Z", "is not 64 lower-case hex digits", SPK_E_FORMAT},
    {"8000,", "-3,", "key \"samples\" is -3, not from 0 to 9007199254740992", SPK_E_FORMAT},
    {"8000,", "9007199254740993,", "key \"samples\" is 9007199254740993, not from 0 to 9007199254740992", SPK_E_FORMAT},
    {"8000,", "80.5,", "key \"samples\" is a number with a fraction or exponent, not an integer", SPK_E_FORMAT},
    {"8000,", "8e3,", "key \"samples\" is a number with a fraction or exponent, not an integer", SPK_E_FORMAT},
    {"8000,", "\"8000\",", "key \"samples\" is a string, not an integer", SPK_E_FORMAT},
    {"8000,", "99999999999999999999,", "too big integer", SPK_E_FORMAT},
    {"8000,", "8000, \"samples\": 8000,", "duplicate object key", SPK_E_FORMAT},
    {"8000,", "08000,", "not a shardpack manifest: line 5", SPK_E_FORMAT},
    {"\"frames\": 130", "\"frames\": 2", "8000 samples in 2 frames in 3 shards", SPK_E_FORMAT},
    {"\"shards\": 3", "\"shards\": 16777217", "key \"shards\" is 16777217, more than the 16777216 allowed",
     SPK_E_LIMIT},
    {"\"payload_bytes\": 800000", "\"payload_bytes\": 1000001",
     "payload_bytes is 1000001, more than tar_bytes, 1000000", SPK_E_FORMAT},
    {"shards-00112233.tsv", "../shards-00112233.tsv", "key \"table.file\" is \"../shards-00112233.tsv\"", SPK_E_FORMAT},
    {"\"bytes\": 700,", "", "key \"table.bytes\" is missing", SPK_E_FORMAT},
    {"\"shuffled\"", "\"random\"", "key \"order\" is \"random\"", SPK_E_FORMAT},
    {"\"jpg\"", "\"J\"", "key \"fields[0].name\": \"J\" holds a byte", SPK_E_FORMAT},
    {"\"samples\": 8000\n", "\"samples\": 8001\n", "key \"fields[0].samples\" is 8001, the dataset has 8000",
     SPK_E_FORMAT},
    {"\"fields\": [", "\"fields\": [{\"name\": \"jpg\", \"kind\": \"image\", \"samples\": 1},",
     "field \"jpg\" after \"jpg\"", SPK_E_FORMAT},
    {"\"cat\"", "7", "key \"classes[0]\" is an integer, not a string", SPK_E_FORMAT},
    {"\"cat\"", "\"a\\nb\"", "key \"classes[0]\" has a control character", SPK_E_FORMAT},
    {"\"cat\"", "\"a\\u0000b\"", "a string has the character U+0000", SPK_E_FORMAT},
    {"\"cat\"", "\"\xff\"", "not a shardpack manifest: line", SPK_E_FORMAT},
    {"\"png\": 1", "\"png\": 2", "key \"images.count\" is 3, jpeg, png and other add up to 4", SPK_E_FORMAT},
    {"\"max\": 9", "\"max\": 0", "key \"images.width\": min 1, max 0 and sum 15 do not fit", SPK_E_FORMAT},
    {"      0,\n      0,\n      1,", "      1,", "key \"images.longer_side\" has 16 counts, expected 18", SPK_E_FORMAT},
    {"      0,\n      0,\n      1,", "      0,\n      0,\n      2,",
     "key \"images.longer_side\" adds up to 4, count is 3", SPK_E_FORMAT},
    {"\"pack\": {", "\"pack\": 4, \"x\": {", "key \"pack\" is an integer, not an object", SPK_E_FORMAT},
};

START_TEST(what_is_wrong_is_told)
{
    spk_error err;
    char *text = changed(bad[_i].from, bad[_i].to);
    ck_fails(parse(text, strlen(text), &err), err, bad[_i].code, bad[_i].message);
    free(text);
}
END_TEST

START_TEST(zero_bytes_are_refused)
{
    spk_error err;
    char text[sizeof good];
    memcpy(text, good, sizeof good);
    text[1] = '\0'; /* white space */
    ck_fails(parse(text, sizeof good - 1, &err), err, SPK_E_FORMAT, "not a shardpack manifest: zero byte at byte 1");
    ck_fails(parse(good, sizeof good, &err), err, SPK_E_FORMAT, "not a shardpack manifest: zero byte at byte ");
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    spk_error err;
    for (size_t n = 0; n + 3 < sizeof good; n++) {
        char *text = malloc(n + 1); /* its own block, so that a read too far is seen */
        memcpy(text, good, n);
        ck_fails(parse(text, n, &err), err, SPK_E_FORMAT, "not a shardpack manifest: ");
        free(text);
    }
}
END_TEST

static long peak_kib(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

/* 60 MiB of each hostile pattern: refused within seconds and without memory beyond the text. */
START_TEST(bombs_are_refused_quickly)
{
    static const struct {
        const char *unit, *message;
    } bombs[] = {{"[", "JSON nested deeper than 32 levels at byte 32"},
                 {"{\"a\":", "JSON nested deeper than 32 levels at byte 160"},
                 {"[],", "more than 131072 JSON arrays and objects at byte 393216"},
                 {"0,", "more than 2097152 JSON values at byte 4194305"}};
    size_t n = 60u << 20, unit = strlen(bombs[_i].unit);
    char *text = malloc(n);
    spk_error err;
    for (size_t i = 0; i < n; i++)
        text[i] = bombs[_i].unit[i % unit];
    long before = peak_kib();
    uint64_t start = spk_now_ns();
    ck_fails(parse(text, n, &err), err, SPK_E_LIMIT, bombs[_i].message);
    ck_assert_uint_lt(spk_now_ns() - start, 5000000000u);
    ck_assert_int_lt(peak_kib() - before, 4096);
    free(text);
}
END_TEST

START_TEST(text_above_the_cap_is_refused_by_its_size)
{
    spk_error err;
    ck_fails(parse(good, (64u << 20) + 1, &err), err, SPK_E_LIMIT, "67108865 bytes, more than the 67108864");
}
END_TEST

START_TEST(brackets_in_strings_do_not_count)
{
    spk_error err;
    static const char text[] = "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"";
    spk_error_clear(&err);
    ck_ok(spk_json_guard(text, sizeof text - 1, &err), err);
    ck_ok(spk_json_guard("\"\\", 2, &err), err);
    ck_ok(spk_json_guard("", 0, &err), err);
}
END_TEST

START_TEST(encoding_refuses_what_it_could_not_read)
{
    spk_error err;
    spk_buf out = {0};
    spk_manifest m = {0};
    char name[] = "shards-00112233.tsv", broken[] = "\xff";
    char *classes[] = {broken};
    ck_fails(spk_manifest_encode(&m, &out, &err), err, SPK_E_INVALID, "\"file\" is not set");
    m.table_name = name;
    m.bytes = (UINT64_C(1) << 53) + 1;
    ck_fails(spk_manifest_encode(&m, &out, &err), err, SPK_E_LIMIT, "\"bytes\" is above 2^53");
    m.bytes = 0;
    m.classes = classes;
    m.classes_n = 1;
    ck_fails(spk_manifest_encode(&m, &out, &err), err, SPK_E_INVALID, "class 0 is not UTF-8");
    m.classes_n = 0;
    m.pack = broken;
    ck_fails(spk_manifest_encode(&m, &out, &err), err, SPK_E_INVALID, "\"pack\"");
    spk_buf_free(&out);
}
END_TEST

START_TEST(encoding_refuses_more_than_is_read)
{
    enum { CLASSES = 1 << 21 };
    spk_error err;
    spk_buf out = {0};
    char name[] = "shards-00112233.tsv", class_name[] = "c";
    char **classes = malloc(CLASSES * sizeof *classes);
    spk_manifest m = {.fingerprint = HEX64, .table_name = name, .classes = classes, .classes_n = CLASSES};
    for (size_t i = 0; i < CLASSES; i++)
        classes[i] = class_name;
    ck_fails(spk_manifest_encode(&m, &out, &err), err, SPK_E_LIMIT,
             "manifest that no reader would take: more than 2097152 JSON values");
    out.len = 0;
    m.classes_n = CLASSES - 100;
    spk_error_clear(&err);
    ck_ok(spk_manifest_encode(&m, &out, &err), err);
    out.len = 0;
    m.samples = m.frames = m.shards = (1u << 24) + 1;
    ck_fails(spk_manifest_encode(&m, &out, &err), err, SPK_E_LIMIT, "\"shards\" is 16777217, more than the 16777216");
    spk_buf_free(&out);
    free(classes);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("dataset/manifest");
    TCase *c = tcase_create("manifest");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, text_and_struct_round_trip);
    tcase_add_test(c, unknown_keys_and_minor_versions_are_accepted);
    tcase_add_test(c, kinds_of_later_versions_are_bytes);
    tcase_add_loop_test(c, what_is_wrong_is_told, 0, (int)(sizeof bad / sizeof bad[0]));
    tcase_add_test(c, zero_bytes_are_refused);
    tcase_add_test(c, every_truncation_is_refused);
    tcase_add_loop_test(c, bombs_are_refused_quickly, 0, 4);
    tcase_add_test(c, text_above_the_cap_is_refused_by_its_size);
    tcase_add_test(c, brackets_in_strings_do_not_count);
    tcase_add_test(c, encoding_refuses_what_it_could_not_read);
    tcase_add_test(c, encoding_refuses_more_than_is_read);
    suite_add_tcase(s, c);
    return s;
}

CHECK_MAIN(suite)
