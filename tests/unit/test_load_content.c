/* load/engine.c on what is wrong: images, labels, frames, shards. Content errors follow on_error; the rest never does.
 */
#include "engine_fixture.h"

enum { IMAGE, LABEL, INDEX, VALID, KEY, TXT, COLUMNS };
enum { BAD_IMAGE = 10, BAD_LABEL = 33, NO_IMAGE = 50 };

static const spk_column columns[COLUMNS] = {
    {.kind = SPK_COLUMN_IMAGE, .image = {.size = sizeof(spk_image_options), .height = 8, .width = 8}},
    {.kind = SPK_COLUMN_LABEL},
    {.kind = SPK_COLUMN_INDEX},
    {.kind = SPK_COLUMN_VALID},
    {.kind = SPK_COLUMN_KEY},
    {.kind = SPK_COLUMN_BYTES, .field = "txt", .optional = 1},
};

static spk_loader_options options(spk_on_error on_error)
{
    return (spk_loader_options){.size = sizeof(spk_loader_options),
                                .batch_size = 16,
                                .has_workers = 1,
                                .chunk = 4,
                                .lane_buffer = 8,
                                .on_error = on_error,
                                .columns = columns,
                                .column_count = COLUMNS};
}

static load_data data;

static void tear_down(void)
{
    load_data_free(&data);
}

static void spoil_samples(load_data *d)
{
    d->samples[BAD_IMAGE].jpg_n /= 2;
    snprintf(d->samples[BAD_LABEL].label, sizeof d->samples[0].label, "dog");
    d->samples[NO_IMAGE].jpg_n = 0;
}

static void set_up_samples(void)
{
    load_data_make(&data, spoil_samples);
}

static void set_up_sound(void)
{
    load_data_make(&data, NULL);
}

static void check_substituted(load_rig *r, uint64_t row, int64_t index)
{
    size_t n = 0;
    const uint8_t *p = load_cell(r, IMAGE, row, &n);
    ck_assert_uint_eq(load_state(r, row), SPK_ROW_SUBSTITUTED);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(p[i], 0);
    ck_assert_int_eq(load_number(r, LABEL, row), -100);
    ck_assert_int_eq(load_number(r, INDEX, row), index);
    ck_assert_uint_eq(*load_cell(r, VALID, row, &n), 0);
    p = load_cell(r, KEY, row, &n);
    ck_assert_uint_eq(n, strlen(data.samples[index].key));
    ck_assert(memcmp(p, data.samples[index].key, n) == 0);
    load_cell(r, TXT, row, &n);
    ck_assert_uint_eq(n, 0);
}

/* Runs an epoch in which exactly the samples of `bad` cannot be had. */
static void check_epoch(spk_loader_options o, const bool *bad)
{
    load_rig r;
    spk_batch_range part;
    uint64_t substituted = 0, expected = 0;
    load_rig_open(&r, &data, &o);
    for (uint64_t x = 0; x < LOAD_SAMPLES; x += 16) {
        ck_ok(load_run(&r, 0, x, &part), r.done.error);
        substituted += r.done.counters.substituted;
        if (r.engines_n == 1)
            ck_assert_int_eq(r.done.counters.substituted > 0, r.done.first_substitution.code != SPK_OK);
        for (uint64_t row = 0; row < part.rows; row++) {
            int64_t index = load_number(&r, INDEX, row);
            if (bad[index])
                check_substituted(&r, row, index);
            else
                ck_assert_uint_eq(load_state(&r, row), SPK_ROW_OK);
        }
    }
    for (size_t i = 0; i < LOAD_SAMPLES; i++)
        expected += bad[i];
    ck_assert_uint_eq(substituted, expected);
    load_rig_close(&r);
}

static void check_all_epochs(const bool *bad)
{
    spk_loader_options o = options(SPK_ON_ERROR_SUBSTITUTE);
    for (o.shuffle = 0; o.shuffle < 2; o.shuffle++)
        for (o.workers = 0; o.workers < 4; o.workers++)
            check_epoch(o, bad);
}

/* The first batch must fail, at this row. */
static void check_failure(load_rig *r, uint64_t x, spk_status code, uint64_t row, const char *text)
{
    spk_batch_range part;
    ck_assert_int_eq(load_run(r, 0, x, &part), code);
    ck_assert_uint_eq(r->done.row, row);
    ck_assert_msg(strncmp(r->done.error.text, "t-", 2) == 0 && strstr(r->done.error.text, text), "%s",
                  r->done.error.text);
}

