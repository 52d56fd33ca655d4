/* The worker's loop. A second thread waits for the trainer's end, since a batch may take long; it shares nothing with
 * the first. */
#define _GNU_SOURCE
#include "load/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "load/engine.h"
#include "load/limits.h"
#include "load/memory.h"

static void *watch_trainer(void *arg)
{
    const spk_worker_setup *s = arg;
    struct pollfd p = {.fd = s->trainer_fd, .events = POLLIN};
    for (;;) {
        int n = poll(&p, 1, s->trainer_fd >= 0 ? -1 : 200);
        if (n == 1 || (s->trainer_fd < 0 && getppid() != s->trainer))
            _exit(0);
    }
    return NULL;
}

static spk_status start_watch(const spk_worker_setup *s, spk_error *err)
{
    pthread_t thread;
    pthread_attr_t attr;
    int e = pthread_attr_init(&attr);
    if (e == 0) {
        (void)pthread_attr_setstacksize(&attr, 256 * 1024);
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        e = pthread_create(&thread, &attr, watch_trainer, (void *)(uintptr_t)s);
        pthread_attr_destroy(&attr);
    }
    return e == 0 ? SPK_OK : spk_error_sys(err, e, "starting the thread that watches the trainer");
}

/* False when the trainer has closed its end. */
static bool send_packet(int fd, const spk_done_packet *done)
{
    bool plain = done->kind == SPK_PACKET_DONE && done->first_substitution.code == SPK_OK;
    size_t bytes = plain ? SPK_DONE_SHORT : sizeof *done;
    for (;;) {
        ssize_t n = send(fd, done, bytes, MSG_NOSIGNAL);
        if (n == (ssize_t)bytes)
            return true;
        if (n >= 0 || errno != EINTR)
            return false;
    }
}

static bool receive_packet(int fd, spk_run_packet *run)
{
    for (;;) {
        ssize_t n = recv(fd, run, sizeof *run, 0);
        if (n == (ssize_t)sizeof *run && run->kind == SPK_PACKET_RUN)
            return true;
        if (n >= 0 || errno != EINTR)
            return false;
    }
}

/* What the trainer has sent before all else, of a dataset by URL. */
static spk_status receive_net(int fd, const spk_memory *memory, char **out, spk_error *err)
{
    uint64_t bytes = spk_memory_head(memory)->net_bytes, have = 0;
    if (bytes == 0)
        return SPK_OK;
    if (bytes > SPK_NET_TEXT_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "mirrors and options of %llu bytes", (unsigned long long)bytes);
    *out = malloc((size_t)bytes);
    if (!*out)
        return spk_error_nomem(err, (size_t)bytes);
    while (have < bytes) {
        ssize_t n = recv(fd, *out + have, (size_t)(bytes - have), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return spk_error_sys(err, n < 0 ? errno : EPIPE, "mirrors and options from the trainer");
        have += (uint64_t)n;
    }
    return SPK_OK;
}

static void serve(const spk_worker_setup *s, const spk_memory *memory, spk_engine *engine, spk_done_packet *done)
{
    const spk_shm_head *head = spk_memory_head(memory);
    spk_run_packet run;
    while (spk_engine_idle(engine, s->socket), receive_packet(s->socket, &run)) {
        if (run.serial < atomic_load_explicit(&head->wanted_from, memory_order_relaxed)) {
            memset(done, 0, sizeof *done);
            done->kind = SPK_PACKET_DONE;
            done->row = SPK_ROW_NONE;
        } else {
            spk_engine_run(engine, &run, done);
        }
        done->serial = run.serial;
        if (!send_packet(s->socket, done))
            return;
    }
}

int spk_worker_run(const spk_worker_setup *s)
{
    spk_memory memory = {.fd = -1};
    spk_engine *engine = NULL;
    char *net = NULL;
    spk_done_packet done = {.kind = SPK_PACKET_HELLO, .protocol = SPK_PROTOCOL, .row = SPK_ROW_NONE};
    spk_error_clear(&done.error);
    spk_error_clear(&done.first_substitution);
    spk_status status = start_watch(s, &done.error);
    if (status == SPK_OK)
        status = spk_memory_map(&memory, s->memory, &done.error);
    if (status == SPK_OK)
        status = receive_net(s->socket, &memory, &net, &done.error);
    if (status == SPK_OK)
        status = spk_engine_new(&engine, memory.base, net, s->number, spk_open_shards_max(), &done.error);
    free(net);
    if (status < 0)
        done.kind = SPK_PACKET_FAIL;
    if (send_packet(s->socket, &done) && status == SPK_OK)
        serve(s, &memory, engine, &done);
    spk_engine_free(engine);
    spk_memory_free(&memory);
    return status == SPK_OK ? 0 : 1;
}
