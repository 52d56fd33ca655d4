/* Figures that are known before a batch is made: slots, memory, the share of each worker; and hints about them. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "dataset/dataset.h"
#include "load/ahead.h"
#include "load/loader_parts.h"
#include "load/spec_columns.h"
#include "load/tasks.h"

#define INLINE_SLOTS 3u /* one to fill, two to hold */
#define PREFETCH 4u

uint32_t spk_loader_prefetch(uint32_t given)
{
    return given == 0 ? PREFETCH : given;
}

uint32_t spk_loader_slots(const spk_load_spec *spec, uint32_t prefetch)
{
    return spec->workers == 0 ? INLINE_SLOTS : spk_loader_prefetch(prefetch) + 2;
}

/* How the lanes of a rank are spread: all of them, the most and the fewest of one worker. */
typedef struct lane_share {
    uint64_t lanes, most, fewest;
} lane_share;

static spk_status share_lanes(const spk_load_spec *spec, lane_share *out, spk_error *err)
{
    const spk_plan_spec *p = &spec->plan;
    uint64_t workers = spec->workers > 0 ? spec->workers : 1, first = 0, last = 0;
    memset(out, 0, sizeof *out);
    if (!p->shuffle)
        return SPK_OK;
    spk_rank_chunks(spec, &first, &last);
    uint64_t *count = calloc((size_t)workers, sizeof *count);
    if (!count)
        return spk_error_nomem(err, (size_t)workers * sizeof *count);
    for (uint64_t a = 0; a < p->groups; a++)
        for (uint64_t j = first; j < last; j++)
            count[spk_worker_of_lane(spec, a, j)]++;
    out->fewest = UINT64_MAX;
    for (uint64_t w = 0; w < workers; w++) {
        out->lanes += count[w];
        out->most = count[w] > out->most ? count[w] : out->most;
        out->fewest = count[w] < out->fewest ? count[w] : out->fewest;
    }
    free(count);
    return SPK_OK;
}

static double mean_sample(const spk_dataset_stat *s)
{
    return s->samples > 0 ? (double)s->payload_bytes / (double)s->samples : 0;
}

/* Bytes that a batch's variable columns are expected to take. */
static uint64_t expected_arena(const spk_load_spec *spec, const spk_dataset_stat *stat)
{
    double row = 0;
    for (uint32_t i = 0; i < spec->columns_n; i++)
        if (spec->columns[i].kind == SPK_COLUMN_KEY)
            row += 80;
        else if (spk_column_is_variable(spec->columns[i].kind))
            row = row < mean_sample(stat) ? mean_sample(stat) + 80 : row;
    uint64_t bytes = (uint64_t)(row * spec->batch_size);
    return bytes < spec->arena_bytes ? bytes : spec->arena_bytes;
}

void spk_loader_need(const spk_load_spec *spec, const spk_dataset *dataset, const spk_shm_head *layout,
                     spk_memory_need *out)
{
    spk_dataset_stat stat;
    lane_share share;
    spk_dataset_get_stat(dataset, &stat);
    memset(out, 0, sizeof *out);
    out->catalog = layout->slots_at;
    out->slots = layout->slots;
    out->slot_bytes = layout->slot_stride + expected_arena(spec, &stat);
    out->workers = spec->workers > 0 ? spec->workers : 1;
    if (share_lanes(spec, &share, NULL) < 0)
        memset(&share, 0, sizeof share);
    double frame = stat.frames > 0 ? (double)stat.tar_bytes / (double)stat.frames : 0;
    out->worker_bytes = spk_engine_memory(spec, share.most, mean_sample(&stat), frame);
    if (dataset->net) /* what is fetched ahead, and buffers kept for it */
        out->worker_bytes +=
            SPK_AHEAD_SPARE +
            (share.most * SPK_AHEAD_WINDOW > SPK_AHEAD_BYTES ? share.most * SPK_AHEAD_WINDOW : SPK_AHEAD_BYTES);
}

