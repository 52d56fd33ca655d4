/* The loader's public calls: open, next, close, and what can be asked of it. All work is done inside the caller's
 * calls; the trainer gets no thread and no signal. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/options.h"
#include "dataset/dataset.h"
#include "load/loader_parts.h"
#include "load/tasks.h"

#define TIMEOUT_SECONDS 120.0
#define TIMEOUT_MAX 1e9 /* seconds; beyond: none */
#define START_LEAST_NS ((uint64_t)1000000000)
#define ON_WAIT_NS ((uint64_t)100000000)
#define UPLOAD_WAIT_NS ((uint64_t)2000000) /* slots that a device reads are looked at while workers are waited for */

spk_status spk_loader_check_owner(const spk_loader *l, spk_error *err)
{
    if (l->owner == getpid())
        return SPK_OK;
    return spk_error_set(err, SPK_E_STATE, "the loader belongs to process %ld, this is process %ld", (long)l->owner,
                         (long)getpid());
}

void spk_loader_note(const spk_loader *l, const char *fmt, ...)
{
    spk_error line;               /* for its escaping */
    char raw[2 * SPK_ERROR_TEXT]; /* what is too long loses its middle, as errors do */
    va_list ap;
    if (!l->on_note)
        return;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    (void)spk_error_set(&line, SPK_OK, "%s", raw);
    l->on_note(l->user, line.text);
}

spk_status spk_loader_fail(spk_loader *l, const spk_error *err)
{
    l->failed = *err;
    return err->code;
}

spk_status spk_loader_new_engine(spk_loader *l, spk_error *err)
{
    spk_buf net = {0};
    spk_status status = spk_loader_net_text(l, &net, err);
    if (status == SPK_OK)
        status =
            spk_engine_new(&l->engine, l->core->memory.base, (const char *)net.data, 0, spk_open_shards_max(), err);
    spk_buf_free(&net);
    if (status == SPK_OK)
        spk_engine_on_wait(l->engine, l->on_wait, l->user);
    return status;
}

static spk_status set_options(spk_loader *l, const spk_loader_options *o, spk_error *err)
{
    double timeout = o->timeout == 0 ? TIMEOUT_SECONDS : o->timeout;
    uint32_t prefetch = spk_loader_prefetch(o->prefetch);
    l->timeout_ns = timeout > 0 && timeout < TIMEOUT_MAX ? (uint64_t)(timeout * 1e9) : 0;
    l->start_ns = l->timeout_ns > 0 && l->timeout_ns < START_LEAST_NS ? START_LEAST_NS : l->timeout_ns;
    l->max_errors = o->max_errors;
    l->error_on_hold = o->error_on_hold != 0;
    l->fixed_groups = o->lane_groups != 0;
    l->on_note = o->on_note;
    l->user = o->user;
    l->on_wait = o->on_wait;
    l->pin = o->pin_memory;
    uint32_t workers = l->core->spec.workers;
    l->ahead = workers > 0 ? prefetch + 1 : 1;
    l->keep = workers > 0 && prefetch > 1 ? 2 : 1;
    l->substituted_noted = 1;
    SPK_TRY(spk_ring_init(&l->ring, spk_loader_slots(&l->core->spec, prefetch), err));
    if (workers == 0)
        return SPK_OK;
    l->workers = calloc(workers, sizeof *l->workers);
    l->polls = calloc(2 * (size_t)workers, sizeof *l->polls);
    if (!l->workers || !l->polls)
        return spk_error_nomem(err, workers * sizeof *l->workers);
    l->workers_n = workers; /* from here on they are there to be stopped */
    for (uint32_t i = 0; i < l->workers_n; i++)
        l->workers[i] = (spk_worker){.socket = -1, .process = {.pid = 0, .pidfd = -1}};
    return spk_worker_find(&l->program, o->worker_program, err);
}

