/* Private to coef/: an open blob. open.c fills it, expand*.c read from it. */
#ifndef SPK_COEF_BLOB_H
#define SPK_COEF_BLOB_H

#include "coef/coef.h"
#include "coef/layout.h"
#include "coef/pack.h"

#define SPK_COEF_SLACK 64u /* bytes readable behind every stream */

/* Where reading stands in the streams of a class. */
typedef struct spk_coef_class {
    const uint8_t *mask; /* next byte of its first plane */
    size_t plane;        /* distance of its planes */
    const int8_t *level[SPK_COEF_BANDS];
    const uint8_t *escape;
    size_t unread; /* blocks to go past before the next one is read */
} spk_coef_class;

/* Where reading stands in the streams of luma or chroma. */
typedef struct spk_coef_kind {
    const int8_t *dc_high;
    const uint8_t *dc_low, *dc_escape, *classes;
    spk_coef_class of[SPK_COEF_CLASSES];
} spk_coef_kind;

/* Tables of the vectors. */
typedef struct spk_coef_tables {
    /* Bytes of part j of a block by rows from part i in zigzag order, 0x80: not from it; twice. */
    _Alignas(32) uint8_t order[4][4][32];
    uint64_t spread[2][256]; /* by mask: for each of 8 places which level it has, 0x80 without; 8 more */
    uint64_t places[256];    /* by mask: the places that have one, from the first on; then zero */
} spk_coef_tables;

/* The next n blocks of a class, in pairs (coef.h); without DC. */
typedef void (*spk_coef_expand_fn)(const spk_coef_tables *t, spk_coef_class *c, uint32_t cls, uint32_t n,
                                   int16_t *coef);
/* n blocks are gone past. */
typedef void (*spk_coef_skip_fn)(spk_coef_class *c, uint32_t cls, size_t n);
/* Levels of nibbles and `lows` lower bits: n of them, and up to 31 more of no meaning. */
typedef void (*spk_coef_unpack_fn)(int8_t *out, const uint8_t *nibbles, const uint8_t *low, uint32_t lows, size_t n);

/* DC of n blocks without escapes from its high and low parts, behind the value v; 7 more of no meaning. */
typedef void (*spk_coef_sums_fn)(int16_t *out, const int8_t *high, const uint8_t *low, size_t n, int16_t v);
/* The numbers of n blocks by class, and how many there are; 7 more of no meaning behind each list. */
typedef void (*spk_coef_sort_fn)(const spk_coef_tables *t, const uint8_t *classes, uint32_t n,
                                 uint16_t *const lists[SPK_COEF_CLASSES], uint32_t counts[SPK_COEF_CLASSES]);

typedef struct spk_coef_kernels {
    spk_coef_expand_fn expand;
    spk_coef_skip_fn skip;
    spk_coef_unpack_fn unpack;
    spk_coef_sums_fn sums;
    spk_coef_sort_fn sort;
    size_t (*escapes)(const int8_t *p, size_t n); /* bytes that are SPK_COEF_ESCAPE */
    size_t (*bits)(const uint8_t *p, size_t n);   /* bits that are set */
} spk_coef_kernels;
extern const spk_coef_kernels spk_coef_kernels_plain;
const spk_coef_kernels *spk_coef_kernels_vector(void); /* NULL without */

/* A row of MCUs that is being read. */
typedef struct spk_coef_reading {
    uint32_t component, cls, next; /* where reading stands: class, and place in its list */
    uint32_t wide, from, to;       /* blocks in a row of blocks, and those that are wanted */
    uint32_t n[SPK_COEF_CLASSES];
    uint16_t *blocks[SPK_COEF_CLASSES]; /* lists of numbers */
    const int16_t *dc;
} spk_coef_reading;

struct spk_coef_reader {
    spk_coef_tables tables;
    _Alignas(32) int16_t run[64 * SPK_COEF_RUN];
    spk_coef_reading row;
    spk_coef_header header;
    spk_buf content, jpeg_header, levels;
    const uint8_t *tail;
    size_t tail_n;
    uint8_t padding;
    spk_coef_kind start[2], at[2]; /* at the first row of MCUs; where reading stands */
    int16_t above[3];              /* DC of the first block of the row of blocks before */
    const spk_coef_kernels *kernels;
    spk_coef_packer *packer;
    uint16_t *lists;    /* of one row of MCUs: five lists of its blocks */
    int16_t *dc, *coef; /* of one row of MCUs, for restoring */
    size_t lists_cap, dc_cap, coef_cap;
};

void spk_coef_tables_make(spk_coef_tables *t);
/* How often each number of four bits comes in n bytes. */
void spk_coef_tally(const uint8_t *p, size_t n, size_t counts[16]);

/* The int16 of an escape. */
static inline int16_t spk_coef_escape(const uint8_t *p)
{
    return (int16_t)(uint16_t)((uint32_t)p[0] | (uint32_t)p[1] << 8);
}

#endif