spk_status spk_loader_estimate_memory(const spk_dataset *dataset, const spk_loader_options *options,
                                      spk_loader_estimate *out, spk_error *err)
{
    spk_loader_options o;
    spk_shm_head layout;
    spk_memory_need need;
    spk_dataset_stat stat;
    lane_share share;
    memset(out, 0, sizeof *out);
    memset(&o, 0, sizeof o);
    SPK_TRY(spk_options_copy(&o, sizeof o, options, err));
    o.size = sizeof o;
    spk_load_spec *spec = malloc(sizeof *spec);
    if (!spec)
        return spk_error_nomem(err, sizeof *spec);
    spk_status status = spk_load_spec_make(spec, dataset, &o, err);
    const spk_choice choice = {o.indices, o.index_count};
    if (status == SPK_OK)
        status = spk_memory_layout(&layout, spec, dataset, &choice, spk_dataset_folder(dataset),
                                   spk_loader_slots(spec, o.prefetch), err);
    if (status == SPK_OK)
        status = share_lanes(spec, &share, err);
    if (status == SPK_OK) {
        spk_dataset_get_stat(dataset, &stat);
        spk_loader_need(spec, dataset, &layout, &need);
        uint64_t chunks = (spec->plan.global_batch + spec->plan.chunk - 1) / spec->plan.chunk;
        uint64_t all = chunks * spec->plan.groups, lane = all > 0 ? spec->samples / all + 1 : 0;
        out->shared_bytes = need.catalog + need.slots * need.slot_bytes;
        out->worker_bytes = need.worker_bytes;
        out->lanes = share.lanes;
        uint64_t held = share.lanes * (lane < spec->plan.buffer ? lane : spec->plan.buffer);
        out->shuffle_samples = held < spec->samples ? held : spec->samples;
        out->shuffle_bytes = (uint64_t)((double)out->shuffle_samples * mean_sample(&stat));
        out->batches = spk_batches_left(spec, 0);
        out->workers = spec->workers;
        out->slots = layout.slots;
    }
    free(spec);
    return status;
}

static void note_uneven(spk_loader *l, const lane_share *s)
{
    if (s->most == s->fewest)
        return;
    uint64_t fewer = l->workers_n, more = l->workers_n;
    while (s->lanes % fewer != 0)
        fewer--;
    while (more < s->lanes && s->lanes % more != 0)
        more++;
    spk_loader_note(l,
                    "%llu lanes over %u workers: some have %llu, others %llu; %llu or %llu workers share them evenly",
                    (unsigned long long)s->lanes, l->workers_n, (unsigned long long)s->most,
                    (unsigned long long)s->fewest, (unsigned long long)fewer, (unsigned long long)more);
}

static spk_status note_shared(spk_loader *l, uint64_t lanes, uint64_t x, spk_error *err)
{
    const spk_load_spec *spec = &l->core->spec;
    spk_plan *plan = NULL;
    const uint8_t *base = l->core->memory.base;
    const uint64_t *first = (const uint64_t *)(base + spk_memory_head(&l->core->memory)->first_sample);
    SPK_TRY(spk_plan_new(&plan, first, spec->shards, &spec->plan, err));
    l->stats.shared_lanes = spk_shared_lanes(spec, plan, x);
    spk_plan_free(plan);
    if (l->stats.shared_lanes > 0)
        spk_loader_note(
            l,
            "%llu of this rank's %llu lanes are read by another rank, too: their shards are read more than "
            "once; a batch_size that chunk (%u) divides, and the ranks and batch size that the order was made "
            "for (%llu samples together), avoid it",
            (unsigned long long)l->stats.shared_lanes, (unsigned long long)lanes, spec->plan.chunk,
            (unsigned long long)spec->plan.global_batch);
    return SPK_OK;
}

void spk_loader_label_note(const spk_loader *l)
{
    const spk_load_spec *spec = &l->core->spec;
    for (uint32_t i = 0; i < spec->columns_n; i++)
        if (spec->columns[i].kind == SPK_COLUMN_LABEL && !spk_spec_has_field(l->dataset, spec->columns[i].field)) {
            spk_loader_note(l, "no sample of the dataset has the field %s: all labels are -100",
                            spec->columns[i].field);
            return;
        }
}

spk_status spk_loader_hints(spk_loader *l, uint64_t x, spk_error *err)
{
    const spk_load_spec *spec = &l->core->spec;
    lane_share share;
    l->stats.shared_lanes = 0;
    if (!spec->plan.shuffle || spec->samples == 0)
        return SPK_OK;
    SPK_TRY(share_lanes(spec, &share, err));
    if (l->workers_n > 1)
        note_uneven(l, &share);
    return spec->world_size > 1 ? note_shared(l, share.lanes, x, err) : SPK_OK;
}
