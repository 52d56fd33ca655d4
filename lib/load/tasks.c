/* A rank's batch is cut where the plan's chunks begin; each piece is a task of the worker that owns its lane.
 *
 * Lanes are dealt to workers in the order in which the rank's batches need them, (group * chunks of a batch + chunk)
 * mod workers, so that all workers get equal parts whatever the number of ranks. Without shuffling the chunks of a
 * batch are dealt in runs, so that a frame is mostly decoded by one worker; a batch with fewer chunks than workers goes
 * on with the next worker where the batch before it stopped. */
#include "load/tasks.h"

#include <stdlib.h>

#include "base/buf.h"

#define SHARED_VISITS_MAX (1u << 24)

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t global_batch(const spk_load_spec *spec)
{
    return (uint64_t)spec->batch_size * spec->world_size;
}

uint64_t spk_batches_left(const spk_load_spec *spec, uint64_t from)
{
    uint64_t left = from < spec->total ? spec->total - from : 0, g = global_batch(spec);
    return left / g + (spec->tail != SPK_TAIL_DROP && left % g != 0);
}

spk_batch_range spk_batch_part(const spk_load_spec *spec, uint64_t x)
{
    spk_batch_range part = {.first = x + (uint64_t)spec->rank * spec->batch_size, .rows = spec->batch_size};
    if (spec->tail == SPK_TAIL_KEEP)
        part.rows = part.first < spec->total ? min_u64(part.rows, spec->total - part.first) : 0;
    return part;
}

void spk_rank_chunks(const spk_load_spec *spec, uint64_t *first, uint64_t *last)
{
    const spk_plan_spec *p = &spec->plan;
    uint64_t start = (uint64_t)spec->rank * spec->batch_size;
    *first = 0;
    *last = (p->global_batch + p->chunk - 1) / p->chunk;
    if (p->global_batch != global_batch(spec))
        return;
    *first = start / p->chunk;
    *last = (start + spec->batch_size + p->chunk - 1) / p->chunk;
}

uint32_t spk_workers_for(const spk_load_spec *spec, uint32_t quota)
{
    uint64_t first = 0, last = 0;
    if (!spec->plan.shuffle)
        return quota;
    spk_rank_chunks(spec, &first, &last);
    uint64_t lanes = (last - first) * spec->plan.groups, most = (lanes + quota - 1) / quota;
    return (uint32_t)((lanes + most - 1) / most);
}

/* Number of the chunk that holds position x, counted from the start of the epoch. */
static uint64_t chunk_of(const spk_plan *plan, uint64_t x)
{
    return x / plan->spec.global_batch * plan->chunks + x % plan->spec.global_batch / plan->spec.chunk;
}

/* First position behind that chunk. */
static uint64_t chunk_end(const spk_plan *plan, uint64_t x)
{
    uint64_t g = plan->spec.global_batch, start = x / g * g, j = x % g / plan->spec.chunk;
    return start + min_u64((j + 1) * plan->spec.chunk, g);
}

uint32_t spk_worker_of_lane(const spk_load_spec *spec, uint64_t group, uint64_t chunk)
{
    uint64_t workers = spec->workers > 0 ? spec->workers : 1;
    uint64_t per_batch = (spec->batch_size + (uint64_t)spec->plan.chunk - 1) / spec->plan.chunk;
    return (uint32_t)((group * per_batch + chunk) % workers);
}

uint32_t spk_worker_of(const spk_load_spec *spec, const spk_plan *plan, spk_batch_range batch, uint64_t lane,
                       uint64_t x)
{
    uint64_t workers = spec->workers > 0 ? spec->workers : 1;
    if (plan->spec.shuffle)
        return spk_worker_of_lane(spec, lane / plan->chunks, lane % plan->chunks);
    uint64_t first = chunk_of(plan, batch.first), i = chunk_of(plan, x) - first;
    uint64_t n = chunk_of(plan, batch.first + batch.rows - 1) - first + 1;
    if (n >= workers)
        return (uint32_t)(i * workers / n);
    return (uint32_t)((batch.first / global_batch(spec) * n + i) % workers);
}

