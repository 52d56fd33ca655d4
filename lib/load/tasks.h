/* Which rows of a batch a worker fills, and from where: pure arithmetic over the plan. */
#ifndef SPK_LOAD_TASKS_H
#define SPK_LOAD_TASKS_H

#include "load/spec.h"

/* Rows [row, row + count) come from outputs [output, output + count) of a lane (without shuffling: lane is 0 and output
 * is the position). pad: the rows are padding of that lane, all to be filled with its last output. */
typedef struct spk_task {
    uint64_t lane, output;
    uint32_t row, count;
    bool pad;
} spk_task;

/* Global batches of an epoch when it is begun at position `from`: G' = world_size x batch_size positions each. */
uint64_t spk_batches_left(const spk_load_spec *spec, uint64_t from);
/* The chunks [first, last) of each global batch of the plan that this rank reads: all of them where its batches wander
 * over them. */
void spk_rank_chunks(const spk_load_spec *spec, uint64_t *first, uint64_t *last);
/* How many of `quota` workers (at least one) are of use: no more than there are lanes, and of the numbers that leave
 * the busiest worker as many lanes the smallest, which is as fast. */
uint32_t spk_workers_for(const spk_load_spec *spec, uint32_t quota);
/* This rank's part of the global batch that begins at position x. */
spk_batch_range spk_batch_part(const spk_load_spec *spec, uint64_t x);
/* Worker that owns lane (group, chunk). */
uint32_t spk_worker_of_lane(const spk_load_spec *spec, uint64_t group, uint64_t chunk);
/* Worker that owns a lane, or a chunk of positions without shuffling. */
uint32_t spk_worker_of(const spk_load_spec *spec, const spk_plan *plan, spk_batch_range batch, uint64_t lane,
                       uint64_t x);
/* The tasks of one worker in a batch, rows ascending; *tasks is grown with spk_grow. */
SPK_CHECK spk_status spk_tasks_of(const spk_load_spec *spec, const spk_plan *plan, spk_batch_range batch,
                                  uint32_t worker, spk_task **tasks, size_t *n, size_t *cap, spk_error *err);
/* Lanes that this rank reads and another rank reads too, when continuing at position x. */
uint64_t spk_shared_lanes(const spk_load_spec *spec, const spk_plan *plan, uint64_t x);

#endif
