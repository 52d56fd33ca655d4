/* The loader's options, checked once against the dataset, with every default filled in. Columns: spec_columns.c. */
#include "load/spec.h"

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/options.h"
#include "dataset/dataset.h"
#include "load/spec_columns.h"
#include "load/tasks.h"

#define BATCH_MAX (1u << 20)
#define WORKERS_MAX 1024
#define PREFETCH_MAX 1024u
/* Stored order holds runs of alike samples, and a chunk is one place of it: with shorter ones a batch draws from more
 * places of the dataset. */
#define STORED_CHUNK 2
#define SPAN_FRAMES 4u

static spk_status check_u64(const char *name, uint64_t value, uint64_t low, uint64_t high, spk_error *err)
{
    if (value < low || value > high)
        return spk_error_set(err, SPK_E_INVALID, "%s of %llu: must be %llu to %llu", name, (unsigned long long)value,
                             (unsigned long long)low, (unsigned long long)high);
    return SPK_OK;
}

static spk_status set_sizes(spk_load_spec *s, const spk_loader_options *o, spk_error *err)
{
    s->batch_size = o->batch_size;
    s->world_size = o->world_size == 0 ? 1 : o->world_size;
    s->rank = o->rank;
    SPK_TRY(check_u64("batch_size", s->batch_size, 1, BATCH_MAX, err));
    SPK_TRY(check_u64("world_size", s->world_size, 1, SPK_PLAN_BATCH_MAX, err));
    if (s->rank >= s->world_size)
        return spk_error_set(err, SPK_E_INVALID, "rank of %u: must be less than world_size, which is %u", s->rank,
                             s->world_size);
    SPK_TRY(check_u64("local_world_size", o->local_world_size, 0, s->world_size, err));
    uint64_t global = (uint64_t)s->batch_size * s->world_size;
    if (global > SPK_PLAN_BATCH_MAX)
        return spk_error_set(err, SPK_E_INVALID, "batch_size of %u x world_size of %u: must be at most %u together",
                             s->batch_size, s->world_size, SPK_PLAN_BATCH_MAX);
    if (o->has_workers && (o->workers < 0 || o->workers > WORKERS_MAX))
        return spk_error_set(err, SPK_E_INVALID, "num_workers of %d: must be 0 to %d", o->workers, WORKERS_MAX);
    if (!o->has_workers && o->workers != 0)
        return spk_error_set(err, SPK_E_INVALID, "workers of %d: has_workers is not set", o->workers);
    SPK_TRY(check_u64("prefetch", o->prefetch, 0, PREFETCH_MAX, err));
    if (isnan(o->timeout))
        return spk_error_set(err, SPK_E_INVALID, "timeout of nan: must be a number of seconds");
    return SPK_OK;
}

static spk_status set_rules(spk_load_spec *s, const spk_loader_options *o, spk_error *err)
{
    SPK_TRY(check_u64("tail", (unsigned)o->tail, SPK_TAIL_DEFAULT, SPK_TAIL_KEEP, err));
    s->tail = (uint32_t)o->tail;
    if (o->tail == SPK_TAIL_DEFAULT)
        s->tail = s->world_size == 1 ? SPK_TAIL_KEEP : SPK_TAIL_PAD;
    if (s->tail == SPK_TAIL_KEEP && s->world_size > 1)
        return spk_error_set(err, SPK_E_INVALID,
                             "tail \"keep\" with world_size of %u: ranks would get batches of different sizes; must be "
                             "\"drop\" or \"pad\"",
                             s->world_size);
    SPK_TRY(check_u64("on_error", (unsigned)o->on_error, SPK_ON_ERROR_FAIL, SPK_ON_ERROR_SUBSTITUTE, err));
    s->on_error = (uint32_t)o->on_error;
    if (o->max_errors > 0 && s->on_error != SPK_ON_ERROR_SUBSTITUTE)
        return spk_error_set(err, SPK_E_INVALID, "max_errors of %llu: needs on_error \"substitute\"",
                             (unsigned long long)o->max_errors);
    return SPK_OK;
}

/* Without shuffling a chunk is the smallest divisor of the batch size that covers an average frame. */
static uint32_t stored_order_chunk(uint32_t batch, uint32_t echo, const spk_dataset_stat *stat)
{
    uint64_t frame = stat->frames > 0 ? (stat->samples + stat->frames - 1) / stat->frames : 1;
    if (frame * echo >= batch)
        return batch;
    uint32_t best = batch;
    for (uint32_t d = 1; d <= batch / d; d++) {
        if (batch % d != 0)
            continue;
        if (d >= frame * echo)
            return d;
        if (batch / d >= frame * echo)
            best = batch / d;
    }
    return best;
}

