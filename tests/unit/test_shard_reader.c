/* shard/reader over a run of shards: order, numbers, seeking, and what happens when a shard cannot be had. */
#include "check_main.h"

#include "shard/shard.h"
#include "shard_fixture.h"

enum { SHARDS = 3 };

/* Hands out three shards of 3 samples each; `fail` gives the status for shard 1. */
typedef struct run {
    spk_shard *shards[SHARDS];
    spk_status fail;
    int gets, closed;
} run;

static spk_status run_get(void *ctx, uint64_t n, const spk_shard **out, spk_error *err)
{
    run *r = ctx;
    r->gets++;
    if (n >= SHARDS)
        return SPK_END;
    if (n == 1 && r->fail != SPK_OK)
        return spk_error_set(err, r->fail, "shard 1 cannot be had");
    *out = r->shards[n];
    return SPK_OK;
}

static spk_status run_locate(void *ctx, uint64_t number, uint64_t *shard, uint64_t *within, spk_error *err)
{
    (void)ctx;
    if (number > 3 * SHARDS)
        return spk_error_set(err, SPK_E_INVALID, "no sample %d", (int)number);
    *shard = number / 3;
    *within = number % 3;
    return SPK_OK;
}

static uint64_t run_first_of(void *ctx, uint64_t shard)
{
    (void)ctx;
    return 3 * shard;
}

static void run_close(void *ctx)
{
    ((run *)ctx)->closed++;
}

static run the_run;
static spk_reader_shards interface;

static void setup(void)
{
    char *folder = check_temp_folder(), path[4096];
    spk_shard_info info;
    snprintf(path, sizeof path, "%s/x.tar.zst", folder);
    fixture_shard(path, fixture_small, 6, 3, 1, &info);
    memset(&the_run, 0, sizeof the_run);
    for (int i = 0; i < SHARDS; i++)
        fixture_must(spk_shard_open(&the_run.shards[i], path, NULL, fe));
    check_remove_tree(folder);
    interface = (spk_reader_shards){run_get, run_locate, run_first_of, run_close, &the_run};
}

static void teardown(void)
{
    for (int i = 0; i < SHARDS; i++)
        spk_shard_close(the_run.shards[i]);
}

START_TEST(samples_go_on_over_the_shards)
{
    spk_reader *r = NULL;
    const spk_sample *x = NULL;
    spk_error err;
    ck_ok(spk_reader_new(&r, &interface, 1, &err), err);
    for (uint64_t i = 1; i < 9; i++) {
        ck_ok(spk_reader_next(r, &x, &err), err);
        ck_assert_uint_eq(x->number, i);
        ck_assert_uint_eq(x->shard, i / 3);
        ck_assert_uint_eq(x->frame, i % 3 / 2);
        ck_assert_str_eq(x->key, spk_shard_key(the_run.shards[0], i % 3));
    }
    ck_assert_int_eq(spk_reader_next(r, &x, &err), SPK_END);
    ck_ok(spk_reader_seek(r, 4, &err), err);
    ck_ok(spk_reader_next(r, &x, &err), err);
    ck_assert_uint_eq(x->number, 4);
    int gets = the_run.gets;
    ck_ok(spk_reader_seek(r, 3, &err), err);
    ck_ok(spk_reader_next(r, &x, &err), err);
    ck_assert_uint_eq(x->number, 3);
    ck_assert_int_eq(the_run.gets, gets); /* the same shard is not asked for again */
    ck_ok(spk_reader_seek(r, 9, &err), err);
    ck_assert_int_eq(spk_reader_next(r, &x, &err), SPK_END);
    ck_fails(spk_reader_seek(r, 10, &err), err, SPK_E_INVALID, "no sample 10");
    spk_reader_close(r);
    ck_assert_int_eq(the_run.closed, 1);
    ck_fails(spk_reader_new(&r, &interface, 10, &err), err, SPK_E_INVALID, "no sample 10");
    ck_assert_int_eq(the_run.closed, 1);
}
END_TEST

START_TEST(a_bad_shard_is_told_once)
{
    static const spk_status content[] = {SPK_E_FORMAT, SPK_E_CHECKSUM, SPK_E_LIMIT, SPK_E_UNSUPPORTED};
    for (size_t i = 0; i < sizeof content / sizeof *content; i++) {
        spk_reader *r = NULL;
        const spk_sample *x = NULL;
        spk_error err;
        the_run.fail = content[i];
        ck_ok(spk_reader_new(&r, &interface, 2, &err), err);
        ck_ok(spk_reader_next(r, &x, &err), err);
        ck_fails(spk_reader_next(r, &x, &err), err, content[i], "shard 1 cannot be had");
        ck_assert_ptr_null(x);
        ck_ok(spk_reader_next(r, &x, &err), err);
        ck_assert_uint_eq(x->number, 6);
        spk_reader_close(r);
    }
}
END_TEST

START_TEST(a_failed_read_is_met_again)
{
    spk_reader *r = NULL;
    const spk_sample *x = NULL;
    spk_error err;
    the_run.fail = SPK_E_IO;
    ck_ok(spk_reader_new(&r, &interface, 3, &err), err);
    ck_fails(spk_reader_next(r, &x, &err), err, SPK_E_IO, "shard 1 cannot be had");
    ck_fails(spk_reader_next(r, &x, &err), err, SPK_E_IO, "shard 1 cannot be had");
    the_run.fail = SPK_OK;
    ck_ok(spk_reader_next(r, &x, &err), err);
    ck_assert_uint_eq(x->number, 3);
    spk_reader_close(r);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("shard/reader");
    TCase *t = tcase_create("reader");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, samples_go_on_over_the_shards);
    tcase_add_test(t, a_bad_shard_is_told_once);
    tcase_add_test(t, a_failed_read_is_met_again);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
