/* One row of a batch: every column from one sample. */
#ifndef SPK_LOAD_FILL_H
#define SPK_LOAD_FILL_H

#include "load/fill_image.h"
#include "load/item.h"

/* Where rows go, and what they are made with. Everything is borrowed. */
typedef struct spk_fill {
    const spk_load_spec *spec;
    const spk_needs *needs;
    spk_fill_images *images;
    spk_run_counters *counters;
    uint8_t *slot;
    uint8_t *arena; /* NULL without variable columns */
    spk_slot_control *control;
    spk_error *first_substitution; /* set by the first substituted row while its code is SPK_OK */
    uint64_t substituted_row;      /* that row */
} spk_fill;

/* Writes every byte of the row in all columns, and its state. shard: file name, for messages. pad: the row is padding.
 * A content error is returned, or with on_error = substitute makes a substituted row (a padded one of zeros if pad). */
SPK_CHECK spk_status spk_fill_row(spk_fill *f, uint64_t row, const spk_item *item, const spk_draw_key *key,
                                  const char *shard, bool pad, spk_error *err);
/* A padded row that repeats no sample: zeros, index -1, empty key. */
void spk_fill_nothing(spk_fill *f, uint64_t row);
/* The same bytes as another row of this batch, a padded one. */
void spk_fill_copy(spk_fill *f, uint64_t row, uint64_t from);

/* A label: decimal digits, perhaps with a sign, perhaps with white space around. */
SPK_CHECK bool spk_label_parse(const uint8_t *p, size_t n, int64_t *out);

#endif
