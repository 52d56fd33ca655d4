/* load/engine.c: engines run inline over a small dataset of real images. What each row must hold is known beforehand.
 */
#include "engine_fixture.h"

#include <pthread.h>

#include "load/fill_image.h"
#include "load/sequence_feed.h"

enum { IMAGE, LABEL, INDEX, VALID, KEY, JPG, TXT, COLUMNS };

static const spk_column all_columns[COLUMNS] = {
    {.kind = SPK_COLUMN_IMAGE,
     .image = {.size = sizeof(spk_image_options), .height = 8, .width = 12, .hflip = 0.5, .vflip = 0.25}},
    {.kind = SPK_COLUMN_LABEL},
    {.kind = SPK_COLUMN_INDEX},
    {.kind = SPK_COLUMN_VALID},
    {.kind = SPK_COLUMN_KEY},
    {.kind = SPK_COLUMN_BYTES, .field = "jpg"},
    {.kind = SPK_COLUMN_BYTES, .field = "txt", .optional = 1},
};

static spk_loader_options options(uint32_t batch, int workers)
{
    return (spk_loader_options){.size = sizeof(spk_loader_options),
                                .batch_size = batch,
                                .has_workers = 1,
                                .workers = workers,
                                .shuffle = 1,
                                .seed = 5,
                                .chunk = 4,
                                .lane_buffer = 8,
                                .tail = SPK_TAIL_PAD,
                                .columns = all_columns,
                                .column_count = COLUMNS};
}

static load_data data;

static void set_up(void)
{
    load_data_make(&data, NULL);
}

static void tear_down(void)
{
    load_data_free(&data);
}

static void check_cell(load_rig *r, uint32_t column, uint64_t row, const void *want, size_t n)
{
    size_t have = 0;
    const uint8_t *p = load_cell(r, column, row, &have);
    ck_assert_uint_eq(have, n);
    ck_assert_msg(n == 0 || memcmp(p, want, n) == 0, "column %u of row %llu differs", column, (unsigned long long)row);
}

static void check_sample_row(load_rig *r, uint64_t row, uint32_t *seen)
{
    int64_t index = load_number(r, INDEX, row);
    ck_assert(index >= 0 && index < LOAD_SAMPLES);
    const load_sample *s = &data.samples[index];
    uint8_t valid = 1;
    ck_assert_uint_eq(load_state(r, row), SPK_ROW_OK);
    ck_assert_int_eq(load_number(r, LABEL, row), index % 7);
    check_cell(r, VALID, row, &valid, 1);
    check_cell(r, KEY, row, s->key, strlen(s->key));
    check_cell(r, JPG, row, s->jpg, s->jpg_n);
    check_cell(r, TXT, row, s->text, s->text_n);
    seen[index]++;
}

/* The image is that of some repeat which has not been seen yet: bit r of seen[index] is repeat r. */
static void check_image(load_rig *r, spk_fill_images *images, uint64_t row, uint32_t *seen)
{
    int64_t index = load_number(r, INDEX, row);
    uint8_t want[8 * 12 * 3];
    size_t n = 0;
    spk_error err;
    for (uint32_t k = 0; k < r->spec.plan.echo; k++) {
        const spk_draw_key key = {.seed = 5, .epoch = 0, .repeat = k, .index = (uint64_t)index};
        ck_ok(spk_fill_image(images, IMAGE, &key, data.samples[index].jpg, data.samples[index].jpg_n, want, &err), err);
        const uint8_t *have = load_cell(r, IMAGE, row, &n);
        ck_assert_uint_eq(n, sizeof want);
        if (memcmp(have, want, n) != 0)
            continue;
        ck_assert_uint_eq(seen[index] >> k & 1, 0);
        seen[index] |= 1u << k;
        return;
    }
    ck_abort_msg("the image of sample %lld is that of no repeat", (long long)index);
}

