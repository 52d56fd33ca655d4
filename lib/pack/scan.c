/* The folder walk: walkers take folders from one stack and deliver what they find in batches. The order in which files
 * are found depends on the file system and the threads; it does not matter, because everything is sorted afterwards.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/threads.h"
#include "pack/names.h"
#include "pack/scan_walk.h"

#define WALKERS_MAX 16u       /* more only wait for each other */
#define PROGRESS_NS 100000000 /* between two calls of the hook */

/* The first error wins. Guarded by the lock. */
static void stop(spk_walk *walk, spk_status status, const spk_error *error)
{
    if (!walk->stop) {
        walk->status = status;
        walk->error = *error;
    }
    walk->stop = true;
    pthread_cond_broadcast(&walk->more);
}

/* Guarded by the lock, as the one below. */
static spk_status put_files(spk_walker *w, spk_error *err)
{
    spk_scan *s = w->walk->s;
    const spk_input *in = s->in;
    for (const uint8_t *p = w->files.data, *end = p ? p + w->files.len : p; p < end;) {
        struct stat st;
        size_t n = 0;
        memcpy(&st, p, sizeof st);
        memcpy(&n, p + sizeof st, sizeof n);
        p += sizeof st + sizeof n;
        SPK_TRY(spk_scan_add(s, (const char *)p, n, &st, err));
        p += n + 1;
        if (w->now.depth == 0 && strcmp(spk_field_kind(in->fields[in->files[in->files_n - 1].field]), "image") == 0)
            s->root_image = true;
    }
    return SPK_OK;
}

static spk_status put_all(spk_walker *w, spk_error *err)
{
    spk_input *in = w->walk->s->in;
    SPK_TRY(put_files(w, err));
    SPK_TRY(spk_buf_append(&w->walk->stack, w->folders.data, w->folders.len, err));
    if (w->folders.len > 0)
        pthread_cond_broadcast(&w->walk->more);
    in->junk += w->junk;
    in->other_skipped += w->other_skipped;
    in->excluded += w->excluded;
    in->excluded_folders += w->excluded_folders;
    in->empty_folders += w->empty_folders;
    return SPK_OK;
}

spk_status spk_walk_deliver(spk_walker *w, spk_error *err)
{
    pthread_mutex_lock(&w->walk->lock);
    spk_status status = w->walk->stop ? SPK_E_CANCELLED : put_all(w, err);
    pthread_mutex_unlock(&w->walk->lock);
    w->files.len = w->folders.len = 0;
    w->found = 0;
    w->junk = w->other_skipped = w->excluded = w->excluded_folders = w->empty_folders = 0;
    return status;
}

spk_status spk_walk_around(spk_walker *w, const struct stat *st, spk_error *err)
{
    pthread_mutex_lock(&w->walk->lock);
    spk_status status = spk_scan_around(w->walk->s, w->path, w->now.len, st, err);
    pthread_mutex_unlock(&w->walk->lock);
    return status;
}

/* False when there is nothing left to read, or the walk stops. */
static bool take(spk_walker *w)
{
    spk_walk *walk = w->walk;
    pthread_mutex_lock(&walk->lock);
    while (!walk->stop && walk->stack.len == 0 && walk->busy > 0)
        pthread_cond_wait(&walk->more, &walk->lock);
    bool took = !walk->stop && walk->stack.len > 0;
    if (took) {
        walk->busy++;
        walk->stack.len -= sizeof w->now;
        memcpy(&w->now, walk->stack.data + walk->stack.len, sizeof w->now);
        walk->stack.len -= w->now.len;
        memcpy(w->path, walk->stack.data + walk->stack.len, w->now.len);
        w->path[w->now.len] = '\0';
    }
    pthread_mutex_unlock(&walk->lock);
    return took;
}

