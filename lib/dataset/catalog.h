/* The shard table in memory: 80 bytes a row and the paths in one block, since a dataset may have a million shards. */
#ifndef SPK_DATASET_CATALOG_H
#define SPK_DATASET_CATALOG_H

#include <shardpack/error.h>

#include "base/buf.h"
#include "io/source.h"

typedef struct spk_catalog_row {
    uint64_t path; /* offset in paths, NUL-terminated */
    uint64_t first_sample;
    uint64_t bytes, tar_bytes, index_offset;
    uint32_t samples, frames;
    uint8_t tail_sha256[32];
} spk_catalog_row;

/* Zero-initialise; free with spk_catalog_free. */
typedef struct spk_catalog {
    spk_catalog_row *rows;
    size_t n, cap;
    spk_buf paths;
    uint64_t samples, frames, bytes, tar_bytes; /* sums over the rows, each at most 2^53 */
    uint8_t fingerprint[32];                    /* SHA-256 over the rows' tail_sha256 */
} spk_catalog;

/* Reads and parses the whole table in pieces of 1 MiB. digest is filled with the SHA-256 of all of it also if the parse
 * failed, so that the caller can tell damage from a bad table; `*whole` tells whether the end was reached. Error texts
 * have no file name. */
SPK_CHECK spk_status spk_catalog_read(spk_catalog *c, spk_source *table, uint64_t rows_expected, uint8_t digest[32],
                                      bool *whole, spk_error *err);
const char *spk_catalog_path(const spk_catalog *c, size_t i);
/* Row that holds sample number (< samples). */
size_t spk_catalog_find(const spk_catalog *c, uint64_t number);
void spk_catalog_free(spk_catalog *c);

#endif