START_TEST(images_are_those_of_their_repeat)
{
    spk_loader_options o = options(16, 3);
    spk_fill_images *images = NULL;
    uint32_t seen[LOAD_SAMPLES] = {0};
    spk_batch_range part;
    spk_error err;
    load_rig r;
    o.echo = 3;
    o.lane_groups = 1;
    load_rig_open(&r, &data, &o);
    ck_ok(spk_fill_images_new(&images, &r.spec, &err), err);
    for (uint64_t x = 0; x < r.spec.total; x += 16) {
        ck_ok(load_run(&r, 0, x, &part), r.done.error);
        for (uint64_t row = 0; row < 16 && x + row < r.spec.total; row++)
            check_image(&r, images, row, seen);
    }
    spk_fill_images_free(images);
    load_rig_close(&r);
}
END_TEST

/* A paired column with the same field and filter shows the same pixels; its own flips do not count. */
START_TEST(paired_columns)
{
    const spk_image_options first = all_columns[IMAGE].image;
    spk_column pair[2] = {{.kind = SPK_COLUMN_IMAGE, .image = first},
                          {.kind = SPK_COLUMN_IMAGE, .image = first, .field = "jpg"}};
    spk_loader_options o = options(16, 0);
    spk_batch_range part;
    load_rig r;
    pair[1].image.hflip = 0;
    pair[1].image.paired = 1;
    o.columns = pair;
    o.column_count = 2;
    load_rig_open(&r, &data, &o);
    ck_ok(load_run(&r, 0, 0, &part), r.done.error);
    for (uint64_t row = 0; row < 16; row++) {
        size_t n = 0;
        ck_assert(memcmp(load_cell(&r, 0, row, &n), load_cell(&r, 1, row, &n), n) == 0);
    }
    ck_assert_uint_eq(r.done.counters.images_decoded, 32);
    load_rig_close(&r);
}
END_TEST

typedef struct at_once {
    spk_engine *engine;
    spk_run_packet run;
    spk_done_packet done;
} at_once;

static void *run_one(void *arg)
{
    at_once *a = arg;
    spk_engine_run(a->engine, &a->run, &a->done);
    return NULL;
}

/* Workers fill one slot at the same time: rows are those of one worker alone. */
START_TEST(workers_at_once)
{
    spk_loader_options o = options(48, 4);
    spk_buf want = {0}, have = {0};
    spk_batch_range part;
    pthread_t threads[4];
    at_once jobs[4];
    load_rig alone, r;
    load_rig_open(&r, &data, &o);
    o.workers = 0;
    load_rig_open(&alone, &data, &o);
    ck_ok(load_run(&alone, 3, 0, &part), alone.done.error);
    spk_slot_control *control = spk_slot_control_of(r.memory.base, &r.spec, 0);
    atomic_store(&control->arena_used, SPK_ARENA_FIRST);
    for (uint32_t w = 0; w < 4; w++) {
        jobs[w] = (at_once){.engine = r.engines[w], .run = {SPK_PACKET_RUN, 0, 0, 3, 0, part}};
        ck_assert_int_eq(pthread_create(&threads[w], NULL, run_one, &jobs[w]), 0);
    }
    for (uint32_t w = 0; w < 4; w++) {
        ck_assert_int_eq(pthread_join(threads[w], NULL), 0);
        ck_assert_uint_eq(jobs[w].done.kind, SPK_PACKET_DONE);
    }
    r.serial = 1;
    for (uint64_t row = 0; row < 48; row++) {
        load_show_row(&alone, row, &want);
        load_show_row(&r, row, &have);
    }
    ck_assert_uint_eq(have.len, want.len);
    ck_assert(memcmp(have.data, want.data, want.len) == 0);
    spk_buf_free(&want);
    spk_buf_free(&have);
    load_rig_close(&r);
    load_rig_close(&alone);
}
END_TEST

/* A padded row repeats its lane's last sample, or is empty. */
static void check_padded_row(load_rig *r, uint64_t row)
{
    int64_t index = load_number(r, INDEX, row);
    uint8_t valid = 0;
    ck_assert_uint_eq(load_state(r, row), SPK_ROW_PADDED);
    ck_assert_int_eq(load_number(r, LABEL, row), -100);
    check_cell(r, VALID, row, &valid, 1);
    ck_assert(index >= -1 && index < LOAD_SAMPLES);
    check_cell(r, KEY, row, index < 0 ? "" : data.samples[index].key, index < 0 ? 0 : strlen(data.samples[index].key));
    check_cell(r, JPG, row, index < 0 ? NULL : data.samples[index].jpg, index < 0 ? 0 : data.samples[index].jpg_n);
}

