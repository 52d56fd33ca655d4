/* The header of a JPEG as it is stored: the file from SOI to the end of its last SOS, without the entropy-coded bytes
 * in between; what it says of the image and of its scans, and a shorter form of it. */
#ifndef SPK_COEF_HEADER_H
#define SPK_COEF_HEADER_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct spk_coef_component {
    uint32_t h, v;       /* blocks in an MCU of all components; 1 if it is the only one */
    uint32_t wide, high; /* in blocks, without those that only complete MCUs */
} spk_coef_component;

typedef struct spk_coef_header {
    uint32_t version;                   /* of the blob: 1 for one scan in sequence, else 2 */
    uint32_t width, height, components; /* 1 or 3 */
    uint32_t mcus_x, mcus_y;
    spk_coef_component component[3];
    size_t bytes; /* of the header */
} spk_coef_header;

/* False unless p begins with the header of a baseline image of 8 bits, whose only scan has all of its 1 or 3
 * components, sampled 1 or 2 times, the second and third once. */
bool spk_coef_header_parse(spk_coef_header *h, const uint8_t *p, size_t n);
/* False unless p is the header of such an image in any number of scans, progressive or not, which give all bits of all
 * coefficients. */
bool spk_coef_header_parse_scans(spk_coef_header *h, const uint8_t *p, size_t n);

/* Appends the header of a file with all its scans, and *tail is what is left of it from EOI on; 0 if there is no end.
 * Says nothing of what the header holds. */
SPK_CHECK spk_status spk_coef_header_collect(const uint8_t *file, size_t n, spk_buf *out, size_t *tail, spk_error *err);

typedef struct spk_coef_huffman {
    bool there;
    uint8_t bits[17]; /* all 0: the table is the best one for the next scan (optimal.h) */
    uint8_t values[256];
} spk_coef_huffman;

/* What SOS says. */
typedef struct spk_coef_scan {
    uint32_t components, component[3]; /* in the order of the frame */
    uint32_t dc[3], ac[3];             /* numbers of their tables */
    uint32_t from, to;                 /* places in zigzag order */
    uint32_t high, low;                /* bits that came before, or 0; bits yet to come */
} spk_coef_scan;

/* Bits of the components' coefficients that are yet to come; -1: all of them. */
typedef struct spk_coef_progress {
    int8_t low[3][64];
} spk_coef_progress;

void spk_coef_progress_begin(spk_coef_progress *p);
/* False unless the scan comes in its turn (T.81, G.1.1.1): DC before AC, each refinement behind the one before. */
bool spk_coef_progress_add(spk_coef_progress *p, const spk_coef_scan *s);
/* Whether all bits have come. */
bool spk_coef_progress_is_done(const spk_coef_progress *p, uint32_t components);

/* Goes through a header from scan to scan. */
typedef struct spk_coef_walk {
    const uint8_t *p;
    size_t n, at;
    uint8_t ids[3];
    bool progressive, scans; /* scans: there was one */
    spk_coef_header header;  /* from SOF on */
    uint32_t interval;       /* MCUs between restart markers, 0 without */
    spk_coef_huffman dc[4], ac[4];
    spk_coef_scan scan;
} spk_coef_walk;

/* False without SOI. p is borrowed. */
bool spk_coef_walk_begin(spk_coef_walk *w, const uint8_t *p, size_t n);
/* To the end of the next SOS; false if there is none, or a segment before it is not as it should be. */
bool spk_coef_walk_next(spk_coef_walk *w);

/* The header with standard tables as numbers, and back; FORMAT. At most SPK_COEF_HEADER_MAX bytes. */
#define SPK_COEF_HEADER_MAX (1u << 24)
SPK_CHECK spk_status spk_coef_header_shorten(const uint8_t *p, size_t n, uint32_t version, spk_buf *out,
                                             spk_error *err);
SPK_CHECK spk_status spk_coef_header_restore(const uint8_t *p, size_t n, uint32_t version, spk_buf *out,
                                             spk_error *err);

#endif
