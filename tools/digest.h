/* Digests of what a batch holds (XXH64), so that two streams can be compared by eye, diff or another program. */
#ifndef TOOLS_DIGEST_H
#define TOOLS_DIGEST_H

#include "loader_opts.h"

typedef struct digests {
    uint64_t column[LOADER_COLUMNS_MAX]; /* over the rows in order; a value of a variable column as its length, 8 bytes
                                            little-endian, and its bytes */
    uint64_t *row;                       /* over the columns in order, each seeded with the one before; without keys */
    size_t rows, room;
} digests;

/* 0, or -1 if there is no memory. Zero d before the first call. */
int digest_batch(digests *d, const spk_batch *batch, const loader_setup *setup);
void digest_free(digests *d);

/* Of all rows of an epoch: the digest of their digests, 8 bytes little-endian each. */
typedef struct digest_sum digest_sum;
digest_sum *digest_sum_new(void); /* NULL: no memory */
void digest_sum_reset(digest_sum *s);
void digest_sum_add(digest_sum *s, const digests *d);
uint64_t digest_sum_value(const digest_sum *s);
void digest_sum_free(digest_sum *s);

#endif
