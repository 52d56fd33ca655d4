/* A lane with its data: the buffer's samples in memory, shards read forward. */
#ifndef SPK_LOAD_LANE_FEED_H
#define SPK_LOAD_LANE_FEED_H

#include "load/item.h"

/* Confined. */
typedef struct spk_lane_feed spk_lane_feed;

SPK_CHECK spk_status spk_lane_feed_new(spk_lane_feed **out, spk_error *err);
void spk_lane_feed_free(spk_lane_feed *f);
/* Forgets the lane and its plan; memory is kept for the next one. */
void spk_lane_feed_leave(spk_lane_feed *f);
/* Output `output` (below its size) of a lane: the sample, borrowed until the next call, and which repeat of it. Cheap
 * if output is the next one or the last one again; a short way further on the outputs between are passed over; else the
 * lane is entered anew and its buffer read. After an error the next call enters anew. */
SPK_CHECK spk_status spk_lane_feed_at(spk_lane_feed *f, spk_item_reader *r, const spk_plan *plan, uint64_t lane,
                                      uint64_t output, const spk_item **item, uint32_t *repeat, spk_error *err);

#endif
