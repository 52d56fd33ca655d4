/* From journal and work folder to the list of finished shards. A record counts only with its file: a missing one is
 * built again, which gives the same bytes. */
#include "pack/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataset/publish.h"
#include "pack/options.h"

/* A record whose .done file is missing: perhaps it was moved to its final name. */
typedef struct moved {
    uint64_t number;
    spk_shard_info info;
    spk_tally tally;
} moved;

typedef struct resuming {
    spk_build *b;
    spk_target *t;
    moved *moved;
    size_t moved_n, moved_cap;
    char (*fingerprints)[65]; /* per split; empty: not published */
} resuming;

spk_status spk_final_name(char out[SPK_FINAL_NAME_MAX], const spk_pack_options *o, size_t split,
                          const char *fingerprint, uint64_t number, spk_error *err)
{
    char prefix[SPK_PREFIX_MAX + 1];
    int n = 0;
    spk_pack_prefix(o, split, prefix);
    if (o->split_count > 0)
        n = snprintf(out, SPK_FINAL_NAME_MAX, "%s/", o->splits[split].name);
    return spk_shard_file_name(out + n, SPK_FINAL_NAME_MAX - (size_t)n, prefix, fingerprint, number, err);
}

static bool has_size(int fd, const char *name, uint64_t size)
{
    struct stat st;
    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
}

static spk_status on_shard(void *ctx, uint64_t number, const spk_shard_info *info, const spk_tally *tally,
                           spk_error *err)
{
    resuming *r = ctx;
    char name[SPK_WORK_NAME_MAX];
    if (number >= r->b->plan->shards_n)
        return SPK_OK;
    spk_work_name(name, (uint32_t)number, "done");
    if (info->samples == 0 || has_size(r->t->work, name, info->bytes))
        return spk_build_resume(r->b, (uint32_t)number, info, tally, err);
    SPK_TRY(spk_grow(&r->moved, &r->moved_cap, r->moved_n + 1, sizeof *r->moved, err));
    moved *m = &r->moved[r->moved_n];
    *m = (moved){.number = number, .info = *info};
    SPK_TRY(spk_tally_init(&m->tally, r->b->plan->fields_n, err));
    r->moved_n++;
    return spk_tally_merge(&m->tally, tally, err);
}

static spk_status on_publish(void *ctx, uint64_t split, const char *fingerprint, spk_error *err)
{
    resuming *r = ctx;
    (void)err;
    if (split < r->b->plan->splits_n)
        snprintf(r->fingerprints[split], sizeof r->fingerprints[split], "%s", fingerprint);
    return SPK_OK;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = ((const moved *)a)->number, y = ((const moved *)b)->number;
    return (x > y) - (x < y);
}

/* In the order of numbers, so that every shard before one is known when its place in its split is counted. */
static spk_status find_moved(resuming *r, spk_error *err)
{
    spk_build *b = r->b;
    uint64_t place = 0, from = 0;
    size_t split = SIZE_MAX;
    if (r->moved_n > 1)
        qsort(r->moved, r->moved_n, sizeof *r->moved, by_number);
    for (size_t i = 0; i < r->moved_n; i++) {
        moved *m = &r->moved[i];
        char name[SPK_FINAL_NAME_MAX];
        if (i > 0 && m->number == r->moved[i - 1].number)
            continue;
        const spk_pack_plan_shard *s = &b->plan->shards[m->number];
        if (s->split != split) {
            split = s->split;
            from = b->plan->splits[split].first_shard;
            place = 0;
        }
        for (; from < m->number; from++)
            place += b->done[from].done && b->done[from].info.samples > 0;
        from = m->number + 1;
        if (!r->fingerprints[split][0])
            continue;
        SPK_TRY(spk_final_name(name, b->plan->o, split, r->fingerprints[split], place++, err));
        if (b->done[m->number].done || !has_size(r->t->top.fd, name, m->info.bytes))
            continue;
        SPK_TRY(spk_build_resume(b, (uint32_t)m->number, &m->info, &m->tally, err));
        b->done[m->number].published = true;
    }
    return SPK_OK;
}

/* Removes work files that no finished shard stands for. */
static void on_work_file(void *ctx, const char *entry)
{
    const resuming *r = ctx;
    bool done = false;
    int64_t number = spk_target_work_file(entry, &done);
    if (number < 0)
        return;
    bool wanted = done && (uint64_t)number < r->b->plan->shards_n && r->b->done[number].done &&
                  r->b->done[number].info.samples > 0 && !r->b->done[number].published;
    if (!wanted)
        unlinkat(r->t->work, entry, 0);
}

spk_status spk_resume(spk_build *b, spk_target *t, const spk_pack_plan_digest *digest, spk_error *err)
{
    resuming r = {.b = b, .t = t};
    bool fresh = false;
    r.fingerprints = calloc(b->plan->splits_n, sizeof *r.fingerprints);
    if (!r.fingerprints)
        return spk_error_nomem(err, b->plan->splits_n * sizeof *r.fingerprints);
    spk_journal_hooks hooks = {.on_shard = on_shard, .on_publish = on_publish, .ctx = &r};
    spk_status status = spk_journal_open(&b->journal, t->work, t->work_name, digest, b->plan->fields_n,
                                         b->plan->o->force != 0, &hooks, &fresh, err);
    if (status == SPK_OK)
        status = find_moved(&r, err);
    if (status == SPK_OK)
        status = spk_target_list(t->work, t->work_name, on_work_file, &r, err);
    for (size_t i = 0; i < r.moved_n; i++)
        spk_tally_free(&r.moved[i].tally);
    free(r.moved);
    free(r.fingerprints);
    return status;
}