static spk_status make_memory(spk_loader *l, const spk_loader_options *o, spk_error *err)
{
    const spk_choice choice = {o->indices, o->index_count};
    char *folder = NULL;
    spk_shm_head layout;
    spk_memory_need need;
    const spk_load_spec *spec = &l->core->spec;
    /* Workers start later, perhaps after the trainer has changed its folder. */
    SPK_TRY(spk_path_absolute(&folder, spk_dataset_folder(l->dataset), err));
    spk_status status = spk_memory_layout(&layout, spec, l->dataset, &choice, folder, l->ring.n, err);
    if (status == SPK_OK) {
        spk_loader_need(spec, l->dataset, &layout, &need);
        status = spk_memory_check(&need, NULL, NULL, err);
    }
    if (status == SPK_OK)
        status = spk_memory_new(&l->core->memory, &layout, spec, l->dataset, &choice, folder,
                                l->workers_n > 0 || l->pin != SPK_PIN_OFF, err);
    if (status == SPK_OK && l->core->memory.fd >= 0) {
        l->core->memory.fd = spk_fd_move(l->core->memory.fd);
        if (l->core->memory.fd < 0)
            status = spk_error_set(err, SPK_E_IO, "no file descriptor left for the shared memory");
    }
    free(folder);
    if (status < 0)
        spk_error_prefix(err, "loader");
    return status;
}

static spk_status start(spk_loader *l, spk_error *err)
{
    if (l->workers_n == 0)
        return spk_loader_new_engine(l, err);
    spk_oom_read(&l->oom, NULL, NULL);
    int self = spk_pidfd_open(getpid());
    l->trainer = self >= 0 ? spk_fd_move(self) : -1;
    return spk_crew_start(l, err);
}

static spk_status open_loader(spk_loader *l, const spk_loader_options *o, spk_error *err)
{
    l->core = calloc(1, sizeof *l->core);
    if (!l->core)
        return spk_error_nomem(err, sizeof *l->core);
    l->core->users = 1;
    l->core->loader = l;
    l->core->owner = l->owner;
    l->core->memory.fd = -1;
    SPK_TRY(spk_load_spec_make(&l->core->spec, l->dataset, o, err));
    SPK_TRY(set_options(l, o, err));
    SPK_TRY(make_memory(l, o, err));
    SPK_TRY(spk_loader_pin(l, o, err));
    SPK_TRY(start(l, err));
    l->delivered.epoch = SPK_EPOCH_NONE; /* nowhere yet */
    SPK_TRY(spk_loader_go(l, o->epoch, 0, err));
    if (l->delivered.left == 0)
        spk_loader_note(l, "%llu samples with a batch size of %u and %u ranks: an epoch has no batch",
                        (unsigned long long)l->core->spec.total, l->core->spec.batch_size, l->core->spec.world_size);
    spk_loader_label_note(l);
    return spk_loader_hints(l, 0, err);
}

spk_status spk_loader_open(spk_loader **out, const spk_dataset *dataset, const spk_loader_options *options,
                           spk_error *err)
{
    spk_loader_options o;
    spk_error local;
    *out = NULL;
    memset(&o, 0, sizeof o);
    spk_error_clear(&local);
    if (!options)
        return spk_error_set(err, SPK_E_INVALID, "options: batch_size must be given");
    SPK_TRY(spk_options_copy(&o, sizeof o, options, err));
    o.size = sizeof o;
    spk_loader *l = calloc(1, sizeof *l);
    if (!l)
        return spk_error_nomem(err, sizeof *l);
    l->owner = getpid();
    l->dataset = dataset;
    l->trainer = -1;
    spk_status status = open_loader(l, &o, &local);
    if (status < 0) {
        spk_loader_close(l);
        if (err)
            *err = local;
        return status;
    }
    *out = l;
    return SPK_OK;
}

void spk_loader_close(spk_loader *l)
{
    spk_error note;
    if (!l)
        return;
    spk_error_clear(&note);
    if (l->owner == getpid())
        spk_crew_stop(l);
    else
        spk_crew_forget(l);
    spk_engine_free(l->engine);
    if (l->core)
        spk_loader_drain_uploads(l);
    if (l->trainer >= 0)
        close(l->trainer);
    spk_ring_free(&l->ring);
    free(l->workers);
    free(l->polls);
    free(l->program);
    if (l->core)
        spk_core_drop(l->core, &note);
    if (note.code != SPK_OK)
        spk_loader_note(l, "%s", note.text);
    free(l);
}

/* ---- next ---- */

/* Waits until the next batch is there; NULL if the caller does not want to wait any more. Workers that fail or stall
 * make batches that have an error, so it comes. */
