/* The plan: which sample goes where. A pure function of the input and the settled options, never of jobs, time or
 * content; everything else (frames, offsets, names) follows from it. Read-only once made, so shared by the workers. */
#ifndef SPK_PACK_PLAN_H
#define SPK_PACK_PLAN_H

#include <shardpack/pack.h>
#include <stdbool.h>

#include "pack/input.h"

/* A run of order[]: samples [first, first + samples). 24 bytes. */
typedef struct spk_pack_plan_shard {
    uint64_t payload; /* bytes of its source files */
    uint32_t first;
    uint32_t samples;
    uint32_t split;
} spk_pack_plan_shard;

typedef struct spk_pack_plan_split {
    uint32_t first_shard;
    uint32_t shards;
    uint32_t first; /* in order[] */
    uint32_t samples;
    uint64_t payload;
} spk_pack_plan_split;

/* Samples [first, first + samples) of order[], cut on the fly by spk_pack_plan_frame_at. */
typedef struct spk_pack_plan_frame {
    uint32_t first;
    uint32_t samples;
    uint64_t tar_bytes; /* without the end marker */
    uint64_t payload;
    int level;
    bool last; /* of its shard */
} spk_pack_plan_frame;

/* Sizes of a sample, kept because shuffled passes over samples, files and names would wait for memory at each step. */
typedef struct spk_pack_plan_size {
    uint32_t payload; /* bytes of its source files; UINT32_MAX: the sample fits no frame */
    uint32_t packed;  /* of them in fields that hardly shrink */
    uint32_t blocks;  /* of tar */
    uint32_t list;    /* bytes in the shard's index, roughly */
} spk_pack_plan_size;

typedef struct spk_pack_plan {
    const spk_input *in;       /* borrowed */
    const spk_pack_options *o; /* borrowed, settled */
    spk_pack_plan_size *sizes; /* by number of sample */
    uint32_t *order;           /* numbers of samples, split after split */
    uint32_t order_n;
    spk_pack_plan_split *splits; /* one if the options name none */
    size_t splits_n;
    spk_pack_plan_shard *shards;
    size_t shards_n, shards_cap;
    const char **fields; /* those of the input, then "cls" and "json" where the input lacks them; names borrowed */
    size_t fields_n;
    bool *packed;          /* per field: bytes hardly shrink */
    bool *image;           /* per field: its kind is "image" */
    uint32_t cls, json;    /* their numbers in fields */
    uint64_t files;        /* source files of all planned samples */
    uint64_t payload;      /* their bytes */
    uint64_t largest_file; /* bytes */
} spk_pack_plan;

/* plan must be zeroed; freed by the caller with spk_pack_plan_free, also after errors. src is for messages. LIMIT: a
 * sample or, with a single frame, a shard that does not fit into a frame; more shards than a table holds. INVALID: a
 * split without samples. */
SPK_CHECK spk_status spk_pack_plan_make(spk_pack_plan *plan, const spk_input *in, const spk_pack_options *o,
                                        const char *src, spk_error *err);
void spk_pack_plan_free(spk_pack_plan *plan);

/* The frame of shard s that begins at order[from]. */
void spk_pack_plan_frame_at(const spk_pack_plan *plan, const spk_pack_plan_shard *s, uint32_t from,
                            spk_pack_plan_frame *out);

/* A member of a sample, ready to be written. */
typedef struct spk_pack_plan_member {
    uint32_t field;             /* number in plan->fields */
    const spk_input_file *file; /* NULL: made by the packer, its text follows */
    const char *text;
    uint64_t size;
} spk_pack_plan_member;

/* Walks a sample's members in the order of their field names. */
typedef struct spk_pack_plan_members {
    const spk_pack_plan *plan;
    const spk_input_sample *sample;
    uint32_t next_file;
    bool cls_due, json_due;
    char label[16];
} spk_pack_plan_members;
void spk_pack_plan_members_begin(spk_pack_plan_members *m, const spk_pack_plan *plan, uint32_t sample);
/* False behind the last. A label's text lives in *m. */
bool spk_pack_plan_members_next(spk_pack_plan_members *m, spk_pack_plan_member *out);

/* Digests of all that decides the bytes, part by part, and of the files' time stamps, which only a resumed run
 * compares. plan covers options, versions and input. */
typedef struct spk_pack_plan_digest {
    uint8_t options[32];
    uint8_t versions[32];       /* without a check those of the image libraries do not count */
    uint8_t versions_other[32]; /* if it were the other way round */
    uint8_t input[32];
    uint8_t stamps[32];
    uint8_t plan[32];
} spk_pack_plan_digest;
SPK_CHECK spk_status spk_pack_plan_digest_make(spk_pack_plan_digest *out, const spk_input *in,
                                               const spk_pack_options *o, spk_error *err);

#endif
