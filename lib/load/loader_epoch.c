/* Epochs: which batch is begun and handed out next. Batches of the next epoch are begun while the last of this one are
 * handed out. */
#include <string.h>

#include "base/error.h"
#include "load/loader_parts.h"
#include "load/tasks.h"

/* State of rows that no worker has written. */
#define ROW_UNFILLED 0xFF

static void set_place(const spk_loader *l, spk_place *p, uint64_t epoch, uint64_t x)
{
    const spk_load_spec *spec = &l->core->spec;
    *p = (spk_place){.epoch = epoch,
                     .x = x,
                     .number = x / ((uint64_t)spec->batch_size * spec->world_size),
                     .left = epoch <= SPK_PLAN_EPOCH_MAX ? spk_batches_left(spec, x) : 0};
}

void spk_loader_advance(const spk_loader *l, spk_place *p, uint64_t next)
{
    const spk_load_spec *spec = &l->core->spec;
    p->x = next < spec->total ? next : spec->total;
    p->number++;
    p->left--;
}

/* Samples of this rank from position x to the end of the epoch. */
static uint64_t planned_rows(const spk_load_spec *spec, uint64_t x)
{
    uint64_t batch = spec->batch_size, global = batch * spec->world_size, left = spec->total - x;
    uint64_t rest = left % global, before = spec->rank * batch;
    uint64_t share = rest > before ? rest - before : 0;
    if (spec->tail == SPK_TAIL_DROP)
        share = 0;
    return left / global * batch + (share < batch ? share : batch);
}

/* A dataset without a single batch has epochs that end at once; nothing is begun for them. */
static bool more_to_begin(const spk_loader *l)
{
    return l->begun.left > 0 || (l->begun.epoch < SPK_PLAN_EPOCH_MAX && spk_batches_left(&l->core->spec, 0) > 0);
}

static void begin_one(spk_loader *l, spk_slot *slot)
{
    const spk_load_spec *spec = &l->core->spec;
    if (l->begun.left == 0)
        set_place(l, &l->begun, l->begun.epoch + 1, 0);
    spk_batch_range range = spk_batch_part(spec, l->begun.x);
    uint8_t *base = l->core->memory.base;
    memset(spk_slot_data(base, slot->number) + spec->rows_offset, ROW_UNFILLED, spec->batch_size);
    atomic_store_explicit(&spk_slot_control_of(base, spec, slot->number)->arena_used, SPK_ARENA_FIRST,
                          memory_order_relaxed);
    slot->batch_number = l->begun.number;
    slot->next = l->begun.x + (uint64_t)spec->batch_size * spec->world_size;
    spk_ring_begin(&l->ring, slot, (uint32_t)l->begun.epoch, range, l->workers_n > 0 ? l->workers_n : 1);
    spk_loader_advance(l, &l->begun, slot->next);
}

void spk_loader_begin(spk_loader *l)
{
    if (l->core->pins && l->core->pins->waiting)
        spk_loader_settle_uploads(l);
    if (l->workers_n == 0 || l->failed.code != SPK_OK)
        return; /* without workers a batch is made when it is asked for */
    while (spk_ring_ahead(&l->ring) < l->ahead && more_to_begin(l)) {
        spk_slot *slot = spk_ring_find_free(&l->ring);
        if (!slot)
            break;
        begin_one(l, slot);
    }
    spk_crew_send(l);
}

spk_status spk_loader_run_inline(spk_loader *l, spk_error *err)
{
    spk_done_packet done;
    spk_slot *slot = spk_ring_find_free(&l->ring);
    if (!slot)
        return spk_error_set(err, SPK_E_STATE, "no free slot");
    begin_one(l, slot);
    spk_run_packet run = {.kind = SPK_PACKET_RUN,
                          .slot = slot->number,
                          .serial = slot->serial,
                          .epoch = slot->epoch,
                          .batch = slot->batch};
    spk_engine_run(l->engine, &run, &done);
    bool cancelled = done.kind == SPK_PACKET_FAIL && done.error.code == SPK_E_CANCELLED;
    if (cancelled) { /* as if the batch had not been begun */
        SPK_TRY(spk_loader_drop(l, NULL, err));
        l->begun = l->delivered;
    }
    spk_ring_answer(&l->ring, slot->serial, &done);
    if (cancelled)
        *err = done.error;
    return cancelled ? SPK_E_CANCELLED : SPK_OK;
}