static spk_slot *wait_for_workers(spk_loader *l)
{
    spk_crew_take(l);
    spk_loader_begin(l);
    spk_slot *slot = spk_ring_ready(&l->ring);
    l->stats.ready_sum += spk_ring_ready_count(&l->ring);
    if (slot)
        return slot;
    uint64_t start = spk_now_ns(), asked = 1000000000u;
    if (l->timeout_ns > 0 && l->timeout_ns / 4 < asked)
        asked = l->timeout_ns / 4 + 1000000u;
    if (l->on_wait && asked > ON_WAIT_NS)
        asked = ON_WAIT_NS;
    spk_watchdog_arm(l);
    bool wanted = true;
    for (uint64_t now = start, told = start; !slot && wanted;) {
        uint64_t before = now;
        uint64_t part = spk_loader_uploads(l) && asked > UPLOAD_WAIT_NS ? UPLOAD_WAIT_NS : asked;
        bool signal = spk_crew_receive(l, (int)(part / 1000000u));
        now = spk_now_ns();
        spk_watchdog_look(l, part, now - before);
        spk_loader_begin(l);
        slot = spk_ring_ready(&l->ring);
        if (!slot && l->on_wait && (signal || now - told >= ON_WAIT_NS)) {
            told = now;
            wanted = l->on_wait(l->user) == 0;
        }
    }
    l->stats.wait_ns += spk_now_ns() - start;
    return slot;
}

static spk_status wait_for_batch(spk_loader *l, spk_slot **out, spk_error *err)
{
    if (l->workers_n > 0) {
        *out = wait_for_workers(l);
        if (!*out)
            return spk_error_set(err, SPK_E_CANCELLED, "cancelled while waiting for batch %llu of epoch %llu",
                                 (unsigned long long)l->delivered.number, (unsigned long long)l->delivered.epoch);
        return SPK_OK;
    }
    uint64_t start = spk_now_ns();
    *out = spk_ring_ready(&l->ring);
    if (!*out) {
        SPK_TRY(spk_loader_run_inline(l, err));
        *out = spk_ring_ready(&l->ring);
    }
    l->stats.wait_ns += spk_now_ns() - start;
    return SPK_OK;
}

/* Content errors that were made up for, counted in the order of the stream. */
static spk_status count_substituted(spk_loader *l, const spk_slot *slot, spk_error *err)
{
    uint64_t here = slot->sum.substituted, all = l->substituted + here;
    if (here == 0)
        return SPK_OK;
    const spk_error *first = &slot->substituted;
    if (l->max_errors > 0 && all > l->max_errors)
        return spk_error_set(err, first->code < 0 ? first->code : SPK_E_FORMAT,
                             "%llu samples could not be used up to batch %llu of epoch %u, max_errors is %llu: %s",
                             (unsigned long long)all, (unsigned long long)slot->batch_number, slot->epoch,
                             (unsigned long long)l->max_errors, first->text);
    l->substituted = all;
    if (all < l->substituted_noted)
        return SPK_OK;
    spk_loader_note(l, "%llu samples substituted so far: %s", (unsigned long long)all, first->text);
    while (l->substituted_noted <= all) /* told again at ten times as many */
        l->substituted_noted *= 10;
    return SPK_OK;
}

static void count_batch(spk_loader *l, const spk_slot *slot, bool copy)
{
    spk_loader_stats *s = &l->stats;
    uint64_t samples = slot->batch.rows - slot->sum.padded;
    l->rows += samples;
    s->batches++;
    s->samples += samples;
    s->padded += slot->sum.padded;
    s->substituted += slot->sum.substituted;
    s->worker_busy_ns += slot->sum.busy_ns;
    s->bytes_read += slot->sum.bytes_read;
    s->frames_read += slot->sum.frames_read;
    s->images_decoded += slot->sum.images_decoded;
    s->copies += copy;
    spk_loader_net_notes(l);
    if (!copy || l->copy_noted)
        return;
    l->copy_noted = true;
    spk_loader_note(
        l,
        "%u batches are held: this one and others to come are handed out as private copies, which costs time "
        "and memory; release batches earlier or raise prefetch",
        l->ring.held);
}

