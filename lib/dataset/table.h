/* The shard table (shards-XXXXXXXX.tsv): format-spec/dataset.md section 4. Written and parsed line by line. */
#ifndef SPK_DATASET_TABLE_H
#define SPK_DATASET_TABLE_H

#include <shardpack/error.h>

#include "base/buf.h"

#define SPK_TABLE_HEADER "#path\tsamples\tframes\tbytes\ttar_bytes\tindex_offset\ttail_sha256\n"
#define SPK_TABLE_COLUMNS 7
#define SPK_TABLE_ROWS_MAX (UINT64_C(1) << 24)
#define SPK_TABLE_FRAMES_MAX ((UINT64_C(1) << 27) - 1)
#define SPK_TABLE_PATH_MAX 255u
#define SPK_TABLE_LINE_MIN 77u             /* one-byte columns, a digest of 64 digits, separators, newline */
#define SPK_TABLE_LINE_MAX 1024u           /* longer than any line can be */
#define SPK_NUMBER_MAX (UINT64_C(1) << 53) /* of any number in manifest and table: exact in every JSON reader */

typedef struct spk_table_row {
    const char *path; /* borrowed */
    uint64_t samples, frames, bytes, tar_bytes, index_offset;
    uint8_t tail_sha256[32];
} spk_table_row;

/* Appends the header line; then one line per shard. */
SPK_CHECK spk_status spk_table_begin(spk_buf *out, spk_error *err);
SPK_CHECK spk_status spk_table_add(spk_buf *out, const spk_table_row *row, spk_error *err);
/* Called for each line in order; an error stops the parser. */
typedef spk_status (*spk_table_row_fn)(void *ctx, const spk_table_row *row, spk_error *err);

/* Parses in pieces, for tables of any size: zero-initialise with on_row and ctx set, feed text (each time from the
 * first byte not used before), then end. Error texts begin with "line N: ". */
typedef struct spk_table_parser {
    spk_table_row_fn on_row;
    void *ctx;
    uint64_t line; /* lines done */
} spk_table_parser;
/* Parses the whole lines of text; *used is the number of bytes they have. */
SPK_CHECK spk_status spk_table_feed(spk_table_parser *p, const char *text, size_t n, size_t *used, spk_error *err);
/* Behind the last piece, of which `left` bytes were not used. */
SPK_CHECK spk_status spk_table_end(const spk_table_parser *p, size_t left, spk_error *err);

/* Parses a whole table. Paths must be safe: relative, no empty, "." or ".." components, [A-Za-z0-9._/-] only. */
SPK_CHECK spk_status spk_table_parse(const char *text, size_t n, spk_table_row_fn on_row, void *ctx, spk_error *err);
/* NULL if the path may stand in a table, else the reason as static text. */
const char *spk_table_path_problem(const char *path, size_t len);

#endif
