/* What follows when a worker ends: it is replaced and does again what it had not finished. A batch that ends its
 * workers one after the other at the same place is reported instead, with what they were doing. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "load/loader_parts.h"

#define SAME_PLACE_MAX 3u  /* deaths in a row at one row of one batch */
#define SAME_BATCH_MAX 10u /* deaths in a row on one batch, wherever */
#define FALSE_STARTS_MAX 3u
#define REAP_MS 5000

/* Counts a death on the batch that the worker was on. Chance kills do not strike at the same step twice; a replacement
 * takes the same steps as the one before, which the first of them need not have done. */
static bool too_many_deaths(const spk_loader *l, spk_worker *w, bool oom)
{
    const spk_activity *a = spk_memory_activity(&l->core->memory, (uint32_t)(w - l->workers));
    uint64_t row = a->row, steps = atomic_load(&a->steps);
    if (w->done >= w->sent) { /* it was idle */
        w->deaths = 0;
        return false;
    }
    bool same_batch = w->deaths > 0 && w->death_serial == w->done;
    bool same_place = same_batch && w->death_row == row && (w->deaths == 1 || w->death_steps == steps);
    w->deaths = same_batch ? w->deaths + 1 : 1;
    w->at_row = same_place ? w->at_row + 1 : 1;
    w->death_serial = w->done;
    w->death_row = row;
    w->death_steps = steps;
    return w->at_row >= SAME_PLACE_MAX || w->deaths >= SAME_BATCH_MAX || (oom && w->deaths >= SAME_PLACE_MAX);
}

/* "worker 1 (process 4711): killed by signal 9 (Killed) for lack of memory: ..." */
static bool describe(spk_loader *l, const spk_worker *w, pid_t pid, const spk_exit *how, const char *why, char *text,
                     size_t cap)
{
    char end[160], oom[1800] = "";
    spk_exit_describe(how, end, sizeof end);
    bool killed = !how->known || (how->signalled && how->value == SIGKILL);
    bool starved = !why && killed && spk_oom_rose(&l->oom, NULL, NULL, oom, sizeof oom);
    snprintf(text, cap, "worker %u (process %ld) %s%s%s", (unsigned)(w - l->workers), (long)pid, why ? why : end,
             starved ? " " : "", oom);
    return starved;
}

static void give_up(spk_loader *l, spk_worker *w, const char *what, const char *why)
{
    spk_error err;
    char doing[256];
    spk_error_clear(&err);
    spk_worker_doing(l, w, doing);
    if (!w->alive)
        (void)spk_error_set(&err, SPK_E_WORKER, "%s before it was ready; its program is %s", what, l->program);
    else if (why)
        (void)spk_error_set(&err, SPK_E_WORKER, "%s; its program is %s", what, l->program);
    else
        (void)spk_error_set(&err, SPK_E_WORKER,
                            "batch %llu of epoch %lu has ended its worker %u times, the last time %s; it was %s",
                            (unsigned long long)spk_ring_slot(&l->ring, w->done)->batch_number,
                            (unsigned long)spk_ring_slot(&l->ring, w->done)->epoch, w->deaths, what,
                            *doing ? doing : "at its beginning");
    spk_crew_lose(l, w, &err);
}

void spk_crew_died(spk_loader *l, spk_worker *w, const char *why)
{
    char what[2048];
    spk_error err;
    spk_exit how;
    pid_t pid = w->process.pid;
    spk_error_clear(&err);
    spk_process_kill(&w->process); /* if it only talked nonsense, or closed its socket */
    bool gone = spk_process_wait(&w->process, REAP_MS, &how);
    close(w->socket);
    w->socket = -1;
    bool starved = describe(l, w, pid, &how, why, what, sizeof what);
    if (!gone) { /* it may still write into the slots */
        (void)spk_error_set(&err, SPK_E_WORKER, "%s and does not end", what);
        spk_crew_lose(l, w, &err);
        return;
    }
    w->false_starts = w->alive ? 0 : w->false_starts + 1;
    /* A program that does not work ends by itself, or by another signal: it is not tried again while opening. */
    bool killed = how.known && how.signalled && how.value == SIGKILL;
    bool hopeless = w->alive ? why != NULL || too_many_deaths(l, w, starved)
                             : why != NULL || (l->opening && !killed) || w->false_starts >= FALSE_STARTS_MAX;
    if (hopeless) {
        give_up(l, w, what, why);
        return;
    }
    l->stats.restarts++;
    spk_loader_note(l, "%s; it is replaced", what);
    if (spk_crew_start_one(l, w, &err) < 0) {
        spk_error_prefix(&err, "worker %u: %s; no replacement", (unsigned)(w - l->workers), what);
        spk_crew_lose(l, w, &err);
    }
}
