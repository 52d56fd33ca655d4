/* dataset/: opening, accessors, reading in order, finding, exports; and each way in which manifest and table can
 * disagree. */
#include "check_main.h"

#include "dataset_fixture.h"

#include <shardpack/dataset.h>

static char *folder;
static dataset_fixture d;
static spk_error err;

static void setup(void)
{
    folder = check_temp_folder();
    dataset_small(&d, folder);
    spk_error_clear(&err);
}

static void teardown(void)
{
    dataset_free(&d);
    check_remove_tree(folder);
}

static spk_status open_close(const char *path)
{
    spk_dataset *ds = NULL;
    spk_status status = spk_dataset_open(&ds, path, NULL, &err);
    ck_assert((status == SPK_OK) == (ds != NULL));
    spk_dataset_close(ds);
    return status;
}

START_TEST(opens_by_folder_manifest_and_url)
{
    static const char *const forms[] = {
        "%s", "%s/", "%s//", "%s/manifest.json", "file://%s", "file://%s/", "file://%s/manifest.json"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char path[4200];
        spk_dataset *ds = NULL;
        snprintf(path, sizeof path, forms[i], folder);
        ck_ok(spk_dataset_open(&ds, path, NULL, &err), err);
        ck_assert_int_eq(strncmp(spk_dataset_folder(ds), folder, strlen(folder)), 0);
        ck_assert_uint_eq(strlen(spk_dataset_folder(ds)), strlen(folder));
        spk_dataset_close(ds);
    }
}
END_TEST

START_TEST(tells_what_it_holds)
{
    spk_dataset *ds = NULL;
    spk_dataset_stat stat;
    spk_shard_row row;
    spk_field_stat field;
    uint64_t shard = 9, within = 9;
    ck_ok(spk_dataset_open(&ds, folder, NULL, &err), err);
    spk_dataset_get_stat(ds, &stat);
    ck_assert_uint_eq(stat.samples, 5);
    ck_assert_uint_eq(stat.shards, 2);
    ck_assert_uint_eq(stat.frames, 3);
    ck_assert_uint_eq(stat.payload_bytes, 34);
    ck_assert_str_eq(spk_dataset_fingerprint(ds), d.m.fingerprint);
    ck_assert_ptr_nonnull(strstr(spk_dataset_manifest(ds), "\"format\": \"shardpack\""));
    ck_ok(spk_dataset_get_shard(ds, 1, &row, &err), err);
    ck_assert_str_eq(row.path, d.names[1]);
    ck_assert_uint_eq(row.first_sample, 3);
    ck_assert_mem_eq(row.tail_sha256, d.rows[1].tail_sha256, 32);
    ck_fails(spk_dataset_get_shard(ds, 2, &row, &err), err, SPK_E_INVALID, "shard 2 of 2");
    ck_assert_uint_eq(spk_dataset_field_count(ds), 3);
    ck_ok(spk_dataset_get_field(ds, 1, &field, &err), err);
    ck_assert_str_eq(field.name, "jpg");
    ck_assert_uint_eq(field.samples, 4);
    ck_fails(spk_dataset_get_field(ds, 3, &field, &err), err, SPK_E_INVALID, "field 3 of 3");
    ck_assert_ptr_null(spk_dataset_class_name(ds, 0));
    for (uint64_t i = 0; i < 5; i++) {
        ck_ok(spk_dataset_locate(ds, i, &shard, &within, &err), err);
        ck_assert_uint_eq(shard, i / 3);
        ck_assert_uint_eq(within, i % 3);
    }
    ck_fails(spk_dataset_locate(ds, 5, &shard, &within, &err), err, SPK_E_INVALID, "sample 5 of 5");
    spk_dataset_close(ds);
}
END_TEST