START_TEST(rows_are_samples)
{
    for (uint32_t echo = 1; echo <= 3; echo++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            spk_loader_options o = options(16, 2);
            uint32_t seen[LOAD_SAMPLES] = {0};
            spk_batch_range part;
            load_rig r;
            o.shuffle = shuffle;
            o.echo = echo;
            load_rig_open(&r, &data, &o);
            for (uint64_t x = 0; x < r.spec.total; x += 16) {
                ck_ok(load_run(&r, 0, x, &part), r.done.error);
                ck_assert_uint_eq(part.rows, 16);
                for (uint64_t row = 0; row < 16; row++)
                    if (x + row < r.spec.total)
                        check_sample_row(&r, row, seen);
                    else
                        check_padded_row(&r, row);
            }
            for (size_t i = 0; i < LOAD_SAMPLES; i++)
                ck_assert_uint_eq(seen[i], echo);
            load_rig_close(&r);
        }
}
END_TEST

/* What a run over two epochs shows, in the order of positions, with `ranks` ranks and `workers` workers each. With
 * restart the engines are made anew before every batch. */
static void show_all(spk_loader_options o, uint32_t ranks, int workers, bool restart, uint32_t max_open, spk_buf *out)
{
    load_rig rigs[4];
    uint32_t global = o.batch_size;
    spk_batch_range part;
    o.batch_size = global / ranks;
    o.world_size = ranks;
    o.workers = workers;
    for (o.rank = 0; o.rank < ranks; o.rank++)
        load_rig_open(&rigs[o.rank], &data, &o);
    for (uint32_t epoch = 0; epoch < 2; epoch++)
        for (uint64_t x = 0; x < rigs[0].spec.total; x += global)
            for (uint32_t k = 0; k < ranks; k++) {
                load_rig *r = &rigs[k];
                if (restart || r->max_open != max_open) {
                    load_engines_free(r);
                    r->max_open = max_open;
                    load_engines(r);
                }
                ck_ok(load_run(r, epoch, x, &part), r->done.error);
                for (uint64_t row = 0; row < part.rows; row++)
                    load_show_row(r, row, out);
            }
    for (uint32_t k = 0; k < ranks; k++)
        load_rig_close(&rigs[k]);
}

static void check_same(const spk_loader_options *o, const spk_buf *want, uint32_t ranks, int workers, bool restart,
                       uint32_t max_open)
{
    spk_buf have = {0};
    show_all(*o, ranks, workers, restart, max_open, &have);
    ck_assert_msg(have.len == want->len && memcmp(have.data, want->data, have.len) == 0,
                  "%u ranks, %d workers: other rows", ranks, workers);
    spk_buf_free(&have);
}

static void check_same_rows(spk_loader_options o)
{
    spk_buf want = {0};
    show_all(o, 1, 0, false, 16, &want);
    for (uint32_t ranks = 1; ranks <= 4; ranks++)
        for (int workers = 0; workers <= 4; workers++)
            check_same(&o, &want, ranks, workers, false, 16);
    check_same(&o, &want, 1, 3, true, 16);
    check_same(&o, &want, 2, 1, true, 16);
    check_same(&o, &want, 2, 2, false, 1); /* shards opened again and again */
    spk_buf_free(&want);
}

START_TEST(same_rows_for_any_workers_and_ranks)
{
    spk_loader_options o = options(24, 0);
    o.shuffle = _i != 1;
    o.echo = _i == 2 ? 3 : 1;
    o.chunk = _i == 3 ? 5 : 4; /* lanes shared by ranks */
    check_same_rows(o);
}
END_TEST

