/* A dataset as the source of a packer: its members, frame by frame, as files. Confined; the dataset is only read. */
#ifndef SPK_PACK_PACKED_H
#define SPK_PACK_PACKED_H

#include <shardpack/dataset.h>
#include <stdbool.h>

#include "pack/tally.h"

typedef struct spk_packed spk_packed;

/* src is for messages, borrowed like the dataset. */
SPK_CHECK spk_status spk_packed_new(spk_packed **out, const spk_dataset *d, const char *src, spk_error *err);
void spk_packed_free(spk_packed *p);

/* Reads and checks a frame, its digest included; the next calls are for samples in it. */
SPK_CHECK spk_status spk_packed_hold(spk_packed *p, uint64_t shard, uint64_t frame, spk_error *err);

/* A member's bytes, borrowed until the next call. */
typedef struct spk_packed_field {
    const uint8_t *data;
    size_t n;
    spk_form form; /* of the bytes: IDENTITY; or PIXELS, of a file that is gone, with `stored` */
} spk_packed_field;
/* Member number `member` of sample `number` of the dataset. Its file is made anew; with `stored`, one that differs from
 * the file packed is not. */
SPK_CHECK spk_status spk_packed_get(spk_packed *p, uint64_t number, uint32_t member, bool stored, spk_packed_field *out,
                                    spk_error *err);

#endif