START_TEST(reads_all_samples_from_anywhere)
{
    static const char *const keys[] = {"a/one", "a/two", "b/Three", "c/four", "c/five"};
    spk_dataset *ds = NULL;
    ck_ok(spk_dataset_open(&ds, folder, NULL, &err), err);
    for (uint64_t first = 0; first <= 5; first++) {
        spk_reader *reader = NULL;
        const spk_sample *sample = NULL;
        ck_ok(spk_reader_open(&reader, ds, first, &err), err);
        for (uint64_t i = first; i < 5; i++) {
            ck_ok(spk_reader_next(reader, &sample, &err), err);
            ck_assert_str_eq(sample->key, keys[i]);
            ck_assert_uint_eq(sample->number, i);
            ck_assert_uint_eq(sample->shard, i / 3);
        }
        ck_assert_int_eq(spk_reader_next(reader, &sample, &err), SPK_END);
        ck_ok(spk_reader_seek(reader, 1, &err), err);
        ck_ok(spk_reader_next(reader, &sample, &err), err);
        ck_assert_str_eq(sample->key, "a/two");
        ck_assert_mem_eq(sample->fields[0].data, "second", 6);
        spk_reader_close(reader);
    }
    spk_reader *none = NULL;
    ck_fails(spk_reader_open(&none, ds, 6, &err), err, SPK_E_INVALID, "sample 6 of 5");
    ck_assert_ptr_null(none);
    spk_dataset_close(ds);
}
END_TEST

START_TEST(finds_keys)
{
    spk_dataset *ds = NULL;
    uint64_t number = 9;
    ck_ok(spk_dataset_open(&ds, folder, NULL, &err), err);
    ck_ok(spk_dataset_find(ds, "c/five", &number, &err), err);
    ck_assert_uint_eq(number, 4);
    ck_ok(spk_dataset_find(ds, "a/one", &number, &err), err);
    ck_assert_uint_eq(number, 0);
    ck_fails(spk_dataset_find(ds, "b/three", &number, &err), err, SPK_E_NOT_FOUND, "no sample has the key \"b/three\"");
    ck_fails(spk_dataset_find(ds, "", &number, &err), err, SPK_E_NOT_FOUND, "no sample has the key \"\"");
    spk_dataset_close(ds);
}
END_TEST

START_TEST(exports_index_files)
{
    char want[2000];
    char *text = NULL;
    spk_dataset *ds = NULL;
    ck_ok(spk_dataset_open(&ds, folder, NULL, &err), err);
    ck_ok(spk_dataset_export(ds, "wids", "https://x/\"q\"", &text, &err), err);
    snprintf(want, sizeof want,
             "{\n  \"__kind__\": \"wids-shard-index-v1\",\n  \"wids_version\": 1,\n  \"shardlist\": [\n"
             "    {\"url\": \"https://x/\\\"q\\\"/%s\", \"nsamples\": 3, \"filesize\": %llu},\n"
             "    {\"url\": \"https://x/\\\"q\\\"/%s\", \"nsamples\": 2, \"filesize\": %llu}\n  ]\n}\n",
             d.names[0], (unsigned long long)d.rows[0].bytes, d.names[1], (unsigned long long)d.rows[1].bytes);
    ck_assert_str_eq(text, want);
    spk_free(text);
    ck_ok(spk_dataset_export(ds, "wids", NULL, &text, &err), err);
    ck_assert_ptr_nonnull(strstr(text, "{\"url\": \"t-"));
    spk_free(text);
    ck_ok(spk_dataset_export(ds, "sizes", NULL, &text, &err), err);
    snprintf(want, sizeof want, "{\n  \"%s\": 3,\n  \"%s\": 2\n}\n", d.names[0], d.names[1]);
    ck_assert_str_eq(text, want);
    spk_free(text);
    ck_fails(spk_dataset_export(ds, "csv", NULL, &text, &err), err, SPK_E_INVALID,
             "none of \"wids\", \"sizes\", \"sha256\"");
    ck_fails(spk_dataset_export(ds, "wids", "\xff", &text, &err), err, SPK_E_INVALID, "not UTF-8");
    spk_dataset_close(ds);
}
END_TEST

