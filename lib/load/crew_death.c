/* What follows when a worker ends: it is replaced and does again what it had not finished. How often that is done for
 * one batch depends on how its workers end, each counted by itself:
 *
 *   by themselves (a status, SIGSEGV and the like)   3 times at one row, 10 on the batch: reported with what they did
 *   killed for lack of memory (oom.h)                3 times: reported with the counter that rose
 *   killed by another signal                         it says nothing about the batch: 100 times, from the third on with
 *                                                    a pause of 1 ms, then twice the one before, at most 0.25 s
 *
 * The first two repeat themselves at the same place, so that trying again is no use. With an unknown end (SIGCHLD
 * ignored) the first holds. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "load/loader_parts.h"

#define SAME_PLACE_MAX 3u  /* at one row of one batch */
#define SAME_BATCH_MAX 10u /* on one batch, wherever */
#define STARVED_MAX 3u
#define KILLED_MAX 100u
#define KILLED_FREELY 2u /* without a pause */
#define PAUSE_MAX_MS 250u
#define FALSE_STARTS_MAX 3u
#define REAP_MS 5000

enum { BY_ITSELF, STARVED, KILLED };

static bool is_crash(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGABRT ||
           signal == SIGTRAP || signal == SIGSYS;
}

static int kind_of(const spk_exit *how, bool starved)
{
    if (starved)
        return STARVED;
    return how->known && how->signalled && !is_crash(how->value) ? KILLED : BY_ITSELF;
}

/* Chance does not strike at the same step twice; a replacement takes the same steps as the one before, which the first
 * of them need not have done. */
static void count_crash(const spk_loader *l, spk_worker *w)
{
    const spk_activity *a = spk_memory_activity(&l->core->memory, (uint32_t)(w - l->workers));
    spk_deaths *d = &w->deaths;
    uint64_t row = a->row, steps = atomic_load(&a->steps);
    bool same = d->crashes > 0 && d->row == row && (d->crashes == 1 || d->steps == steps);
    d->at_row = same ? d->at_row + 1 : 1;
    d->crashes++;
    d->row = row;
    d->steps = steps;
}

/* Counts an end on the batch that the worker was on, or was to begin with; true if there were too many. */
static bool too_many_deaths(const spk_loader *l, spk_worker *w, int kind)
{
    spk_deaths *d = &w->deaths;
    bool idle = w->alive && w->done >= w->sent;
    if (idle || d->serial != w->done)
        *d = (spk_deaths){.serial = w->done};
    if (idle)
        return false;
    if (kind == STARVED)
        return ++d->starved >= STARVED_MAX;
    if (kind == KILLED)
        return ++d->killed >= KILLED_MAX;
    if (!w->alive)
        return l->opening || ++w->false_starts >= FALSE_STARTS_MAX;
    count_crash(l, w);
    return d->at_row >= SAME_PLACE_MAX || d->crashes >= SAME_BATCH_MAX;
}

static uint64_t pause_ms(const spk_deaths *d)
{
    uint32_t doublings = d->killed > KILLED_FREELY ? d->killed - KILLED_FREELY - 1 : 0;
    if (d->killed <= KILLED_FREELY)
        return 0;
    return doublings > 8 || 1u << doublings > PAUSE_MAX_MS ? PAUSE_MAX_MS : 1u << doublings;
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
    const spk_deaths *d = &w->deaths;
    spk_error_clear(&err);
    spk_worker_doing(l, w, doing);
    if (!w->alive)
        (void)spk_error_set(&err, SPK_E_WORKER, "%s before it was ready; its program is %s", what, l->program);
    else if (why)
        (void)spk_error_set(&err, SPK_E_WORKER, "%s; its program is %s", what, l->program);
    else
        (void)spk_error_set(&err, SPK_E_WORKER, "batch %llu of epoch %lu %s %u times, the last time %s; it was %s",
                            (unsigned long long)spk_ring_slot(&l->ring, w->done)->batch_number,
                            (unsigned long)spk_ring_slot(&l->ring, w->done)->epoch,
                            d->killed >= KILLED_MAX ? "is not done: its worker was killed" : "has ended its worker",
                            d->crashes + d->starved + d->killed, what, *doing ? doing : "at its beginning");
    spk_crew_lose(l, w, &err);
}

static void start_again(spk_loader *l, spk_worker *w)
{
    spk_error err, last = w->reason;
    spk_error_clear(&err);
    w->due_ns = 0;
    if (spk_crew_start_one(l, w, &err) < 0) {
        spk_error_prefix(&err, "worker %u: %s; no replacement", (unsigned)(w - l->workers), last.text);
        spk_crew_lose(l, w, &err);
    }
}

int spk_crew_start_due(spk_loader *l, int wait_ms)
{
    for (uint32_t i = 0; i < l->workers_n; i++) {
        spk_worker *w = &l->workers[i];
        uint64_t now = w->due_ns > 0 ? spk_now_ns() : 0;
        if (w->due_ns == 0 || w->lost)
            continue;
        if (w->due_ns <= now)
            start_again(l, w);
        else if ((w->due_ns - now) / 1000000u < (uint64_t)wait_ms)
            wait_ms = (int)((w->due_ns - now) / 1000000u) + 1;
    }
    return wait_ms;
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
    if (why || too_many_deaths(l, w, kind_of(&how, starved))) {
        give_up(l, w, what, why);
        return;
    }
    l->stats.restarts++;
    spk_loader_note(l, "%s; it is replaced", what);
    (void)spk_error_set(&w->reason, SPK_E_WORKER, "%s", what);
    uint64_t pause = pause_ms(&w->deaths);
    if (pause == 0) {
        start_again(l, w);
        return;
    }
    w->alive = false;
    w->sent = w->done;
    w->due_ns = spk_now_ns() + pause * 1000000u;
}
