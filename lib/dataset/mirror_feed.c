/* Bytes of a shard for sending, checked as they are read, and the check of what arrived. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dataset/mirror.h"
#include "shard/format.h"

spk_status spk_feed_open(spk_feed *f, const spk_dataset *d, uint64_t number, spk_error *err)
{
    spk_source *source = NULL;
    const spk_shard_options options = {.size = sizeof options};
    memset(f, 0, sizeof *f);
    f->dataset = d;
    f->number = number;
    SPK_TRY(spk_dataset_open_shard_source(d, number, &source, &f->expect, err));
    return spk_shard_open_source(&f->shard, source, &f->expect, &options, err);
}

void spk_feed_close(spk_feed *f)
{
    spk_shard_close(f->shard);
    spk_buf_free(&f->piece);
    memset(f, 0, sizeof *f);
}

spk_status spk_feed_rewind(void *ctx, spk_error *err)
{
    spk_feed *f = ctx;
    (void)err;
    f->frame = 0;
    return SPK_OK;
}

spk_status spk_feed_next(void *ctx, const uint8_t **p, size_t *n, spk_error *err)
{
    spk_feed *f = ctx;
    uint64_t offset = f->expect.index_offset;
    uint32_t bytes = 0, content = 0;
    bool tail = f->frame == f->expect.frames;
    *n = 0;
    if (f->frame > f->expect.frames)
        return SPK_OK;
    spk_source_check check = {f->expect.tail_sha256, sizeof f->expect.tail_sha256, f->frame};
    size_t want = (size_t)(f->expect.bytes - offset);
    if (!tail) {
        spk_shard_frame_range(f->shard, f->frame, &offset, &bytes, &content);
        check = (spk_source_check){spk_shard_index(f->shard)->digests[f->frame], SPK_FRAME_DIGEST, f->frame};
        want = bytes;
    }
    f->piece.len = 0;
    SPK_TRY(spk_buf_reserve(&f->piece, want, err));
    spk_status st = spk_source_pread_checked(spk_shard_source(f->shard), f->piece.data, want, offset, &check, err);
    if (st < 0) {
        spk_error_prefix(err, "%s: %s %llu", spk_shard_name(f->shard), tail ? "index behind frame" : "frame",
                         (unsigned long long)f->frame);
        return st;
    }
    f->frame++;
    *p = f->piece.data;
    *n = want;
    return SPK_OK;
}

static void on_problem(void *ctx, const spk_error *problem)
{
    (void)problem;
    *(bool *)ctx = false;
}

spk_status spk_mirror_check(spk_source *source, const spk_shard_expect *expect, bool *good, spk_error *err)
{
    uint64_t samples = 0;
    const spk_shard_verify_hooks hooks = {.on_problem = on_problem, .ctx = good};
    *good = true;
    return spk_shard_verify(source, expect, &hooks, &samples, err);
}
