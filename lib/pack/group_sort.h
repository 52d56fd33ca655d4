/* Sorting records by a string that lies elsewhere, in place: three-way radix quicksort over 8-byte pieces of the
 * string, each cached in its record, so that a record's string is touched once per 8 bytes of common prefix and not
 * once per comparison.
 * Source: Bentley, Sedgewick, "Fast Algorithms for Sorting and Searching Strings", SODA 1997. */
#ifndef SPK_PACK_GROUP_SORT_H
#define SPK_PACK_GROUP_SORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct spk_sort {
    void *base;
    size_t size;  /* of a record, a multiple of 8, at most 64 */
    size_t cache; /* offset of a uint64_t in it that the sort may overwrite */
    /* Bytes [depth, depth + 8) of the record's string, first byte highest, zeros behind its end; no string holds 0. */
    uint64_t (*piece)(const void *ctx, const void *record, size_t depth);
    const void *ctx;
} spk_sort;

/* The order of equal strings is not defined. */
void spk_group_sort(const spk_sort *s, size_t n);

/* For piece functions: bytes [depth, depth + 8) of p[0..n). */
static inline uint64_t spk_sort_piece(const char *p, size_t n, size_t depth)
{
    uint64_t v = 0;
    for (size_t i = 0; i < 8; i++)
        v = v << 8 | (depth + i < n ? (unsigned char)p[depth + i] : 0u);
    return v;
}

#endif
