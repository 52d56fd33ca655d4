/* load/spec.c: defaults, ranges, and the layout of a slot. */
#include "engine_fixture.h"

#include <math.h>

#include "base/cpu.h"
#include "dataset/dataset.h"

static load_data data;
static spk_dataset *dataset;

static void set_up(void)
{
    spk_error err;
    load_data_make(&data, NULL);
    ck_ok(spk_dataset_open(&dataset, data.folder, NULL, &err), err);
}

static void tear_down(void)
{
    spk_dataset_close(dataset);
    load_data_free(&data);
}

static spk_loader_options basic(void)
{
    return (spk_loader_options){.size = sizeof(spk_loader_options), .batch_size = 256};
}

static void make(spk_load_spec *s, const spk_loader_options *o)
{
    spk_error err;
    ck_ok(spk_load_spec_make(s, dataset, o, &err), err);
}

static void refuse(const spk_loader_options *o, const char *text)
{
    spk_load_spec s;
    spk_error err;
    ck_fails(spk_load_spec_make(&s, dataset, o, &err), err, SPK_E_INVALID, text);
}

START_TEST(defaults)
{
    spk_loader_options o = basic();
    spk_load_spec s;
    make(&s, &o);
    ck_assert_uint_eq(s.world_size, 1);
    ck_assert_uint_eq(s.tail, SPK_TAIL_KEEP);
    ck_assert_uint_ge(s.workers, 1);
    ck_assert_uint_eq(s.total, LOAD_SAMPLES);
    ck_assert_uint_eq(s.columns_n, 2);
    ck_assert_uint_eq(s.columns[0].kind, SPK_COLUMN_IMAGE);
    ck_assert_uint_eq(s.columns[0].image.transform, SPK_RESIZE_CENTER_CROP);
    ck_assert_uint_eq(s.columns[0].image.resize, 256);
    ck_assert_uint_eq(s.columns[0].image.max_pixels, 178956970);
    ck_assert_uint_eq(s.columns[0].row_bytes, 224 * 224 * 3);
    ck_assert_str_eq(s.columns[1].field, "cls");
    ck_assert_uint_eq(s.has_arena, 0);
    ck_assert_uint_eq(s.arena_bytes, 0);
    o.shuffle = 1;
    o.world_size = 4;
    o.rank = 3;
    make(&s, &o);
    ck_assert_uint_eq(s.tail, SPK_TAIL_PAD);
    ck_assert_uint_eq(s.columns[0].image.transform, SPK_RANDOM_RESIZED_CROP);
    ck_assert(s.columns[0].image.scale[0] == 0.08 && s.columns[0].image.ratio[1] == 4.0 / 3.0);
    ck_assert_uint_eq(s.plan.global_batch, 1024);
    ck_assert_uint_eq(s.plan.chunk, SPK_PLAN_CHUNK);
    ck_assert_uint_eq(s.plan.buffer, SPK_PLAN_BUFFER);
    ck_assert_uint_eq(s.plan.groups, 1); /* 64 chunks are lanes enough */
    ck_assert_uint_eq(s.plan.echo, 1);
    o.local_world_size = 4;
    uint32_t quota = (uint32_t)spk_cpu_quota(), workers = s.workers;
    make(&s, &o); /* at least one, however many share the processors */
    ck_assert_uint_le(s.workers, quota / 4 > 1 ? quota / 4 : 1);
    ck_assert_uint_ge(s.workers, 1);
    ck_assert_uint_le(s.workers, workers);
    o.has_workers = 1;
    o.workers = 0;
    o.echo = 3;
    o.limit = 100;
    make(&s, &o);
    ck_assert_uint_eq(s.workers, 0);
    ck_assert_uint_eq(s.total, 100);
    o.limit = 1000;
    make(&s, &o);
    ck_assert_uint_eq(s.total, 3 * LOAD_SAMPLES);
}
END_TEST

