/* Batches on loan: views of a slot, or of a private copy of one. They outlive the loader. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "load/loader_parts.h"

static uint64_t arena_used(const spk_core *core, uint64_t slot)
{
    const spk_slot_control *control = spk_slot_control_of(core->memory.base, &core->spec, slot);
    uint64_t used = atomic_load_explicit(&control->arena_used, memory_order_relaxed);
    return used < core->spec.arena_bytes ? used : core->spec.arena_bytes;
}

static spk_status copy_slot(spk_batch *b, uint32_t slot, spk_error *err)
{
    const spk_core *core = b->core;
    uint64_t used = core->spec.has_arena ? arena_used(core, slot) : 0, bytes = core->spec.slot_bytes + used;
    void *copy = NULL;
    int e = posix_memalign(&copy, SPK_SLOT_ALIGN, (size_t)bytes);
    if (e != 0)
        return spk_error_nomem(err, (size_t)bytes);
    memcpy(copy, b->data, (size_t)core->spec.slot_bytes);
    if (used > 0)
        memcpy((uint8_t *)copy + core->spec.slot_bytes, b->arena, (size_t)used);
    b->copy = copy;
    b->data = copy;
    b->arena = b->data + core->spec.slot_bytes;
    b->slot = -1;
    return SPK_OK;
}

spk_status spk_batch_new(spk_batch **out, spk_loader *l, spk_slot *slot, bool copy, spk_error *err)
{
    spk_core *core = l->core;
    spk_batch *b = calloc(1, sizeof *b);
    *out = NULL;
    if (!b)
        return spk_error_nomem(err, sizeof *b);
    b->core = core;
    b->slot = slot->number;
    b->data = spk_slot_data(core->memory.base, slot->number);
    b->arena = core->spec.has_arena ? spk_slot_arena(core->memory.base, &core->spec, slot->number) : NULL;
    b->rows = slot->batch.rows;
    b->valid = b->rows - slot->sum.padded - slot->sum.substituted;
    b->number = slot->batch_number;
    b->position = slot->batch.first;
    if (copy) {
        spk_status status = copy_slot(b, slot->number, err);
        if (status < 0) {
            free(b);
            return status;
        }
    }
    core->users++;
    core->lent += b->slot >= 0;
    *out = b;
    return SPK_OK;
}

/* Unmaps the slots as soon as nobody can look into them. In a forked child no CUDA call may be made. */
static void settle(spk_core *core, spk_error *note)
{
    bool mine = core->owner == getpid();
    if (!core->loader && core->lent == 0) {
        if (core->pins && mine)
            (void)spk_pins_unlock(core->pins, note);
        spk_memory_free(&core->memory);
    }
    if (core->users > 0)
        return;
    if (mine)
        spk_pins_free(core->pins);
    else
        spk_pins_forget(core->pins);
    free(core);
}

void spk_core_drop(spk_core *core, spk_error *note)
{
    core->loader = NULL;
    core->users--;
    settle(core, note);
}

void spk_batch_finish(spk_batch *batch)
{
    spk_core *core = batch->core;
    if (batch->slot >= 0) {
        core->lent--;
        if (core->loader)
            spk_ring_release(&core->loader->ring, (uint32_t)batch->slot);
    }
    if (core->pins)
        spk_pins_put(core->pins, &batch->events);
    free(batch->copy);
    free(batch);
    core->users--;
}

void spk_batch_discard(spk_batch *batch)
{
    batch->core->lent -= batch->slot >= 0;
    batch->core->users--;
    free(batch->copy);
    free(batch);
}

/* What a device may still read waits; who has no loader any more waits here. */
void spk_batch_release(spk_batch *batch)
{
    if (!batch)
        return;
    spk_core *core = batch->core;
    spk_loader *l = core->loader;
    spk_pins *pins = core->owner == getpid() ? core->pins : NULL;
    if (pins && l && (batch->events || batch->stuck)) {
        batch->later = NULL;
        *pins->last = batch;
        pins->last = &batch->later;
        pins->waiting_n += !batch->stuck;
    } else {
        if (pins && batch->events)
            spk_pins_wait(pins, &batch->events);
        spk_batch_finish(batch);
    }
    if (l && l->owner == getpid())
        spk_loader_begin(l); /* the slot is put to use at once */
    else
        settle(core, NULL);
}

uint64_t spk_batch_rows(const spk_batch *batch)
{
    return batch->rows;
}

uint64_t spk_batch_valid_rows(const spk_batch *batch)
{
    return batch->valid;
}

uint64_t spk_batch_number(const spk_batch *batch)
{
    return batch->number;
}

uint64_t spk_batch_position(const spk_batch *batch)
{
    return batch->position;
}

spk_status spk_batch_column(const spk_batch *batch, size_t i, spk_view *out, spk_error *err)
{
    const spk_load_spec *spec = &batch->core->spec;
    if (i >= spec->columns_n)
        return spk_error_set(err, SPK_E_INVALID, "column %zu of a batch of %u", i, spec->columns_n);
    const spk_load_column *c = &spec->columns[i];
    memset(out, 0, sizeof *out);
    out->kind = (spk_column_kind)c->kind;
    out->dtype = (spk_dtype)c->dtype;
    out->ndim = c->ndim;
    memcpy(out->shape, c->shape, sizeof out->shape);
    out->shape[0] = batch->rows;
    if (spk_column_is_variable(c->kind)) {
        out->data = batch->arena;
        out->offsets = (const uint64_t *)(batch->data + c->offset);
    } else {
        out->data = batch->data + c->offset;
        out->bytes = c->row_bytes * batch->rows;
    }
    return SPK_OK;
}
