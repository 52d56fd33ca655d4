/* Samples as rows need them: from a number in the dataset to the bytes of the fields that columns ask for. */
#ifndef SPK_LOAD_ITEM_H
#define SPK_LOAD_ITEM_H

#include "base/buf.h"
#include "load/shard_cache.h"
#include "plan/lane.h"

#define SPK_NO_NEED UINT32_MAX

/* The fields that the columns of a spec need, each once. An empty name is the first image field that a sample has. */
typedef struct spk_needs {
    uint32_t n;
    const char *names[SPK_COLUMNS_MAX];
    uint32_t of_column[SPK_COLUMNS_MAX]; /* need of each column, SPK_NO_NEED for those without a field */
} spk_needs;
/* Names are borrowed from spec. */
void spk_needs_of(spk_needs *out, const spk_load_spec *spec);

typedef struct spk_item_field {
    const uint8_t *data; /* NULL: the sample does not have it */
    size_t size;
    const char *name;  /* for messages */
    bool stored;       /* data is not the field's but its stored form, jpeg_coefficients */
    uint64_t original; /* bytes of the field itself */
} spk_item_field;

/* A sample, or why it cannot be had. Zero-initialise but for fields, which has room for every need; spk_item_clear
 * frees what it owns. */
typedef struct spk_item {
    uint64_t sample; /* its number in the plan; meaningless while !held */
    uint64_t index;  /* in the dataset: the same unless only some samples are chosen */
    bool held;
    spk_error *bad; /* content error: its frame is damaged. The fields are then all missing */
    const char *key;
    size_t key_len;
    spk_item_field *fields;
    uint8_t *block; /* copies of the key and, unless they are borrowed, of the fields */
    size_t cap;
} spk_item;
void spk_item_clear(spk_item *item);

/* One decompressed frame. Zero-initialise; spk_frame_hold_clear frees. */
typedef struct spk_frame_hold {
    bool held;
    uint64_t shard, frame, tar_offset; /* of the frame's first byte */
    uint8_t *tar;
    size_t cap;
    spk_error *bad; /* it is damaged; so is every sample in it */
} spk_frame_hold;
void spk_frame_hold_clear(spk_frame_hold *hold);

/* What reading needs, shared by all feeds of an engine. Confined. */
typedef struct spk_item_reader {
    spk_shard_cache *cache;
    spk_needs needs;
    spk_frame_reader *decoder;
    spk_buf scratch; /* compressed bytes */
    uint64_t *order; /* scratch of lane_feed.c */
    size_t order_cap;
    spk_run_counters *counters;
    spk_activity *activity;
} spk_item_reader;

/* Reads a sample, by its number in the plan, through a held frame. copy: fields, too, come into the item's own block;
 * else they are borrowed from the frame, valid until the next read through it. A damaged frame is no error here but of
 * the item (bad); a shard that cannot be opened or read is. */
SPK_CHECK spk_status spk_item_read(spk_item_reader *r, spk_frame_hold *hold, uint64_t number, bool copy, spk_item *item,
                                   spk_error *err);
/* Room for n bytes in a block whose content is not kept: the block itself unless it is too small, or larger than it
 * should be by more than an eighth and slack. */
SPK_CHECK spk_status spk_block_fit(uint8_t **block, size_t *cap, size_t n, size_t slack, spk_error *err);

/* Activity text, at most as long as fits: the pieces one after another; counts a step. */
void spk_activity_set(spk_activity *a, const char *one, const char *two, const char *three);

#endif
