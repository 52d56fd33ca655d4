/* load/: columns of a field's bytes where the shard holds JPEG as coefficients: files, stored forms, and which of both
 * a value is. */
#include "engine_fixture.h"

#include <shardpack/image.h>

#include "image/transcode.h"

enum { KEY, INDEX, FILES, STORED, ORIGINAL, TEXT, TEXT_ORIGINAL, IMAGE, COLUMNS };
enum { BROKEN = 12, WIDE = 8, HIGH = 6 };

static const spk_column columns[COLUMNS] = {
    {.kind = SPK_COLUMN_KEY},
    {.kind = SPK_COLUMN_INDEX},
    {.kind = SPK_COLUMN_BYTES, .field = "jpg"},
    {.kind = SPK_COLUMN_STORED, .field = "jpg"},
    {.kind = SPK_COLUMN_ORIGINAL, .field = "jpg"},
    {.kind = SPK_COLUMN_STORED, .field = "txt", .optional = 1},
    {.kind = SPK_COLUMN_ORIGINAL, .field = "txt", .optional = 1},
    {.kind = SPK_COLUMN_IMAGE, .image = {.size = sizeof(spk_image_options), .height = HIGH, .width = WIDE}},
};

static load_data data;

/* Two of three samples are stored as coefficients. */
static void encode(load_data *d)
{
    spk_transcoder *t = NULL;
    fixture_must(spk_transcoder_new(&t, fe));
    for (size_t i = 0; i < LOAD_SAMPLES; i++) {
        load_sample *s = &d->samples[i];
        spk_transcode_result result;
        if (i % 3 != 1)
            fixture_must(spk_transcode(t, s->jpg, s->jpg_n, 1u << 20, &s->blob, &result, fe));
    }
    spk_transcoder_free(t);
}

static void encode_and_break(load_data *d)
{
    encode(d);
    ck_assert_uint_gt(d->samples[BROKEN].blob.len, 0);
    d->samples[BROKEN].blob.len /= 2;
}

static void set_up(void)
{
    load_data_make(&data, encode);
}

static void set_up_broken(void)
{
    load_data_make(&data, encode_and_break);
}

static void tear_down(void)
{
    load_data_free(&data);
}

static spk_loader_options options(int workers)
{
    return (spk_loader_options){.size = sizeof(spk_loader_options),
                                .batch_size = 16,
                                .has_workers = 1,
                                .workers = workers,
                                .shuffle = 1,
                                .chunk = 4,
                                .lane_buffer = 8,
                                .columns = columns,
                                .column_count = COLUMNS};
}

static void check_value(load_rig *r, uint32_t column, uint64_t row, const void *want, size_t want_n)
{
    size_t n = 0;
    const uint8_t *p = load_cell(r, column, row, &n);
    ck_assert_uint_eq(n, want_n);
    ck_assert(n == 0 || memcmp(p, want, n) == 0);
}

/* The stored value of a row decodes to the file's pixels and becomes the file. */
static void check_stored(load_rig *r, uint64_t row, const load_sample *s)
{
    static uint8_t want[64 * 64 * 3], have[64 * 64 * 3];
    spk_error err;
    uint32_t w = 0, h = 0;
    void *file = NULL;
    size_t n = 0, file_n = 0;
    const uint8_t *p = load_cell(r, STORED, row, &n);
    ck_ok(spk_image_get_size(s->jpg, s->jpg_n, NULL, &w, &h, &err), err);
    ck_ok(spk_image_decode(s->jpg, s->jpg_n, NULL, want, (size_t)w * h * 3, &err), err);
    ck_ok(spk_image_decode(p, n, NULL, have, (size_t)w * h * 3, &err), err);
    ck_assert_mem_eq(have, want, (size_t)w * h * 3);
    ck_ok(spk_image_restore(p, n, &file, &file_n, &err), err);
    ck_assert_uint_eq(file_n, s->jpg_n);
    ck_assert_mem_eq(file, s->jpg, file_n);
    spk_free(file);
}

static void check_row(load_rig *r, uint64_t row)
{
    const load_sample *s = &data.samples[load_number(r, INDEX, row)];
    bool stored = s->blob.len > 0;
    check_value(r, KEY, row, s->key, strlen(s->key));
    check_value(r, FILES, row, s->jpg, s->jpg_n);
    check_value(r, STORED, row, stored ? s->blob.data : s->jpg, stored ? s->blob.len : s->jpg_n);
    ck_assert_int_eq(load_number(r, ORIGINAL, row), stored ? (int64_t)s->jpg_n : -1);
    check_value(r, TEXT, row, s->text, s->text_n);
    ck_assert_int_eq(load_number(r, TEXT_ORIGINAL, row), -1);
    if (stored)
        check_stored(r, row, s);
}