/* Outputs that a lane delivers before position x: those of its chunk in the whole global batches, and its part of the
 * one that x lies in. */
static uint64_t outputs_before(const spk_plan *plan, uint64_t lane, uint64_t x)
{
    uint64_t a = lane / plan->chunks, j = lane % plan->chunks, m = plan->spec.groups, c = spk_plan_chunk_size(plan, j);
    uint64_t full = x / plan->spec.global_batch, rest = x % plan->spec.global_batch, before = j * plan->spec.chunk;
    uint64_t n = (full > a ? (full - a + m - 1) / m : 0) * c;
    if (full % m == a && rest > before)
        n += min_u64(rest - before, c);
    return n;
}

/* The lane and output of position x. Behind the end: the lane's last output, SPK_ROW_NONE if it has none. */
static void find_output(const spk_load_spec *spec, const spk_plan *plan, uint64_t x, spk_task *t)
{
    t->pad = x >= spec->total;
    if (!plan->spec.shuffle) {
        t->lane = 0;
        t->output = t->pad ? spec->total - 1 : x;
        return;
    }
    spk_plan_locate(plan, x, &t->lane, &t->output);
    if (t->pad)
        t->output = outputs_before(plan, t->lane, spec->total) - 1;
}

spk_status spk_tasks_of(const spk_load_spec *spec, const spk_plan *plan, spk_batch_range batch, uint32_t worker,
                        spk_task **tasks, size_t *n, size_t *cap, spk_error *err)
{
    *n = 0;
    for (uint64_t row = 0; row < batch.rows;) {
        uint64_t x = batch.first + row, end = min_u64(chunk_end(plan, x), batch.first + batch.rows);
        if (x < spec->total)
            end = min_u64(end, spec->total);
        spk_task t = {.row = (uint32_t)row, .count = (uint32_t)(end - x)};
        find_output(spec, plan, x, &t);
        if (spk_worker_of(spec, plan, batch, t.lane, x) == worker) {
            SPK_TRY(spk_grow(tasks, cap, *n + 1, sizeof **tasks, err));
            (*tasks)[(*n)++] = t;
        }
        row += t.count;
    }
    return SPK_OK;
}

enum { READ_HERE = 1, READ_ELSEWHERE = 2 };

/* Marks who reads which lane in the global batch at x; returns the chunks looked at. */
static uint64_t mark_batch(const spk_load_spec *spec, const spk_plan *plan, uint64_t x, uint8_t *seen)
{
    uint64_t visits = 0;
    for (uint64_t r = 0; r < spec->world_size; r++) {
        uint64_t at = x + r * spec->batch_size, end = min_u64(at + spec->batch_size, spec->total);
        while (at < end) {
            uint64_t lane = 0, output = 0;
            spk_plan_locate(plan, at, &lane, &output);
            seen[lane] |= r == spec->rank ? READ_HERE : READ_ELSEWHERE;
            at = chunk_end(plan, at);
            visits++;
        }
    }
    return visits;
}

/* Batches fall on the plan's chunks in a pattern that repeats after m * G positions; it is walked through, as far as a
 * bounded number of steps goes: the result is a figure to report. */
uint64_t spk_shared_lanes(const spk_load_spec *spec, const spk_plan *plan, uint64_t x)
{
    if (!plan->spec.shuffle || spec->world_size == 1)
        return 0;
    uint8_t *seen = calloc((size_t)plan->lanes, 1);
    if (!seen)
        return 0;
    uint64_t g = global_batch(spec), period = plan->spec.groups * plan->spec.global_batch, visits = 0, shared = 0;
    uint64_t start = x % period;
    do {
        visits += mark_batch(spec, plan, x, seen);
        x += g;
    } while (x < spec->total && visits < SHARED_VISITS_MAX && x % period != start);
    for (uint64_t i = 0; i < plan->lanes; i++)
        shared += seen[i] == (READ_HERE | READ_ELSEWHERE);
    free(seen);
    return shared;
}
