/* Reads lists of samples row by row from any source of bytes: CSV (RFC 4180), TSV (no quoting), JSON Lines. Strict: a
 * row that is not what it should be is FORMAT with its number; the header counts as row 1. Confined.
 */
#ifndef SPK_PACK_LIST_H
#define SPK_PACK_LIST_H

#include <shardpack/error.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

#define SPK_LIST_ROW_MAX (1u << 20)     /* bytes of a row */
#define SPK_LIST_BYTES_MAX (4ull << 30) /* bytes of a list */

typedef enum spk_list_format { SPK_LIST_CSV, SPK_LIST_TSV, SPK_LIST_JSONL } spk_list_format;
typedef enum spk_list_label { SPK_LABEL_NONE, SPK_LABEL_NUMBER, SPK_LABEL_TEXT } spk_list_label;

/* One sample. Strings end with NUL and hold none; they live until the next call. */
typedef struct spk_list_row {
    uint64_t number;
    const char *path; /* as written */
    spk_list_label label;
    int32_t label_number;
    const char *label_text;
    const char *json; /* the other columns as a JSON object; NULL: there are none */
} spk_list_row;

/* Reads up to n bytes; 0 at the end, -1 with errno set. */
typedef ssize_t (*spk_list_fill)(void *ctx, void *buf, size_t n);

typedef struct spk_list spk_list;

/* By the name's extension; "-" is JSON Lines. INVALID for others. */
SPK_CHECK spk_status spk_list_format_of(const char *name, spk_list_format *out, spk_error *err);
SPK_CHECK spk_status spk_list_new(spk_list **out, spk_list_format format, spk_list_fill fill, void *ctx,
                                  spk_error *err);
/* SPK_END behind the last row. Errors begin with "row N: ". Rows that are empty are passed over. */
SPK_CHECK spk_status spk_list_next(spk_list *l, spk_list_row *row, spk_error *err);
void spk_list_free(spk_list *l);

#endif
