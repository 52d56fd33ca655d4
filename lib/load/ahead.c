/* A lane takes a run of the sequence Q in order, so what comes next is known: spans, each within one shard. Per lane it
 * is kept up to where tails and frames were asked for, and how many bytes of that are still to be read. */
#include "load/ahead.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cpu.h"
#include "base/error.h"
#include "plan/lane.h"

#define TICK_NS 2000000u
#define RUNS_MAX 16u
#define LANE_LEAST ((uint64_t)1 << 20)
#define LANE_MOST ((uint64_t)8 << 20)

/* A part of Q whose frames are announced. */
typedef struct run {
    uint64_t start, stop; /* places in Q */
    uint64_t bytes;
} run;

typedef struct lane_state {
    uint64_t tails, frames; /* places in Q up to which they are announced */
    uint64_t begin, end;    /* of the lane in Q */
    run runs[RUNS_MAX];     /* not read yet, in order */
    uint32_t runs_n;
} lane_state;

struct spk_ahead {
    spk_shard_cache *cache;
    const spk_load_spec *spec;
    lane_state **lanes; /* NULL: not this worker's, or not yet */
    size_t lanes_n;
    uint64_t lane_bytes;
    /* In stored order: frames below this one of this shard are announced; output at which the last batch began. */
    uint64_t told_shard, told_frame, begun_at;
    uint64_t hint;
    uint64_t ticked_ns;
};

spk_status spk_ahead_new(spk_ahead **out, spk_shard_cache *cache, const spk_load_spec *spec, spk_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return spk_error_nomem(err, sizeof **out);
    (*out)->cache = cache;
    (*out)->spec = spec;
    (*out)->told_shard = UINT64_MAX;
    return SPK_OK;
}

void spk_ahead_reset(spk_ahead *a)
{
    for (size_t i = 0; i < a->lanes_n; i++)
        free(a->lanes[i]);
    free(a->lanes);
    a->lanes = NULL;
    a->lanes_n = 0;
    a->lane_bytes = 0;
    a->told_shard = UINT64_MAX;
    a->begun_at = 0;
    a->hint = 0;
}

void spk_ahead_free(spk_ahead *a)
{
    if (a)
        spk_ahead_reset(a);
    free(a);
}

static spk_status make_lanes(spk_ahead *a, const spk_plan *plan, spk_error *err)
{
    if (a->lanes_n == plan->lanes && a->lane_bytes > 0)
        return SPK_OK;
    spk_ahead_reset(a);
    if (plan->lanes == 0) { /* in stored order: one reader */
        a->lane_bytes = 2 * LANE_MOST;
        spk_net_set_ahead(spk_shard_cache_net(a->cache), a->lane_bytes);
        return SPK_OK;
    }
    a->lanes = calloc((size_t)plan->lanes, sizeof *a->lanes);
    if (!a->lanes)
        return spk_error_nomem(err, (size_t)plan->lanes * sizeof *a->lanes);
    a->lanes_n = (size_t)plan->lanes;
    uint64_t readers = (uint64_t)a->spec->world_size * (a->spec->workers > 0 ? a->spec->workers : 1);
    uint64_t mine = (plan->lanes + readers - 1) / readers, bytes = SPK_AHEAD_BYTES / mine;
    a->lane_bytes = bytes < LANE_LEAST ? LANE_LEAST : bytes < LANE_MOST ? bytes : LANE_MOST;
    spk_net_set_ahead(spk_shard_cache_net(a->cache), a->lane_bytes);
    return SPK_OK;
}

