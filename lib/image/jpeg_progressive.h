/* Private to image/: the entropy-coded blocks of scans that give a part of an image's coefficients each: progressive
 * ones (ITU-T T.81, annex G), and sequential ones with some of the components. */
#ifndef SPK_IMAGE_JPEG_PROGRESSIVE_H
#define SPK_IMAGE_JPEG_PROGRESSIVE_H

#include "image/jpeg_coded.h"

/* A component's blocks. Which numbers of a block are not zero is known of all: what a finer scan holds depends on it.
 * The numbers themselves are there only of those that are kept. */
typedef struct spk_scan_plane {
    uint32_t wide, high;     /* blocks of the image, without those that only complete MCUs */
    uint32_t x0, x1, y0, y1; /* those kept */
    size_t stride;           /* blocks in a row of `known` */
    int16_t *dc;             /* of those kept, row by row */
    int16_t *coef;           /* of those kept that know of any AC: 64, in rows, still quantised, without DC */
    uint64_t *known;         /* bit 63 - k: number k > 0 in zigzag order is not zero */
} spk_scan_plane;

/* A block's place in an MCU: (bx, by) of the component's h x v. */
typedef struct spk_scan_slot {
    const spk_huffman *dc;
    uint32_t component, bx, by, h, v;
} spk_scan_slot;

#define SPK_SCAN_SLOTS_MAX 6u
typedef struct spk_scan {
    spk_jpeg_coded coded;
    spk_scan_plane plane[3];
    spk_scan_slot slots[SPK_SCAN_SLOTS_MAX];
    uint32_t slots_n;
    const spk_huffman *ac[3]; /* of a component */
    uint32_t from, to;        /* in zigzag order */
    uint32_t low;             /* bits yet to come */
} spk_scan;

/* Reads the MCUs (x, y) to (x + count - 1, y); they are kept or not. False if there is a fault. */
typedef bool (*spk_scan_fn)(spk_scan *s, uint32_t x, uint32_t y, uint32_t count, bool keep);
/* `finer`: bits came before. `vectors`: the processor has them. */
spk_scan_fn spk_scan_reader(const spk_scan *s, bool progressive, bool finer, bool vectors);

#endif