/* Batches in any order: each is what it was in its turn. */
START_TEST(jumps)
{
    spk_loader_options o = options(16, 0);
    spk_buf turn[4] = {{0}}, jump = {0};
    spk_batch_range part;
    load_rig r;
    o.shuffle = _i;
    load_rig_open(&r, &data, &o);
    for (uint64_t b = 0; b < 4; b++) {
        ck_ok(load_run(&r, 0, 16 * b, &part), r.done.error);
        for (uint64_t row = 0; row < part.rows; row++)
            load_show_row(&r, row, &turn[b]);
    }
    static const uint64_t order[] = {3, 0, 2, 2, 1, 3, 1, 0};
    for (size_t i = 0; i < 8; i++) {
        ck_ok(load_run(&r, 0, 16 * order[i], &part), r.done.error);
        jump.len = 0;
        for (uint64_t row = 0; row < part.rows; row++)
            load_show_row(&r, row, &jump);
        ck_assert_uint_eq(jump.len, turn[order[i]].len);
        ck_assert(memcmp(jump.data, turn[order[i]].data, jump.len) == 0);
        ck_ok(load_run(&r, 1, 16 * order[i], &part), r.done.error); /* another epoch between */
    }
    load_rig_close(&r);
    spk_buf_free(&jump);
    for (size_t b = 0; b < 4; b++)
        spk_buf_free(&turn[b]);
}
END_TEST

/* An optional field that a sample lacks has no place in the arena, an empty one has. */
START_TEST(empty_values_and_none)
{
    static const spk_column raw[] = {{.kind = SPK_COLUMN_BYTES, .field = "txt", .optional = 1},
                                     {.kind = SPK_COLUMN_BYTES, .field = "xtra", .optional = 1},
                                     {.kind = SPK_COLUMN_INDEX}};
    spk_loader_options o = options(16, 0);
    spk_batch_range part;
    load_rig r;
    unsigned empty = 0;
    o.columns = raw;
    o.column_count = 3;
    load_rig_open(&r, &data, &o);
    ck_ok(load_run(&r, 0, 0, &part), r.done.error);
    for (uint64_t row = 0; row < part.rows; row++) {
        const load_sample *s = &data.samples[load_number(&r, 2, row)];
        for (uint32_t c = 0; c < 2; c++) {
            uint64_t record[2];
            const uint8_t *slot = spk_slot_data(r.memory.base, (uint32_t)((r.serial - 1) % LOAD_SLOTS));
            memcpy(record, slot + r.spec.columns[c].offset + row * sizeof record, sizeof record);
            bool has = (c == 0) == (s->text_n > 0);
            ck_assert_msg(has == (record[0] != 0), "row %llu", (unsigned long long)row);
            ck_assert_uint_eq(record[1], has ? s->text_n : 0);
            empty += has && record[1] == 0;
        }
    }
    ck_assert_uint_gt(empty, 0);
    load_rig_close(&r);
}
END_TEST

/* Frames are read about once, bytes are counted, and nothing is decoded that no column asks for. */
START_TEST(counters)
{
    static const spk_column raw[] = {{.kind = SPK_COLUMN_BYTES, .field = "jpg"}, {.kind = SPK_COLUMN_LABEL}};
    spk_loader_options o = options(16, 0);
    spk_batch_range part;
    spk_run_counters sum = {0};
    load_rig r;
    o.shuffle = 0;
    o.columns = raw;
    o.column_count = 2;
    load_rig_open(&r, &data, &o);
    for (uint64_t x = 0; x < LOAD_SAMPLES; x += 16) {
        ck_ok(load_run(&r, 0, x, &part), r.done.error);
        sum.frames_read += r.done.counters.frames_read;
        sum.bytes_read += r.done.counters.bytes_read;
        sum.padded += r.done.counters.padded;
        ck_assert_uint_eq(r.done.counters.images_decoded, 0);
    }
    ck_assert_uint_eq(sum.frames_read, data.set.m.frames);
    ck_assert_uint_eq(sum.padded, 3);
    ck_assert(sum.bytes_read > 1000 && sum.bytes_read < data.set.m.bytes);
    ck_assert_uint_gt(atomic_load(&spk_memory_activity(&r.memory, 0)->steps), LOAD_SAMPLES);
    load_rig_close(&r);
}
END_TEST

