/* Workers that make no progress. Time counts only while the trainer waits in spk_loader_next, and a wait that took much
 * longer than asked for (the whole job was suspended) begins anew. */
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "load/loader_parts.h"

static const spk_activity *activity_of(const spk_loader *l, const spk_worker *w)
{
    return spk_memory_activity(&l->core->memory, (uint32_t)(w - l->workers));
}

void spk_worker_doing(const spk_loader *l, const spk_worker *w, char text[256])
{
    const spk_activity *a = activity_of(l, w);
    memcpy(text, a->text, sizeof a->text);
    text[sizeof a->text - 1] = '\0';
}

static bool owes(const spk_loader *l, const spk_worker *w)
{
    return !w->lost && w->done < l->ring.next;
}

static void look_anew(const spk_loader *l, spk_worker *w, uint64_t now)
{
    w->seen_steps = atomic_load(&activity_of(l, w)->steps);
    w->seen_ns = now;
}

void spk_watchdog_arm(spk_loader *l)
{
    uint64_t now = spk_now_ns();
    for (uint32_t i = 0; i < l->workers_n; i++)
        look_anew(l, &l->workers[i], now);
}

/* The state letter of /proc/PID/stat, behind the name in parentheses. */
static char state_of(pid_t pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return '?';
    size_t n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = '\0';
    const char *close = strrchr(line, ')');
    return close && close[1] == ' ' ? close[2] : '?';
}

static const char *state_text(char state)
{
    switch (state) {
    case 'T':
    case 't':
        return ", which is stopped,";
    case 'D':
        return ", which waits for a disk or the network,";
    default:
        return "";
    }
}

static void report(spk_loader *l, spk_worker *w, uint64_t now)
{
    char doing[256];
    spk_error err;
    spk_error_clear(&err);
    spk_worker_doing(l, w, doing);
    (void)spk_error_set(&err, SPK_E_WORKER, "worker %u (process %ld)%s has made no progress for %.1f s; it was %s",
                        (unsigned)(w - l->workers), (long)w->process.pid, state_text(state_of(w->process.pid)),
                        (double)(now - w->seen_ns) / 1e9, *doing ? doing : "at its beginning");
    spk_crew_lose(l, w, &err);
}

void spk_watchdog_look(spk_loader *l, uint64_t asked_ns, uint64_t took_ns)
{
    if (l->timeout_ns == 0)
        return;
    uint64_t now = spk_now_ns();
    if (took_ns > asked_ns + 1000000000u) {
        spk_watchdog_arm(l);
        return;
    }
    for (uint32_t i = 0; i < l->workers_n; i++) {
        spk_worker *w = &l->workers[i];
        if (!owes(l, w) || atomic_load(&activity_of(l, w)->steps) != w->seen_steps)
            look_anew(l, w, now);
        else if (now - w->seen_ns >= (w->alive ? l->timeout_ns : l->start_ns))
            report(l, w, now);
    }
}