/* The order must not depend on how a global batch is split. */
START_TEST(plan_depends_on_global_batch_only)
{
    spk_loader_options o = basic();
    spk_load_spec one, eight;
    o.shuffle = 1;
    make(&one, &o);
    o.batch_size = 32;
    o.world_size = 8;
    o.has_workers = 1;
    o.workers = 5;
    make(&eight, &o);
    ck_assert_uint_eq(one.plan.global_batch, eight.plan.global_batch);
    ck_assert_uint_eq(one.plan.chunk, eight.plan.chunk);
    ck_assert_uint_eq(one.plan.groups, eight.plan.groups);
    ck_assert_uint_eq(one.plan.buffer, eight.plan.buffer);
}
END_TEST

START_TEST(chunks_of_stored_order)
{
    spk_loader_options o = basic();
    spk_load_spec s;
    size_t frame = (LOAD_SAMPLES + data.set.m.frames - 1) / data.set.m.frames;
    ck_assert_uint_eq(frame, 5);
    static const uint32_t want[][3] = {/* batch, echo, chunk */
                                       {256, 1, 8}, {5, 1, 5},  {4, 1, 4},   {1, 1, 1},    {30, 1, 5},
                                       {7, 1, 7},   {14, 1, 7}, {26, 1, 13}, {100, 2, 10}, {256, 100, 256}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        o.batch_size = want[i][0];
        o.echo = want[i][1];
        make(&s, &o);
        ck_assert_msg(s.plan.chunk == want[i][2], "batch %u: chunk %u", o.batch_size, s.plan.chunk);
    }
    o.chunk = 3;
    make(&s, &o);
    ck_assert_uint_eq(s.plan.chunk, 3);
}
END_TEST

START_TEST(stored_dataset_is_mixed_more)
{
    spk_loader_options o = basic();
    spk_load_spec s;
    o.shuffle = 1;
    dataset->manifest.shuffled = false;
    make(&s, &o);
    ck_assert_uint_lt(s.plan.chunk, SPK_PLAN_CHUNK);
    ck_assert_uint_eq(s.plan.buffer, SPK_PLAN_BUFFER);
    o.chunk = 16;
    o.lane_buffer = 64;
    make(&s, &o);
    ck_assert_uint_eq(s.plan.chunk, 16);
    ck_assert_uint_eq(s.plan.buffer, 64);
}
END_TEST

START_TEST(layout)
{
    spk_image_options image = {.size = sizeof image, .height = 5, .width = 7, .dtype = SPK_FLOAT32, .layout = SPK_NCHW};
    spk_image_options mask = {.size = sizeof mask, .height = 3, .width = 9, .channels = 1, .paired = 1};
    spk_column c[] = {{.kind = SPK_COLUMN_IMAGE, .image = image},
                      {.kind = SPK_COLUMN_VALID},
                      {.kind = SPK_COLUMN_IMAGE, .image = mask, .field = "jpg"},
                      {.kind = SPK_COLUMN_INDEX},
                      {.kind = SPK_COLUMN_KEY},
                      {.kind = SPK_COLUMN_BYTES, .field = "jpg"}};
    static const uint64_t row[] = {5 * 7 * 3 * 4, 1, 27, 8, 16, 16};
    spk_loader_options o = basic();
    spk_load_spec s;
    o.batch_size = 10;
    o.columns = c;
    o.column_count = 6;
    make(&s, &o);
    uint64_t end = 0;
    for (size_t i = 0; i < 6; i++) {
        ck_assert_uint_eq(s.columns[i].row_bytes, row[i]);
        ck_assert_uint_eq(s.columns[i].offset % SPK_COLUMN_ALIGN, 0);
        ck_assert_uint_ge(s.columns[i].offset, end);
        ck_assert_uint_eq(s.columns[i].shape[0], 10);
        end = s.columns[i].offset + 10 * row[i];
    }
    ck_assert_uint_ge(s.rows_offset, end);
    ck_assert_uint_ge(s.slot_bytes, s.rows_offset + 10);
    ck_assert_uint_eq(s.slot_bytes % SPK_SLOT_ALIGN, 0);
    ck_assert_uint_eq(s.columns[0].ndim, 4);
    ck_assert_uint_eq(s.columns[0].shape[1], 3);
    ck_assert_uint_eq(s.columns[0].shape[2], 5);
    ck_assert_uint_eq(s.columns[0].shape[3], 7);
    ck_assert_uint_eq(s.columns[2].shape[1], 3);
    ck_assert_uint_eq(s.columns[2].shape[3], 1);
    ck_assert_uint_eq(s.columns[0].dtype, SPK_FLOAT32);
    ck_assert_uint_eq(s.columns[3].dtype, SPK_INT64);
    ck_assert_uint_eq(s.has_arena, 1);
    uint64_t mean = data.set.m.payload_bytes / LOAD_SAMPLES;
    ck_assert_uint_ge(s.arena_bytes, (64u << 20) + 8 * 10 * mean);
    ck_assert_uint_le(s.arena_bytes, 1ull << 36);
    ck_assert_uint_eq(s.arena_bytes % SPK_SLOT_ALIGN, 0);
}
END_TEST

