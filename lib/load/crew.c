/* The trainer's side of its workers: start, packets there and back, stop. Nothing here waits longer than it is told to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "load/loader_parts.h"

#define WHY_TEXT (SPK_ERROR_TEXT + 64)
#define STOP_IDLE_MS 1000
#define STOP_KILLED_MS 5000

static spk_status explain_files(const spk_loader *l, int cause, spk_error *err)
{
    struct rlimit limit;
    if ((cause == EMFILE || cause == ENFILE) && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        return spk_error_sys(err, cause, "%u workers need %u file descriptors, RLIMIT_NOFILE is %llu", l->workers_n,
                             2 * l->workers_n + 4, (unsigned long long)limit.rlim_cur);
    return spk_error_sys(err, cause, "socketpair");
}

spk_status spk_crew_start_one(spk_loader *l, spk_worker *w, spk_error *err)
{
    int pair[2];
    uint32_t number = (uint32_t)(w - l->workers);
    w->alive = w->lost = false;
    w->sent = w->done;
    spk_activity *activity = spk_memory_activity(&l->core->memory, number);
    atomic_store(&activity->steps, 0);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return explain_files(l, errno, err);
    w->socket = spk_fd_move(pair[0]);
    int theirs = w->socket < 0 ? pair[1] : spk_fd_move(pair[1]), cause = errno;
    if (w->socket < 0 || theirs < 0) {
        if (theirs >= 0)
            close(theirs);
        return explain_files(l, cause, err);
    }
    spk_spawn how = {
        .program = l->program, .number = number, .socket = theirs, .memory = l->core->memory.fd, .trainer = l->trainer};
    spk_status status = spk_loader_net_send(l, w->socket, err);
    if (status == SPK_OK)
        status = spk_process_start(&w->process, &how, err);
    close(theirs);
    w->seen_steps = 0;
    w->seen_ns = spk_now_ns();
    return status;
}

static bool all_alive(const spk_loader *l, const spk_worker **lost)
{
    bool all = true;
    for (uint32_t i = 0; i < l->workers_n; i++) {
        if (l->workers[i].lost)
            *lost = &l->workers[i];
        all = all && l->workers[i].alive;
    }
    return all;
}

/* A worker says hello within milliseconds, so that one that cannot start is told of here and not in the first batch. */
static spk_status wait_for_hello(spk_loader *l, spk_error *err)
{
    const spk_worker *lost = NULL;
    uint64_t start = spk_now_ns();
    while (!all_alive(l, &lost) && !lost) {
        (void)spk_crew_receive(l, 100);
        if (l->on_wait && l->on_wait(l->user) != 0)
            return spk_error_set(err, SPK_E_CANCELLED, "cancelled while the workers were started");
        if (l->start_ns > 0 && spk_now_ns() - start > l->start_ns)
            return spk_error_set(err, SPK_E_WORKER, "%s: a worker was not ready within %.0f s", l->program,
                                 (double)l->start_ns / 1e9);
    }
    if (!lost)
        return SPK_OK;
    if (err)
        *err = lost->reason;
    return lost->reason.code;
}

/* A crew that is not complete does not work at all: the next that is asked for begins with a new one. */
static void lose_all(spk_loader *l, spk_status status)
{
    spk_error reason;
    spk_error_clear(&reason);
    (void)spk_error_set(&reason, status, "the workers could not be started");
    for (uint32_t i = 0; i < l->workers_n; i++)
        if (!l->workers[i].lost)
            spk_crew_lose(l, &l->workers[i], &reason);
}

spk_status spk_crew_start(spk_loader *l, spk_error *err)
{
    spk_status status = SPK_OK;
    for (uint32_t i = 0; i < l->workers_n; i++) {
        l->workers[i] = (spk_worker){.socket = -1, .process = {.pid = 0, .pidfd = -1}};
        l->workers[i].done = l->ring.next;
    }
    l->opening = true;
    for (uint32_t i = 0; i < l->workers_n && status == SPK_OK; i++) {
        status = spk_crew_start_one(l, &l->workers[i], err);
        if (status < 0)
            spk_error_prefix(err, "worker %u", i);
    }
    if (status == SPK_OK)
        status = wait_for_hello(l, err);
    l->opening = false;
    if (status < 0)
        lose_all(l, status);
    return status;
}

void spk_crew_lose(spk_loader *l, spk_worker *w, const spk_error *err)
{
    const spk_activity *activity = spk_memory_activity(&l->core->memory, (uint32_t)(w - l->workers));
    w->lost = true;
    w->reason = *err;
    w->reason_row = w->done < w->sent ? activity->row : SPK_ROW_NONE;
}

/* What a lost worker owes. */
static void answer_for(spk_loader *l, spk_worker *w)
{
    spk_done_packet failed = {.kind = SPK_PACKET_FAIL, .row = w->reason_row, .error = w->reason};
    for (; w->done < l->ring.next; w->done++, failed.row = SPK_ROW_NONE)
        spk_ring_answer(&l->ring, w->done, &failed);
    w->sent = w->done;
}

