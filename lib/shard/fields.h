/* A table of (field, encoding) pairs in order of first use, with constant-time look-up; used while writing an index. */
#ifndef SPK_SHARD_FIELDS_H
#define SPK_SHARD_FIELDS_H

#include "shard/index.h"

/* Zero-initialise; free with spk_fields_free. */
typedef struct spk_fields {
    spk_index_field *items;
    size_t n;
    size_t cap;
    uint32_t last;   /* number given last */
    uint32_t *slots; /* open addressing: number + 1, 0 if empty */
    size_t slots_n;  /* power of two */
} spk_fields;

/* Number of the pair, added if it is new. */
SPK_CHECK spk_status spk_fields_number(spk_fields *f, const char *name, const char *encoding, uint32_t *out,
                                       spk_error *err);
void spk_fields_reset(spk_fields *f);
void spk_fields_free(spk_fields *f);

/* NULL if an encoding's name is well formed (1 to 63 of a-z 0-9 _ -), else the reason. */
const char *spk_encoding_problem(const char *encoding, size_t len);

#endif
