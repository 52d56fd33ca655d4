/* One RUN packet after another: the epoch's plan, this worker's tasks, a feed for each lane, rows. */
#include "load/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "load/ahead.h"
#include "load/fill.h"
#include "load/lane_feed.h"
#include "load/sequence_feed.h"
#include "load/tasks.h"

#define LOOK_AHEAD_MAX 8u
#define SHARDS_SPARE 2u /* open shards beside one for each lane */
#define FIXED_MEMORY ((uint64_t)14 << 20)

struct spk_engine {
    uint8_t *base;
    const spk_shm_head *head;
    const spk_load_spec *spec;
    uint32_t worker, max_open;
    spk_plan_spec planned; /* what plan was made from, before its defaults */
    spk_plan *plan;
    spk_lane_feed **feeds; /* of every lane of the plan; NULL: not this worker's, or not needed yet */
    uint64_t feeds_n;
    spk_sequence_feed sequence;
    spk_item_reader reader;
    spk_fill_images *images;
    spk_ahead *ahead;
    spk_task *tasks, *later; /* of this batch, and of those behind it */
    size_t tasks_cap, later_n, later_cap;
};

spk_status spk_engine_new(spk_engine **out, uint8_t *base, const char *net, uint32_t worker, uint32_t max_open,
                          spk_error *err)
{
    *out = NULL;
    const spk_shm_head *head = (const spk_shm_head *)base;
    if (head->protocol != SPK_PROTOCOL)
        return spk_error_set(err, SPK_E_WORKER, "shared memory of protocol %08x, this program knows %08x",
                             head->protocol, SPK_PROTOCOL);
    spk_engine *e = calloc(1, sizeof *e);
    if (!e)
        return spk_error_nomem(err, sizeof *e);
    e->base = base;
    e->head = head;
    e->spec = (const spk_load_spec *)(base + head->spec);
    e->worker = worker;
    e->max_open = max_open < 1 ? 1 : max_open;
    e->reader.activity = (spk_activity *)(base + head->activity_at) + worker;
    spk_needs_of(&e->reader.needs, e->spec);
    spk_status status = spk_shard_cache_new(&e->reader.cache, base, net, max_open, err);
    if (status == SPK_OK)
        status = spk_frame_reader_new(&e->reader.decoder, err);
    if (status == SPK_OK)
        status = spk_fill_images_new(&e->images, e->spec, err);
    if (status == SPK_OK)
        status = spk_ahead_new(&e->ahead, e->reader.cache, e->spec, err);
    if (status < 0) {
        spk_engine_free(e);
        return status;
    }
    *out = e;
    return SPK_OK;
}

/* Feeds are kept for the next plan, as far as it has such lanes. */
static void drop_feeds(spk_engine *e, uint64_t keep)
{
    for (uint64_t i = 0; i < e->feeds_n; i++) {
        if (!e->feeds[i])
            continue;
        spk_lane_feed_leave(e->feeds[i]);
        if (i < keep)
            continue;
        spk_lane_feed_free(e->feeds[i]);
        e->feeds[i] = NULL;
    }
}

void spk_engine_on_wait(spk_engine *e, int (*on_wait)(void *user), void *user)
{
    spk_net *net = spk_shard_cache_net(e->reader.cache);
    if (net)
        spk_net_on_wait(net, on_wait, user);
}

void spk_engine_idle(spk_engine *e, int fd)
{
    spk_ahead_idle(e->ahead, fd);
}

void spk_engine_free(spk_engine *e)
{
    if (!e)
        return;
    drop_feeds(e, 0);
    free(e->feeds);
    spk_sequence_feed_clear(&e->sequence);
    spk_plan_free(e->plan);
    spk_fill_images_free(e->images);
    spk_frame_reader_free(e->reader.decoder);
    spk_ahead_free(e->ahead);
    spk_shard_cache_free(e->reader.cache);
    spk_buf_free(&e->reader.scratch);
    free(e->reader.order);
    free(e->tasks);
    free(e->later);
    free(e);
}

static bool same_plan(const spk_plan_spec *a, const spk_plan_spec *b)
{
    return a->seed == b->seed && a->global_batch == b->global_batch && a->epoch == b->epoch && a->chunk == b->chunk &&
           a->groups == b->groups && a->buffer == b->buffer && a->span == b->span && a->echo == b->echo &&
           a->shuffle == b->shuffle;
}

