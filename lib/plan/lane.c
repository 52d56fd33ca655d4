/* The shuffle buffer as arithmetic. Slots fill to k0 = K / 8 first; each step pops the drawn slot and refills it, and
 * while the buffer grows appends one more. From step `drain` on the inputs no longer suffice for both: a refill that is
 * left is made, then the last slot moves into the popped one. Which input sits in which slot before step t <= drain
 * follows from scanning the draws backwards until every slot has been seen: about K ln K of them. */
#include "plan/lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t first_fill(const spk_lane *l)
{
    uint64_t k0 = l->plan->spec.buffer / 8;
    return min_u64(l->n, k0 < 1 ? 1 : k0);
}

/* Inputs taken before step t (t <= drain). */
static uint64_t inputs_before(const spk_lane *l, uint64_t t)
{
    uint64_t k0 = first_fill(l);
    return k0 + t + min_u64(t, l->plan->spec.buffer - k0);
}

static uint64_t fill_before(const spk_lane *l, uint64_t t)
{
    return min_u64(l->plan->spec.buffer, first_fill(l) + t);
}

/* Largest t with inputs_before(t) <= n. */
static uint64_t drain_start(const spk_lane *l)
{
    uint64_t k0 = first_fill(l), k = l->plan->spec.buffer;
    return l->n >= 2 * k - k0 ? l->n - k : (l->n - k0) / 2;
}

static uint64_t pick(const spk_lane *l, uint64_t t, uint64_t fill)
{
    const spk_plan_spec *s = &l->plan->spec;
    return spk_draw_below(s->seed, s->epoch, SPK_DRAW_LANE, (uint32_t)l->lane, t, fill);
}

/* slots[] before step t <= drain. */
static void slots_at(spk_lane *l, uint64_t t)
{
    uint64_t k0 = first_fill(l), fill = fill_before(l, t), seen = 0, grow = l->plan->spec.buffer - k0;

    for (uint64_t i = 0; i < fill; i++)
        l->slots[i] = UINT64_MAX;
    for (uint64_t s = t; s-- > 0 && seen < fill;) {
        uint64_t i = pick(l, s, fill_before(l, s)), taken = inputs_before(l, s);
        if (l->slots[i] == UINT64_MAX) {
            l->slots[i] = taken;
            seen++;
        }
        if (s < grow && l->slots[k0 + s] == UINT64_MAX) { /* the step that appended slot k0 + s */
            l->slots[k0 + s] = taken + 1;
            seen++;
        }
    }
    for (uint64_t i = 0; i < min_u64(k0, fill); i++)
        if (l->slots[i] == UINT64_MAX)
            l->slots[i] = i;
    l->fill = fill;
    l->taken = inputs_before(l, t);
    l->step = t;
}

/* One step on input numbers: the popped slot, and what happens to the buffer. */
static uint64_t advance(spk_lane *l, spk_lane_step *out)
{
    uint64_t i = pick(l, l->step, l->fill);
    out->refill = out->append = SPK_NO_SAMPLE;
    out->move = false;
    if (l->taken < l->n) {
        out->refill = l->taken;
        l->slots[i] = l->taken++;
        if (l->step < l->drain && l->fill < l->plan->spec.buffer) {
            out->append = l->taken;
            out->append_slot = l->fill;
            l->slots[l->fill++] = l->taken++;
        }
    } else {
        out->move = i != l->fill - 1;
        out->move_from = l->fill - 1;
        l->slots[i] = l->slots[l->fill - 1];
        l->fill--;
    }
    l->step++;
    return i;
}

static void measure(spk_lane *l)
{
    uint64_t e = l->plan->spec.echo, start = l->plan->lane_start[l->lane], end = l->plan->lane_start[l->lane + 1];
    uint64_t first = (start + e - 1) / e, last = end / e;
    l->outputs = end - start;
    l->item0 = first;
    l->head = min_u64(first * e - start, l->outputs);
    l->n = last > first ? last - first : 0;
    l->tail = l->outputs - l->head - l->n * e;
}

