/* Private to load/: the loader's struct and what its files owe each other. */
#ifndef SPK_LOAD_LOADER_PARTS_H
#define SPK_LOAD_LOADER_PARTS_H

#include <poll.h>
#include <shardpack/gpu.h>
#include <unistd.h>

#include "base/buf.h"
#include "load/engine.h"
#include "load/limits.h"
#include "load/memory.h"
#include "load/oom.h"
#include "load/pinned.h"
#include "load/ring.h"
#include "load/spawn.h"

/* What batches still held keep alive after the loader is closed. loader is NULL from then on. */
typedef struct spk_core {
    uint32_t users; /* the loader and all its batches */
    uint32_t lent;  /* batches that lie in slots */
    spk_memory memory;
    spk_load_spec spec;
    spk_loader *loader;
    pid_t owner;
    spk_pins *pins; /* NULL: pin_memory is off, or AUTO found no CUDA runtime */
} spk_core;

/* Ends of the workers of one number that were on the batch `serial`, by kind (crew_death.c). */
typedef struct spk_deaths {
    uint64_t serial;
    uint32_t crashes, starved, killed;
    uint32_t at_row; /* crashes in a row at `row`, the last at `steps` */
    uint64_t row, steps;
} spk_deaths;

/* One worker process. It owes answers to the serials done .. ring.next - 1, of which those below sent were sent. */
typedef struct spk_worker {
    spk_process process;
    int socket;
    bool alive; /* said hello */
    bool lost;  /* given up: whatever it owes fails with `reason` */
    spk_error reason;
    uint64_t reason_row;
    uint64_t sent, done;
    spk_deaths deaths;
    uint64_t due_ns;       /* it is started again then; 0: it runs, or is lost */
    uint32_t false_starts; /* in a row: ended by itself without a hello */
    uint64_t seen_steps;   /* of its activity, at seen_ns */
    uint64_t seen_ns;
} spk_worker;

#define SPK_EPOCH_NONE (UINT64_MAX - 1) /* of a place that nothing follows */

/* A place in the stream of epochs. */
typedef struct spk_place {
    uint64_t epoch;  /* one behind the last that there can be means: no more */
    uint64_t x;      /* position of the next batch */
    uint64_t number; /* of that batch in its epoch */
    uint64_t left;   /* batches up to the end of the epoch */
} spk_place;

struct spk_loader {
    pid_t owner;
    const spk_dataset *dataset;
    spk_core *core;
    spk_ring ring;
    spk_engine *engine; /* workers = 0 */
    spk_worker *workers;
    struct pollfd *polls; /* two for each worker: socket and process */
    uint32_t workers_n;
    bool opening; /* a worker that does not start is not tried again */
    int trainer;  /* own pidfd, -1 */
    char *program;
    spk_oom oom;

    uint32_t ahead; /* batches that may be under way or ready at once */
    uint32_t keep;  /* slots that are never lent */
    bool error_on_hold;
    uint64_t timeout_ns; /* 0: none; else without progress */
    uint64_t
        start_ns; /* the same for a worker that starts: however short the other is, a busy machine may take a second */
    uint64_t max_errors;
    bool fixed_groups; /* lane_groups was given */
    void (*on_note)(void *user, const char *text);
    void *user;
    int (*on_wait)(void *user);

    spk_place delivered;    /* next to hand out */
    spk_place begun;        /* next to begin */
    uint64_t planned, rows; /* of this epoch from where it was begun: samples to come and those handed out */
    uint64_t substituted;   /* rows in the stream so far; part of the state */
    uint64_t substituted_noted;
    bool copy_noted, cache_noted;
    uint32_t throttled_noted; /* mirrors */
    uint64_t moves;           /* calls that changed what comes next */
    spk_pin pin;
    spk_error failed; /* code SPK_OK: none; else what every call repeats */
    spk_loader_stats stats;
};

struct spk_batch {
    spk_core *core;
    int64_t slot; /* -1: a private copy */
    const uint8_t *data, *arena;
    void *copy;
    uint64_t rows, valid, number, position;
    spk_event *events; /* to pass before its memory is used again */
    bool stuck;        /* one could not be recorded: never */
    spk_batch *later;  /* of those that are released and wait */
};