static spk_status make_feeds(spk_engine *e, spk_error *err)
{
    uint64_t lanes = e->plan->lanes;
    if (lanes != e->feeds_n) {
        drop_feeds(e, 0);
        free(e->feeds);
        e->feeds_n = 0;
        e->feeds = calloc((size_t)lanes + 1, sizeof *e->feeds);
        if (!e->feeds)
            return spk_error_nomem(err, ((size_t)lanes + 1) * sizeof *e->feeds);
        e->feeds_n = lanes;
    }
    uint64_t readers = (uint64_t)e->spec->world_size * (e->spec->workers > 0 ? e->spec->workers : 1);
    uint64_t open = (lanes + readers - 1) / readers + SHARDS_SPARE;
    spk_shard_cache_resize(e->reader.cache, open < e->max_open ? (uint32_t)open : e->max_open);
    return SPK_OK;
}

static spk_status use_plan(spk_engine *e, uint32_t epoch, spk_error *err)
{
    spk_plan_spec want = e->spec->plan;
    want.epoch = epoch;
    if (e->plan && same_plan(&want, &e->planned))
        return SPK_OK;
    drop_feeds(e, e->feeds_n);
    spk_ahead_reset(e->ahead);
    spk_sequence_feed_clear(&e->sequence);
    spk_plan_free(e->plan);
    e->plan = NULL;
    SPK_TRY(spk_plan_new(&e->plan, (const uint64_t *)(e->base + e->head->first_sample), e->spec->shards, &want, err));
    e->planned = want;
    spk_status status = make_feeds(e, err);
    if (status < 0) {
        spk_plan_free(e->plan);
        e->plan = NULL;
    }
    return status;
}

static spk_status get_item(spk_engine *e, const spk_task *t, uint64_t output, const spk_item **item, uint32_t *repeat,
                           spk_error *err)
{
    if (!e->plan->spec.shuffle)
        return spk_sequence_feed_at(&e->sequence, &e->reader, e->plan, output, item, repeat, err);
    spk_lane_feed **feed = &e->feeds[t->lane];
    if (!*feed)
        SPK_TRY(spk_lane_feed_new(feed, err));
    return spk_lane_feed_at(*feed, &e->reader, e->plan, t->lane, output, item, repeat, err);
}

static spk_status run_row(spk_engine *e, spk_fill *f, const spk_task *t, uint64_t row, uint64_t output, spk_error *err)
{
    const spk_item *item = NULL;
    uint64_t number = 0, within = 0;
    spk_draw_key key = {.seed = e->plan->spec.seed, .epoch = e->plan->spec.epoch};
    e->reader.activity->row = row;
    spk_ahead_row(e->ahead, e->plan, t, output);
    SPK_TRY(get_item(e, t, output, &item, &key.repeat, err));
    key.index = item->index;
    spk_shard_cache_locate(e->reader.cache, item->sample, &number, &within);
    const char *shard = spk_shard_cache_name(e->reader.cache, number);
    spk_activity_set(e->reader.activity, shard, ": sample ", item->key);
    return spk_fill_row(f, row, item, &key, shard, t->pad, err);
}

static spk_status run_task(spk_engine *e, spk_fill *f, const spk_task *t, uint64_t *row, spk_error *err)
{
    for (uint32_t i = 0; i < t->count; i++) {
        *row = t->row + i;
        if (t->pad && t->output == SPK_ROW_NONE)
            spk_fill_nothing(f, *row);
        else if (t->pad && i > 0)
            spk_fill_copy(f, *row, t->row);
        else
            SPK_TRY(run_row(e, f, t, *row, t->pad ? t->output : t->output + i, err));
    }
    return SPK_OK;
}

static spk_status check_run(const spk_engine *e, const spk_run_packet *run, spk_error *err)
{
    if (run->kind == SPK_PACKET_RUN && run->slot < e->head->slots && run->batch.rows <= e->spec->batch_size &&
        run->epoch <= SPK_PLAN_EPOCH_MAX)
        return SPK_OK;
    return spk_error_set(err, SPK_E_WORKER, "packet of kind %u for %llu rows in slot %u of epoch %u makes no sense",
                         run->kind, (unsigned long long)run->batch.rows, run->slot, run->epoch);
}