spk_status spk_lane_enter(spk_lane *lane, const spk_plan *plan, uint64_t number, uint64_t output, spk_error *err)
{
    memset(lane, 0, sizeof *lane);
    lane->plan = plan;
    lane->lane = number;
    lane->output = output;
    measure(lane);
    if (output > lane->outputs)
        return spk_error_set(err, SPK_E_INVALID, "lane %llu has %llu outputs, not %llu", (unsigned long long)number,
                             (unsigned long long)lane->outputs, (unsigned long long)output);
    if (lane->n == 0)
        return SPK_OK;
    uint64_t slots = min_u64(plan->spec.buffer, lane->n);
    lane->slots = malloc((size_t)slots * sizeof *lane->slots);
    if (!lane->slots)
        return spk_error_nomem(err, (size_t)slots * sizeof *lane->slots);
    lane->drain = drain_start(lane);
    uint64_t step = output <= lane->head ? 0 : min_u64((output - lane->head) / plan->spec.echo, lane->n);
    slots_at(lane, min_u64(step, lane->drain));
    spk_lane_step ignored;
    while (lane->step < step)
        advance(lane, &ignored);
    return SPK_OK;
}

uint64_t spk_lane_slot_sample(spk_lane *lane, uint64_t slot)
{
    return spk_plan_sequence(lane->plan, lane->item0 + lane->slots[slot], &lane->hint);
}

typedef struct slot_place {
    uint64_t input, slot;
} slot_place;

static int by_input(const void *a, const void *b)
{
    uint64_t x = ((const slot_place *)a)->input, y = ((const slot_place *)b)->input;
    return x < y ? -1 : x > y;
}

spk_status spk_lane_fill_order(const spk_lane *lane, uint64_t *order, spk_error *err)
{
    if (lane->fill == 0)
        return SPK_OK;
    slot_place *places = malloc((size_t)lane->fill * sizeof *places);
    if (!places)
        return spk_error_nomem(err, (size_t)lane->fill * sizeof *places);
    for (uint64_t i = 0; i < lane->fill; i++)
        places[i] = (slot_place){lane->slots[i], i};
    qsort(places, (size_t)lane->fill, sizeof *places, by_input);
    for (uint64_t i = 0; i < lane->fill; i++)
        order[i] = places[i].slot;
    free(places);
    return SPK_OK;
}

/* A sample outside the buffer: the head's or the tail's. */
static void direct_step(spk_lane *l, uint64_t item, uint64_t repeat, uint64_t end, spk_lane_step *step)
{
    step->sample = spk_plan_sequence(l->plan, item, &l->hint);
    step->slot = SPK_LANE_DIRECT;
    step->repeat = (uint32_t)repeat;
    step->last = l->output + 1 == end;
    step->refill = step->append = SPK_NO_SAMPLE;
}

spk_status spk_lane_next(spk_lane *l, spk_lane_step *step)
{
    uint64_t e = l->plan->spec.echo, body = l->head + l->n * e;

    memset(step, 0, sizeof *step);
    if (l->output >= l->outputs)
        return SPK_END;
    if (l->output < l->head) {
        uint64_t before = l->plan->lane_start[l->lane] % e; /* repeats that an earlier lane delivers */
        direct_step(l, l->plan->lane_start[l->lane] / e, before + l->output, l->head, step);
    } else if (l->output >= body) {
        direct_step(l, l->item0 + l->n, l->output - body, l->outputs, step);
    } else {
        uint64_t repeat = (l->output - l->head) % e;
        step->slot = pick(l, l->step, l->fill);
        step->sample = spk_lane_slot_sample(l, step->slot);
        step->repeat = (uint32_t)repeat;
        step->last = repeat + 1 == e;
        step->refill = step->append = SPK_NO_SAMPLE;
        if (step->last) {
            advance(l, step);
            if (step->refill != SPK_NO_SAMPLE)
                step->refill = spk_plan_sequence(l->plan, l->item0 + step->refill, &l->hint);
            if (step->append != SPK_NO_SAMPLE)
                step->append = spk_plan_sequence(l->plan, l->item0 + step->append, &l->hint);
        }
    }
    l->output++;
    return SPK_OK;
}

void spk_lane_leave(spk_lane *lane)
{
    free(lane->slots);
    lane->slots = NULL;
}
