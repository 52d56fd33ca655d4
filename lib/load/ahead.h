/* What a worker will read soon, told to remote sources beforehand, so that requests are under way while it decodes: the
 * tails of the shards that its lanes come to, then the frames of each lane's runs, so many bytes at a time. Does
 * nothing for local datasets. */
#ifndef SPK_LOAD_AHEAD_H
#define SPK_LOAD_AHEAD_H

#include "load/shard_cache.h"
#include "load/tasks.h"
#include "plan/plan.h"

#define SPK_AHEAD_BYTES ((uint64_t)64 << 20) /* fetched ahead by a worker, for all of its lanes */
/* For its memory: a request in flight for each lane (io/stream.c), and buffers kept (io/window.c). */
#define SPK_AHEAD_WINDOW ((uint64_t)2 << 20)
#define SPK_AHEAD_SPARE ((uint64_t)32 << 20)

typedef struct spk_ahead spk_ahead;

/* cache and spec are borrowed. */
SPK_CHECK spk_status spk_ahead_new(spk_ahead **out, spk_shard_cache *cache, const spk_load_spec *spec, spk_error *err);
void spk_ahead_free(spk_ahead *a);
/* Another plan: nothing is announced yet. */
void spk_ahead_reset(spk_ahead *a);
/* Before the tasks are run. Waits for the tails that they need at once, all together; *row is the first row of the task
 * whose shard could not be opened. */
SPK_CHECK spk_status spk_ahead_begin(spk_ahead *a, const spk_plan *plan, const spk_task *tasks, size_t n, uint64_t *row,
                                     spk_error *err);
/* For tasks that come later, in their order: tails only, or (tails_are_there) frames as well, as long as there is room
 * for their bytes. Never fails, seldom waits. */
void spk_ahead_later(spk_ahead *a, const spk_plan *plan, const spk_task *tasks, size_t n, bool tails_are_there);
/* Before a row: what was read before it makes room, and transfers go on now and then. */
void spk_ahead_row(spk_ahead *a, const spk_plan *plan, const spk_task *task, uint64_t output);
/* Nothing to do: lets transfers go on until fd is readable, or none is left. */
void spk_ahead_idle(spk_ahead *a, int fd);

#endif
