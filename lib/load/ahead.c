/* A lane takes a run of the sequence Q in order, and which outputs of which lane come next is known: so is what will be
 * read, and when. Frames are asked for in that order, from the tasks of this batch on, until as many bytes are on their
 * way or waiting to be read as may be. */
#include "load/ahead.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cpu.h"
#include "base/error.h"
#include "plan/lane.h"

#define TICK_NS 2000000u
#define LANE_LEAST ((uint64_t)1 << 20)
#define LANE_MOST ((uint64_t)8 << 20)

/* A part of Q within one shard. */
typedef struct run {
    uint64_t start, stop;     /* places in Q */
    uint64_t first, shard;    /* sample at start; number of its shard */
    uint64_t from, to, asked; /* bytes of its frames in the shard; asked for up to here */
    uint64_t reader;          /* its number for io/ */
} run;

typedef struct lane_state {
    uint64_t begin, end;      /* of the lane in Q */
    uint64_t tails, runs_end; /* places up to which tails were asked for, and runs made */
    uint64_t frames, read;    /* places up to which frames were asked for, and read */
    run *runs;                /* not read yet, in order */
    size_t runs_n, runs_cap;
} lane_state;

struct spk_ahead {
    spk_shard_cache *cache;
    const spk_load_spec *spec;
    lane_state **lanes; /* NULL: not this worker's, or not yet */
    size_t lanes_n;
    uint64_t lane_bytes;
    double sample_bytes, outstanding; /* bytes asked for and not read, by the mean size of samples */
    uint64_t readers;                 /* numbers given to runs */
    size_t runs;                      /* of all lanes: as many shards at most, which must stay open */
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
    for (size_t i = 0; i < a->lanes_n; i++) {
        if (a->lanes[i])
            free(a->lanes[i]->runs);
        free(a->lanes[i]);
    }
    free(a->lanes);
    a->lanes = NULL;
    a->lanes_n = 0;
    a->lane_bytes = 0;
    a->outstanding = 0;
    a->runs = 0;
    spk_shard_cache_forget(a->cache);
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
    a->sample_bytes = spk_shard_cache_sample_bytes(a->cache);
    uint64_t readers = (uint64_t)a->spec->world_size * (a->spec->workers > 0 ? a->spec->workers : 1);
    uint64_t mine = (plan->lanes + readers - 1) / readers, bytes = SPK_AHEAD_BYTES / mine;
    a->lane_bytes = bytes < LANE_LEAST ? LANE_LEAST : bytes < LANE_MOST ? bytes : LANE_MOST;
    spk_net_set_ahead(spk_shard_cache_net(a->cache), a->lane_bytes);
    return SPK_OK;
}

static uint64_t frame_of(const spk_ahead *a, const spk_shard *shard, uint64_t sample)
{
    uint64_t number = 0, within = 0;
    spk_shard_cache_locate(a->cache, sample, &number, &within);
    return spk_shard_frame_of(shard, within);
}

/* How many of the n samples from `first` on, all in this shard, are in frames that follow each other: all but where
 * only some samples are chosen. */
static uint64_t count_together(const spk_ahead *a, const spk_shard *shard, uint64_t first, uint64_t n)
{
    uint64_t k = 1, last = frame_of(a, shard, first);
    if (spk_shard_cache_has_all(a->cache))
        return n;
    for (; k < n; k++) {
        uint64_t frame = frame_of(a, shard, first + k);
        if (frame > last + 1)
            break;
        last = frame;
    }
    return k;
}

