/* Threads over shards. Results wait in a ring of slots until the calling thread has taken those before them, so a slow
 * shard holds the others back instead of letting results pile up. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/threads.h"
#include "dataset/verify.h"

#define TICK_NS 100000000L

typedef struct slot {
    spk_verify_shard shard; /* owner: the worker until done, then the calling thread */
    bool done;              /* guarded by lock */
} slot;

typedef struct crew {
    spk_verify_target *target;
    slot *slots;
    uint64_t slots_n;
    pthread_mutex_t lock;
    pthread_cond_t room; /* workers wait: a slot is free, or stop */
    pthread_cond_t done; /* the calling thread waits: a shard is done */
    uint64_t next;       /* guarded by lock: first shard that no worker has */
    uint64_t taken;      /* guarded by lock: shards that the calling thread has taken */
    bool stop;           /* guarded by lock */
} crew;

static bool next_shard(crew *c, uint64_t *i)
{
    pthread_mutex_lock(&c->lock);
    while (!c->stop && c->next < c->target->shards && c->next >= c->taken + c->slots_n)
        pthread_cond_wait(&c->room, &c->lock);
    bool more = !c->stop && c->next < c->target->shards;
    *i = more ? c->next++ : 0;
    pthread_mutex_unlock(&c->lock);
    return more;
}

static void *work(void *arg)
{
    crew *c = arg;
    uint64_t i = 0;
    while (next_shard(c, &i)) {
        slot *s = &c->slots[i % c->slots_n];
        spk_verify_one(c->target, i, &s->shard);
        pthread_mutex_lock(&c->lock);
        s->done = true;
        pthread_cond_signal(&c->done);
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

/* Waits a tick at most; true if the slot is done. */
static bool wait_for(crew *c, slot *s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TICK_NS;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_mutex_lock(&c->lock);
    int waited = 0;
    while (!s->done && waited == 0)
        waited = pthread_cond_timedwait(&c->done, &c->lock, &until);
    bool done = s->done;
    pthread_mutex_unlock(&c->lock);
    return done;
}

static void release(crew *c, slot *s)
{
    spk_verify_shard_free(&s->shard);
    pthread_mutex_lock(&c->lock);
    s->done = false;
    c->taken++;
    pthread_cond_broadcast(&c->room);
    pthread_mutex_unlock(&c->lock);
}

static spk_status collect(crew *c, const spk_verify_hooks *hooks, spk_error *err)
{
    for (uint64_t i = 0; i < c->target->shards; i++) {
        slot *s = &c->slots[i % c->slots_n];
        while (!wait_for(c, s))
            SPK_TRY(hooks->on_tick(hooks->ctx, err));
        if (s->shard.status < 0) {
            if (err)
                *err = s->shard.error;
            return s->shard.status;
        }
        SPK_TRY(hooks->on_shard(hooks->ctx, i, &s->shard, err));
        SPK_TRY(hooks->on_tick(hooks->ctx, err));
        release(c, s);
    }
    return SPK_OK;
}

static void init_sync(crew *c)
{
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->room, NULL);
    spk_cond_init_monotonic(&c->done);
}

spk_status spk_verify_run(spk_verify_target *t, int jobs, const spk_verify_hooks *hooks, spk_error *err)
{
    size_t wanted = (uint64_t)jobs < t->shards ? (size_t)jobs : (size_t)t->shards, started = 0;
    crew c = {.target = t, .slots_n = 2 * wanted + 1};
    spk_status status = SPK_OK;
    pthread_t *threads = calloc(wanted + 1, sizeof *threads);

    c.slots = calloc(c.slots_n, sizeof *c.slots);
    init_sync(&c);
    if (!threads || !c.slots) {
        status = spk_error_nomem(err, c.slots_n * sizeof *c.slots);
        goto out;
    }
    while (started < wanted && spk_thread_start(&threads[started], work, &c))
        started++;
    if (started == 0 && wanted > 0)
        status = spk_error_sys(err, EAGAIN, "cannot start a thread");
    if (status == SPK_OK)
        status = collect(&c, hooks, err);
out:
    pthread_mutex_lock(&c.lock);
    c.stop = true;
    atomic_store(&t->stop, true);
    pthread_cond_broadcast(&c.room);
    pthread_mutex_unlock(&c.lock);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; c.slots && i < c.slots_n; i++)
        spk_verify_shard_free(&c.slots[i].shard);
    pthread_cond_destroy(&c.room);
    pthread_cond_destroy(&c.done);
    pthread_mutex_destroy(&c.lock);
    free(c.slots);
    free(threads);
    return status;
}
