/* What the exact tests of load/ share: small raw datasets of odd shapes, and runs whose every row is compared with the
 * model of the order (load_model.h). */
#ifndef LOAD_EXACT_H
#define LOAD_EXACT_H

#include "load_fixture.h"
#include "load_model.h"

#define DATASETS 5u

/* A dataset, and what its samples are by their own words. */
typedef struct exact_set {
    spk_dataset *dataset;
    uint64_t sizes[256], samples;
    size_t shards;
    char (*keys)[16];
} exact_set;

static const struct {
    unsigned samples;
    uint64_t per_shard, shard_size, per_frame;
} shapes[DATASETS] = {{1, 0, 0, 0}, {40, 7, 0, 3}, {97, 0, 900, 4}, {120, 1, 0, 1}, {200, 0, 6000, 5}};

static exact_set sets[DATASETS];
static uint32_t dice;

static inline uint32_t throw(uint32_t low, uint32_t high)
{
    dice = dice * 1664525u + 1013904223u;
    return low + (uint32_t)(((uint64_t)dice * (high - low + 1)) >> 32);
}

/* The value of a sample, made from its key: some empty, some long. */
static inline size_t value_of(const char *key, char out[512])
{
    unsigned i = (unsigned)atoi(key + 3), n = i * 37u % 11u == 0 ? 0 : i * 61u % 500u;
    for (unsigned k = 0; k < n; k++)
        out[k] = (char)(i + k * (i % 7u));
    return n;
}

static inline int64_t label_of(const char *key)
{
    return key[1] - '0';
}

static inline void make_set(unsigned which)
{
    exact_set *s = &sets[which];
    char name[64], key[16], value[512], src[8], dst[8];
    spk_pack_result r;
    snprintf(src, sizeof src, "s%u", which);
    snprintf(dst, sizeof dst, "d%u", which);
    for (unsigned i = 0; i < shapes[which].samples; i++) {
        snprintf(key, sizeof key, "c%u/%04u", i % 3, i);
        snprintf(name, sizeof name, "%s/%s.bin", src, key);
        put_file(name, value, value_of(key, value));
    }
    spk_pack_options o = {.size = sizeof o,
                          .shard_samples = shapes[which].per_shard,
                          .shard_size = shapes[which].shard_size,
                          .frame_samples = shapes[which].per_frame,
                          .jobs = 1,
                          .check = SPK_CHECK_NONE};
    ck_ok(spk_pack(in_dir(src), in_dir(dst), &o, &r, &err), err);
    ck_ok(spk_dataset_open(&s->dataset, in_dir(dst), NULL, &err), err);
    s->samples = r.samples;
    s->shards = r.shards;
    ck_assert_uint_le(r.shards, 256);
    s->keys = calloc(s->samples, sizeof *s->keys);
    for (size_t i = 0; i < s->shards; i++) {
        spk_shard_row row;
        ck_ok(spk_dataset_get_shard(s->dataset, i, &row, &err), err);
        s->sizes[i] = row.samples;
    }
}

enum { EX_KEY, EX_VALUE, EX_LABEL, EX_INDEX, EX_VALID, EX_COLUMNS };
static const spk_column exact_columns[] = {{.kind = SPK_COLUMN_KEY},
                                           {.kind = SPK_COLUMN_BYTES, .field = "bin"},
                                           {.kind = SPK_COLUMN_LABEL},
                                           {.kind = SPK_COLUMN_INDEX},
                                           {.kind = SPK_COLUMN_VALID}};

/* Learns which key has which number from a pass in stored order; every key must be there once. */
static inline void learn_keys(exact_set *s)
{
    unsigned seen[1000] = {0};
    spk_loader_options o = {
        .size = sizeof o, .batch_size = 1, .has_workers = 1, .columns = exact_columns, .column_count = EX_COLUMNS};
    spk_loader *l = NULL;
    spk_batch *b = NULL;
    spk_view v;
    ck_ok(spk_loader_open(&l, s->dataset, &o, &err), err);
    for (uint64_t i = 0; i < s->samples; i++) {
        ck_ok(spk_loader_next(l, &b, &err), err);
        ck_ok(spk_batch_column(b, EX_KEY, &v, &err), err);
        ck_assert_uint_lt(v.offsets[1], sizeof s->keys[i]);
        memcpy(s->keys[i], (const char *)v.data + v.offsets[0], v.offsets[1]);
        ck_assert_uint_eq(seen[atoi(s->keys[i] + 3)]++, 0);
        spk_batch_release(b);
    }
    ck_assert_int_eq(spk_loader_next(l, &b, &err), SPK_END);
    spk_loader_close(l);
}