START_TEST(substitute_samples)
{
    bool bad[LOAD_SAMPLES] = {[BAD_IMAGE] = true, [BAD_LABEL] = true, [NO_IMAGE] = true};
    check_all_epochs(bad);
}
END_TEST

START_TEST(fail_at_a_sample)
{
    spk_loader_options o = options(SPK_ON_ERROR_FAIL);
    spk_batch_range part;
    load_rig r;
    load_rig_open(&r, &data, &o);
    check_failure(&r, 0, SPK_E_FORMAT, BAD_IMAGE, "-000001.tar.zst: sample \"c3/sample-010\": jpg: ");
    check_failure(&r, 32, SPK_E_FORMAT, BAD_LABEL - 32, "sample \"c5/sample-033\": cls: \"dog\" is no label");
    check_failure(&r, 48, SPK_E_FORMAT, NO_IMAGE - 48, "sample \"c1/sample-050\": jpg: ");
    ck_ok(load_run(&r, 0, 16, &part), r.done.error); /* the engine goes on */
    load_rig_close(&r);
}
END_TEST

/* Padding that repeats a sample which cannot be had is padding, not another substitution. */
START_TEST(padding_of_a_bad_sample)
{
    spk_loader_options o = options(SPK_ON_ERROR_SUBSTITUTE);
    spk_batch_range part;
    load_rig r;
    o.tail = SPK_TAIL_PAD;
    o.limit = NO_IMAGE + 1;
    load_rig_open(&r, &data, &o);
    ck_ok(load_run(&r, 0, 48, &part), r.done.error);
    check_substituted(&r, NO_IMAGE - 48, NO_IMAGE);
    ck_assert_uint_eq(r.done.counters.substituted, 1);
    ck_assert_uint_eq(r.done.counters.padded, 13);
    for (uint64_t row = 3; row < 16; row++) {
        size_t n = 0;
        ck_assert_uint_eq(load_state(&r, row), SPK_ROW_PADDED);
        ck_assert_int_eq(load_number(&r, INDEX, row), NO_IMAGE);
        ck_assert_uint_eq(load_cell(&r, IMAGE, row, &n)[9], 0);
    }
    load_rig_close(&r);
}
END_TEST

static void shard_path(char *out, size_t cap, unsigned shard)
{
    snprintf(out, cap, "%s/t-%.8s-%06u.tar.zst", data.folder, data.set.m.fingerprint, shard);
}

