/* A dataset of real small images, and engines run by hand over plain memory as a loader would run them. */
#ifndef ENGINE_FIXTURE_H
#define ENGINE_FIXTURE_H

#include "check_main.h"

#include "dataset_fixture.h"
#include "image_fixture.h"

#include "coef/coef.h"
#include "load/engine.h"
#include "load/memory.h"
#include "load/tasks.h"

#define LOAD_SAMPLES 61
#define LOAD_SLOTS 2

/* What sample i holds: every field is known without reading anything. A sample without text has text_n 0. */
typedef struct load_sample {
    char key[32], label[8], path[48], text[64];
    size_t text_n;
    unsigned char *jpg;
    size_t jpg_n;
    spk_buf blob; /* if not empty, the shard holds this form of jpg */
} load_sample;

typedef struct load_data {
    char *folder;
    load_sample samples[LOAD_SAMPLES];
    dataset_fixture set;
} load_data;

/* Sizes of the shards, and samples per frame in each. */
static const size_t load_shards[][2] = {{7, 3}, {20, 4}, {1, 1}, {18, 18}, {15, 5}};

static inline void load_make_samples(load_data *d)
{
    for (unsigned i = 0; i < LOAD_SAMPLES; i++) {
        load_sample *s = &d->samples[i];
        snprintf(s->key, sizeof s->key, "c%u/sample-%03u", i % 7, i);
        snprintf(s->label, sizeof s->label, "%u", i % 7);
        snprintf(s->path, sizeof s->path, "%s.jpg", s->key);
        if (i % 5 != 2)
            s->text_n = (size_t)snprintf(s->text, sizeof s->text, "text %u %.*s", i, (int)(i % 40),
                                         "0123456789 0123456789 0123456789 0123456789");
        s->jpg = make_jpeg(20 + i * 3 % 40, 20 + i * 7 % 30, i % 9 == 4 ? 1 : 3, i % 6 == 1, &s->jpg_n);
    }
}

/* spoil may be NULL; else it changes samples before they are written. */
static inline void load_data_make(load_data *d, void (*spoil)(load_data *))
{
    memset(d, 0, sizeof *d);
    d->folder = check_temp_folder();
    load_make_samples(d);
    if (spoil)
        spoil(d);
    d->set.folder = d->folder;
    d->set.prefix = "t";
    d->set.m.shuffled = true;
    size_t at = 0;
    for (size_t s = 0; s < sizeof load_shards / sizeof load_shards[0]; s++) {
        fixture_member m[3 * LOAD_SAMPLES];
        size_t n = 0;
        for (size_t end = at + load_shards[s][0]; at < end; at++) {
            const load_sample *p = &d->samples[at];
            m[n++] = (fixture_member){p->key, "cls", p->label, strlen(p->label), NULL, NULL, 0};
            m[n++] = p->blob.len
                         ? (fixture_member){p->key, "jpg", p->blob.data, p->blob.len, p->path, SPK_COEF_NAME, p->jpg_n}
                         : (fixture_member){p->key, "jpg", p->jpg, p->jpg_n, p->path, NULL, 0};
            m[n++] = (fixture_member){p->key, p->text_n ? "txt" : "xtra", p->text, p->text_n, NULL, NULL, 0};
        }
        dataset_add(&d->set, m, n, 3 * load_shards[s][1]);
    }
    dataset_write(&d->set);
}

static inline void load_data_free(load_data *d)
{
    for (size_t i = 0; i < LOAD_SAMPLES; i++)
        free(d->samples[i].jpg);
    for (size_t i = 0; i < LOAD_SAMPLES; i++)
        spk_buf_free(&d->samples[i].blob);
    dataset_free(&d->set);
    check_remove_tree(d->folder);
}

/* One rank with its engines. */
typedef struct load_rig {
    spk_dataset *dataset;
    spk_load_spec spec;
    spk_memory memory;
    spk_engine *engines[8];
    uint32_t engines_n, max_open;
    uint64_t serial;
    spk_done_packet done; /* of the last batch: its counters summed over workers, or the first failure */
} load_rig;

static inline void load_engines(load_rig *r)
{
    spk_error err;
    r->engines_n = r->spec.workers > 0 ? r->spec.workers : 1;
    for (uint32_t w = 0; w < r->engines_n; w++)
        ck_ok(spk_engine_new(&r->engines[w], r->memory.base, NULL, w, r->max_open, &err), err);
}