/* Workers, or the engine, anew. */
static spk_status restart(spk_loader *l, const spk_plan_spec *plan, spk_error *err)
{
    spk_crew_stop(l);
    spk_ring_clear(&l->ring);
    if (plan) {
        l->core->spec.plan = *plan;
        spk_memory_spec(&l->core->memory)->plan = *plan;
    }
    if (l->workers_n > 0)
        return spk_crew_start(l, err);
    spk_engine_free(l->engine);
    l->engine = NULL;
    return spk_loader_new_engine(l, err);
}

spk_status spk_loader_drop(spk_loader *l, const spk_plan_spec *plan, spk_error *err)
{
    bool lost = l->workers_n == 0 && !l->engine;
    spk_ring_abandon(&l->ring);
    spk_memory_want_from(&l->core->memory, l->ring.next);
    for (uint32_t i = 0; i < l->workers_n; i++)
        lost = lost || l->workers[i].lost;
    if (plan || lost) {
        spk_status status = restart(l, plan, err);
        if (status < 0)
            return spk_loader_fail(l, err);
    }
    l->failed.code = SPK_OK;
    return SPK_OK;
}

/* True if the batches begun are those that follow that place. */
static bool is_next(const spk_loader *l, uint64_t epoch, uint64_t x)
{
    if (l->failed.code != SPK_OK)
        return false;
    if (l->delivered.epoch == epoch && l->delivered.x == x)
        return true;
    return l->delivered.left == 0 && l->delivered.epoch + 1 == epoch && x == 0;
}

spk_status spk_loader_go(spk_loader *l, uint64_t epoch, uint64_t x, spk_error *err)
{
    bool keep = is_next(l, epoch, x);
    if (!keep)
        SPK_TRY(spk_loader_drop(l, NULL, err));
    set_place(l, &l->delivered, epoch, x);
    if (!keep)
        l->begun = l->delivered;
    l->planned = planned_rows(&l->core->spec, x);
    l->rows = 0;
    return SPK_OK;
}

/* Never a normal end of an epoch that was not whole. */
spk_status spk_loader_end_epoch(spk_loader *l, spk_error *err)
{
    if (l->rows != l->planned) {
        (void)spk_error_set(err, SPK_E_WORKER, "epoch %llu ended after %llu of %llu samples: a defect of the loader",
                            (unsigned long long)l->delivered.epoch, (unsigned long long)l->rows,
                            (unsigned long long)l->planned);
        return spk_loader_fail(l, err);
    }
    set_place(l, &l->delivered, l->delivered.epoch + 1, 0);
    l->planned = planned_rows(&l->core->spec, 0);
    l->rows = 0;
    spk_loader_begin(l);
    return SPK_END;
}

/* Every row was written, and the counts of the workers agree with what stands in the slot. */
spk_status spk_loader_check_rows(const spk_loader *l, const spk_slot *slot, spk_error *err)
{
    const spk_load_spec *spec = &l->core->spec;
    const uint8_t *states = spk_slot_data(l->core->memory.base, slot->number) + spec->rows_offset;
    uint64_t count[3] = {0};
    for (uint64_t r = 0; r < slot->batch.rows; r++) {
        if (states[r] > SPK_ROW_SUBSTITUTED)
            return spk_error_set(err, SPK_E_WORKER, "batch %llu of epoch %u: row %llu was not filled: a defect",
                                 (unsigned long long)slot->batch_number, slot->epoch, (unsigned long long)r);
        count[states[r]]++;
    }
    if (count[SPK_ROW_PADDED] != slot->sum.padded || count[SPK_ROW_SUBSTITUTED] != slot->sum.substituted)
        return spk_error_set(
            err, SPK_E_WORKER,
            "batch %llu of epoch %u: %llu rows padded and %llu substituted, the workers counted %llu and "
            "%llu: a defect",
            (unsigned long long)slot->batch_number, slot->epoch, (unsigned long long)count[SPK_ROW_PADDED],
            (unsigned long long)count[SPK_ROW_SUBSTITUTED], (unsigned long long)slot->sum.padded,
            (unsigned long long)slot->sum.substituted);
    return SPK_OK;
}