static inline void exact_setup(void)
{
    setup();
    use_built_worker();
    spk_error_clear(&err);
    for (unsigned i = 0; i < DATASETS; i++) {
        make_set(i);
        learn_keys(&sets[i]);
    }
}

static inline void exact_teardown(void)
{
    for (unsigned i = 0; i < DATASETS; i++) {
        spk_dataset_close(sets[i].dataset);
        free(sets[i].keys);
    }
    teardown();
}

/* ---- a run, its states and its model ---- */

typedef struct exact_run {
    const exact_set *set;
    uint64_t chosen[1000], sizes[256]; /* index of each sample of the plan; samples of each shard that has any */
    size_t samples, shards;
    spk_loader_options o;
    uint64_t plan_batch, plan_groups; /* G and m in use: the run's own, or those of the state it went on from */
    uint64_t end;                     /* T */
    model_order order;                /* of the epoch order.in.epoch */
} exact_run;

/* Kinds 0 to 2: all samples; else only some: few, most, or whole shards. */
static inline void choose(exact_run *r, uint32_t kind)
{
    uint32_t of = throw(2, 12), lone = throw(0, (uint32_t)r->set->samples - 1);
    uint64_t index = 0;
    r->samples = r->shards = 0;
    for (size_t i = 0; i < r->set->shards; i++) {
        size_t before = r->samples;
        bool whole = throw(0, 1) == 0;
        for (uint64_t end = index + r->set->sizes[i]; index < end; index++) {
            bool picked = kind < 3 ? true : kind == 3 ? throw(1, of) == 1 : kind == 4 ? throw(1, of) > 1 : whole;
            if (picked || index == lone)
                r->chosen[r->samples++] = index;
        }
        if (r->samples > before)
            r->sizes[r->shards++] = r->samples - before;
    }
    r->o.indices = kind < 3 ? NULL : r->chosen;
    r->o.index_count = kind < 3 ? 0 : r->samples;
}

static inline uint64_t step_of(const exact_run *r)
{
    return (uint64_t)r->o.batch_size * r->o.world_size;
}

static inline uint64_t own_groups(const spk_loader_options *o, uint64_t batch)
{
    uint64_t chunk = o->chunk ? o->chunk : 16, parts = (batch + chunk - 1) / chunk, m = (48 + parts / 2) / parts;
    return o->lane_groups ? o->lane_groups : m > 1 ? m : 1;
}

static inline void model_epoch(exact_run *r, uint32_t epoch)
{
    model_inputs in = {.sizes = r->sizes,
                       .shards = r->shards,
                       .seed = r->o.seed,
                       .global_batch = r->plan_batch,
                       .chunk = r->o.chunk ? r->o.chunk : 16,
                       .groups = r->plan_groups,
                       .buffer = r->o.lane_buffer ? r->o.lane_buffer : 64,
                       .echo = r->o.echo,
                       .epoch = epoch,
                       .shuffle = r->o.shuffle != 0};
    if (r->order.place && r->order.in.epoch == epoch && r->order.in.global_batch == in.global_batch)
        return;
    model_free(&r->order);
    model_new(&r->order, &in);
    r->end = r->o.limit && r->o.limit < r->order.total ? r->o.limit : r->order.total;
    uint64_t counts[256] = {0};
    for (uint64_t x = 0; x < r->order.total; x++)
        counts[r->order.place[x]]++;
    for (uint64_t i = 0; i < r->samples; i++)
        ck_assert_uint_eq(counts[i], r->o.echo);
}

static inline spk_tail tail_of(const spk_loader_options *o)
{
    return o->tail != SPK_TAIL_DEFAULT ? o->tail : o->world_size > 1 ? SPK_TAIL_PAD : SPK_TAIL_KEEP;
}

