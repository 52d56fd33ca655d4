/* The stored encoding `jpeg_coefficients`: a baseline JPEG's quantised coefficients in an order that vectors read and
 * zstd compresses well, and all that is needed to make the file anew, byte for byte.
 * Format: format-spec/jpeg_coefficients.md. No pixels here, no I/O, no statics. */
#ifndef SPK_COEF_COEF_H
#define SPK_COEF_COEF_H

#include "base/buf.h"
#include "coef/header.h"

#define SPK_COEF_NAME "jpeg_coefficients"

/* Coefficients of a component: blocks row by row, MCUs complete, each block 64 numbers by rows. */
typedef struct spk_coef_plane {
    const int16_t *blocks;
} spk_coef_plane;

/* What there is of a file beside its coefficients. */
typedef struct spk_coef_rest {
    const uint8_t *header; /* from SOI to the end of SOS */
    size_t header_n;
    const uint8_t *tail; /* behind the entropy-coded bytes, from EOI on */
    size_t tail_n;
    uint8_t padding; /* 0 or 1: the bits that fill the last byte before a marker */
} spk_coef_rest;

/* Reusable. Confined. */
typedef struct spk_coef_writer spk_coef_writer;
SPK_CHECK spk_status spk_coef_writer_new(spk_coef_writer **out, spk_error *err);
void spk_coef_writer_free(spk_coef_writer *w);
/* Appends the blob to *out. UNSUPPORTED, with the reason, for what the encoding cannot hold. */
SPK_CHECK spk_status spk_coef_write(spk_coef_writer *w, const spk_coef_header *h, const spk_coef_plane planes[3],
                                    const spk_coef_rest *rest, spk_buf *out, spk_error *err);

/* An open blob. Reusable; keeps its buffers. Confined. */
typedef struct spk_coef_reader spk_coef_reader;
SPK_CHECK spk_status spk_coef_reader_new(spk_coef_reader **out, spk_error *err);
void spk_coef_reader_free(spk_coef_reader *r);
/* Decompresses and checks everything but the coefficients' sense. The blob is not needed afterwards. FORMAT, or LIMIT
 * for content beyond 64 KiB + 64 times the blob. */
SPK_CHECK spk_status spk_coef_open(spk_coef_reader *r, const void *blob, size_t n, spk_error *err);
const spk_coef_header *spk_coef_get_header(const spk_coef_reader *r);
/* Of an open blob: the rest of the file, borrowed. */
spk_coef_rest spk_coef_get_rest(const spk_coef_reader *r);
/* The JPEG file, appended to *out. Ends the reading of rows. */
SPK_CHECK spk_status spk_coef_restore(spk_coef_reader *r, spk_buf *out, spk_error *err);

/* Blocks of a component's row of MCUs, by class; numbers count row by row within the row of MCUs. */
typedef struct spk_coef_lists {
    uint32_t *blocks[5];
    uint32_t n[5];
} spk_coef_lists;

/* Begins at the first row of MCUs, with vectors if there are any and `vectors`. */
SPK_CHECK spk_status spk_coef_begin(spk_coef_reader *r, bool vectors, spk_error *err);
/* Goes past `rows` rows of MCUs. */
void spk_coef_skip(spk_coef_reader *r, uint32_t rows);
/* The next row of MCUs of a component; components must take turns. coef (64 numbers a block, by rows, at the block's
 * number) receives the blocks in MCUs x0 to x1 - 1, but for those of class 0, of which dc (a number a block) says all.
 * The lists name the same blocks; they are borrowed until the next call. */
void spk_coef_row(spk_coef_reader *r, uint32_t component, uint32_t x0, uint32_t x1, int16_t *coef, int16_t *dc,
                  spk_coef_lists *lists);

#endif