static void send_to(spk_loader *l, spk_worker *w)
{
    for (; w->sent < l->ring.next; w->sent++) {
        const spk_slot *slot = spk_ring_slot(&l->ring, w->sent);
        spk_run_packet run = {.kind = SPK_PACKET_RUN,
                              .slot = slot->number,
                              .serial = w->sent,
                              .epoch = slot->epoch,
                              .batch = slot->batch};
        ssize_t n = 0;
        do
            n = send(w->socket, &run, sizeof run, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        if (n < 0) /* full: later; gone: the next receive sees it */
            return;
    }
}

void spk_crew_send(spk_loader *l)
{
    for (uint32_t i = 0; i < l->workers_n; i++) {
        spk_worker *w = &l->workers[i];
        if (w->lost)
            answer_for(l, w);
        else if (w->alive)
            send_to(l, w);
    }
}

/* NULL if the packet is as it should be. A plain DONE comes without its error records. */
static const char *take_packet(spk_loader *l, spk_worker *w, spk_done_packet *p, size_t n, char why[WHY_TEXT])
{
    if (n == SPK_DONE_SHORT && p->kind == SPK_PACKET_DONE)
        p->error.code = p->first_substitution.code = SPK_OK;
    else if (n != sizeof *p)
        return "sent a packet of another size: it belongs to another version of the library";
    p->error.text[sizeof p->error.text - 1] = '\0';
    p->first_substitution.text[sizeof p->first_substitution.text - 1] = '\0';
    if (p->kind == SPK_PACKET_HELLO && !w->alive) {
        if (p->protocol != SPK_PROTOCOL) {
            snprintf(why, WHY_TEXT, "speaks protocol %08x, this library %08x: it belongs to another version",
                     p->protocol, SPK_PROTOCOL);
            return why;
        }
        w->alive = true;
        w->false_starts = 0;
        w->seen_ns = spk_now_ns();
        return NULL;
    }
    if (p->kind == SPK_PACKET_FAIL && !w->alive) {
        snprintf(why, WHY_TEXT, "cannot work: %s", p->error.text);
        return why;
    }
    if (!w->alive || (p->kind != SPK_PACKET_DONE && p->kind != SPK_PACKET_FAIL) || p->serial != w->done ||
        w->done >= w->sent)
        return "sent an answer out of order";
    if (p->kind == SPK_PACKET_FAIL && p->error.code >= 0)
        p->error.code = SPK_E_WORKER;
    spk_ring_answer(&l->ring, w->done++, p);
    return NULL;
}

/* What the socket holds, as far as answers are owed or `all` is to be read. False at its end, and when the worker talks
 * nonsense (then *why says so). */
static bool drain(spk_loader *l, spk_worker *w, bool all, const char **why, char buffer[WHY_TEXT])
{
    spk_done_packet packet;
    int resets = 0;
    while (all || w->done < w->sent) {
        ssize_t n = recv(w->socket, &packet, sizeof packet, MSG_DONTWAIT | MSG_TRUNC);
        if (n == 0)
            return false;
        if (n < 0 && errno == ECONNRESET && resets++ == 0)
            continue; /* it died with packets unread; what it sent before is still there */
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        *why = take_packet(l, w, &packet, (size_t)n, buffer);
        if (*why)
            return false;
    }
    return true;
}

static void serve(spk_loader *l, spk_worker *w, const struct pollfd polls[2])
{
    char buffer[WHY_TEXT];
    const char *why = NULL;
    bool open = true;
    if (polls[0].revents & (POLLIN | POLLHUP | POLLERR))
        open = drain(l, w, true, &why, buffer);
    if (!open || polls[1].revents)
        spk_crew_died(l, w, why);
}

void spk_crew_take(spk_loader *l)
{
    char buffer[WHY_TEXT];
    (void)spk_crew_start_due(l, 0);
    for (uint32_t i = 0; i < l->workers_n; i++) {
        const char *why = NULL;
        spk_worker *w = &l->workers[i];
        if (!w->lost && w->alive && !drain(l, w, false, &why, buffer))
            spk_crew_died(l, w, why);
    }
}

bool spk_crew_receive(spk_loader *l, int wait_ms)
{
    wait_ms = spk_crew_start_due(l, wait_ms);
    for (uint32_t i = 0; i < l->workers_n; i++) {
        const spk_worker *w = &l->workers[i];
        short out = w->alive && w->sent < l->ring.next ? POLLOUT : 0;
        l->polls[2 * i] = (struct pollfd){.fd = w->lost ? -1 : w->socket, .events = (short)(POLLIN | out)};
        l->polls[2 * i + 1] = (struct pollfd){.fd = w->lost ? -1 : w->process.pidfd, .events = POLLIN};
    }
    int n = poll(l->polls, 2 * l->workers_n, wait_ms);
    if (n < 0)
        return errno == EINTR;
    for (uint32_t i = 0; i < l->workers_n && n > 0; i++)
        if (!l->workers[i].lost)
            serve(l, &l->workers[i], &l->polls[2 * i]);
    return false;
}

/* Idle ones end by themselves when their socket closes; the others have nothing worth waiting for. */
void spk_crew_stop(spk_loader *l)
{
    spk_exit how;
    for (uint32_t i = 0; i < l->workers_n; i++) {
        spk_worker *w = &l->workers[i];
        if (w->done < w->sent || w->lost || !w->alive)
            spk_process_kill(&w->process);
        if (w->socket >= 0)
            close(w->socket);
        w->socket = -1;
        w->alive = false;
    }
    for (uint32_t i = 0; i < l->workers_n; i++) {
        spk_process *p = &l->workers[i].process;
        if (spk_process_wait(p, STOP_IDLE_MS, &how))
            continue;
        spk_process_kill(p);
        if (!spk_process_wait(p, STOP_KILLED_MS, &how))
            spk_process_forget(p); /* stuck in the kernel; it ends when that lets it go */
    }
}

void spk_crew_forget(spk_loader *l)
{
    for (uint32_t i = 0; i < l->workers_n; i++) {
        spk_worker *w = &l->workers[i];
        if (w->socket >= 0)
            close(w->socket);
        w->socket = -1;
        spk_process_forget(&w->process);
    }
}