#define REFUSED(member, value, text)                                                                                   \
    do {                                                                                                               \
        spk_loader_options o_ = basic();                                                                               \
        o_.member = value;                                                                                             \
        refuse(&o_, text);                                                                                             \
    } while (0)

START_TEST(options_out_of_range)
{
    REFUSED(batch_size, 0, "batch_size of 0: must be 1 to 1048576");
    REFUSED(batch_size, 1048577, "batch_size of 1048577");
    REFUSED(rank, 1, "rank of 1: must be less than world_size, which is 1");
    REFUSED(world_size, 1 << 24, "together");
    REFUSED(local_world_size, 2, "local_world_size of 2: must be 0 to 1");
    REFUSED(prefetch, 5000, "prefetch of 5000");
    REFUSED(epoch, 0x40000000, "epoch of 1073741824: must be 0 to 1073741823");
    REFUSED(lane_buffer, (1u << 24) + 1, "lane_buffer of 16777217");
    REFUSED(lane_groups, (1u << 24) + 1, "lane_groups of 16777217");
    REFUSED(chunk, (1u << 24) + 1, "chunk of 16777217");
    REFUSED(echo, 65537, "echo of 65537: must be 0 to 65536");
    REFUSED(tail, (spk_tail)4, "tail of 4");
    REFUSED(on_error, (spk_on_error)2, "on_error of 2");
    REFUSED(timeout, (double)NAN, "timeout of nan");
    REFUSED(size, 0, "size");
    spk_loader_options o = basic();
    o.has_workers = 1;
    o.workers = -1;
    refuse(&o, "num_workers of -1: must be 0 to 1024");
    o.workers = 1025;
    refuse(&o, "num_workers of 1025");
    REFUSED(workers, 4, "workers of 4: has_workers is not set");
    REFUSED(max_errors, 5, "max_errors of 5: needs on_error \"substitute\"");
    o = basic();
    o.world_size = 2;
    o.tail = SPK_TAIL_KEEP;
    refuse(&o, "tail \"keep\" with world_size of 2");
}
END_TEST

static void refuse_column(spk_column c, const char *text)
{
    const spk_column two[2] = {{.kind = SPK_COLUMN_LABEL}, c};
    spk_loader_options o = basic();
    o.columns = two;
    o.column_count = 2;
    refuse(&o, text);
}

#define REFUSED_IMAGE(member, value, text)                                                                             \
    do {                                                                                                               \
        spk_column c_ = {.kind = SPK_COLUMN_IMAGE, .image = {.size = sizeof(spk_image_options)}};                      \
        c_.image.member = value;                                                                                       \
        refuse_column(c_, "column 1: ");                                                                               \
        refuse_column(c_, text);                                                                                       \
    } while (0)

