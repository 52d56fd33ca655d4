/* Building one frame and appending it when it is its turn, in one of three ways that differ in memory only:
 *   buffered  the frame is small: content and compressed frame are held, so that only writing waits for the turn;
 *   held      the content fits beside the largest file: compressed straight to the file at its turn;
 *   streamed  neither: images are checked in a first pass, file by file, and at its turn everything is read again in
 *             pieces (which are compared with the scan, so both passes see the same bytes).
 * Memory per worker: 8 MiB and the largest file. Where files are stored in another form, or come from a dataset, every
 * frame that is not small is held, and so is the one that it is made from; and making the form of a JPEG takes up to 9
 * bytes for each of its pixels. */
#include <string.h>

#include "pack/build_parts.h"
#include "shard/tar.h"

#define BUFFERED_MAX (5u << 19) /* 2.5 MiB: twice, and about 2 MiB of zstd */
#define HELD_SLACK (3u << 20)   /* beside the largest file */
#define PIECE_BYTES (1u << 20)

static spk_status sink_to_buf(void *ctx, const void *p, size_t n, spk_error *err)
{
    return spk_buf_append(ctx, p, n, err);
}

/* Room for n bytes in an empty buffer, without copying what it held. */
static spk_status make_room(spk_buf *b, size_t n, spk_error *err)
{
    b->len = 0;
    if (b->cap < n)
        spk_buf_free(b);
    return spk_buf_reserve(b, n, err);
}

/* Samples come in random order, and so do the places where they are described: fetched early, three steps deep.
 * Inlined by force, because gcc takes a call that only prefetches for one without effect. */
static inline __attribute__((always_inline)) void look_ahead(const spk_pack_plan *plan, const uint32_t *order,
                                                             uint32_t left)
{
    const spk_input *in = plan->in;
    if (left > 12)
        __builtin_prefetch(&in->samples[order[12]]);
    if (left > 8)
        __builtin_prefetch(&in->files[in->samples[order[8]].first]);
    if (left > 4) {
        const spk_input_sample *s = &in->samples[order[4]];
        __builtin_prefetch(spk_input_str(in, s->key));
        __builtin_prefetch(spk_input_str(in, in->files[s->first].path));
    }
}

/* The whole content into w->tar. */
static spk_status fill(spk_worker *w, const spk_task *t, spk_error *err)
{
    static const uint8_t end_marker[SPK_TAR_END];
    const uint32_t *order = w->run->b->plan->order + t->frame.first;
    SPK_TRY(make_room(&w->tar, (size_t)t->frame.tar_bytes + SPK_TAR_END + 1, err));
    for (uint32_t i = 0; i < t->frame.samples; i++) {
        bool stored = false;
        look_ahead(w->run->b->plan, order + i, t->frame.samples - i);
        SPK_TRY(spk_sample_read(w, order[i], true, &stored, err));
    }
    return t->last && w->frame.samples > 0 ? spk_buf_append(&w->tar, end_marker, sizeof end_marker, err) : SPK_OK;
}

static spk_status compress(spk_worker *w, const spk_task *t, spk_sink_fn sink, void *ctx, spk_frame_info *info,
                           spk_error *err)
{
    SPK_TRY(spk_frame_begin(w->zstd, t->frame.level, w->tar.len, sink, ctx, err));
    SPK_TRY(spk_frame_write(w->zstd, w->tar.data, w->tar.len, err));
    return spk_frame_end(w->zstd, info, err);
}

/* Waits for the turn; the file is open behind it. */
static spk_status begin_turn(spk_worker *w, const spk_task *t, spk_error *err)
{
    SPK_TRY(spk_turn_wait(w->run, t));
    return t->number == 0 ? spk_open_shard_begin(w->run, t->shard, err) : SPK_OK;
}

static spk_status append_now(spk_worker *w, const spk_task *t, spk_error *err)
{
    spk_frame_info info;
    if (w->frame.samples == 0)
        return spk_turn_end(w, t, NULL, err);
    SPK_TRY(compress(w, t, spk_shard_writer_bytes, t->shard->writer, &info, err));
    return spk_turn_end(w, t, &info, err);
}

static spk_status run_held(spk_worker *w, const spk_task *t, spk_error *err)
{
    SPK_TRY(fill(w, t, err));
    SPK_TRY(begin_turn(w, t, err));
    return append_now(w, t, err);
}

static spk_status run_buffered(spk_worker *w, const spk_task *t, spk_error *err)
{
    spk_frame_info info;
    SPK_TRY(fill(w, t, err));
    if (w->frame.samples == 0 || spk_turn_came(w->run, t)) { /* nothing to hold back: saves a copy */
        SPK_TRY(begin_turn(w, t, err));
        return append_now(w, t, err);
    }
    SPK_TRY(make_room(&w->out, w->tar.len + w->tar.len / 128 + 1024, err));
    SPK_TRY(compress(w, t, sink_to_buf, &w->out, &info, err));
    SPK_TRY(begin_turn(w, t, err));
    SPK_TRY(spk_shard_writer_bytes(t->shard->writer, w->out.data, w->out.len, err));
    return spk_turn_end(w, t, &info, err);
}