START_TEST(exports_sums_of_sound_shards_only)
{
    char want[1000], hex[2][SPK_SHA256_HEX], path[4200];
    char *text = NULL;
    uint8_t *bytes = NULL, digest[32];
    size_t n = 0;
    spk_dataset *ds = NULL;
    for (size_t i = 0; i < 2; i++) {
        fixture_path(path, sizeof path, folder, d.names[i]);
        free(bytes);
        bytes = fixture_load(path, &n);
        ck_ok(spk_sha256_once(bytes, n, digest, &err), err);
        spk_hex(hex[i], digest, sizeof digest);
    }
    ck_ok(spk_dataset_open(&ds, folder, NULL, &err), err);
    ck_ok(spk_dataset_export(ds, "sha256", NULL, &text, &err), err);
    snprintf(want, sizeof want, "%s  %s\n%s  %s\n", hex[0], d.names[0], hex[1], d.names[1]);
    ck_assert_str_eq(text, want);
    spk_free(text);
    bytes[d.rows[1].index_offset - 20] ^= 1;
    fixture_write(folder, d.names[1], bytes, n);
    snprintf(want, sizeof want, "%s: frame 0: SHA-256 mismatch at byte 0", d.names[1]);
    ck_fails(spk_dataset_export(ds, "sha256", NULL, &text, &err), err, SPK_E_CHECKSUM, want);
    ck_assert_ptr_null(text);
    fixture_write(folder, d.names[1], bytes, n - 1);
    ck_fails(spk_dataset_export(ds, "sha256", NULL, &text, &err), err, SPK_E_FORMAT, d.names[1]);
    free(bytes);
    spk_dataset_close(ds);
}
END_TEST

START_TEST(missing_datasets_say_what_was_looked_for)
{
    char path[4200], message[8600];
    ck_fails(open_close("/nowhere/at/all"), err, SPK_E_NOT_FOUND, "/nowhere/at/all: no such dataset");
    ck_fails(open_close(""), err, SPK_E_INVALID, "path is empty");
    ck_fails(open_close("ftp://bucket/set"), err, SPK_E_UNSUPPORTED,
             "ftp://bucket/set/manifest.json: URL scheme \"ftp\"");
    fixture_path(path, sizeof path, folder, "manifest.json");
    ck_assert_int_eq(unlink(path), 0);
    snprintf(message, sizeof message, "%s: no dataset here: %s does not exist", folder, path);
    ck_fails(open_close(folder), err, SPK_E_NOT_FOUND, message);
    fixture_path(path, sizeof path, folder, SPK_WORK_FOLDER);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    ck_fails(open_close(folder), err, SPK_E_NOT_FOUND, "packing into this folder has not finished");
}
END_TEST

START_TEST(options_are_checked)
{
    spk_dataset *ds = NULL;
    struct {
        spk_dataset_options known;
        uint64_t later;
    } newer = {{.size = sizeof newer}, 0};
    spk_dataset_options none = {0};
    ck_ok(spk_dataset_open(&ds, folder, &newer.known, &err), err);
    spk_dataset_close(ds);
    newer.later = 1;
    ck_fails(spk_dataset_open(&ds, folder, &newer.known, &err), err, SPK_E_INVALID, "options: byte ");
    ck_fails(spk_dataset_open(&ds, folder, &none, &err), err, SPK_E_INVALID, "\"size\" is not set");
}
END_TEST

