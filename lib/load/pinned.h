/* Page-locked slots, and the events that say when a device has read them. All CUDA calls of a loader's memory are here;
 * the process that made it is the only one that may make them. Confined. */
#ifndef SPK_LOAD_PINNED_H
#define SPK_LOAD_PINNED_H

#include <shardpack/loader.h>
#include <stdbool.h>

#include "load/pinned_cuda.h"

#define SPK_PINS_POLL_NS 50000 /* between two looks at an event, for a caller that can do nothing else */

/* In a batch's list, or in the pool. */
typedef struct spk_event {
    struct spk_event *next;
    spk_cuda_event event;
    int device;             /* that it belongs to */
    spk_cuda_stream stream; /* it was last recorded on */
} spk_event;

typedef struct spk_pins {
    spk_cuda cuda;
    int device;    /* the slots were locked on */
    uint8_t *base; /* what is locked; NULL: nothing, copies are from pageable memory */
    spk_event *pool;
    spk_batch *waiting, **last; /* released, in that order, with events to pass */
    uint32_t waiting_n;         /* of them those that are not stuck */
    spk_error failed;           /* of an event; code SPK_OK: none */
} spk_pins;

/* Loads the runtime and finds the device; nothing is locked yet. */
SPK_CHECK spk_status spk_pins_new(spk_pins **out, const int *device, spk_error *err);
/* Brings all pages into memory, by several threads at once, then locks them. The memory is a shared mapping. */
SPK_CHECK spk_status spk_pins_lock(spk_pins *p, uint8_t *base, uint64_t bytes, spk_error *err);
/* Before the memory is unmapped. OK as well if the runtime is gone already, at the end of the process. */
spk_status spk_pins_unlock(spk_pins *p, spk_error *err);
/* Destroys events and frees; NULL is fine. */
void spk_pins_free(spk_pins *p);
/* In a process that must not call CUDA. */
void spk_pins_forget(spk_pins *p);

/* An event for the current device, in *list from now on: the one of that stream, or one that was never recorded. */
SPK_CHECK spk_status spk_pins_event(spk_pins *p, spk_event **list, spk_cuda_stream stream, spk_event **out,
                                    spk_error *err);
/* Records it. If that fails, waits for the stream instead; *stuck if that fails too. */
SPK_CHECK spk_status spk_pins_record(spk_pins *p, spk_event *event, bool *stuck, spk_error *err);
/* Takes those that have passed out of *list. True if it is empty then. An error is kept in p->failed, and nothing
 * passes any more. */
bool spk_pins_passed(spk_pins *p, spk_event **list);
/* Waits until all have passed, or one fails; then they are in the pool. */
void spk_pins_wait(spk_pins *p, spk_event **list);
/* Back to the pool, whatever was recorded. */
void spk_pins_put(spk_pins *p, spk_event **list);

/* Writes to every page of page-aligned memory, by `threads` threads. IO, NOMEM. */
SPK_CHECK spk_status spk_populate(uint8_t *base, uint64_t bytes, unsigned threads, spk_error *err);

#endif