/* Changes one byte of a file. */
static void flip(unsigned shard, long at)
{
    char path[4300];
    shard_path(path, sizeof path, shard);
    FILE *f = fopen(path, "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
    int c = fgetc(f);
    ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
    ck_assert_int_ne(fputc(c ^ 0x10, f), EOF);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(damaged_frame)
{
    bool bad[LOAD_SAMPLES] = {false};
    for (size_t i = 7; i < 11; i++) /* the first frame of the second shard */
        bad[i] = true;
    flip(1, 200);
    check_all_epochs(bad);
    spk_loader_options o = options(SPK_ON_ERROR_FAIL);
    load_rig r;
    load_rig_open(&r, &data, &o);
    check_failure(&r, 0, SPK_E_CHECKSUM, 7, "-000001.tar.zst: sample \"c0/sample-007\": frame 0: checksum mismatch");
    load_rig_close(&r);
}
END_TEST

static void check_fatal(spk_status want, const char *text)
{
    spk_loader_options o = options(SPK_ON_ERROR_SUBSTITUTE);
    for (o.shuffle = 0; o.shuffle < 2; o.shuffle++) {
        load_rig r;
        spk_batch_range part;
        spk_status status = SPK_OK;
        load_rig_open(&r, &data, &o);
        for (uint64_t x = 0; x < LOAD_SAMPLES && status == SPK_OK; x += 16)
            status = load_run(&r, 0, x, &part);
        ck_assert_int_eq(status, want);
        ck_assert_msg(strstr(r.done.error.text, text), "%s", r.done.error.text);
        load_rig_close(&r);
    }
}

START_TEST(missing_shard)
{
    char path[4300];
    shard_path(path, sizeof path, 3);
    ck_assert_int_eq(unlink(path), 0);
    check_fatal(SPK_E_NOT_FOUND, "-000003.tar.zst");
}
END_TEST

START_TEST(truncated_shard)
{
    char path[4300];
    shard_path(path, sizeof path, 3);
    ck_assert_int_eq(truncate(path, 1000), 0);
    check_fatal(SPK_E_FORMAT, "-000003.tar.zst");
}
END_TEST

/* Cut while it is open: a frame that is gone is no damaged frame. */
START_TEST(shard_cut_while_open)
{
    char path[4300];
    spk_loader_options o = options(SPK_ON_ERROR_SUBSTITUTE);
    spk_batch_range part;
    load_rig r;
    o.batch_size = 8;
    load_rig_open(&r, &data, &o);
    ck_ok(load_run(&r, 0, 0, &part), r.done.error); /* opens shard 1 for its first sample */
    shard_path(path, sizeof path, 1);
    ck_assert_int_eq(truncate(path, 3000), 0);
    spk_status status = load_run(&r, 0, 8, &part);
    if (status == SPK_OK)
        status = load_run(&r, 0, 16, &part);
    ck_assert_int_eq(status, SPK_E_FORMAT);
    ck_assert_msg(strstr(r.done.error.text, "when it was opened"), "%s", r.done.error.text);
    load_rig_close(&r);
}
END_TEST

START_TEST(damaged_index)
{
    flip(2, (long)data.set.rows[2].index_offset + 60);
    check_fatal(SPK_E_CHECKSUM, "-000002.tar.zst");
}
END_TEST

START_TEST(arena_full)
{
    spk_loader_options o = options(SPK_ON_ERROR_SUBSTITUTE);
    spk_batch_range part;
    load_rig r;
    load_rig_open(&r, &data, &o);
    spk_memory_spec(&r.memory)->arena_bytes = r.spec.arena_bytes = 100;
    ck_assert_int_eq(load_run(&r, 0, 0, &part), SPK_E_LIMIT);
    ck_assert_msg(strstr(r.done.error.text, "a batch of 16 rows need more than 100 bytes"), "%s", r.done.error.text);
    load_rig_close(&r);
}
END_TEST

/* A rank of which the lanes are all empty at the end: rows of nothing. */
START_TEST(empty_lanes)
{
    spk_loader_options o = options(SPK_ON_ERROR_FAIL);
    spk_batch_range part;
    load_rig r;
    o.shuffle = 1;
    o.world_size = 2;
    o.rank = 1;
    o.batch_size = 64;
    load_rig_open(&r, &data, &o);
    ck_assert_uint_eq(spk_batches_left(&r.spec, 0), 1);
    ck_ok(load_run(&r, 0, 0, &part), r.done.error);
    ck_assert_uint_eq(r.done.counters.padded, 64);
    for (uint64_t row = 0; row < 64; row++) {
        size_t n = 0;
        ck_assert_int_eq(load_number(&r, INDEX, row), -1);
        ck_assert_int_eq(load_number(&r, LABEL, row), -100);
        load_cell(&r, KEY, row, &n);
        ck_assert_uint_eq(n, 0);
        ck_assert_uint_eq(load_cell(&r, IMAGE, row, &n)[5], 0);
    }
    load_rig_close(&r);
}
END_TEST

START_TEST(senseless_packet)
{
    spk_loader_options o = options(SPK_ON_ERROR_FAIL);
    load_rig r;
    spk_done_packet done;
    load_rig_open(&r, &data, &o);
    spk_run_packet run = {.kind = SPK_PACKET_RUN, .slot = LOAD_SLOTS, .batch = {.rows = 16}};
    spk_engine_run(r.engines[0], &run, &done);
    ck_assert_uint_eq(done.kind, SPK_PACKET_FAIL);
    ck_assert_int_eq(done.error.code, SPK_E_WORKER);
    run = (spk_run_packet){.kind = SPK_PACKET_RUN, .batch = {.rows = 17}};
    spk_engine_run(r.engines[0], &run, &done);
    ck_assert_uint_eq(done.kind, SPK_PACKET_FAIL);
    load_rig_close(&r);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_content");
    TCase *t = tcase_create("samples");
    tcase_add_checked_fixture(t, set_up_samples, tear_down);
    tcase_add_test(t, substitute_samples);
    tcase_add_test(t, fail_at_a_sample);
    tcase_add_test(t, padding_of_a_bad_sample);
    suite_add_tcase(s, t);
    t = tcase_create("shards");
    tcase_add_checked_fixture(t, set_up_sound, tear_down);
    tcase_add_test(t, damaged_frame);
    tcase_add_test(t, missing_shard);
    tcase_add_test(t, truncated_shard);
    tcase_add_test(t, shard_cut_while_open);
    tcase_add_test(t, damaged_index);
    tcase_add_test(t, arena_full);
    tcase_add_test(t, empty_lanes);
    tcase_add_test(t, senseless_packet);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
