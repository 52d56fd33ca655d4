/* The samples of an epoch that is not shuffled: one frame after another, no field copied. */
#ifndef SPK_LOAD_SEQUENCE_FEED_H
#define SPK_LOAD_SEQUENCE_FEED_H

#include "load/item.h"

/* Zero-initialise; spk_sequence_feed_clear frees. Confined. */
typedef struct spk_sequence_feed {
    spk_item item;
    spk_item_field fields[SPK_COLUMNS_MAX];
    spk_frame_hold frame;
} spk_sequence_feed;

void spk_sequence_feed_clear(spk_sequence_feed *f);
/* The sample at position x, borrowed until the next call, and which repeat of it. */
SPK_CHECK spk_status spk_sequence_feed_at(spk_sequence_feed *f, spk_item_reader *r, const spk_plan *plan, uint64_t x,
                                          const spk_item **item, uint32_t *repeat, spk_error *err);

#endif
