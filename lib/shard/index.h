/* The shard index: format-spec/shard.md section 5. Structure and builder here; the encoder and the parser are in
 * index_write.c and index_read.c. */
#ifndef SPK_SHARD_INDEX_H
#define SPK_SHARD_INDEX_H

#include <shardpack/error.h>

#include "base/buf.h"

/* How a member says where it came from. */
typedef enum spk_origin {
    SPK_ORIGIN_MADE = 0, /* made by the packer: no original path */
    SPK_ORIGIN_NAME = 1, /* the original path equals "key.field" */
    SPK_ORIGIN_PATH = 2  /* the original path is stored */
} spk_origin;

typedef struct spk_index_member {
    uint32_t field;    /* number in the index's field table */
    uint32_t path_len; /* of the original path; 0 if made by the packer */
    uint64_t offset;   /* of the data in the tar */
    uint64_t size;     /* of the data */
    uint64_t original; /* of the field's bytes as readers give them; size unless it is stored in an encoding */
    uint64_t path;     /* offset in strings, NUL-terminated (also for SPK_ORIGIN_NAME, after parsing) */
} spk_index_member;

typedef struct spk_index_sample {
    uint64_t key;   /* offset in strings, NUL-terminated */
    uint64_t first; /* number of its first member */
    uint32_t members;
    uint32_t key_len;
} spk_index_sample;

typedef struct spk_index_field {
    char *name;
    char *encoding;
} spk_index_field;

/* A parsed index. Members of sample i: members[samples[i].first ...]. frame_first[f] is the first sample of data frame
 * f, frame_first[frames] the number of samples. */
typedef struct spk_index {
    uint64_t frames;
    uint64_t samples_n;
    uint64_t members_n;
    uint64_t tar_bytes;
    uint32_t *frame_first;
    uint8_t (*digests)[16];
    spk_index_field *fields;
    size_t fields_n;
    spk_index_sample *samples;
    spk_index_member *members;
    char *strings;
} spk_index;

/* Parses the index frame (skippable header included), its digest before its list. contents[f] is the decompressed size
 * of data frame f from the seek table: the members must fill each frame exactly, with the end marker in the last. Every
 * key and field is checked by the rules; keys must be in this shard once, members of a sample ordered by field. */
SPK_CHECK spk_status spk_index_parse(spk_index **out, const uint8_t *p, size_t bytes, const uint32_t *contents,
                                     size_t frames, spk_error *err);
void spk_index_free(spk_index *index);

/* Collects one frame's samples while it is built (one per worker), in the order they are written. */
typedef struct spk_index_part spk_index_part;
SPK_CHECK spk_status spk_index_part_new(spk_index_part **out, spk_error *err);
void spk_index_part_reset(spk_index_part *part);
SPK_CHECK spk_status spk_index_part_sample(spk_index_part *part, const char *key, spk_error *err);
/* A member of the sample begun last; path NULL if made by the packer. size: of the stored data; original: of what it
 * stands for, the same for "identity". */
SPK_CHECK spk_status spk_index_part_member(spk_index_part *part, const char *field, const char *encoding,
                                           const char *path, uint64_t size, uint64_t original, spk_error *err);
uint64_t spk_index_part_samples(const spk_index_part *part);
void spk_index_part_free(spk_index_part *part);

/* The whole shard's index while it is written. */
typedef struct spk_index_writer spk_index_writer;
SPK_CHECK spk_status spk_index_writer_new(spk_index_writer **out, spk_error *err);
/* Appends a finished frame: its samples and its digest. The part is only read. */
SPK_CHECK spk_status spk_index_writer_add(spk_index_writer *w, const spk_index_part *part, const uint8_t digest[16],
                                          spk_error *err);
/* Appends the encoded index frame to out. */
SPK_CHECK spk_status spk_index_writer_finish(spk_index_writer *w, uint64_t tar_bytes, spk_buf *out, spk_error *err);
void spk_index_writer_free(spk_index_writer *w);

#endif