/* First pass: which samples are stored, and how many bytes of tar they are. */
static spk_status survey(spk_worker *w, const spk_task *t, uint64_t *content, spk_error *err)
{
    const spk_pack_plan *plan = w->run->b->plan;
    *content = 0;
    SPK_TRY(make_room(&w->keep, t->frame.samples, err));
    w->tar.len = 0;
    for (uint32_t i = 0; i < t->frame.samples; i++) {
        uint32_t sample = plan->order[t->frame.first + i];
        bool stored = false;
        spk_pack_plan_members walk;
        spk_pack_plan_member m;
        SPK_TRY(spk_sample_read(w, sample, false, &stored, err));
        w->keep.data[i] = stored;
        if (stored)
            for (spk_pack_plan_members_begin(&walk, plan, sample); spk_pack_plan_members_next(&walk, &m);)
                *content += spk_tar_member_bytes(m.size);
    }
    if (t->last)
        *content += SPK_TAR_END;
    return SPK_OK;
}

static spk_status sink_to_frame(void *ctx, const void *p, size_t n, spk_error *err)
{
    return spk_frame_write(ctx, p, n, err);
}

static spk_status stream_sample(spk_worker *w, uint32_t sample, spk_error *err)
{
    static const uint8_t zeros[SPK_TAR_BLOCK];
    const spk_pack_plan *plan = w->run->b->plan;
    const char *key = spk_input_str(plan->in, plan->in->samples[sample].key);
    uint8_t header[SPK_TAR_BLOCK];
    spk_pack_plan_members walk;
    spk_pack_plan_member m;
    for (spk_pack_plan_members_begin(&walk, plan, sample); spk_pack_plan_members_next(&walk, &m);) {
        SPK_TRY(spk_tar_header(header, key, plan->fields[m.field], m.size, err));
        SPK_TRY(spk_frame_write(w->zstd, header, sizeof header, err));
        if (m.file)
            SPK_TRY(spk_read_pieces(&w->run->b->reading, spk_input_str(plan->in, m.file->path), m.file, w->out.data,
                                    PIECE_BYTES, sink_to_frame, w->zstd, err));
        else
            SPK_TRY(spk_frame_write(w->zstd, m.text, (size_t)m.size, err));
        SPK_TRY(spk_frame_write(w->zstd, zeros, (size_t)(spk_tar_member_bytes(m.size) - SPK_TAR_BLOCK - m.size), err));
    }
    return SPK_OK;
}

static spk_status run_streamed(spk_worker *w, const spk_task *t, spk_error *err)
{
    static const uint8_t end_marker[SPK_TAR_END];
    const spk_pack_plan *plan = w->run->b->plan;
    uint64_t content = 0;
    spk_frame_info info;
    SPK_TRY(survey(w, t, &content, err));
    SPK_TRY(begin_turn(w, t, err));
    if (w->frame.samples == 0)
        return spk_turn_end(w, t, NULL, err);
    SPK_TRY(make_room(&w->out, PIECE_BYTES, err));
    SPK_TRY(spk_frame_begin(w->zstd, t->frame.level, content, spk_shard_writer_bytes, t->shard->writer, err));
    for (uint32_t i = 0; i < t->frame.samples; i++) {
        if (i % 64 == 0) /* a frame may hold a whole shard: notice a stop */
            SPK_TRY(spk_turn_wait(w->run, t));
        if (w->keep.data[i])
            SPK_TRY(stream_sample(w, plan->order[t->frame.first + i], err));
    }
    if (t->last)
        SPK_TRY(spk_frame_write(w->zstd, end_marker, sizeof end_marker, err));
    SPK_TRY(spk_frame_end(w->zstd, &info, err));
    return spk_turn_end(w, t, &info, err);
}

spk_status spk_task_run(spk_worker *w, const spk_task *t, spk_error *err)
{
    const spk_pack_plan *plan = w->run->b->plan;
    spk_tally_reset(&w->frame);
    spk_index_part_reset(w->part);
    if (w->packed) /* shards and frames are those of the dataset */
        SPK_TRY(spk_packed_hold(w->packed, t->shard->number, t->number, err));
    if (t->frame.tar_bytes + SPK_TAR_END <= BUFFERED_MAX)
        return run_buffered(w, t, err);
    /* What a stored form takes is known only when it is there. */
    if (t->frame.tar_bytes <= plan->largest_file + HELD_SLACK || w->transcoder || w->packed)
        return run_held(w, t, err);
    return run_streamed(w, t, err);
}