/* Between two repeats of a sample other shards may be opened, by what looks ahead, and its own one closed. */
START_TEST(a_repeat_outlives_its_shard)
{
    spk_loader_options o = options(16, 0);
    spk_run_counters sum = {0};
    spk_item_reader reader = {.counters = &sum};
    spk_sequence_feed feed = {.frame = {.held = false}};
    const spk_item *item = NULL;
    const spk_shard *shard = NULL;
    uint32_t repeat = 0;
    load_rig r;
    spk_plan *plan = NULL;
    spk_error e;
    o.shuffle = 0;
    o.echo = 2;
    load_rig_open(&r, &data, &o);
    const uint64_t *first = (const uint64_t *)(r.memory.base + spk_memory_head(&r.memory)->first_sample);
    ck_ok(spk_plan_new(&plan, first, r.spec.shards, &r.spec.plan, &e), e);
    reader.activity = spk_memory_activity(&r.memory, 0);
    spk_needs_of(&reader.needs, &r.spec);
    ck_ok(spk_shard_cache_new(&reader.cache, r.memory.base, NULL, 1, &e), e);
    ck_ok(spk_frame_reader_new(&reader.decoder, &e), e);
    ck_ok(spk_sequence_feed_at(&feed, &reader, plan, 0, &item, &repeat, &e), e);
    ck_ok(spk_shard_cache_get(reader.cache, 0, &shard, &e), e);
    ck_assert_ptr_ne(item->key, spk_shard_key(shard, 0));
    ck_ok(spk_shard_cache_get(reader.cache, 1, &shard, &e), e); /* the first is closed */
    ck_ok(spk_sequence_feed_at(&feed, &reader, plan, 1, &item, &repeat, &e), e);
    ck_assert_uint_eq(repeat, 1);
    ck_assert_str_eq(item->key, data.samples[0].key);
    ck_assert_uint_eq(item->key_len, strlen(data.samples[0].key));
    spk_sequence_feed_clear(&feed);
    spk_frame_reader_free(reader.decoder);
    spk_shard_cache_free(reader.cache);
    spk_buf_free(&reader.scratch);
    spk_plan_free(plan);
    load_rig_close(&r);
}
END_TEST

START_TEST(memory_estimate)
{
    spk_load_spec spec = {.samples = 1000000,
                          .plan = {.shuffle = true, .buffer = 64, .chunk = 16, .groups = 3, .global_batch = 256}};
    uint64_t one = spk_engine_memory(&spec, 1, 100e3, 1e6), many = spk_engine_memory(&spec, 24, 100e3, 1e6);
    ck_assert_uint_gt(one, 64 * 100000);
    ck_assert_uint_gt(many, 24 * 64 * 100000ull);
    ck_assert_uint_lt(many, 24 * (2 * 64 * 100000ull + 2000000) + (16 << 20));
    spec.shards = 1000000; /* each has a span */
    ck_assert_uint_gt(spk_engine_memory(&spec, 1, 100e3, 1e6), one + 999000 * sizeof(spk_span));
    spec.shards = 1;
    spec.samples = 480; /* a lane cannot hold more than ten */
    ck_assert_uint_lt(spk_engine_memory(&spec, 24, 100e3, 1e6), 24 * (20 * 100000ull + 2000000) + (16 << 20));
    uint64_t none = spk_engine_memory(&spec, 0, 100e3, 1e6);
    spec.samples = 3; /* nor are there more lanes that hold any */
    ck_assert_uint_gt(spk_engine_memory(&spec, 48, 100e3, 1e6), none + 3 * 1100000ull);
    ck_assert_uint_lt(spk_engine_memory(&spec, 48, 100e3, 1e6), none + 2 * 3 * 125000ull + 3 * 1250000ull);
    spec.plan.shuffle = false;
    ck_assert_uint_lt(spk_engine_memory(&spec, 0, 100e3, 1e6), 16 << 20);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_engine");
    TCase *t = tcase_create("engine");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, rows_are_samples);
    tcase_add_test(t, images_are_those_of_their_repeat);
    tcase_add_test(t, paired_columns);
    tcase_add_test(t, workers_at_once);
    tcase_add_loop_test(t, same_rows_for_any_workers_and_ranks, 0, 4);
    tcase_add_loop_test(t, jumps, 0, 2);
    tcase_add_test(t, empty_values_and_none);
    tcase_add_test(t, counters);
    tcase_add_test(t, a_repeat_outlives_its_shard);
    tcase_add_test(t, memory_estimate);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
