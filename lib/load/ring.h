/* The slots of a loader as the trainer sees them. Pure bookkeeping, no I/O. Confined.
 *
 *   free -> running   a batch was given the slot and a serial; every worker owes an answer
 *   running -> ready  all have answered (or free, if the batch is not wanted any more)
 *   ready -> held     handed to the caller;  ready -> free: handed out as a copy, or not wanted
 *   held -> free      released
 *
 * Serials count up without gaps, and each worker answers in their order: so batches become ready in order, and those
 * that are running are a run of serials. */
#ifndef SPK_LOAD_RING_H
#define SPK_LOAD_RING_H

#include <stdbool.h>

#include "load/protocol.h"

typedef enum spk_slot_state { SPK_SLOT_FREE = 0, SPK_SLOT_RUNNING, SPK_SLOT_READY, SPK_SLOT_HELD } spk_slot_state;

typedef struct spk_slot {
    spk_slot_state state;
    bool wanted;
    uint32_t number;  /* of the slot itself */
    uint32_t pending; /* answers owed */
    uint64_t serial;
    uint32_t epoch;
    uint64_t batch_number; /* in its epoch */
    uint64_t next;         /* position behind the global batch */
    spk_batch_range batch;
    spk_run_counters sum;
    uint64_t failed_row; /* of the lowest failure */
    spk_error error;     /* code SPK_OK: none */
    uint64_t substituted_row;
    spk_error substituted; /* text of the lowest substituted row */
} spk_slot;

typedef struct spk_ring {
    spk_slot *slots;
    uint32_t *by_serial; /* slot of serial s at s mod n, from the oldest that runs or is ready */
    uint32_t n, held;
    uint64_t deliver;  /* next serial to hand out */
    uint64_t finished; /* serials below it have all their answers */
    uint64_t next;     /* next serial to give */
} spk_ring;

SPK_CHECK spk_status spk_ring_init(spk_ring *r, uint32_t slots, spk_error *err);
void spk_ring_free(spk_ring *r);

/* A free slot for a new batch, or NULL. It counts when spk_ring_begin is called with it. */
spk_slot *spk_ring_find_free(const spk_ring *r);
void spk_ring_begin(spk_ring *r, spk_slot *slot, uint32_t epoch, spk_batch_range batch, uint32_t answers);
/* Slot of a serial that is running or ready. */
spk_slot *spk_ring_slot(const spk_ring *r, uint64_t serial);
/* One worker's answer. The lowest row's error wins; without rows (SPK_ROW_NONE) the first that came. */
void spk_ring_answer(spk_ring *r, uint64_t serial, const spk_done_packet *done);
/* The batch that is handed out next if it is ready, else NULL. */
spk_slot *spk_ring_ready(const spk_ring *r);
/* Batches wanted and not handed out; and how many of them are ready. */
uint64_t spk_ring_ahead(const spk_ring *r);
uint64_t spk_ring_ready_count(const spk_ring *r);
/* Hands out the ready batch: the slot is held, or free at once if the caller gets a copy. */
void spk_ring_hand(spk_ring *r, spk_slot *slot, bool copied);
void spk_ring_release(spk_ring *r, uint32_t slot);
/* Nothing begun so far is wanted: ready ones are free, running ones will be. */
void spk_ring_abandon(spk_ring *r);
/* All workers are gone: what was running will never be answered and is free. To be called after spk_ring_abandon. */
void spk_ring_clear(spk_ring *r);

#endif
