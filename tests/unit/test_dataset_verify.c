/* dataset/verify*.c: a good dataset passes; each kind of damage is told, all of it, in the order of shards. */
#include "check_main.h"

#include "dataset_fixture.h"

#include <shardpack/dataset.h>

static char *folder;
static dataset_fixture d;
static spk_error err;

typedef struct found {
    char text[16][SPK_ERROR_TEXT];
    size_t n;
    unsigned ticks;
    unsigned cancel_at;
} found;

static void note(void *user, const spk_error *problem)
{
    found *f = user;
    ck_assert_int_lt(problem->code, 0);
    if (f->n < 16)
        strcpy(f->text[f->n], problem->text);
    f->n++;
}

static int tick(void *user, uint64_t done, uint64_t total)
{
    found *f = user;
    ck_assert_uint_gt(total, 0);
    (void)done;
    return ++f->ticks == f->cancel_at;
}

static spk_status verify(const char *path, int jobs, found *f, spk_verify_result *result)
{
    spk_verify_options options = {
        .size = sizeof options, .jobs = jobs, .on_problem = note, .on_progress = tick, .user = f};
    f->n = 0;
    f->ticks = 0;
    spk_error_clear(&err);
    return spk_verify(path, &options, result, &err);
}

static void all_problems(found *f, char *out, size_t cap)
{
    out[0] = '\0';
    for (size_t i = 0; i < f->n && i < 16; i++)
        snprintf(out + strlen(out), cap - strlen(out), "\n  %s", f->text[i]);
}

/* Exactly these problems, by a piece of each text, with one thread and with three. */
static void expect(const char *path, const char *const *parts, size_t n)
{
    for (int jobs = 1; jobs <= 3; jobs += 2) {
        found f = {.cancel_at = 0};
        spk_verify_result result;
        char all[16 * SPK_ERROR_TEXT];
        ck_ok(verify(path, jobs, &f, &result), err);
        all_problems(&f, all, sizeof all);
        ck_assert_msg(f.n == n, "%zu problems, expected %zu:%s", f.n, n, all);
        ck_assert_uint_eq(result.problems, n);
        for (size_t i = 0; i < n; i++)
            ck_assert_msg(strstr(f.text[i], parts[i]) != NULL, "problem %zu lacks \"%s\":%s", i, parts[i], all);
    }
}

static void setup(void)
{
    folder = check_temp_folder();
    memset(&d, 0, sizeof d);
    d.folder = folder;
    d.prefix = "t";
    spk_error_clear(&err);
}

static void teardown(void)
{
    dataset_free(&d);
    check_remove_tree(folder);
}

START_TEST(good_datasets_and_shards_pass)
{
    char path[4200];
    found f = {.cancel_at = 0};
    spk_verify_result result;
    dataset_small(&d, folder);
    fixture_write(folder, "stray.txt", "x", 1); /* other files are no problem */
    ck_ok(verify(folder, 0, &f, &result), err);
    ck_assert_uint_eq(result.problems, 0);
    ck_assert_uint_eq(result.shards, 2);
    ck_assert_uint_eq(result.samples, 5);
    ck_assert_uint_eq(result.bytes, d.m.bytes);
    ck_assert_uint_ge(f.ticks, 3);
    fixture_path(path, sizeof path, folder, d.names[0]);
    ck_ok(verify(path, 0, &f, &result), err);
    ck_assert_uint_eq(result.shards, 1);
    ck_assert_uint_eq(result.samples, 3);
    ck_assert_uint_eq(result.bytes, d.rows[0].bytes);
    ck_ok(spk_verify(folder, NULL, NULL, &err), err);
}
END_TEST

static void flip(size_t shard, uint64_t at)
{
    char path[4200];
    size_t n = 0;
    fixture_path(path, sizeof path, folder, d.names[shard]);
    uint8_t *bytes = fixture_load(path, &n);
    bytes[at < n ? at : n - 1] ^= 1;
    fixture_write(folder, d.names[shard], bytes, n);
    free(bytes);
}

START_TEST(damage_is_told_in_the_order_of_shards)
{
    char first[200];
    dataset_small(&d, folder);
    flip(0, 20);
    fixture_path(first, sizeof first, folder, d.names[1]);
    ck_assert_int_eq(unlink(first), 0);
    snprintf(first, sizeof first, "%s: frame 0", d.names[0]);
    expect(folder, (const char *[]){first, d.names[1]}, 2);
}
END_TEST

START_TEST(damaged_tails_are_told)
{
    dataset_small(&d, folder);
    flip(1, d.rows[1].index_offset + 30);
    found f = {.cancel_at = 0};
    spk_verify_result result;
    ck_ok(verify(folder, 2, &f, &result), err);
    ck_assert_uint_ge(result.problems, 1);
    ck_assert_ptr_nonnull(strstr(f.text[0], d.names[1]));
}
END_TEST

