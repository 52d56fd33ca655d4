/* manifest.json: format-spec/dataset.md section 3. Read by manifest_read.c, written by manifest_write.c (jansson). */
#ifndef SPK_DATASET_MANIFEST_H
#define SPK_DATASET_MANIFEST_H

#include <shardpack/error.h>
#include <stdbool.h>

#include "base/buf.h"

#define SPK_MANIFEST_NAME "manifest.json"
#define SPK_MANIFEST_MIRRORS 16u
#define SPK_MANIFEST_MAX (64u << 20) /* bytes */

/* Image sizes seen while packing; bucket b counts images whose longer side s has 2^(b-1) < s <= 2^b. */
#define SPK_IMAGE_BUCKETS 18
typedef struct spk_image_stat {
    uint64_t count; /* 0: unknown (packed without a check) */
    uint64_t jpeg, png, other;
    uint64_t min_width, max_width, sum_width;
    uint64_t min_height, max_height, sum_height;
    uint64_t longer_side[SPK_IMAGE_BUCKETS];
} spk_image_stat;

/* Members of a field in one encoding. */
typedef struct spk_manifest_stored {
    char *encoding;
    uint64_t samples;
    uint64_t bytes;    /* as stored */
    uint64_t original; /* as readers give them */
} spk_manifest_stored;

typedef struct spk_manifest_field {
    char *name;
    char *kind; /* image, label, text, json, bytes */
    uint64_t samples;
    spk_manifest_stored *stored; /* ascending by encoding; none: all are stored as they are */
    size_t stored_n;
} spk_manifest_field;

/* All of it. Strings are owned by the manifest. */
typedef struct spk_manifest {
    char fingerprint[65];
    uint64_t samples, shards, frames, bytes, tar_bytes, payload_bytes;
    char *table_name; /* file name of the shard table, beside the manifest */
    uint64_t table_bytes;
    uint8_t table_sha256[32];
    bool shuffled;
    spk_manifest_field *fields;
    size_t fields_n;
    char **classes; /* already percent-escaped */
    size_t classes_n;
    char **mirrors; /* base URLs that hold the same files */
    size_t mirrors_n;
    spk_image_stat images;
    char *pack; /* the "pack" object as compact JSON text: options, versions, "plan" hash; may be NULL */
} spk_manifest;

/* Appends the JSON text, ending with a newline; the same struct gives the same bytes. LIMIT, FORMAT, INVALID for what
 * spk_manifest_parse would refuse. */
SPK_CHECK spk_status spk_manifest_encode(const spk_manifest *m, spk_buf *out, spk_error *err);
/* Parses and checks text; m must be zeroed and is freed by the caller with spk_manifest_free, also after errors. */
SPK_CHECK spk_status spk_manifest_parse(spk_manifest *m, const char *text, size_t n, spk_error *err);
void spk_manifest_free(spk_manifest *m);

#endif
