/* The threads of a build: handing out frames, stopping at the first error, reporting progress. */
#include "pack/build.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/threads.h"
#include "pack/build_parts.h"

#define PROGRESS_NS 100000000 /* between two reports */

void spk_work_name(char out[SPK_WORK_NAME_MAX], uint32_t number, const char *suffix)
{
    snprintf(out, SPK_WORK_NAME_MAX, "%06" PRIu32 ".%s", number, suffix);
}

spk_status spk_build_init(spk_build *b, const spk_pack_plan *plan, spk_error *err)
{
    memset(b, 0, sizeof *b);
    b->plan = plan;
    b->work_fd = -1;
    b->done = calloc(plan->shards_n, sizeof *b->done);
    b->splits = calloc(plan->splits_n, sizeof *b->splits);
    if (!b->done || !b->splits)
        return spk_error_nomem(err, plan->shards_n * sizeof *b->done);
    for (size_t i = 0; i < plan->splits_n; i++)
        SPK_TRY(spk_tally_init(&b->splits[i], plan->fields_n, err));
    return SPK_OK;
}

void spk_build_free(spk_build *b)
{
    if (b->splits)
        for (size_t i = 0; i < b->plan->splits_n; i++)
            spk_tally_free(&b->splits[i]);
    free(b->splits);
    free(b->done);
    b->splits = NULL;
    b->done = NULL;
}

spk_status spk_build_resume(spk_build *b, uint32_t number, const spk_shard_info *info, const spk_tally *tally,
                            spk_error *err)
{
    const spk_pack_plan_shard *s = &b->plan->shards[number];
    if (b->done[number].done)
        return SPK_OK;
    b->done[number].done = true;
    b->done[number].info = *info;
    b->bytes_resumed += s->payload;
    b->shards_resumed++;
    b->samples += s->samples;
    b->bytes += s->payload;
    b->bytes_out += info->bytes;
    b->bad += tally->bad;
    return spk_tally_merge(&b->splits[s->split], tally, err);
}

static bool all_handed_out(const spk_build *b, const spk_open_shard *s)
{
    const spk_pack_plan_shard *p = &b->plan->shards[s->number];
    return s->cursor == p->first + p->samples || (s->last_frame != SPK_NO_FRAME && s->handed_out > s->last_frame);
}

/* Guarded by the lock. An open shard that nobody works on, else the next shard, else the open shard with the fewest
 * workers: so that shards, not frames, are built side by side where there are enough of them. */
static spk_open_shard *choose(spk_run *run)
{
    const spk_build *b = run->b;
    spk_open_shard *best = NULL;
    for (spk_open_shard *s = run->open; s; s = s->next)
        if (!all_handed_out(b, s) && (!best || s->workers < best->workers))
            best = s;
    if (best && best->workers == 0)
        return best;
    while (run->next_shard < b->plan->shards_n && b->done[run->next_shard].done)
        run->next_shard++;
    if (run->next_shard == b->plan->shards_n)
        return best;
    spk_open_shard *s = calloc(1, sizeof *s);
    if (!s || spk_tally_init(&s->tally, b->plan->fields_n, &run->error) < 0 ||
        spk_tally_init(&s->trail, b->plan->fields_n, &run->error) < 0) {
        run->stop = true;
        run->status = spk_error_nomem(&run->error, sizeof *s);
        if (s)
            spk_open_shard_free(run, s);
        return NULL;
    }
    s->number = run->next_shard++;
    s->cursor = b->plan->shards[s->number].first;
    s->last_frame = s->last_stored = SPK_NO_FRAME;
    s->fd = -1;
    s->next = run->open;
    run->open = s;
    return s;
}

/* False when there is nothing left to start, or the run stops. */
static bool take(spk_run *run, spk_task *t)
{
    pthread_mutex_lock(&run->lock);
    spk_open_shard *s = run->stop ? NULL : choose(run);
    if (s) {
        const spk_pack_plan *plan = run->b->plan;
        spk_pack_plan_frame_at(plan, &plan->shards[s->number], s->cursor, &t->frame);
        t->shard = s;
        t->number = s->handed_out++;
        t->last = t->frame.last || t->number == s->last_frame;
        s->cursor += t->frame.samples;
        s->workers++;
    }
    pthread_mutex_unlock(&run->lock);
    return s != NULL;
}

/* The first error wins. */
static void stop(spk_run *run, spk_status status, const spk_error *error)
{
    pthread_mutex_lock(&run->lock);
    if (!run->stop) {
        run->stop = true;
        run->status = status;
        run->error = *error;
    }
    pthread_cond_broadcast(&run->turns);
    pthread_cond_broadcast(&run->ended);
    pthread_mutex_unlock(&run->lock);
}

