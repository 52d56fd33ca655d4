/* spk_pack: looks at source and target, plans, takes over what an interrupted run left, builds, publishes. */
#include <shardpack/pack.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/url.h"
#include "pack/existing.h"
#include "pack/finish.h"
#include "pack/options.h"
#include "pack/packing.h"
#include "pack/report.h"
#include "pack/resume.h"

static int on_files(void *ctx, uint64_t files)
{
    const spk_packing *p = ctx;
    spk_pack_progress progress = {.phase = SPK_PACK_SCAN, .files = files};
    return p->o.on_progress ? p->o.on_progress(p->o.user, &progress) : 0;
}

static void on_note(void *ctx, const char *text)
{
    const spk_packing *p = ctx;
    if (p->o.on_note)
        p->o.on_note(p->o.user, text);
}

/* A folder or a file; O_NONBLOCK in case it is a FIFO. */
static spk_status open_source(spk_packing *p, spk_error *err)
{
    struct stat st;
    if (spk_url_is_remote(p->src))
        return spk_url_refuse(p->src, "the source must be a folder or a tar archive on this machine", err);
    p->src_fd = open(p->src, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (p->src_fd < 0 || fstat(p->src_fd, &st) != 0)
        return spk_error_sys(err, errno, "%s", p->src);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return spk_error_set(err, SPK_E_INVALID, "%s: neither a folder nor a tar archive", p->src);
    return SPK_OK;
}

static spk_status scan(spk_packing *p, spk_error *err)
{
    spk_input_hooks hooks = {.on_files = on_files, .on_note = on_note, .ctx = p};
    spk_pack_options o = p->o;
    spk_pack_result *r = p->result;
    spk_dataset *dataset = p->dataset;
    o.limit = 0; /* counts samples of the plan's order */
    p->dataset = NULL;
    SPK_TRY(dataset ? spk_input_scan_dataset(&p->in, dataset, p->src, &hooks, err)
                    : spk_input_scan(&p->in, p->src_fd, p->src, &o, p->target.dev, p->target.ino, &hooks, err));
    if (p->scanned)
        SPK_TRY(p->scanned(p, err));
    r->junk = p->in.junk;
    r->other_skipped = p->in.other_skipped;
    r->excluded = p->in.excluded;
    r->excluded_folders = p->in.excluded_folders;
    r->classes = p->in.classes_n;
    SPK_TRY(spk_pack_plan_make(&p->plan, &p->in, &p->o, p->src, err));
    SPK_TRY(spk_pack_plan_digest_make(&p->digest, &p->in, &p->o, err));
    spk_status status = spk_finish_foresee(&p->plan, &p->digest, err);
    if (status < 0)
        spk_error_prefix(err, "%s", p->src);
    return status;
}

/* True if nothing is left to do. */
static spk_status look_first(spk_packing *p, bool *ready, spk_error *err)
{
    bool up_to_date = false;
    const spk_existing_want want = {.in = &p->in, .src = p->src, .digest = &p->digest, .force = p->o.force != 0};
    *ready = false;
    SPK_TRY(spk_existing_check(&p->target, &want, &up_to_date, p->result, err));
    if (up_to_date) {
        p->result->up_to_date = 1;
        *ready = true;
        spk_target_clean(&p->target, false);
        return SPK_OK;
    }
    if (p->target.top.fd >= 0)
        SPK_TRY(spk_report_check(p->target.top.fd, p->target.top.name, err));
    if (p->unlocked.code < 0) {
        if (err)
            *err = p->unlocked;
        return p->unlocked.code;
    }
    if (p->o.dry_run) {
        p->result->samples = p->plan.order_n;
        p->result->files = p->plan.files;
        p->result->shards = p->plan.shards_n;
        p->result->bytes_in = p->plan.payload;
        *ready = true;
    }
    return SPK_OK;
}

static void tell_resumed(spk_packing *p)
{
    char text[128];
    const spk_build *b = &p->build;
    p->result->shards_resumed = b->shards_resumed;
    if (b->shards_resumed == 0)
        return;
    snprintf(text, sizeof text, "going on with an interrupted run: %llu of %zu shards are done",
             (unsigned long long)b->shards_resumed, p->plan.shards_n);
    on_note(p, text);
}

/* Formats that the check knows by their header only. */
static void tell_unchecked(spk_packing *p)
{
    char text[160];
    uint64_t other = 0;
    for (size_t i = 0; i < p->plan.splits_n; i++)
        other += p->build.splits[i].images.other;
    if (other == 0)
        return;
    snprintf(text, sizeof text,
             "images that are neither JPEG nor PNG: %llu; stored, not decoded, and not decoded by the loader",
             (unsigned long long)other);
    on_note(p, text);
}

static spk_status build(spk_packing *p, spk_error *err)
{
    spk_build *b = &p->build;
    SPK_TRY(spk_target_make(&p->target, &p->o, err));
    SPK_TRY(spk_build_init(b, &p->plan, err));
    b->reading = (spk_reading){
        .src_fd = p->src_fd, .src = p->src, .follow = p->o.follow_symlinks != 0, .archive = p->in.archive};
    b->work_fd = p->target.work;
    b->work_name = p->target.work_name;
    SPK_TRY(spk_resume(b, &p->target, &p->digest, err));
    tell_resumed(p);
    spk_status status = spk_build_run(b, err);
    if (status < 0) {
        p->result->bad = b->bad;
        return status;
    }
    tell_unchecked(p);
    return SPK_OK;
}

static spk_status publish(spk_packing *p, spk_error *err)
{
    const spk_build *b = &p->build;
    spk_pack_progress progress = {.phase = SPK_PACK_PUBLISH,
                                  .files = p->in.files_n,
                                  .samples = b->samples,
                                  .samples_total = p->plan.order_n,
                                  .bytes = b->bytes,
                                  .bytes_total = p->plan.payload,
                                  .bytes_resumed = b->bytes_resumed,
                                  .bytes_out = b->bytes_out,
                                  .bad = b->bad};
    if (p->o.on_progress && p->o.on_progress(p->o.user, &progress) != 0)
        return spk_error_set(err, SPK_E_CANCELLED, "cancelled");
    SPK_TRY(spk_finish(&p->build, &p->target, &p->digest, p->started_ns, p->result, err));
    spk_target_clean(&p->target, false);
    return SPK_OK;
}

/* A finished dataset may lie where nothing can be written; that is told once something is to be. */
static spk_status lock(spk_packing *p, spk_error *err)
{
    bool any = false;
    SPK_TRY(spk_existing_manifests(&p->target, &any, err));
    if (p->o.dry_run)
        return SPK_OK;
    spk_status status = spk_target_lock(&p->target, &p->unlocked);
    if (status < 0 && (status == SPK_E_BUSY || !any || p->o.force)) {
        if (err)
            *err = p->unlocked;
        return status;
    }
    return SPK_OK;
}

static spk_status run(spk_packing *p, const char *dst, spk_error *err)
{
    bool ready = false;
    struct timespec now;
    if (!p->dataset)
        SPK_TRY(open_source(p, err));
    clock_gettime(CLOCK_REALTIME, &now);
    p->started_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    SPK_TRY(spk_target_find(&p->target, dst, p->src_fd, p->src, err));
    SPK_TRY(spk_target_find_splits(&p->target, &p->o, err));
    SPK_TRY(lock(p, err));
    SPK_TRY(scan(p, err));
    SPK_TRY(look_first(p, &ready, err));
    if (ready)
        return SPK_OK;
    SPK_TRY(build(p, err));
    return publish(p, err);
}

/* After an error: finished shards stay for the next run. If there are none, neither does anything else. */
static void tidy_up(spk_packing *p)
{
    bool known = p->build.journal || p->target.top.made, shards = false;
    for (size_t i = 0; p->build.done && i < p->plan.shards_n; i++)
        shards = shards || p->build.done[i].info.samples > 0;
    if (known && !shards)
        spk_target_clean(&p->target, true);
    else
        spk_target_unlock(&p->target);
}

spk_status spk_packing_run(spk_packing *p, const char *dst, spk_error *err)
{
    spk_status status = run(p, dst, err);
    if (status < 0)
        tidy_up(p);
    spk_journal_close(p->build.journal);
    spk_build_free(&p->build);
    spk_pack_plan_free(&p->plan);
    spk_input_free(&p->in);
    spk_target_free(&p->target);
    spk_dataset_close(p->dataset);
    if (p->src_fd >= 0)
        close(p->src_fd);
    return status;
}

spk_status spk_pack(const char *src, const char *dst, const spk_pack_options *options, spk_pack_result *result,
                    spk_error *err)
{
    spk_pack_result unused = {0};
    spk_packing p = {.src = src, .src_fd = -1, .result = result ? result : &unused};
    memset(p.result, 0, sizeof *p.result);
    SPK_TRY(spk_pack_options_settle(&p.o, options, err));
    if (p.o.allow_unrestorable && p.o.jpeg != SPK_JPEG_FAST)
        return spk_error_set(err, SPK_E_INVALID, "allow_unrestorable is only for jpeg \"fast\"");
    return spk_packing_run(&p, dst, err);
}