START_TEST(totals_must_agree)
{
    d.m.samples = 8;
    dataset_manifest(&d);
    ck_fails(open_close(folder), err, SPK_E_FORMAT, "/manifest.json: samples is 8, the shard table adds up to 5");
    d.m.samples = 5;
    d.m.bytes++;
    dataset_manifest(&d);
    ck_fails(open_close(folder), err, SPK_E_FORMAT, "/manifest.json: bytes is ");
    d.m.bytes--;
    d.m.shards = 1;
    dataset_manifest(&d);
    ck_fails(open_close(folder), err, SPK_E_FORMAT, "/manifest.json: shards is 1, the shard table has 2");
    d.m.shards = 2;
    d.m.fingerprint[60] = d.m.fingerprint[60] == '0' ? '1' : '0';
    dataset_manifest(&d);
    ck_fails(open_close(folder), err, SPK_E_FORMAT, "/manifest.json: fingerprint is ");
}
END_TEST

static void set_table(const char *text, size_t n)
{
    fixture_write(folder, d.table_name, text, n);
    d.m.table_bytes = n;
    ck_ok(spk_sha256_once(text, n, d.m.table_sha256, &err), err);
    dataset_manifest(&d);
}

START_TEST(damaged_tables_are_refused)
{
    char path[4200], message[300];
    size_t n = 0;
    fixture_path(path, sizeof path, folder, d.table_name);
    char *text = (char *)fixture_load(path, &n);
    text[n - 70] ^= 1;
    fixture_write(folder, d.table_name, text, n);
    snprintf(message, sizeof message, "/%s: SHA-256 mismatch: manifest says ", d.table_name);
    ck_fails(open_close(folder), err, SPK_E_CHECKSUM, message);
    fixture_write(folder, d.table_name, text, n - 1);
    snprintf(message, sizeof message, "/%s: %zu bytes, manifest says %zu", d.table_name, n - 1, n);
    ck_fails(open_close(folder), err, SPK_E_FORMAT, message);
    text[n - 70] ^= 1;
    char *cell = strstr(text, "\t3\t2\t");
    ck_assert_ptr_nonnull(cell);
    cell[1] = 'x';
    fixture_write(folder, d.table_name, text, n);
    ck_fails(open_close(folder), err, SPK_E_CHECKSUM, "SHA-256 mismatch"); /* before the line that it broke */
    set_table(text, n);
    snprintf(message, sizeof message, "/%s: line 2: column \"samples\": \"x\" is not a number", d.table_name);
    ck_fails(open_close(folder), err, SPK_E_FORMAT, message);
    cell[1] = '3';
    char *twice = malloc(2 * n);
    const char *rows = strchr(text, '\n') + 1;
    size_t m = n - (size_t)(rows - text);
    memcpy(twice, text, n);
    memcpy(twice + n, rows, m);
    set_table(twice, n + m);
    ck_fails(open_close(folder), err, SPK_E_FORMAT, "-000000.tar.zst\" is there twice");
    free(twice);
    free(text);
    ck_assert_int_eq(unlink(path), 0);
    ck_fails(open_close(folder), err, SPK_E_NOT_FOUND, path);
}
END_TEST

START_TEST(sums_must_not_overflow)
{
    spk_buf table = {0};
    spk_table_row row = {"a", 1, 1, SPK_NUMBER_MAX, 1024, 100, {0}};
    ck_ok(spk_table_begin(&table, &err), err);
    ck_ok(spk_table_add(&table, &row, &err), err);
    row.path = "b";
    ck_ok(spk_table_add(&table, &row, &err), err);
    set_table((char *)table.data, table.len);
    ck_fails(open_close(folder), err, SPK_E_FORMAT, "line 3: column \"bytes\": its sum is above 9007199254740992");
    spk_buf_free(&table);
}
END_TEST

