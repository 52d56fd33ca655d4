/* Typed access to parsed JSON with messages that name the key: shared by manifest_read.c and manifest_parts.c. */
#ifndef SPK_DATASET_MANIFEST_JSON_H
#define SPK_DATASET_MANIFEST_JSON_H

#include <jansson.h>

#include "dataset/manifest.h"

/* An object and the text that stands before its keys in messages, such as "table." (empty for the root). */
typedef struct spk_json_at {
    const json_t *object;
    const char *where;
} spk_json_at;

/* Member key of the wanted type; FORMAT if missing or of another type. Borrowed. */
SPK_CHECK spk_status spk_json_get(const spk_json_at *at, const char *key, json_type type, const json_t **out,
                                  spk_error *err);
/* An integer from 0 to 2^53. */
SPK_CHECK spk_status spk_json_number(const spk_json_at *at, const char *key, uint64_t *out, spk_error *err);
/* The same for a value met elsewhere; name as it appears in the message. */
SPK_CHECK spk_status spk_json_integer(const json_t *value, const char *name, uint64_t *out, spk_error *err);
/* A string without control characters; borrowed, and copied by spk_json_copy. */
SPK_CHECK spk_status spk_json_text(const spk_json_at *at, const char *key, const char **out, spk_error *err);
SPK_CHECK spk_status spk_json_copy(const spk_json_at *at, const char *key, char **out, spk_error *err);
/* strdup with an error record. */
SPK_CHECK spk_status spk_text_copy(char **out, const char *text, spk_error *err);
/* True if a control character is in it. */
bool spk_text_has_control(const char *text, size_t n);
/* "a string", "an array" ... */
const char *spk_json_type_name(const json_t *value);

/* manifest_parts.c: the arrays and the image statistics. */
SPK_CHECK spk_status spk_manifest_read_fields(spk_manifest *m, const spk_json_at *root, spk_error *err);
SPK_CHECK spk_status spk_manifest_read_classes(spk_manifest *m, const spk_json_at *root, spk_error *err);
SPK_CHECK spk_status spk_manifest_read_mirrors(spk_manifest *m, const spk_json_at *root, spk_error *err);
SPK_CHECK spk_status spk_manifest_read_images(spk_manifest *m, const spk_json_at *root, spk_error *err);

#endif
