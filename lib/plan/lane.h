/* One lane of a shuffled epoch: a run of Q passed through a shuffle buffer of K slots. Pure arithmetic.
 *
 * A lane of L outputs at place S of E's multiset (S, L in repeats, e = echo) starts with the repeats that its first
 * sample has left (head), ends with those of its last sample (tail); the n whole samples between go through the buffer,
 * each delivered e times running. The caller keeps data in slots of its own and follows the steps. */
#ifndef SPK_PLAN_LANE_H
#define SPK_PLAN_LANE_H

#include "plan/plan.h"

#define SPK_NO_SAMPLE UINT64_MAX

/* A lane at an output. Confined. */
typedef struct spk_lane {
    const spk_plan *plan;
    uint64_t lane, output, outputs; /* output: the next one */
    uint64_t head, tail, n;         /* repeats of the head and tail sample, whole samples between */
    uint64_t item0;                 /* place in Q of the first whole sample */
    uint64_t step, drain;           /* next step of the buffer; first step of the drain */
    uint64_t taken;                 /* inputs taken so far */
    uint64_t fill;                  /* slots in use */
    uint64_t *slots;                /* input number held by each slot */
    uint64_t hint;
} spk_lane;

/* What one output needs. The sample to deliver is in slot `slot` (SPK_LANE_DIRECT: it is not buffered: read `sample`
 * and keep it for its other repeats). After its last repeat (last set): if refill is a sample, it goes into `slot`;
 * else if move is set, slot `move_from` moves into `slot`; then, if append is a sample, it goes into slot
 * `append_slot`. */
#define SPK_LANE_DIRECT UINT64_MAX
typedef struct spk_lane_step {
    uint64_t sample;
    uint64_t slot;
    uint32_t repeat; /* 0 to echo-1: which delivery of the sample this is */
    bool last;
    bool move;
    uint64_t move_from;
    uint64_t refill;
    uint64_t append;
    uint64_t append_slot;
} spk_lane_step;

/* Enters a lane before `output` (0 to its size): O(K log K) arithmetic. The caller then fills slots 0 to fill-1 with
 * spk_lane_slot_sample, best in the order of spk_lane_fill_order. */
SPK_CHECK spk_status spk_lane_enter(spk_lane *lane, const spk_plan *plan, uint64_t number, uint64_t output,
                                    spk_error *err);
uint64_t spk_lane_slot_sample(spk_lane *lane, uint64_t slot);
/* Slots in the order of their place in Q (so that shards are read forward); order has room for lane->fill entries. */
SPK_CHECK spk_status spk_lane_fill_order(const spk_lane *lane, uint64_t *order, spk_error *err);
/* The next output; SPK_END behind the last. */
SPK_CHECK spk_status spk_lane_next(spk_lane *lane, spk_lane_step *step);
void spk_lane_leave(spk_lane *lane);

#endif