START_TEST(manifests_that_are_none)
{
    char path[4200];
    fixture_path(path, sizeof path, folder, "manifest.json");
    fixture_write(folder, "manifest.json", "{}", 2);
    ck_fails(open_close(folder), err, SPK_E_FORMAT,
             "/manifest.json: not a shardpack manifest: key \"format\" is missing");
    ck_assert_int_eq(truncate(path, 200 << 20), 0);
    ck_fails(open_close(folder), err, SPK_E_LIMIT, "/manifest.json: 209715200 bytes, more than the 67108864");
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_fails(open_close(folder), err, SPK_E_FORMAT, "/manifest.json: not a shardpack manifest: line 1");
    fixture_path(path, sizeof path, folder, d.names[0]);
    ck_fails(open_close(path), err, SPK_E_FORMAT, "-000000.tar.zst: not a shardpack manifest: ");
}
END_TEST

START_TEST(shards_are_held_to_the_table)
{
    char path[4200];
    spk_dataset *ds = NULL;
    spk_shard *shard = NULL;
    uint64_t number = 0;
    size_t n = 0;
    ck_ok(spk_dataset_open(&ds, folder, NULL, &err), err);
    ck_ok(spk_dataset_open_shard(ds, 1, &shard, &err), err);
    spk_shard_close(shard);
    fixture_path(path, sizeof path, folder, d.names[1]);
    char *bytes = (char *)fixture_load(path, &n);
    bytes[d.rows[1].index_offset + 30] ^= 1;
    fixture_write(folder, d.names[1], bytes, n);
    ck_fails(spk_dataset_open_shard(ds, 1, &shard, &err), err, SPK_E_CHECKSUM, d.names[1]);
    ck_fails(spk_dataset_find(ds, "c/five", &number, &err), err, SPK_E_CHECKSUM, d.names[1]);
    bytes[d.rows[1].index_offset + 30] ^= 1;
    fixture_write(folder, d.names[1], bytes, n);
    ck_ok(spk_dataset_find(ds, "c/five", &number, &err), err); /* a failed first search leaves nothing behind */
    ck_assert_int_eq(unlink(path), 0);
    ck_fails(spk_dataset_open_shard(ds, 1, &shard, &err), err, SPK_E_NOT_FOUND, d.names[1]);
    ck_assert_ptr_null(shard);
    free(bytes);
    spk_dataset_close(ds);
}
END_TEST

START_TEST(a_dataset_without_samples_opens)
{
    dataset_fixture none = {.folder = folder, .prefix = "t"};
    spk_dataset *ds = NULL;
    spk_reader *reader = NULL;
    const spk_sample *sample = NULL;
    uint64_t number = 0;
    char *text = NULL;
    dataset_write(&none);
    ck_ok(spk_dataset_open(&ds, folder, NULL, &err), err);
    ck_ok(spk_reader_open(&reader, ds, 0, &err), err);
    ck_assert_int_eq(spk_reader_next(reader, &sample, &err), SPK_END);
    spk_reader_close(reader);
    ck_fails(spk_dataset_find(ds, "x", &number, &err), err, SPK_E_NOT_FOUND, "no sample");
    ck_ok(spk_dataset_export(ds, "sizes", NULL, &text, &err), err);
    ck_assert_str_eq(text, "{}\n");
    spk_free(text);
    spk_dataset_close(ds);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("dataset/open");
    TCase *c = tcase_create("open");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, opens_by_folder_manifest_and_url);
    tcase_add_test(c, tells_what_it_holds);
    tcase_add_test(c, reads_all_samples_from_anywhere);
    tcase_add_test(c, finds_keys);
    tcase_add_test(c, exports_index_files);
    tcase_add_test(c, exports_sums_of_sound_shards_only);
    tcase_add_test(c, missing_datasets_say_what_was_looked_for);
    tcase_add_test(c, options_are_checked);
    tcase_add_test(c, totals_must_agree);
    tcase_add_test(c, damaged_tables_are_refused);
    tcase_add_test(c, sums_must_not_overflow);
    tcase_add_test(c, manifests_that_are_none);
    tcase_add_test(c, shards_are_held_to_the_table);
    tcase_add_test(c, a_dataset_without_samples_opens);
    suite_add_tcase(s, c);
    return s;
}

CHECK_MAIN(suite)