static void *run(void *arg)
{
    spk_walker *w = arg;
    spk_walk *walk = w->walk;
    spk_error err;
    spk_error_clear(&err);
    while (take(w)) {
        spk_status status = spk_walk_folder_read(w, &err);
        pthread_mutex_lock(&walk->lock);
        walk->busy--;
        if (status < 0)
            stop(walk, status, &err);
        if (walk->busy == 0)
            pthread_cond_broadcast(&walk->more);
        pthread_mutex_unlock(&walk->lock);
    }
    pthread_mutex_lock(&walk->lock);
    walk->running--;
    pthread_cond_broadcast(&walk->ended);
    pthread_mutex_unlock(&walk->lock);
    return NULL;
}

/* Calls the hook until all walkers ended. */
static void watch(spk_walk *walk)
{
    struct timespec at;
    const spk_input_hooks *hooks = walk->s->hooks;
    clock_gettime(CLOCK_MONOTONIC, &at);
    pthread_mutex_lock(&walk->lock);
    while (walk->running > 0) {
        size_t files = walk->s->in->files_n;
        pthread_mutex_unlock(&walk->lock);
        bool cancelled = hooks && hooks->on_files && hooks->on_files(hooks->ctx, files) != 0;
        pthread_mutex_lock(&walk->lock);
        if (cancelled) {
            spk_error error;
            spk_error_clear(&error);
            stop(walk, spk_error_set(&error, SPK_E_CANCELLED, "cancelled after %zu files", files), &error);
        }
        at.tv_nsec += PROGRESS_NS;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        for (int rc = 0; walk->running > 0 && rc != ETIMEDOUT;)
            rc = pthread_cond_timedwait(&walk->ended, &walk->lock, &at);
    }
    pthread_mutex_unlock(&walk->lock);
}

static void walk_all(spk_walk *walk, spk_walker *walkers, unsigned n)
{
    unsigned started = 0;
    for (unsigned i = 0; i < n; i++)
        walkers[i].walk = walk;
    pthread_mutex_lock(&walk->lock);
    while (!walk->alone && started < n && spk_thread_start(&walkers[started].thread, run, &walkers[started]))
        started++;
    walk->running = started;
    walk->alone = started == 0;
    pthread_mutex_unlock(&walk->lock);
    if (walk->alone) {
        walk->running = 1;
        (void)run(&walkers[0]);
    }
    watch(walk);
    for (unsigned i = 0; i < started; i++)
        pthread_join(walkers[i].thread, NULL);
}

spk_status spk_scan_tree(spk_scan *s, spk_error *err)
{
    spk_walk walk = {.s = s};
    /* Along links, the way to a folder must be known, which only a walk in one order tells. */
    unsigned n = s->o->jobs < 2 || s->o->follow_symlinks ? 1 : (unsigned)s->o->jobs;
    n = n < WALKERS_MAX ? n : WALKERS_MAX;
    spk_walker *walkers = calloc(n, sizeof *walkers);
    if (!walkers)
        return spk_error_nomem(err, n * sizeof *walkers);
    walk.alone = n == 1;
    spk_error_clear(&walk.error);
    pthread_mutex_init(&walk.lock, NULL);
    pthread_cond_init(&walk.more, NULL);
    spk_cond_init_monotonic(&walk.ended);
    spk_walk_folder top = {0};
    walk.status = spk_buf_append(&walk.stack, &top, sizeof top, &walk.error);
    if (walk.status == SPK_OK)
        walk_all(&walk, walkers, n);
    for (unsigned i = 0; i < n; i++) {
        free(walkers[i].above);
        spk_buf_free(&walkers[i].files);
        spk_buf_free(&walkers[i].folders);
    }
    free(walkers);
    spk_buf_free(&walk.stack);
    pthread_cond_destroy(&walk.ended);
    pthread_cond_destroy(&walk.more);
    pthread_mutex_destroy(&walk.lock);
    if (walk.status < 0 && err)
        *err = walk.error;
    return walk.status;
}
