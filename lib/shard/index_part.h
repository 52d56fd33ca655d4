/* Inside of spk_index_part, shared by index_part.c, which fills it, and index_write.c, which reads it. */
#ifndef SPK_SHARD_INDEX_PART_H
#define SPK_SHARD_INDEX_PART_H

#include "shard/fields.h"

typedef struct spk_part_sample {
    size_t key; /* offset in text, NUL-terminated */
    size_t first;
    uint32_t members;
} spk_part_sample;

typedef struct spk_part_member {
    uint64_t size, original;
    size_t path; /* offset in text, NUL-terminated; for SPK_ORIGIN_PATH only */
    uint32_t field;
    spk_origin origin;
} spk_part_member;

struct spk_index_part {
    spk_fields fields;
    spk_buf text;
    spk_part_sample *samples;
    size_t samples_n, samples_cap;
    spk_part_member *members;
    size_t members_n, members_cap;
};

/* NULL if an original path may be stored, else the reason. */
const char *spk_path_problem(const char *path, size_t len);

#endif