static spk_status worker_init(spk_worker *w, spk_error *err)
{
    const spk_pack_plan *plan = w->run->b->plan;
    SPK_TRY(spk_frame_writer_new(&w->zstd, err));
    SPK_TRY(spk_index_part_new(&w->part, err));
    SPK_TRY(spk_tally_init(&w->frame, plan->fields_n, err));
    if (plan->o->check != SPK_CHECK_NONE)
        SPK_TRY(spk_image_checker_new(&w->checker, err));
    if (plan->o->jpeg == SPK_JPEG_FAST)
        SPK_TRY(spk_transcoder_new(&w->transcoder, err));
    if (plan->o->jpeg == SPK_JPEG_FAST && plan->o->allow_unrestorable)
        SPK_TRY(spk_pixel_transcoder_new(&w->pixels, err));
    if (plan->in->dataset)
        SPK_TRY(spk_packed_new(&w->packed, plan->in->dataset, w->run->b->reading.src, err));
    return SPK_OK;
}

static void worker_free(spk_worker *w)
{
    spk_frame_writer_free(w->zstd);
    spk_index_part_free(w->part);
    spk_image_checker_free(w->checker);
    spk_transcoder_free(w->transcoder);
    spk_pixel_transcoder_free(w->pixels);
    spk_packed_free(w->packed);
    spk_buf_free(&w->stored);
    spk_buf_free(&w->forms);
    spk_buf_free(&w->tar);
    spk_buf_free(&w->out);
    spk_buf_free(&w->keep);
    spk_tally_free(&w->frame);
    spk_tally_free(&w->sample);
}

static void *work(void *arg)
{
    spk_worker *w = arg;
    spk_run *run = w->run;
    spk_error err;
    spk_error_clear(&err);
    spk_status status = worker_init(w, &err);
    for (spk_task t = {0}; status == SPK_OK && take(run, &t);)
        status = spk_task_run(w, &t, &err);
    if (status < 0)
        stop(run, status, &err);
    worker_free(w);
    pthread_mutex_lock(&run->lock);
    run->running--;
    pthread_cond_broadcast(&run->ended);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

/* Starts up to n workers; how many there are. */
static unsigned start(spk_run *run, spk_worker *workers, unsigned n)
{
    unsigned started = 0;
    pthread_mutex_lock(&run->lock);
    for (; started < n; started++) {
        workers[started].run = run;
        if (!spk_thread_start(&workers[started].thread, work, &workers[started]))
            break;
        run->running++;
    }
    pthread_mutex_unlock(&run->lock);
    return started;
}

static bool report(const spk_build *b)
{
    const spk_pack_options *o = b->plan->o;
    if (!o->on_progress)
        return true;
    spk_pack_progress p = {.phase = SPK_PACK_BUILD,
                           .files = b->plan->in->files_n,
                           .samples = b->samples,
                           .samples_total = b->plan->order_n,
                           .bytes = b->bytes,
                           .bytes_total = b->plan->payload,
                           .bytes_resumed = b->bytes_resumed,
                           .bytes_out = b->bytes_out,
                           .bad = b->bad};
    return o->on_progress(o->user, &p) == 0;
}

/* Reports until all workers ended. */
static void watch(spk_run *run)
{
    struct timespec at;
    bool go_on = report(run->b);
    pthread_mutex_lock(&run->lock);
    clock_gettime(CLOCK_MONOTONIC, &at);
    for (;;) {
        if (!go_on && !run->stop) {
            run->stop = true;
            run->status = spk_error_set(&run->error, SPK_E_CANCELLED, "cancelled");
            pthread_cond_broadcast(&run->turns);
        }
        if (run->running == 0)
            break;
        at.tv_nsec += PROGRESS_NS;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        for (int rc = 0; run->running > 0 && rc != ETIMEDOUT;)
            rc = pthread_cond_timedwait(&run->ended, &run->lock, &at);
        pthread_mutex_unlock(&run->lock);
        go_on = report(run->b) && go_on;
        pthread_mutex_lock(&run->lock);
    }
    pthread_mutex_unlock(&run->lock);
}

static void run_init(spk_run *run, spk_build *b)
{
    memset(run, 0, sizeof *run);
    run->b = b;
    spk_error_clear(&run->error);
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->turns, NULL);
    spk_cond_init_monotonic(&run->ended);
}

spk_status spk_build_run(spk_build *b, spk_error *err)
{
    spk_run run;
    unsigned n = (unsigned)b->plan->o->jobs;
    spk_worker *workers = calloc(n, sizeof *workers);
    if (!workers)
        return spk_error_nomem(err, n * sizeof *workers);
    run_init(&run, b);
    unsigned started = start(&run, workers, n);
    if (started == 0)
        run.status = spk_error_sys(&run.error, EAGAIN, "cannot start a thread");
    watch(&run);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    while (run.open) {
        spk_open_shard *s = run.open;
        run.open = s->next;
        spk_open_shard_free(&run, s);
    }
    if (run.status < 0 && err)
        *err = run.error;
    pthread_cond_destroy(&run.ended);
    pthread_cond_destroy(&run.turns);
    pthread_mutex_destroy(&run.lock);
    free(workers);
    return run.status;
}
