/* The stored encoding `jpeg_coefficients`: a JPEG's quantised coefficients in an order that vectors read and
 * zstd compresses well, and all that is needed to make the file anew, byte for byte.
 * Format: format-spec/jpeg_coefficients.md. No pixels here, no I/O, no statics. */
#ifndef SPK_COEF_COEF_H
#define SPK_COEF_COEF_H

#include <string.h>

#include "base/buf.h"
#include "coef/header.h"

#define SPK_COEF_NAME "jpeg_coefficients"
/* The same form, but of another JPEG file with the coefficients of one that could not be made anew. */
#define SPK_COEF_PIXELS_NAME "jpeg_pixels"

/* Whether fields in the encoding of that name are blobs of this layer. */
static inline bool spk_coef_is(const char *encoding)
{
    return strcmp(encoding, SPK_COEF_NAME) == 0 || strcmp(encoding, SPK_COEF_PIXELS_NAME) == 0;
}

/* Coefficients of a component: blocks row by row, MCUs complete, each block 64 numbers by rows. */
typedef struct spk_coef_plane {
    const int16_t *blocks;
} spk_coef_plane;

/* What there is of a file beside its coefficients. */
typedef struct spk_coef_rest {
    const uint8_t *header; /* from SOI to the end of the last SOS, without entropy-coded bytes */
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

/* Blocks of one class out of a row of MCUs of a component. Numbers count row by row within the row of MCUs. */
#define SPK_COEF_RUN 32u
typedef struct spk_coef_run {
    uint32_t cls;
    uint32_t n; /* 1 to SPK_COEF_RUN */
    const uint16_t *blocks;
    /* Two blocks side by side, 16 numbers a row: spk_coef_at says where a block begins. NULL for class 0, where DC is
     * all there is. */
    const int16_t *coef;
} spk_coef_run;

static inline size_t spk_coef_at(uint32_t i)
{
    return 128 * (size_t)(i / 2) + 8 * (i % 2);
}

/* Begins at the first row of MCUs, with vectors if there are any and `vectors`. */
SPK_CHECK spk_status spk_coef_begin(spk_coef_reader *r, bool vectors, spk_error *err);
/* Goes past `rows` rows of MCUs. */
void spk_coef_skip(spk_coef_reader *r, uint32_t rows);
/* The next row of MCUs of a component; components must take turns. dc receives a number for each block up to x1, and
 * has room for all of the row and SPK_COEF_DC_ROOM more. */
#define SPK_COEF_DC_ROOM 8u
void spk_coef_row(spk_coef_reader *r, uint32_t component, uint32_t x0, uint32_t x1, int16_t *dc);
/* The next blocks of that row in MCUs x0 to x1 - 1, borrowed until the next call; false after the last, which must be
 * waited for. */
bool spk_coef_next(spk_coef_reader *r, spk_coef_run *out);

#endif