/* This worker's tasks of the next batches, for what is fetched ahead: whatever fails here is left out. */
static void find_later(spk_engine *e, const spk_run_packet *run)
{
    uint64_t step = (uint64_t)e->spec->batch_size * e->spec->world_size, first = run->batch.first + step;
    uint32_t batches = e->plan->spec.shuffle ? LOOK_AHEAD_MAX : 1;
    e->later_n = 0;
    if (!spk_shard_cache_net(e->reader.cache))
        return;
    for (uint32_t i = 0; i < batches && first < e->spec->total; i++, first += step) {
        spk_task *tasks = NULL;
        size_t n = 0, cap = 0;
        uint64_t left = e->spec->total - first, rows = run->batch.rows < left ? run->batch.rows : left;
        const spk_batch_range range = {first, rows};
        if (spk_tasks_of(e->spec, e->plan, range, e->worker, &tasks, &n, &cap, NULL) == SPK_OK && n > 0 &&
            spk_grow(&e->later, &e->later_cap, e->later_n + n, sizeof *e->later, NULL) == SPK_OK) {
            memcpy(e->later + e->later_n, tasks, n * sizeof *tasks);
            e->later_n += n;
        }
        free(tasks);
    }
}

static spk_status run_batch(spk_engine *e, const spk_run_packet *run, spk_done_packet *done)
{
    size_t n = 0;
    spk_fill fill = {.spec = e->spec,
                     .needs = &e->reader.needs,
                     .images = e->images,
                     .counters = &done->counters,
                     .first_substitution = &done->first_substitution,
                     .substituted_row = SPK_ROW_NONE};
    SPK_TRY(check_run(e, run, &done->error));
    SPK_TRY(use_plan(e, run->epoch, &done->error));
    SPK_TRY(spk_tasks_of(e->spec, e->plan, run->batch, e->worker, &e->tasks, &n, &e->tasks_cap, &done->error));
    fill.slot = spk_slot_data(e->base, run->slot);
    fill.control = spk_slot_control_of(e->base, e->spec, run->slot);
    fill.arena = e->spec->has_arena ? spk_slot_arena(e->base, e->spec, run->slot) : NULL;
    SPK_TRY(spk_ahead_begin(e->ahead, e->plan, e->tasks, n, &done->row, &done->error));
    find_later(e, run);
    spk_ahead_later(e->ahead, e->plan, e->later, e->later_n, false);
    for (size_t i = 0; i < n; i++) {
        SPK_TRY(run_task(e, &fill, &e->tasks[i], &done->row, &done->error));
        spk_ahead_later(e->ahead, e->plan, e->tasks + i + 1, n - i - 1, true);
        spk_ahead_later(e->ahead, e->plan, e->later, e->later_n, true); /* by now those tails have come */
    }
    done->row = fill.substituted_row;
    return SPK_OK;
}

void spk_engine_run(spk_engine *e, const spk_run_packet *run, spk_done_packet *done)
{
    uint64_t start = spk_now_ns();
    memset(done, 0, sizeof *done);
    done->protocol = SPK_PROTOCOL;
    done->serial = run->serial;
    done->row = SPK_ROW_NONE;
    spk_error_clear(&done->error);
    spk_error_clear(&done->first_substitution);
    e->reader.counters = &done->counters;
    spk_status status = run_batch(e, run, done);
    done->kind = status < 0 ? SPK_PACKET_FAIL : SPK_PACKET_DONE;
    done->counters.busy_ns = spk_now_ns() - start;
    e->reader.counters = NULL;
    spk_activity_set(e->reader.activity, "waiting for the next batch", "", "");
}

uint64_t spk_engine_memory(const spk_load_spec *spec, uint64_t lanes, double sample_bytes, double frame_bytes)
{
    if (!spec->plan.shuffle)
        return FIXED_MEMORY + (uint64_t)(2 * frame_bytes);
    const spk_plan_spec *p = &spec->plan;
    uint64_t plan = spk_plan_bytes(p, spec->samples, spec->shards);
    uint64_t all = p->groups * ((p->global_batch + p->chunk - 1) / p->chunk);
    double buffer = p->buffer, share = (double)spec->samples / (double)all;  /* a lane holds no more than there is */
    double used = (double)(lanes < spec->samples ? lanes : spec->samples);   /* a lane without samples holds none */
    double items = (double)lanes * (buffer < share ? buffer : share) + used; /* each lane has a spare one */
    double held =
        items * (1.22 * sample_bytes + 512) + used * 1.25 * frame_bytes; /* with what the heap loses between blocks */
    return FIXED_MEMORY + plan + (uint64_t)held;
}