static inline void load_engines_free(load_rig *r)
{
    for (uint32_t w = 0; w < r->engines_n; w++)
        spk_engine_free(r->engines[w]);
}

static inline void load_rig_open(load_rig *r, const load_data *d, const spk_loader_options *o)
{
    spk_error err;
    spk_shm_head layout;
    const spk_choice choice = {o->indices, o->index_count};
    memset(r, 0, sizeof *r);
    r->max_open = 16;
    ck_ok(spk_dataset_open(&r->dataset, d->folder, NULL, &err), err);
    ck_ok(spk_load_spec_make(&r->spec, r->dataset, o, &err), err);
    ck_ok(spk_memory_layout(&layout, &r->spec, r->dataset, &choice, d->folder, LOAD_SLOTS, &err), err);
    ck_ok(spk_memory_new(&r->memory, &layout, &r->spec, r->dataset, &choice, d->folder, false, &err), err);
    load_engines(r);
}

static inline void load_rig_close(load_rig *r)
{
    load_engines_free(r);
    spk_memory_free(&r->memory);
    spk_dataset_close(r->dataset);
}

/* All workers' rows of the rank's batch at x into a slot that held something else. */
static inline spk_status load_run(load_rig *r, uint32_t epoch, uint64_t x, spk_batch_range *part)
{
    uint32_t slot = (uint32_t)(r->serial % LOAD_SLOTS);
    *part = spk_batch_part(&r->spec, x);
    memset(spk_slot_data(r->memory.base, slot), (int)(0x41 + r->serial * 37 % 100), (size_t)r->spec.slot_bytes);
    atomic_store(&spk_slot_control_of(r->memory.base, &r->spec, slot)->arena_used, SPK_ARENA_FIRST);
    spk_run_packet run = {SPK_PACKET_RUN, slot, r->serial++, epoch, 0, *part};
    spk_run_counters sum = {0};
    for (uint32_t w = 0; w < r->engines_n; w++) {
        spk_engine_run(r->engines[w], &run, &r->done);
        ck_assert_uint_eq(r->done.serial, run.serial);
        if (r->done.kind == SPK_PACKET_FAIL) {
            ck_assert_int_lt(r->done.error.code, 0);
            return r->done.error.code;
        }
        ck_assert_uint_eq(r->done.kind, SPK_PACKET_DONE);
        sum.bytes_read += r->done.counters.bytes_read;
        sum.frames_read += r->done.counters.frames_read;
        sum.images_decoded += r->done.counters.images_decoded;
        sum.substituted += r->done.counters.substituted;
        sum.padded += r->done.counters.padded;
    }
    r->done.counters = sum;
    return SPK_OK;
}

/* A cell of the last batch. */
static inline const uint8_t *load_cell(load_rig *r, uint32_t column, uint64_t row, size_t *n)
{
    uint32_t slot = (uint32_t)((r->serial - 1) % LOAD_SLOTS);
    const spk_load_column *c = &r->spec.columns[column];
    const uint8_t *p = spk_slot_data(r->memory.base, slot) + c->offset + row * c->row_bytes;
    *n = (size_t)c->row_bytes;
    if (!spk_column_is_variable(c->kind))
        return p;
    uint64_t record[2];
    memcpy(record, p, sizeof record);
    ck_assert(record[0] <= r->spec.arena_bytes && record[1] <= r->spec.arena_bytes - record[0]);
    *n = (size_t)record[1];
    return spk_slot_arena(r->memory.base, &r->spec, slot) + record[0];
}

static inline int64_t load_number(load_rig *r, uint32_t column, uint64_t row)
{
    size_t n = 0;
    int64_t v = 0;
    memcpy(&v, load_cell(r, column, row, &n), sizeof v);
    return v;
}

static inline uint8_t load_state(load_rig *r, uint64_t row)
{
    uint32_t slot = (uint32_t)((r->serial - 1) % LOAD_SLOTS);
    return spk_slot_data(r->memory.base, slot)[r->spec.rows_offset + row];
}

/* Appends everything that a row of the last batch shows. */
static inline void load_show_row(load_rig *r, uint64_t row, spk_buf *out)
{
    for (uint32_t c = 0; c < r->spec.columns_n; c++) {
        size_t n = 0;
        const uint8_t *p = load_cell(r, c, row, &n);
        fixture_must(spk_buf_u64(out, n, fe));
        fixture_must(spk_buf_append(out, p, n, fe));
    }
    uint8_t state = load_state(r, row);
    fixture_must(spk_buf_append(out, &state, 1, fe));
}

#endif