/* The samples [first, first + n): tails of their shards, or their frames. */
static spk_status announce(spk_ahead *a, uint64_t first, uint64_t n, bool frames, spk_error *err)
{
    while (n > 0) {
        const spk_shard *shard = NULL;
        uint64_t number = 0, within = 0, from = 0, to = 0;
        uint32_t bytes = 0, content = 0;
        spk_shard_cache_locate(a->cache, first, &number, &within);
        uint64_t left = spk_shard_cache_end(a->cache, number) - first, k = n < left ? n : left;
        if (frames) {
            SPK_TRY(spk_shard_cache_get(a->cache, number, &shard, err));
            k = count_together(a, shard, first, k);
            uint64_t first_frame = spk_shard_frame_of(shard, within), last = frame_of(a, shard, first + k - 1);
            if (a->told_shard == number && first_frame < a->told_frame)
                first_frame = a->told_frame;
            if (first_frame <= last) {
                spk_shard_frame_range(shard, first_frame, &from, &bytes, &content);
                spk_shard_frame_range(shard, last, &to, &bytes, &content);
                spk_source_ahead(spk_shard_source(shard), from, to + bytes, to + bytes, 0);
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
    s->read = s->begin;
    if (output > 0) { /* entered in the middle: the buffer holds samples from further back */
        SPK_TRY(spk_lane_enter(&l, plan, lane, output, err));
        uint64_t least = l.taken;
        for (uint64_t i = 0; i < l.fill; i++)
            least = l.slots[i] < least ? l.slots[i] : least;
        s->read = l.item0 + least < s->end ? l.item0 + least : s->end;
        spk_lane_leave(&l);
    }
    s->tails = s->runs_end = s->frames = s->read;
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

/* The next part of the lane's share of Q: of a span, as far as its frames follow each other. */
static spk_status add_run(spk_ahead *a, const spk_plan *plan, lane_state *s, spk_error *err)
{
    const spk_shard *shard = NULL;
    uint64_t stop = 0, first = span_at(a, plan, s->runs_end, s->end, &stop), number = 0, within = 0, last = 0;
    uint32_t bytes = 0, content = 0;
    SPK_TRY(spk_grow(&s->runs, &s->runs_cap, s->runs_n + 1, sizeof *s->runs, err));
    spk_shard_cache_locate(a->cache, first, &number, &within);
    SPK_TRY(spk_shard_cache_get(a->cache, number, &shard, err));
    stop = s->runs_end + count_together(a, shard, first, stop - s->runs_end);
    run *r = &s->runs[s->runs_n];
    *r = (run){.start = s->runs_end, .stop = stop, .first = first, .shard = number, .reader = ++a->readers};
    spk_shard_frame_range(shard, spk_shard_frame_of(shard, within), &r->from, &bytes, &content);
    spk_shard_frame_range(shard, frame_of(a, shard, first + (stop - r->start) - 1), &last, &bytes, &content);
    r->asked = r->from;
    r->to = last + bytes;
    s->runs_n++;
    a->runs++;
    s->runs_end = stop;
    return SPK_OK;
}

/* The frames of a run up to place. */
static spk_status ask(spk_ahead *a, run *r, uint64_t place, spk_error *err)
{
    const spk_shard *shard = NULL;
    uint64_t number = 0, within = 0, until = 0, n = (place < r->stop ? place : r->stop) - r->start;
    uint32_t bytes = 0, content = 0;
    if (r->asked == r->to)
        return SPK_OK;
    spk_shard_cache_locate(a->cache, r->first + n - 1, &number, &within);
    SPK_TRY(spk_shard_cache_get(a->cache, number, &shard, err));
    spk_shard_frame_range(shard, spk_shard_frame_of(shard, within), &until, &bytes, &content);
    if (until + bytes > r->asked) {
        r->asked = until + bytes;
        spk_source_ahead(spk_shard_source(shard), r->from, r->to, r->asked, r->reader);
    }
    return SPK_OK;
}

/* The lane has read up to place: what it read is no longer outstanding. */
static void set_read(spk_ahead *a, lane_state *s, uint64_t place)
{
    size_t gone = 0;
    if (place <= s->read)
        return;
    uint64_t asked = place < s->frames ? place : s->frames;
    if (asked > s->read)
        a->outstanding -= (double)(asked - s->read) * a->sample_bytes;
    s->read = place;
    while (gone < s->runs_n && s->runs[gone].stop <= place)
        gone++;
    if (gone == 0)
        return;
    s->runs_n -= gone;
    a->runs -= gone;
    memmove(s->runs, s->runs + gone, s->runs_n * sizeof *s->runs);
}

/* Frames up to place, if there is room for their bytes and for the shards that have to be open; *full: there is not. */
static spk_status ask_frames(spk_ahead *a, const spk_plan *plan, lane_state *s, uint64_t place, bool *full,
                             spk_error *err)
{
    uint64_t from = s->frames > s->read ? s->frames : s->read;
    double more = place > from ? (double)(place - from) * a->sample_bytes : 0;
    *full = a->outstanding > 0 && a->outstanding + more > (double)SPK_AHEAD_BYTES;
    if (*full || more <= 0)
        return SPK_OK;
    while (s->runs_end < place && (s->runs_n == 0 || a->runs < spk_shard_cache_max(a->cache) / 4 * 3))
        SPK_TRY(add_run(a, plan, s, err));
    if (s->runs_end < place) {
        *full = true;
        place = s->runs_end;
    }
    for (size_t i = 0; i < s->runs_n && s->runs[i].start < place; i++)
        SPK_TRY(ask(a, &s->runs[i], place, err));
    if (place > from) {
        a->outstanding += (double)(place - from) * a->sample_bytes;
        s->frames = place;
    }
    return SPK_OK;
}

/* Tails of two spans more than there are runs. */
static spk_status announce_tails(spk_ahead *a, const spk_plan *plan, lane_state *s, spk_error *err)
{
    uint64_t stop = s->runs_end;
    for (int i = 0; i < 3 && stop < s->end; i++) {
        uint64_t q = stop, first = span_at(a, plan, q, s->end, &stop);
        if (stop <= s->tails && i > 0)
            continue;
        SPK_TRY(announce(a, first, stop - q, false, err));
        s->tails = stop;
    }
    return SPK_OK;
}

/* Place up to which the lane has read when it has delivered the task's outputs. */
static uint64_t read_behind(const spk_plan *plan, const lane_state *s, const spk_task *t)
{
    return read_before(plan, s, t->output + t->count);
}

static spk_status announce_task(spk_ahead *a, const spk_plan *plan, const spk_task *t, bool frames, bool *full,
                                spk_error *err)
{
    uint64_t echo = plan->spec.echo;
    if (t->pad || t->count == 0)
        return SPK_OK;
    if (!plan->spec.shuffle) {
        uint64_t first = t->output / echo, last = (t->output + t->count - 1) / echo;
        return announce(a, first, last - first + 1, frames, err);
    }
    if (!a->lanes[t->lane])
        SPK_TRY(new_lane(a, plan, t->lane, t->output, err));
    lane_state *s = a->lanes[t->lane];
    SPK_TRY(announce_tails(a, plan, s, err));
    return frames ? ask_frames(a, plan, s, read_behind(plan, s, t), full, err) : SPK_OK;
}

static spk_status announce_all(spk_ahead *a, const spk_plan *plan, const spk_task *tasks, size_t n, bool frames,
                               uint64_t *row, spk_error *err)
{
    bool full = false;
    for (size_t i = 0; i < n && !full; i++) {
        *row = tasks[i].row;
        SPK_TRY(announce_task(a, plan, &tasks[i], frames, &full, err));
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

/* Shards that something is fetched of are not the ones to be closed. */
static void keep_open(spk_ahead *a)
{
    for (size_t i = 0; i < a->lanes_n; i++)
        for (size_t k = 0; a->lanes[i] && k < a->lanes[i]->runs_n; k++)
            spk_shard_cache_touch(a->cache, a->lanes[i]->runs[k].shard);
}

void spk_ahead_row(spk_ahead *a, const spk_plan *plan, const spk_task *task, uint64_t output)
{
    spk_net *net = spk_shard_cache_net(a->cache);
    if (!net)
        return;
    lane_state *s = plan->spec.shuffle && task->lane < a->lanes_n ? a->lanes[task->lane] : NULL;
    if (s && !task->pad) {
        bool full = false;
        if (output == task->output)
            keep_open(a);
        set_read(a, s, read_before(plan, s, output));
        spk_status ignored = ask_frames(a, plan, s, read_behind(plan, s, task), &full, NULL);
        (void)ignored; /* met again, and told, when the row is read */
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