/* loader.c */
/* STATE in a process other than the one that made the loader. */
SPK_CHECK spk_status spk_loader_check_owner(const spk_loader *l, spk_error *err);
/* Remembers the error: from now on every call of next repeats it. Returns its code. */
spk_status spk_loader_fail(spk_loader *l, const spk_error *err);
SPK_CHECK spk_status spk_loader_new_engine(spk_loader *l, spk_error *err);
void spk_loader_note(const spk_loader *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* loader_net.c */
void spk_loader_net_stats(const spk_loader *l, spk_loader_stats *out);
/* What an engine needs to open a dataset by URL; nothing for a folder. */
SPK_CHECK spk_status spk_loader_net_text(const spk_loader *l, spk_buf *out, spk_error *err);
/* Sends it to a worker that is about to start. */
SPK_CHECK spk_status spk_loader_net_send(const spk_loader *l, int socket, spk_error *err);
/* What costs time, told once. */
void spk_loader_net_notes(spk_loader *l);

/* loader_hints.c */
/* What the loader will need, as far as it can be known beforehand. */
void spk_loader_need(const spk_load_spec *spec, const spk_dataset *dataset, const spk_shm_head *layout,
                     spk_memory_need *out);
/* prefetch of the options, or its default; and the slots that it takes. */
uint32_t spk_loader_prefetch(uint32_t given);
uint32_t spk_loader_slots(const spk_load_spec *spec, uint32_t prefetch);
/* Told once, at the beginning: a column of labels where there are none. */
void spk_loader_label_note(const spk_loader *l);
/* Notes on an uneven share of lanes among workers and on lanes read by two ranks, when going on at position x. */
SPK_CHECK spk_status spk_loader_hints(spk_loader *l, uint64_t x, spk_error *err);

/* loader_epoch.c */
/* Moves to a place: what was prepared stays if it is what comes next there, else it is dropped. */
SPK_CHECK spk_status spk_loader_go(spk_loader *l, uint64_t epoch, uint64_t x, spk_error *err);
/* Drops everything under way. Workers are replaced if one was lost, and if there is a new plan, which then holds. */
SPK_CHECK spk_status spk_loader_drop(spk_loader *l, const spk_plan_spec *plan, spk_error *err);
/* Begins batches while there are slots; never waits. */
void spk_loader_begin(spk_loader *l);
/* Makes the next batch in the caller. */
SPK_CHECK spk_status spk_loader_run_inline(spk_loader *l, spk_error *err);
/* What a batch must be before it is handed out. */
SPK_CHECK spk_status spk_loader_check_rows(const spk_loader *l, const spk_slot *slot, spk_error *err);
/* Behind the last batch of an epoch: checks that it was whole and moves on. */
SPK_CHECK spk_status spk_loader_end_epoch(spk_loader *l, spk_error *err);
void spk_loader_advance(const spk_loader *l, spk_place *p, uint64_t next);

/* loader_pin.c */
/* Loads the CUDA runtime and page-locks the slots, as far as the options say. */
SPK_CHECK spk_status spk_loader_pin(spk_loader *l, const spk_loader_options *o, spk_error *err);
/* Gives back the slots of released batches whose events have passed. */
void spk_loader_settle_uploads(spk_loader *l);
/* At the end: waits for all of them. In a forked child nothing is waited for. */
void spk_loader_drain_uploads(spk_loader *l);
/* True if lending another slot would leave too few to work with. */
static inline bool spk_loader_is_short(const spk_loader *l)
{
    return l->ring.n - l->ring.held <= l->keep;
}
/* True if released slots wait for a device. */
static inline bool spk_loader_uploads(const spk_loader *l)
{
    return l->core->pins && l->core->pins->waiting_n > 0;
}
/* Waits while the slots are short because a device still reads some. CANCELLED by on_wait, DEVICE. */
SPK_CHECK spk_status spk_loader_wait_uploads(spk_loader *l, spk_error *err);

/* crew.c */
SPK_CHECK spk_status spk_crew_start(spk_loader *l, spk_error *err);
void spk_crew_stop(spk_loader *l);
/* In a forked child: closes descriptors, touches no process. */
void spk_crew_forget(spk_loader *l);
/* Sends what can be sent without waiting. */
void spk_crew_send(spk_loader *l);
/* Takes the answers that are there: one call of the system for each worker that owes one. */
void spk_crew_take(spk_loader *l);
/* Takes the answers that are there, waiting up to wait_ms for the first; replaces workers that have died. True if a
 * signal cut the wait short. */
bool spk_crew_receive(spk_loader *l, int wait_ms);
/* A worker that cannot go on: the batch that it is on fails with err, and so do those behind it. */
void spk_crew_lose(spk_loader *l, spk_worker *w, const spk_error *err);
/* crew_death.c: a worker has ended (or talks nonsense, `why`): replaces it, at once or later, or gives it up. */
void spk_crew_died(spk_loader *l, spk_worker *w, const char *why);
/* Starts those that are due. Returns wait_ms, or less if another one is due earlier. */
int spk_crew_start_due(spk_loader *l, int wait_ms);
SPK_CHECK spk_status spk_crew_start_one(spk_loader *l, spk_worker *w, spk_error *err);

/* watchdog.c */
/* Begins a wait; then, after each receive, gives up workers that are overdue. asked_ns, took_ns: of the last wait. */
void spk_watchdog_arm(spk_loader *l);
void spk_watchdog_look(spk_loader *l, uint64_t asked_ns, uint64_t took_ns);
/* What the worker was last doing, NUL-terminated; empty if it has not said. */
void spk_worker_doing(const spk_loader *l, const spk_worker *w, char text[256]);

/* batch.c */
SPK_CHECK spk_status spk_batch_new(spk_batch **out, spk_loader *l, spk_slot *slot, bool copy, spk_error *err);
/* Frees a batch that was not handed out. */
void spk_batch_discard(spk_batch *batch);
/* Gives its slot back and frees it; nothing is waited for. */
void spk_batch_finish(spk_batch *batch);
/* The loader lets go of it. note: told if the slots could not be unlocked; may be NULL. */
void spk_core_drop(spk_core *core, spk_error *note);

#endif