/* The samples [first, first + n): tails of their shards, or their frames, whose bytes are added up. */
static spk_status announce(spk_ahead *a, uint64_t first, uint64_t n, bool frames, uint64_t *sum, spk_error *err)
{
    while (n > 0) {
        const spk_shard *shard = NULL;
        uint64_t number = 0, within = 0, from = 0, to = 0;
        uint32_t bytes = 0, content = 0;
        spk_shard_cache_locate(a->cache, first, &number, &within);
        uint64_t left = spk_shard_cache_samples(a->cache, number) - within, k = n < left ? n : left;
        if (frames) {
            SPK_TRY(spk_shard_cache_get(a->cache, number, &shard, err));
            uint64_t first_frame = spk_shard_frame_of(shard, within), last = spk_shard_frame_of(shard, within + k - 1);
            if (a->lanes_n == 0 && a->told_shard == number && first_frame < a->told_frame)
                first_frame = a->told_frame;
            if (first_frame <= last) {
                spk_shard_frame_range(shard, first_frame, &from, &bytes, &content);
                spk_shard_frame_range(shard, last, &to, &bytes, &content);
                spk_source_ahead(spk_shard_source(shard), from, to + bytes);
                *sum += to + bytes - from;
                a->told_shard = number;
                a->told_frame = last + 1;
            }
        } else {
            spk_shard_cache_expect(a->cache, number);
        }
        first += k;
        n -= k;
    }
    return SPK_OK;
}

/* The span of place q, or what is left of it: its first sample, and the place behind it. */
static uint64_t span_at(spk_ahead *a, const spk_plan *plan, uint64_t q, uint64_t end, uint64_t *stop)
{
    uint64_t first = spk_plan_sequence(plan, q, &a->hint);
    *stop = plan->spans[a->hint + 1].start < end ? plan->spans[a->hint + 1].start : end;
    return first;
}

static spk_status new_lane(spk_ahead *a, const spk_plan *plan, uint64_t lane, uint64_t output, spk_error *err)
{
    lane_state *s = calloc(1, sizeof *s);
    spk_lane l;
    uint64_t echo = plan->spec.echo;
    if (!s)
        return spk_error_nomem(err, sizeof *s);
    a->lanes[lane] = s;
    s->begin = plan->lane_start[lane] / echo;
    s->end = (plan->lane_start[lane + 1] + echo - 1) / echo;
    s->frames = s->begin;
    if (output > 0) { /* entered in the middle: the buffer holds samples from further back */
        SPK_TRY(spk_lane_enter(&l, plan, lane, output, err));
        uint64_t least = l.taken;
        for (uint64_t i = 0; i < l.fill; i++)
            least = l.slots[i] < least ? l.slots[i] : least;
        s->frames = l.item0 + least < s->end ? l.item0 + least : s->end;
        spk_lane_leave(&l);
    }
    s->tails = s->frames;
    return SPK_OK;
}

/* Place in Q up to which the lane has read when it delivers `output`: the buffer grows by two samples a step at first
 * (plan/lane.h). */
static uint64_t read_before(const spk_plan *plan, const lane_state *s, uint64_t output)
{
    uint64_t buffer = plan->spec.buffer, first = buffer / 8 > 0 ? buffer / 8 : 1, step = output / plan->spec.echo;
    uint64_t place = s->begin + first + step + (step < buffer - first ? step : buffer - first);
    return place < s->end ? place : s->end;
}

/* Bytes that are announced and not read yet. What was read of a run counts no more: a run may be more than a lane's
 * share, and the next one must be under way before this one's end. */
static uint64_t unread(lane_state *s, uint64_t place)
{
    uint64_t sum = 0;
    uint32_t gone = 0;
    while (gone < s->runs_n && s->runs[gone].stop <= place)
        gone++;
    s->runs_n -= gone;
    memmove(s->runs, s->runs + gone, s->runs_n * sizeof *s->runs);
    for (uint32_t i = 0; i < s->runs_n; i++) {
        const run *r = &s->runs[i];
        uint64_t from = place > r->start ? place : r->start;
        sum += (uint64_t)((double)r->bytes * (double)(r->stop - from) / (double)(r->stop - r->start));
    }
    return sum;
}

/* Frames, as long as the lane's share of bytes has room; always the ones that come next. */
static spk_status announce_frames(spk_ahead *a, const spk_plan *plan, lane_state *s, uint64_t place, spk_error *err)
{
    uint64_t bytes = unread(s, place);
    while (s->frames < s->end && s->runs_n < RUNS_MAX && (bytes < a->lane_bytes || s->runs_n == 0)) {
        uint64_t stop = 0, first = span_at(a, plan, s->frames, s->end, &stop), sum = 0;
        SPK_TRY(announce(a, first, stop - s->frames, true, &sum, err));
        s->runs[s->runs_n++] = (run){s->frames, stop, sum};
        s->frames = stop;
        bytes += sum;
    }
    return SPK_OK;
}

