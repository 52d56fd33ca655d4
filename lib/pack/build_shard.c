/* One shard being built: turns, appending, and the steps that make it durable. */
#define _GNU_SOURCE /* sync_file_range */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pack/build_parts.h"

/* Writing to the disk starts while the shard grows, so that the fsync at its end finds little to do. */
#define FLUSH_BYTES (8u << 20)

spk_status spk_turn_wait(spk_run *run, const spk_task *t)
{
    pthread_mutex_lock(&run->lock);
    while (!run->stop && t->shard->turn != t->number)
        pthread_cond_wait(&run->turns, &run->lock);
    bool stopped = run->stop;
    pthread_mutex_unlock(&run->lock);
    return stopped ? SPK_E_CANCELLED : SPK_OK;
}

bool spk_turn_came(spk_run *run, const spk_task *t)
{
    pthread_mutex_lock(&run->lock);
    bool came = t->shard->turn == t->number;
    pthread_mutex_unlock(&run->lock);
    return came;
}

static spk_status open_writer(spk_run *run, spk_open_shard *s, spk_error *err)
{
    char name[SPK_WORK_NAME_MAX];
    spk_work_name(name, s->number, "part");
    size_t cap = strlen(run->b->work_name) + sizeof name + 1;
    char *full = malloc(cap);
    if (!full)
        return spk_error_nomem(err, cap);
    snprintf(full, cap, "%s/%s", run->b->work_name, name);
    spk_status status = spk_shard_writer_new(&s->writer, s->fd, full, err);
    free(full);
    return status;
}

spk_status spk_open_shard_begin(spk_run *run, spk_open_shard *s, spk_error *err)
{
    char name[SPK_WORK_NAME_MAX];
    if (s->writer)
        return SPK_OK; /* begun anew by restart() */
    spk_work_name(name, s->number, "part");
    s->fd = openat(run->b->work_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (s->fd < 0)
        return spk_error_sys(err, errno, "%s/%s", run->b->work_name, name);
    return open_writer(run, s, err);
}

void spk_open_shard_free(spk_run *run, spk_open_shard *s)
{
    if (s->fd >= 0) { /* unfinished */
        char name[SPK_WORK_NAME_MAX];
        close(s->fd);
        spk_work_name(name, s->number, "part");
        unlinkat(run->b->work_fd, name, 0);
    }
    spk_shard_writer_free(s->writer);
    spk_tally_free(&s->tally);
    spk_tally_free(&s->trail);
    free(s);
}

/* Every sample of the last frame was left out, so the frame before it, already written, lacks the end marker. Rare
 * enough to build the shard again, now knowing where it ends. */
static spk_status restart(spk_run *run, spk_open_shard *s, spk_error *err)
{
    spk_build *b = run->b;
    spk_shard_writer_free(s->writer);
    s->writer = NULL;
    if (ftruncate(s->fd, 0) != 0 || lseek(s->fd, 0, SEEK_SET) < 0) {
        char name[SPK_WORK_NAME_MAX];
        spk_work_name(name, s->number, "part");
        return spk_error_sys(err, errno, "%s/%s", b->work_name, name);
    }
    SPK_TRY(open_writer(run, s, err));
    b->samples -= s->seen_samples;
    b->bytes -= s->seen_bytes;
    b->bytes_out -= s->written;
    b->bad -= s->tally.bad;
    s->seen_samples = s->seen_bytes = s->written = s->flushed = 0;
    spk_tally_reset(&s->tally);
    pthread_mutex_lock(&run->lock);
    s->last_frame = s->last_stored;
    s->cursor = b->plan->shards[s->number].first;
    s->handed_out = s->turn = 0;
    s->workers--;
    pthread_mutex_unlock(&run->lock);
    s->last_stored = SPK_NO_FRAME;
    return SPK_OK;
}

/* fsync, close, rename from .part to .done: a .done file is complete whatever happens. */
static spk_status make_durable(spk_run *run, spk_open_shard *s, spk_error *err)
{
    char part[SPK_WORK_NAME_MAX], done[SPK_WORK_NAME_MAX];
    const spk_build *b = run->b;
    spk_work_name(part, s->number, "part");
    spk_work_name(done, s->number, "done");
    int failed = fsync(s->fd) != 0 ? errno : 0;
    if (close(s->fd) != 0 && !failed)
        failed = errno;
    s->fd = -1;
    if (!failed && renameat(b->work_fd, part, b->work_fd, done) != 0)
        failed = errno;
    if (failed) {
        unlinkat(b->work_fd, part, 0);
        return spk_error_sys(err, failed, "%s/%s", b->work_name, part);
    }
    return SPK_OK;
}

static spk_status finish(spk_run *run, spk_open_shard *s, spk_error *err)
{
    spk_build *b = run->b;
    const spk_pack_plan_shard *plan = &b->plan->shards[s->number];
    spk_shard_info info = {0};

    if (s->tally.samples > 0) {
        SPK_TRY(spk_shard_writer_finish(s->writer, &info, err));
        SPK_TRY(make_durable(run, s, err));
    }
    SPK_TRY(spk_tally_merge(&s->tally, &s->trail, err));
    SPK_TRY(spk_journal_shard(b->journal, s->number, &info, &s->tally, err));
    b->samples += plan->samples - s->seen_samples;
    b->bytes += plan->payload - s->seen_bytes;
    pthread_mutex_lock(&run->lock);
    b->done[s->number] = (spk_build_done){.done = true, .info = info};
    spk_status status = spk_tally_merge(&b->splits[plan->split], &s->tally, err);
    for (spk_open_shard **p = &run->open; *p; p = &(*p)->next)
        if (*p == s) {
            *p = s->next;
            break;
        }
    pthread_mutex_unlock(&run->lock);
    spk_open_shard_free(run, s);
    return status;
}

static void count_progress(spk_build *b, spk_open_shard *s, const spk_task *t, const spk_tally *frame, uint64_t bytes)
{
    s->seen_samples += t->frame.samples;
    s->seen_bytes += t->frame.payload;
    s->written += bytes;
    b->samples += t->frame.samples;
    b->bytes += t->frame.payload;
    b->bytes_out += bytes;
    b->bad += frame->bad;
}

spk_status spk_turn_end(spk_worker *w, const spk_task *t, const spk_frame_info *info, spk_error *err)
{
    spk_run *run = w->run;
    spk_open_shard *s = t->shard;
    if (info) {
        SPK_TRY(spk_shard_writer_frame(s->writer, info, w->part, err));
        SPK_TRY(spk_tally_merge(&s->tally, &s->trail, err));
        spk_tally_reset(&s->trail);
        SPK_TRY(spk_tally_merge(&s->tally, &w->frame, err));
        s->last_stored = t->number;
    } else {
        SPK_TRY(spk_tally_merge(&s->trail, &w->frame, err));
    }
    count_progress(run->b, s, t, &w->frame, info ? info->bytes : 0);
    if (s->written - s->flushed >= FLUSH_BYTES) {
        (void)sync_file_range(s->fd, (off_t)s->flushed, (off_t)(s->written - s->flushed), SYNC_FILE_RANGE_WRITE);
        s->flushed = s->written;
    }
    if (t->last && !info && s->tally.samples > 0)
        return restart(run, s, err);
    if (t->last)
        return finish(run, s, err);
    pthread_mutex_lock(&run->lock);
    s->turn++;
    s->workers--;
    pthread_cond_broadcast(&run->turns);
    pthread_mutex_unlock(&run->lock);
    return SPK_OK;
}
