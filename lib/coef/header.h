/* The header of a baseline JPEG, from SOI to the end of SOS: what it says of the scan, and a shorter form of it. */
#ifndef SPK_COEF_HEADER_H
#define SPK_COEF_HEADER_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct spk_coef_component {
    uint32_t h, v;   /* blocks in an MCU; 1 if it is the only component */
    uint32_t dc, ac; /* numbers of its tables */
} spk_coef_component;

typedef struct spk_coef_huffman {
    bool there;
    uint8_t bits[17];
    uint8_t values[256];
} spk_coef_huffman;

typedef struct spk_coef_header {
    uint32_t width, height, components; /* 1 or 3 */
    uint32_t mcus_x, mcus_y, interval;  /* MCUs between restart markers, 0 without */
    spk_coef_component component[3];
    spk_coef_huffman dc[4], ac[4];
    size_t bytes; /* of the header */
} spk_coef_header;

/* False unless p begins with the header of a baseline image of 8 bits, whose only scan has all of its 1 or 3
 * components, sampled 1 or 2 times, the second and third once. */
bool spk_coef_header_parse(spk_coef_header *h, const uint8_t *p, size_t n);

/* The header with standard tables as numbers, and back; FORMAT. At most SPK_COEF_HEADER_MAX bytes. */
#define SPK_COEF_HEADER_MAX (1u << 24)
SPK_CHECK spk_status spk_coef_header_shorten(const uint8_t *p, size_t n, spk_buf *out, spk_error *err);
SPK_CHECK spk_status spk_coef_header_restore(const uint8_t *p, size_t n, spk_buf *out, spk_error *err);

#endif
