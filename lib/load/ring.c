/* Slots and serials. No state of its own, no I/O. */
#include "load/ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

spk_status spk_ring_init(spk_ring *r, uint32_t slots, spk_error *err)
{
    memset(r, 0, sizeof *r);
    r->slots = calloc(slots, sizeof *r->slots);
    r->by_serial = calloc(slots, sizeof *r->by_serial);
    if (!r->slots || !r->by_serial) {
        spk_ring_free(r);
        return spk_error_nomem(err, slots * sizeof *r->slots);
    }
    r->n = slots;
    for (uint32_t i = 0; i < slots; i++)
        r->slots[i].number = i;
    return SPK_OK;
}

void spk_ring_free(spk_ring *r)
{
    free(r->slots);
    free(r->by_serial);
    memset(r, 0, sizeof *r);
}

/* The lowest number first, so that slots that are not needed are never written and take no memory. */
spk_slot *spk_ring_find_free(const spk_ring *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->slots[i].state == SPK_SLOT_FREE)
            return &r->slots[i];
    return NULL;
}

static void settle(spk_ring *r, spk_slot *slot)
{
    if (slot->pending > 0)
        return;
    r->finished = slot->serial + 1;
    slot->state = slot->wanted ? SPK_SLOT_READY : SPK_SLOT_FREE;
}

void spk_ring_begin(spk_ring *r, spk_slot *slot, uint32_t epoch, spk_batch_range batch, uint32_t answers)
{
    slot->state = SPK_SLOT_RUNNING;
    slot->wanted = true;
    slot->pending = answers;
    slot->serial = r->next++;
    slot->epoch = epoch;
    slot->batch = batch;
    memset(&slot->sum, 0, sizeof slot->sum);
    slot->failed_row = SPK_ROW_NONE;
    slot->error.code = SPK_OK;
    slot->substituted_row = SPK_ROW_NONE;
    slot->substituted.code = SPK_OK;
    r->by_serial[slot->serial % r->n] = slot->number;
}

spk_slot *spk_ring_slot(const spk_ring *r, uint64_t serial)
{
    return &r->slots[r->by_serial[serial % r->n]];
}

static void add_counters(spk_run_counters *sum, const spk_run_counters *c)
{
    sum->busy_ns += c->busy_ns;
    sum->bytes_read += c->bytes_read;
    sum->frames_read += c->frames_read;
    sum->images_decoded += c->images_decoded;
    sum->substituted += c->substituted;
    sum->padded += c->padded;
}

void spk_ring_answer(spk_ring *r, uint64_t serial, const spk_done_packet *done)
{
    spk_slot *slot = spk_ring_slot(r, serial);
    add_counters(&slot->sum, &done->counters);
    if (done->kind == SPK_PACKET_FAIL && (slot->error.code == SPK_OK || done->row < slot->failed_row)) {
        slot->failed_row = done->row;
        slot->error = done->error;
    }
    const spk_error *first = &done->first_substitution;
    if (done->kind == SPK_PACKET_DONE && first->code != SPK_OK &&
        (slot->substituted.code == SPK_OK || done->row < slot->substituted_row ||
         (done->row == slot->substituted_row && strcmp(first->text, slot->substituted.text) < 0))) {
        slot->substituted_row = done->row;
        slot->substituted = *first;
    }
    slot->pending--;
    settle(r, slot);
}

spk_slot *spk_ring_ready(const spk_ring *r)
{
    return r->deliver < r->finished ? spk_ring_slot(r, r->deliver) : NULL;
}

uint64_t spk_ring_ahead(const spk_ring *r)
{
    return r->next - r->deliver;
}

uint64_t spk_ring_ready_count(const spk_ring *r)
{
    return r->deliver < r->finished ? r->finished - r->deliver : 0;
}

void spk_ring_hand(spk_ring *r, spk_slot *slot, bool copied)
{
    r->deliver = slot->serial + 1;
    slot->state = copied ? SPK_SLOT_FREE : SPK_SLOT_HELD;
    r->held += !copied;
}

void spk_ring_release(spk_ring *r, uint32_t slot)
{
    if (r->slots[slot].state != SPK_SLOT_HELD)
        return;
    r->slots[slot].state = SPK_SLOT_FREE;
    r->held--;
}

void spk_ring_abandon(spk_ring *r)
{
    for (uint64_t s = r->deliver; s < r->next; s++) {
        spk_slot *slot = spk_ring_slot(r, s);
        slot->wanted = false;
        if (slot->state == SPK_SLOT_READY)
            slot->state = SPK_SLOT_FREE;
    }
    r->deliver = r->next;
}

void spk_ring_clear(spk_ring *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->slots[i].state == SPK_SLOT_RUNNING)
            r->slots[i].state = SPK_SLOT_FREE;
    r->finished = r->next;
}