START_TEST(values)
{
    for (int workers = 0; workers < 3; workers++) {
        spk_loader_options o = options(workers);
        spk_batch_range part;
        load_rig r;
        load_rig_open(&r, &data, &o);
        for (uint64_t x = 0; x < LOAD_SAMPLES; x += 16) {
            ck_ok(load_run(&r, 0, x, &part), r.done.error);
            for (uint64_t row = 0; row < part.rows; row++)
                check_row(&r, row);
        }
        load_rig_close(&r);
    }
}
END_TEST

/* A broken form is an error of whoever looks into it. */
START_TEST(broken)
{
    static const spk_column pairs[][2] = {{{.kind = SPK_COLUMN_STORED, .field = "jpg"}, {.kind = SPK_COLUMN_INDEX}},
                                          {{.kind = SPK_COLUMN_BYTES, .field = "jpg"}, {.kind = SPK_COLUMN_INDEX}}};
    for (size_t i = 0; i < 2; i++) {
        spk_loader_options o = options(0);
        spk_batch_range part;
        load_rig r;
        o.shuffle = 0;
        o.columns = pairs[i];
        o.column_count = 2;
        load_rig_open(&r, &data, &o);
        if (i == 0)
            ck_ok(load_run(&r, 0, 0, &part), r.done.error);
        else
            ck_assert_int_eq(load_run(&r, 0, 0, &part), SPK_E_FORMAT);
        load_rig_close(&r);
    }
}
END_TEST

/* Rows that are substituted, and fields that are not there. */
START_TEST(missing)
{
    static const spk_column asked[] = {{.kind = SPK_COLUMN_INDEX},
                                       {.kind = SPK_COLUMN_STORED, .field = "txt"},
                                       {.kind = SPK_COLUMN_ORIGINAL, .field = "jpg"}};
    spk_loader_options o = options(0);
    spk_batch_range part;
    load_rig r;
    o.columns = asked;
    o.column_count = 3;
    o.on_error = SPK_ON_ERROR_SUBSTITUTE;
    load_rig_open(&r, &data, &o);
    for (uint64_t x = 0; x < LOAD_SAMPLES; x += 16) {
        ck_ok(load_run(&r, 0, x, &part), r.done.error);
        for (uint64_t row = 0; row < part.rows; row++) {
            const load_sample *s = &data.samples[load_number(&r, 0, row)];
            check_value(&r, 1, row, s->text, s->text_n);
            ck_assert_int_eq(load_number(&r, 2, row), s->text_n && s->blob.len ? (int64_t)s->jpg_n : -1);
            ck_assert_uint_eq(load_state(&r, row), s->text_n ? SPK_ROW_OK : SPK_ROW_SUBSTITUTED);
        }
    }
    load_rig_close(&r);
}
END_TEST

/* What the library hands out: kinds, types and shapes. */
START_TEST(views)
{
    spk_loader_options o = options(0);
    spk_dataset *dataset = NULL;
    spk_loader *loader = NULL;
    spk_batch *batch = NULL;
    spk_error err;
    spk_view v;
    ck_ok(spk_dataset_open(&dataset, data.folder, NULL, &err), err);
    ck_ok(spk_loader_open(&loader, dataset, &o, &err), err);
    ck_ok(spk_loader_next(loader, &batch, &err), err);
    ck_ok(spk_batch_column(batch, STORED, &v, &err), err);
    ck_assert(v.kind == SPK_COLUMN_STORED && v.offsets && v.ndim == 1 && v.shape[0] == 16);
    ck_ok(spk_batch_column(batch, ORIGINAL, &v, &err), err);
    ck_assert(v.kind == SPK_COLUMN_ORIGINAL && v.dtype == SPK_INT64 && !v.offsets);
    ck_assert(v.ndim == 1 && v.shape[0] == 16 && v.bytes == 16 * 8);
    spk_batch_release(batch);
    spk_loader_close(loader);
    spk_dataset_close(dataset);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_stored");
    TCase *t = tcase_create("stored");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, values);
    tcase_add_test(t, missing);
    tcase_add_test(t, views);
    suite_add_tcase(s, t);
    t = tcase_create("broken");
    tcase_add_checked_fixture(t, set_up_broken, tear_down);
    tcase_add_test(t, broken);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
