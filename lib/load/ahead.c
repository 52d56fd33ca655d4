/* A lane reads a run of the sequence Q in order, so what comes next is known: spans, each within one shard. Per lane
 * two places are kept: up to where tails were asked for, and up to where frames were. */
#include "load/ahead.h"

#include <poll.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cpu.h"
#include "base/error.h"
#include "plan/lane.h"

#define TICK_NS 2000000u

typedef struct lane_state {
    uint64_t tails, frames; /* places in Q */
    bool known;
} lane_state;

struct spk_ahead {
    spk_shard_cache *cache;
    const spk_load_spec *spec;
    lane_state *lanes;
    size_t lanes_n, lanes_cap;
    uint64_t horizon; /* samples */
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
    (*out)->horizon = 2 * (uint64_t)spec->plan.chunk + spec->plan.buffer / 2;
    return SPK_OK;
}

void spk_ahead_free(spk_ahead *a)
{
    if (a)
        free(a->lanes);
    free(a);
}

void spk_ahead_reset(spk_ahead *a)
{
    a->lanes_n = 0;
    a->hint = 0;
}

static spk_status make_lanes(spk_ahead *a, const spk_plan *plan, spk_error *err)
{
    if (a->lanes_n == plan->lanes)
        return SPK_OK;
    SPK_TRY(spk_grow(&a->lanes, &a->lanes_cap, (size_t)plan->lanes, sizeof *a->lanes, err));
    a->lanes_n = (size_t)plan->lanes;
    for (size_t i = 0; i < a->lanes_n; i++)
        a->lanes[i] = (lane_state){0, 0, false};
    return SPK_OK;
}

/* One shard's part of the samples [first, first + n): its tail, or its frames. */
static spk_status announce_part(spk_ahead *a, uint64_t shard, uint64_t within, uint64_t n, bool frames, spk_error *err)
{
    const spk_shard *open = NULL;
    uint64_t from = 0, to = 0;
    uint32_t bytes = 0, content = 0;
    if (!frames) {
        spk_shard_cache_expect(a->cache, shard);
        return SPK_OK;
    }
    SPK_TRY(spk_shard_cache_get(a->cache, shard, &open, err));
    spk_shard_frame_range(open, spk_shard_frame_of(open, within), &from, &bytes, &content);
    spk_shard_frame_range(open, spk_shard_frame_of(open, within + n - 1), &to, &bytes, &content);
    spk_source_ahead(spk_shard_source(open), from, to + bytes);
    return SPK_OK;
}

static spk_status announce(spk_ahead *a, uint64_t first, uint64_t n, bool frames, spk_error *err)
{
    while (n > 0) {
        uint64_t shard = 0, within = 0;
        spk_shard_cache_locate(a->cache, first, &shard, &within);
        uint64_t left = spk_shard_cache_samples(a->cache, shard) - within, k = n < left ? n : left;
        SPK_TRY(announce_part(a, shard, within, k, frames, err));
        first += k;
        n -= k;
    }
    return SPK_OK;
}

/* The places [*place, until) of Q and the rest of the span that holds the last of them, but not beyond `end`. */
static spk_status announce_run(spk_ahead *a, const spk_plan *plan, uint64_t *place, uint64_t until, uint64_t end,
                               bool frames, spk_error *err)
{
    until = until < end ? until : end;
    while (*place < until) {
        uint64_t first = spk_plan_sequence(plan, *place, &a->hint);
        uint64_t stop = plan->spans[a->hint + 1].start < end ? plan->spans[a->hint + 1].start : end;
        SPK_TRY(announce(a, first, stop - *place, frames, err));
        *place = stop;
    }
    return SPK_OK;
}

/* First place of Q that a lane needs when it is entered before `output`. */
static spk_status first_place(const spk_plan *plan, uint64_t lane, uint64_t output, uint64_t *out, spk_error *err)
{
    spk_lane l;
    *out = plan->lane_start[lane] / plan->spec.echo;
    if (output == 0)
        return SPK_OK;
    SPK_TRY(spk_lane_enter(&l, plan, lane, output, err));
    uint64_t least = l.taken;
    for (uint64_t i = 0; i < l.fill; i++)
        least = l.slots[i] < least ? l.slots[i] : least;
    *out = l.item0 + (l.n > 0 ? least : 0);
    spk_lane_leave(&l);
    return SPK_OK;
}

static spk_status announce_lane(spk_ahead *a, const spk_plan *plan, const spk_task *t, bool frames, spk_error *err)
{
    uint64_t echo = plan->spec.echo, end = (plan->lane_start[t->lane + 1] + echo - 1) / echo;
    uint64_t begin = plan->lane_start[t->lane] / echo;
    lane_state *s = &a->lanes[t->lane];
    if (!s->known) {
        SPK_TRY(first_place(plan, t->lane, t->output, &s->frames, err));
        s->tails = s->frames;
        s->known = true;
    }
    uint64_t reached = begin + (t->output + t->count) / echo + plan->spec.buffer;
    SPK_TRY(announce_run(a, plan, &s->tails, reached + 2 * a->horizon, end, false, err));
    return frames ? announce_run(a, plan, &s->frames, reached + a->horizon, end, true, err) : SPK_OK;
}

static spk_status announce_task(spk_ahead *a, const spk_plan *plan, const spk_task *t, bool frames, spk_error *err)
{
    uint64_t echo = plan->spec.echo;
    if (t->pad || t->count == 0)
        return SPK_OK;
    if (plan->spec.shuffle)
        return announce_lane(a, plan, t, frames, err);
    uint64_t first = t->output / echo, last = (t->output + t->count - 1) / echo;
    return announce(a, first, last - first + 1, frames, err);
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

void spk_ahead_tick(spk_ahead *a)
{
    spk_net *net = spk_shard_cache_net(a->cache);
    uint64_t now = net ? spk_now_ns() : 0;
    if (!net || now - a->ticked_ns < TICK_NS)
        return;
    a->ticked_ns = now;
    (void)spk_net_drive(net, -1, 0);
}

void spk_ahead_idle(spk_ahead *a, int fd)
{
    spk_net *net = spk_shard_cache_net(a->cache);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (net && poll(&p, 1, 0) == 0 && spk_net_drive(net, fd, 1000)) {
    }
}
