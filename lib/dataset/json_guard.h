/* A look at JSON text before it is given to the parser, so that hostile text cannot make it allocate without bound. */
#ifndef SPK_DATASET_JSON_GUARD_H
#define SPK_DATASET_JSON_GUARD_H

#include <shardpack/error.h>

#define SPK_JSON_DEPTH_MAX 32u
#define SPK_JSON_VALUES_MAX (1u << 21)     /* a parsed value takes up to about 100 bytes */
#define SPK_JSON_CONTAINERS_MAX (1u << 17) /* an object or array takes up to about 400 bytes */

/* LIMIT with the numbers if n bytes of text nest deeper or hold more than that. Does not check the grammar. */
SPK_CHECK spk_status spk_json_guard(const char *text, size_t n, spk_error *err);

#endif