START_TEST(manifest_totals_are_compared)
{
    dataset_small(&d, folder);
    d.m.samples = 6;
    d.m.payload_bytes = 33;
    d.fields[1].samples = 3;
    free(d.fields[2].name);
    d.fields[2].name = strdup("txt2");
    dataset_manifest(&d);
    expect(folder,
           (const char *[]){"/manifest.json: samples is 6, the shard table adds up to 5",
                            "-000001.tar.zst: field \"txt\" is not in the manifest",
                            "/manifest.json: payload_bytes is 33, the shards have 34",
                            "/manifest.json: field \"jpg\": samples is 3, the shards have 4",
                            "/manifest.json: field \"txt2\": samples is 1, the shards have 0"},
           5);
}
END_TEST

START_TEST(a_table_that_is_not_the_manifests_is_told)
{
    char path[4200];
    size_t n = 0;
    dataset_small(&d, folder);
    fixture_path(path, sizeof path, folder, d.table_name);
    char *text = (char *)fixture_load(path, &n);
    text[n - 2] = text[n - 2] == '0' ? '1' : '0';
    fixture_write(folder, d.table_name, text, n);
    free(text);
    expect(folder,
           (const char *[]){": SHA-256 mismatch: manifest says ", "/manifest.json: fingerprint is ",
                            "-000001.tar.zst: index and seek table (from byte "},
           3);
}
END_TEST

START_TEST(keys_must_be_unique_in_the_dataset)
{
    static const fixture_member other[] = {
        {"A/One", "jpg", "x", 1, "A/One.jpg", NULL, 0},
        {"a/two", "jpg", "y", 1, "a/two.jpg", NULL, 0},
        {"z", "jpg", "z", 1, "z.jpg", NULL, 0},
    };
    static const fixture_member again[] = {{"a/two", "jpg", "z", 1, "z.jpg", NULL, 0}};
    dataset_add(&d, dataset_first, 4, 8);
    dataset_add(&d, other, 3, 8);
    dataset_add(&d, again, 1, 8);
    dataset_write(&d);
    expect(folder,
           (const char *[]){"keys \"a/one\" in t-", "key \"a/two\" is there twice: in t-",
                            "key \"a/two\" is there twice: in t-"},
           3);
    found f = {.cancel_at = 0};
    spk_verify_result result;
    ck_ok(verify(folder, 1, &f, &result), err);
    ck_assert_ptr_nonnull(strstr(f.text[0], "-000000.tar.zst (sample 0) and \"A/One\" in t-"));
    ck_assert_ptr_nonnull(strstr(f.text[0], "-000001.tar.zst (sample 0) differ in case only"));
    ck_assert_ptr_nonnull(strstr(f.text[2], "-000002.tar.zst (sample 0)"));
}
END_TEST

START_TEST(case_twins_in_one_shard_are_told)
{
    static const fixture_member twins[] = {
        {"A", "jpg", "x", 1, "A.jpg", NULL, 0},
        {"a", "jpg", "y", 1, "a.jpg", NULL, 0},
    };
    found f = {.cancel_at = 0};
    spk_verify_result result;
    dataset_add(&d, twins, 2, 8);
    dataset_write(&d);
    ck_ok(verify(folder, 1, &f, &result), err);
    ck_assert_uint_ge(result.problems, 1);
    ck_assert_ptr_nonnull(strstr(f.text[0], d.names[0]));
    ck_assert_ptr_nonnull(strstr(f.text[0], "keys \"A\" and \"a\" differ only in case"));
}
END_TEST

START_TEST(it_can_be_cancelled)
{
    spk_verify_result result;
    dataset_small(&d, folder);
    for (unsigned at = 1; at <= 3; at++) {
        found f = {.cancel_at = at};
        ck_assert_int_eq(verify(folder, 2, &f, &result), SPK_E_CANCELLED);
        ck_assert_ptr_nonnull(strstr(err.text, "verify cancelled after"));
    }
}
END_TEST

START_TEST(what_cannot_be_verified_is_an_error)
{
    spk_verify_options options = {.size = sizeof options, .jobs = -1};
    ck_fails(spk_verify("/nowhere", NULL, NULL, &err), err, SPK_E_NOT_FOUND, "/nowhere: no such dataset");
    ck_fails(spk_verify(folder, NULL, NULL, &err), err, SPK_E_NOT_FOUND, "no dataset here");
    ck_fails(spk_verify(folder, &options, NULL, &err), err, SPK_E_INVALID, "jobs is -1");
    fixture_write(folder, "manifest.json", "[]", 2);
    ck_fails(spk_verify(folder, NULL, NULL, &err), err, SPK_E_FORMAT, "not a shardpack manifest");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("dataset/verify");
    TCase *c = tcase_create("verify");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, good_datasets_and_shards_pass);
    tcase_add_test(c, damage_is_told_in_the_order_of_shards);
    tcase_add_test(c, damaged_tails_are_told);
    tcase_add_test(c, manifest_totals_are_compared);
    tcase_add_test(c, a_table_that_is_not_the_manifests_is_told);
    tcase_add_test(c, keys_must_be_unique_in_the_dataset);
    tcase_add_test(c, case_twins_in_one_shard_are_told);
    tcase_add_test(c, it_can_be_cancelled);
    tcase_add_test(c, what_cannot_be_verified_is_an_error);
    suite_add_tcase(s, c);
    return s;
}

CHECK_MAIN(suite)
