/* From journal and work folder to the list of finished shards. A record counts only with its file, which must still end
 * as it did (index and seek table, by their digest): a missing or damaged one is built again, which gives the same
 * bytes. A file with its final name is never replaced, so a damaged one of those is an error. */
#include "pack/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
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

typedef enum state { STATE_MISSING, STATE_SAME, STATE_OTHER } state;

/* Bytes [from, to) of an open file; a file that cannot be read is another one. */
static spk_status compare_tail(int fd, uint64_t from, uint64_t to, const uint8_t want[32], state *out, spk_error *err)
{
    enum { CHUNK = 64 * 1024 };
    uint8_t got[SPK_SHA256_BYTES], *chunk = malloc(CHUNK);
    spk_sha256 *h = NULL;
    spk_status status = chunk ? spk_sha256_new(&h, err) : spk_error_nomem(err, CHUNK);
    if (status == SPK_OK) {
        ssize_t n = 1;
        spk_sha256_init(h);
        while (from < to && (n > 0 || errno == EINTR)) {
            n = pread(fd, chunk, to - from < CHUNK ? (size_t)(to - from) : CHUNK, (off_t)from);
            if (n == 0)
                break;
            if (n > 0) {
                spk_sha256_update(h, chunk, (size_t)n);
                from += (uint64_t)n;
            }
        }
        spk_sha256_final(h, got);
        *out = from == to && memcmp(got, want, sizeof got) == 0 ? STATE_SAME : STATE_OTHER;
    }
    spk_sha256_free(h);
    free(chunk);
    return status;
}

/* Whether a file is the shard that was finished. */
static spk_status look_at(int dirfd, const char *name, const spk_shard_info *info, state *out, spk_error *err)
{
    struct stat st;
    spk_status status = SPK_OK;
    int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *out = fd < 0 && errno == ENOENT ? STATE_MISSING : STATE_OTHER;
    if (fd < 0)
        return SPK_OK;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == info->bytes)
        status = compare_tail(fd, info->index_offset, info->bytes, info->tail_sha256, out, err);
    close(fd);
    return status;
}

static spk_status on_shard(void *ctx, uint64_t number, const spk_shard_info *info, const spk_tally *tally,
                           spk_error *err)
{
    resuming *r = ctx;
    char name[SPK_WORK_NAME_MAX];
    state found = STATE_SAME; /* without samples there is no file */
    if (number >= r->b->plan->shards_n)
        return SPK_OK;
    spk_work_name(name, (uint32_t)number, "done");
    if (info->samples > 0)
        SPK_TRY(look_at(r->t->work, name, info, &found, err));
    if (found == STATE_SAME)
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

/* name: where publishing has put it, if it came so far. */
static spk_status take_moved(resuming *r, const moved *m, const char *name, spk_error *err)
{
    state found = STATE_MISSING;
    if (r->b->done[m->number].done)
        return SPK_OK;
    SPK_TRY(look_at(r->t->top.fd, name, &m->info, &found, err));
    if (found == STATE_OTHER)
        return spk_error_set(err, SPK_E_EXISTS,
                             "%s/%s: exists with other contents than an interrupted run gave it; delete it to have it "
                             "built again",
                             r->t->top.name, name);
    if (found == STATE_MISSING)
        return SPK_OK;
    SPK_TRY(spk_build_resume(r->b, (uint32_t)m->number, &m->info, &m->tally, err));
    r->b->done[m->number].published = true;
    return SPK_OK;
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
        SPK_TRY(take_moved(r, m, name, err));
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