static spk_status hand_out(spk_loader *l, spk_slot *slot, spk_batch **out, spk_error *err)
{
    bool copy = spk_loader_is_short(l);
    if (slot->error.code != SPK_OK) {
        *err = slot->error;
        return spk_loader_fail(l, err);
    }
    spk_status status = spk_loader_check_rows(l, slot, err);
    if (status < 0)
        return spk_loader_fail(l, err);
    SPK_TRY(spk_batch_new(out, l, slot, copy, err));
    status = count_substituted(l, slot, err);
    if (status < 0) {
        spk_batch_discard(*out);
        *out = NULL;
        return spk_loader_fail(l, err);
    }
    count_batch(l, slot, copy);
    spk_loader_advance(l, &l->delivered, slot->next);
    spk_ring_hand(&l->ring, slot, copy);
    spk_loader_begin(l);
    return SPK_OK;
}

static spk_status next_batch(spk_loader *l, spk_batch **out, spk_error *err)
{
    spk_slot *slot = NULL;
    SPK_TRY(spk_loader_check_owner(l, err));
    if (l->failed.code != SPK_OK) {
        *err = l->failed;
        return l->failed.code;
    }
    if (l->delivered.epoch > SPK_PLAN_EPOCH_MAX)
        return spk_error_set(err, SPK_E_INVALID, "epoch %llu: must be at most %u",
                             (unsigned long long)l->delivered.epoch, SPK_PLAN_EPOCH_MAX);
    if (l->delivered.left == 0)
        return spk_loader_end_epoch(l, err);
    SPK_TRY(spk_loader_wait_uploads(l, err));
    if (l->error_on_hold && spk_loader_is_short(l))
        return spk_error_set(err, SPK_E_LIMIT, "%u batches are held, %u of the %u slots are needed for those to come",
                             l->ring.held, l->keep, l->ring.n);
    SPK_TRY(wait_for_batch(l, &slot, err));
    return hand_out(l, slot, out, err);
}

spk_status spk_loader_next(spk_loader *l, spk_batch **out, spk_error *err)
{
    spk_error local;
    *out = NULL;
    spk_error_clear(&local);
    spk_status status = next_batch(l, out, &local);
    if (status < 0 && err)
        *err = local;
    return status;
}

int spk_loader_ready(spk_loader *l)
{
    if (l->owner != getpid() || l->failed.code != SPK_OK || l->delivered.epoch > SPK_PLAN_EPOCH_MAX ||
        l->delivered.left == 0)
        return 1;
    if (l->workers_n > 0)
        spk_crew_take(l);
    spk_loader_begin(l);
    return spk_ring_ready(&l->ring) != NULL && !(spk_loader_is_short(l) && spk_loader_uploads(l));
}

/* ---- asking ---- */

uint64_t spk_loader_length(const spk_loader *l)
{
    return spk_batches_left(&l->core->spec, 0);
}

spk_status spk_loader_set_epoch(spk_loader *l, uint32_t epoch, spk_error *err)
{
    spk_error local;
    spk_error_clear(&local);
    SPK_TRY(spk_loader_check_owner(l, err));
    if (epoch > SPK_PLAN_EPOCH_MAX)
        return spk_error_set(err, SPK_E_INVALID, "epoch of %u: must be 0 to %u", epoch, SPK_PLAN_EPOCH_MAX);
    l->moves++;
    spk_status status = spk_loader_go(l, epoch, 0, &local);
    if (status < 0 && err)
        *err = local;
    return status;
}

spk_status spk_loader_skip(spk_loader *l, uint64_t count, spk_error *err)
{
    spk_error local;
    spk_error_clear(&local);
    SPK_TRY(spk_loader_check_owner(l, err));
    if (l->failed.code != SPK_OK) {
        if (err)
            *err = l->failed;
        return l->failed.code;
    }
    const spk_load_spec *spec = &l->core->spec;
    uint64_t n = count < l->delivered.left ? count : l->delivered.left;
    uint64_t x = l->delivered.x + n * spec->batch_size * spec->world_size;
    if (n == 0)
        return SPK_OK;
    l->moves++;
    spk_status status = spk_loader_go(l, l->delivered.epoch, x < spec->total ? x : spec->total, &local);
    if (status < 0 && err)
        *err = local;
    return status;
}

void spk_loader_position(const spk_loader *l, uint32_t *epoch, uint64_t *samples)
{
    *epoch = (uint32_t)l->delivered.epoch;
    *samples = l->delivered.x;
}

void spk_loader_get_stats(const spk_loader *l, spk_loader_stats *out)
{
    *out = l->stats;
    spk_loader_net_stats(l, out);
}