/* Tails of two spans more than frames were announced for. */
static spk_status announce_tails(spk_ahead *a, const spk_plan *plan, lane_state *s, spk_error *err)
{
    uint64_t stop = s->frames, unused = 0;
    for (int i = 0; i < 3 && stop < s->end; i++) {
        uint64_t q = stop, first = span_at(a, plan, q, s->end, &stop);
        if (stop <= s->tails && i > 0)
            continue;
        SPK_TRY(announce(a, first, stop - q, false, &unused, err));
        s->tails = stop;
    }
    return SPK_OK;
}

static spk_status announce_task(spk_ahead *a, const spk_plan *plan, const spk_task *t, bool frames, spk_error *err)
{
    uint64_t echo = plan->spec.echo, sum = 0;
    if (t->pad || t->count == 0)
        return SPK_OK;
    if (!plan->spec.shuffle) {
        uint64_t first = t->output / echo, last = (t->output + t->count - 1) / echo;
        return announce(a, first, last - first + 1, frames, &sum, err);
    }
    if (!a->lanes[t->lane])
        SPK_TRY(new_lane(a, plan, t->lane, t->output, err));
    lane_state *s = a->lanes[t->lane];
    SPK_TRY(announce_tails(a, plan, s, err));
    return frames ? announce_frames(a, plan, s, read_before(plan, s, t->output), err) : SPK_OK;
}

static spk_status announce_all(spk_ahead *a, const spk_plan *plan, const spk_task *tasks, size_t n, bool frames,
                               uint64_t *row, spk_error *err)
{
    for (size_t i = 0; i < n; i++) {
        *row = tasks[i].row;
        SPK_TRY(announce_task(a, plan, &tasks[i], frames, err));
    }
    return SPK_OK;
}

spk_status spk_ahead_begin(spk_ahead *a, const spk_plan *plan, const spk_task *tasks, size_t n, uint64_t *row,
                           spk_error *err)
{
    if (!spk_shard_cache_net(a->cache))
        return SPK_OK;
    SPK_TRY(make_lanes(a, plan, err));
    if (n > 0 && !plan->spec.shuffle) {
        if (tasks[0].output < a->begun_at) /* a jump backwards */
            a->told_shard = UINT64_MAX;
        a->begun_at = tasks[0].output;
    }
    SPK_TRY(announce_all(a, plan, tasks, n, false, row, err));
    return announce_all(a, plan, tasks, n, true, row, err);
}

void spk_ahead_later(spk_ahead *a, const spk_plan *plan, const spk_task *tasks, size_t n, bool tails_are_there)
{
    uint64_t row = 0;
    if (!spk_shard_cache_net(a->cache) || make_lanes(a, plan, NULL) < 0)
        return;
    /* Whatever fails here is met again, and told, when its turn comes. */
    spk_status ignored = announce_all(a, plan, tasks, n, tails_are_there, &row, NULL);
    (void)ignored;
}

void spk_ahead_row(spk_ahead *a, const spk_plan *plan, const spk_task *task, uint64_t output)
{
    spk_net *net = spk_shard_cache_net(a->cache);
    if (!net)
        return;
    lane_state *s = plan->spec.shuffle && task->lane < a->lanes_n ? a->lanes[task->lane] : NULL;
    if (s && !task->pad) {
        uint64_t row = 0;
        const spk_task now = {.lane = task->lane, .output = output, .count = 1};
        spk_status ignored = announce_all(a, plan, &now, 1, true, &row, NULL);
        (void)ignored;
    }
    uint64_t now_ns = spk_now_ns();
    if (now_ns - a->ticked_ns >= TICK_NS) {
        a->ticked_ns = now_ns;
        (void)spk_net_drive(net, -1, 0);
    }
}

void spk_ahead_idle(spk_ahead *a, int fd)
{
    spk_net *net = spk_shard_cache_net(a->cache);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (net && poll(&p, 1, 0) == 0 && spk_net_drive(net, fd, 1000)) {
    }
}