static spk_status check_plan(const spk_loader_options *o, const spk_dataset_stat *stat, spk_error *err)
{
    SPK_TRY(check_u64("epoch", o->epoch, 0, SPK_PLAN_EPOCH_MAX, err));
    SPK_TRY(check_u64("chunk", o->chunk, 0, SPK_PLAN_BATCH_MAX, err));
    SPK_TRY(check_u64("lane_buffer", o->lane_buffer, 0, SPK_PLAN_BUFFER_MAX, err));
    uint64_t echo_max = stat->samples > 0 ? (UINT64_MAX / 2) / stat->samples : SPK_PLAN_ECHO_MAX;
    if (echo_max > SPK_PLAN_ECHO_MAX)
        echo_max = SPK_PLAN_ECHO_MAX;
    return check_u64("echo", o->echo, 0, echo_max, err);
}

/* A frame that a span's border cuts is read twice, by two lanes: a span of some frames' samples bounds that. Samples
 * that were packed shuffled lose nothing by it; 0 is the plan's own, which is short. */
static uint32_t shuffled_span(const spk_dataset_stat *stat)
{
    if (!stat->shuffled || stat->frames == 0)
        return 0;
    uint64_t span = SPAN_FRAMES * ((stat->samples + stat->frames - 1) / stat->frames);
    return span < UINT32_MAX ? (uint32_t)span : UINT32_MAX;
}

static spk_status set_plan(spk_load_spec *s, const spk_loader_options *o, const spk_dataset_stat *stat, spk_error *err)
{
    static const uint64_t no_sample = 0;
    SPK_TRY(check_plan(o, stat, err));
    spk_plan_spec *p = &s->plan;
    *p = (spk_plan_spec){.seed = o->seed,
                         .global_batch = (uint64_t)s->batch_size * s->world_size,
                         .epoch = 0,
                         .chunk = o->chunk,
                         .groups = o->lane_groups,
                         .buffer = o->lane_buffer,
                         .echo = o->echo == 0 ? 1 : o->echo,
                         .shuffle = o->shuffle != 0};
    if (p->chunk == 0 && !p->shuffle)
        p->chunk = stored_order_chunk(s->batch_size, p->echo, stat);
    if (p->chunk == 0 && p->shuffle && !stat->shuffled)
        p->chunk = STORED_CHUNK;
    p->span = shuffled_span(stat);
    uint32_t chunk = p->chunk ? p->chunk : SPK_PLAN_CHUNK;
    uint64_t chunks = (p->global_batch + chunk - 1) / chunk;
    SPK_TRY(check_u64("lane_groups", o->lane_groups, 0, SPK_PLAN_LANES_MAX / chunks, err));
    spk_plan *defaults = NULL;
    SPK_TRY(spk_plan_new(&defaults, &no_sample, 0, p, err)); /* the plan itself knows the rest of its defaults */
    *p = defaults->spec;
    spk_plan_free(defaults);
    s->samples = stat->samples;
    s->shards = stat->shards;
    s->total = stat->samples * p->echo;
    if (o->limit > 0 && o->limit < s->total)
        s->total = o->limit;
    return SPK_OK;
}

static uint32_t default_workers(const spk_load_spec *s, uint32_t ranks_here)
{
    uint32_t quota = (uint32_t)spk_cpu_quota();
    quota = quota < WORKERS_MAX ? quota : WORKERS_MAX;
    quota = ranks_here > 1 ? quota / ranks_here : quota;
    return spk_workers_for(s, quota > 0 ? quota : 1);
}

spk_status spk_load_spec_make(spk_load_spec *out, const spk_dataset *dataset, const spk_loader_options *options,
                              spk_error *err)
{
    spk_loader_options o;
    spk_dataset_stat stat;
    memset(&o, 0, sizeof o);
    memset(out, 0, sizeof *out);
    SPK_TRY(spk_options_copy(&o, sizeof o, options, err));
    spk_dataset_get_stat(dataset, &stat);
    const spk_choice choice = {o.indices, o.index_count};
    SPK_TRY(spk_choice_check(&choice, stat.samples, err));
    SPK_TRY(spk_choice_narrow(&choice, dataset, &stat, err));
    SPK_TRY(spk_choice_name(&choice, out->choice, err));
    SPK_TRY(set_sizes(out, &o, err));
    SPK_TRY(set_rules(out, &o, err));
    SPK_TRY(set_plan(out, &o, &stat, err));
    out->workers = o.has_workers ? (uint32_t)o.workers : default_workers(out, o.local_world_size);
    out->verify_full = o.verify_full != 0 || dataset->verify_full != 0;
    SPK_TRY(spk_spec_columns(out, dataset, &o, err));
    return spk_spec_layout(out, dataset, err);
}