static inline uint64_t batches_of(const exact_run *r, uint64_t x)
{
    uint64_t left = r->end - x, g = step_of(r);
    return tail_of(&r->o) == SPK_TAIL_DROP ? left / g : (left + g - 1) / g;
}

static inline void check_row(const exact_run *r, const spk_view v[EX_COLUMNS], uint64_t i, uint64_t x)
{
    int64_t want = model_row(&r->order, x, r->end);
    char value[512];
    want = want < 0 ? want : (int64_t)r->chosen[want];
    const char *key = want < 0 ? "" : r->set->keys[want];
    size_t n = want < 0 ? 0 : value_of(key, value), k = strlen(key);
    bool valid = x < r->end;
    ck_assert_int_eq(((const int64_t *)v[EX_INDEX].data)[i], want);
    ck_assert_int_eq(((const uint8_t *)v[EX_VALID].data)[i], valid);
    ck_assert_int_eq(((const int64_t *)v[EX_LABEL].data)[i], valid ? label_of(key) : -100);
    ck_assert_uint_eq(v[EX_KEY].offsets[2 * i + 1], k);
    ck_assert(k == 0 || memcmp((const char *)v[EX_KEY].data + v[EX_KEY].offsets[2 * i], key, k) == 0);
    ck_assert_uint_eq(v[EX_VALUE].offsets[2 * i + 1], n);
    ck_assert(n == 0 || memcmp((const char *)v[EX_VALUE].data + v[EX_VALUE].offsets[2 * i], value, n) == 0);
}

static uint64_t rows_checked;

/* The batch at position x of the run's epoch. */
static inline void check_batch(const exact_run *r, const spk_batch *b, uint64_t x)
{
    spk_view v[EX_COLUMNS];
    uint64_t first = x + (uint64_t)r->o.rank * r->o.batch_size, rows = r->o.batch_size, valid = 0;
    for (size_t c = 0; c < EX_COLUMNS; c++)
        ck_ok(spk_batch_column(b, c, &v[c], &err), err);
    if (tail_of(&r->o) == SPK_TAIL_KEEP && r->end - x < rows)
        rows = r->end - x;
    ck_assert_uint_eq(spk_batch_rows(b), rows);
    ck_assert_uint_eq(spk_batch_position(b), first);
    for (uint64_t i = 0; i < rows; i++) {
        check_row(r, v, i, first + i);
        valid += first + i < r->end;
    }
    ck_assert_uint_eq(spk_batch_valid_rows(b), valid);
    rows_checked += rows;
}

/* Goes on from position x for at most `most` batches, to the end of the epoch. True if it came to it. *states gets the
 * state before each batch, and the one behind the last. */
static inline bool follow(exact_run *r, spk_loader *l, uint32_t epoch, uint64_t x, uint64_t most, char **states)
{
    spk_batch *b = NULL;
    uint32_t at_epoch = 0;
    uint64_t at = 0;
    model_epoch(r, epoch);
    uint64_t n = batches_of(r, x), i = 0;
    for (; i < n && i < most; i++) {
        if (states)
            ck_ok(spk_loader_state_save(l, &states[i], &err), err);
        ck_ok(spk_loader_next(l, &b, &err), err);
        check_batch(r, b, x);
        spk_batch_release(b);
        x = model_least(x + step_of(r), r->end);
        spk_loader_position(l, &at_epoch, &at);
        ck_assert_uint_eq(at_epoch, epoch);
        ck_assert_uint_eq(at, x);
    }
    if (i < n)
        return false;
    if (states)
        ck_ok(spk_loader_state_save(l, &states[i], &err), err);
    ck_assert_int_eq(spk_loader_next(l, &b, &err), SPK_END);
    ck_assert_ptr_null(b);
    return true;
}

static inline spk_loader *open_run(exact_run *r)
{
    spk_loader *l = NULL;
    ck_ok(spk_loader_open(&l, r->set->dataset, &r->o, &err), err);
    r->plan_batch = step_of(r);
    r->plan_groups = own_groups(&r->o, r->plan_batch);
    return l;
}

#endif