START_TEST(columns_out_of_range)
{
    spk_loader_options o = basic();
    spk_column many[65];
    for (size_t i = 0; i < 65; i++)
        many[i] = (spk_column){.kind = SPK_COLUMN_LABEL};
    o.columns = many;
    refuse(&o, "column_count of 0: must be 1 to 64");
    o.column_count = 65;
    refuse(&o, "column_count of 65");
    refuse_column((spk_column){0}, "kind of 0: must be 1 to 8");
    refuse_column((spk_column){.kind = SPK_COLUMN_BYTES}, "field: must be given");
    refuse_column((spk_column){.kind = SPK_COLUMN_BYTES, .field = "json"}, "field \"json\": no sample");
    refuse_column((spk_column){.kind = SPK_COLUMN_BYTES, .field = "A"}, "field \"A\" holds a byte");
    refuse_column((spk_column){.kind = SPK_COLUMN_LABEL, .field = "label"}, "field \"label\": no sample");
    refuse_column((spk_column){.kind = SPK_COLUMN_IMAGE}, "size");
    REFUSED_IMAGE(width, 100000, "width");
    REFUSED_IMAGE(channels, 2, "channels: 2");
    REFUSED_IMAGE(hflip, 1.5, "hflip: 1.5");
    REFUSED_IMAGE(scale[0], 2, "scale");
    REFUSED_IMAGE(ratio[0], -1, "ratio");
    REFUSED_IMAGE(dtype, SPK_INT64, "dtype");
    REFUSED_IMAGE(layout, (spk_layout)2, "layout");
    REFUSED_IMAGE(transform, (spk_transform)3, "transform");
    REFUSED_IMAGE(interpolation, (spk_interpolation)3, "interpolation");
    REFUSED_IMAGE(normalize, 1, "normalize");
    REFUSED_IMAGE(mean[2], 0.5f, "mean of 0.5, std of 0: normalize is not set");
    REFUSED_IMAGE(std[0], 0.5f, "mean of 0, std of 0.5: normalize is not set");
    REFUSED_IMAGE(paired, 1, "paired");
    spk_load_spec s;
    spk_column c = {.kind = SPK_COLUMN_BYTES, .field = "json", .optional = 1};
    o.columns = &c;
    o.column_count = 1;
    make(&s, &o);
    spk_column big = {.kind = SPK_COLUMN_IMAGE,
                      .image = {.size = sizeof big.image, .height = 16384, .width = 16384, .dtype = SPK_FLOAT32}};
    spk_error err;
    o.columns = &big;
    o.batch_size = 1 << 20;
    ck_fails(spk_load_spec_make(&s, dataset, &o, &err), err, SPK_E_LIMIT, "batch_size of 1048576");
}
END_TEST

START_TEST(indices_out_of_range)
{
    spk_loader_options o = basic();
    spk_load_spec s;
    const uint64_t good[] = {0, 1, LOAD_SAMPLES - 1}, twice[] = {3, 5, 5}, back[] = {3, 5, 4},
                   beyond[] = {3, LOAD_SAMPLES};
    o.indices = good;
    o.index_count = 3;
    make(&s, &o);
    ck_assert_uint_eq(s.samples, 3);
    ck_assert_uint_eq(s.total, 3);
    ck_assert_uint_eq(s.shards, 2);
    o.index_count = 0;
    refuse(&o, "indices: there are none; at least one sample must be chosen");
    o.index_count = 3;
    o.indices = twice;
    refuse(&o, "indices: 5 at place 2 comes after 5: they must ascend, each once");
    o.indices = back;
    refuse(&o, "indices: 4 at place 2 comes after 5: they must ascend, each once");
    o.index_count = 2;
    o.indices = beyond;
    refuse(&o, "indices: 61 at place 1: the dataset has 61 samples");
    o.indices = NULL;
    o.index_count = 1;
    refuse(&o, "index_count of 1 without indices");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_spec");
    TCase *t = tcase_create("spec");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, defaults);
    tcase_add_test(t, plan_depends_on_global_batch_only);
    tcase_add_test(t, chunks_of_stored_order);
    tcase_add_test(t, stored_dataset_is_mixed_more);
    tcase_add_test(t, layout);
    tcase_add_test(t, options_out_of_range);
    tcase_add_test(t, columns_out_of_range);
    tcase_add_test(t, indices_out_of_range);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
