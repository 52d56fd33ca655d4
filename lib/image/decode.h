/* Decodes part of an image to rows of 8-bit pixels. No I/O.
 *
 * JPEG (libjpeg-turbo, accurate integer IDCT, smooth chroma upsampling) and PNG (libpng). Each part is bit for bit what
 * decoding the whole image would give there. Samples of 16 bits are taken as value >> 8 (Pillow cuts gray ones at 255
 * instead); palettes become their colours unless their indices are asked for, gray of fewer than 8 bits is spread over
 * 0 to 255 as in Pillow's "L", alpha is dropped without compositing, CMYK becomes RGB as in Pillow. Damage is an error
 * of the image, also where libjpeg only warns; what lies behind the last row asked for is not looked at. */
#ifndef SPK_IMAGE_DECODE_H
#define SPK_IMAGE_DECODE_H

#include "image/check.h"
#include "image/rect.h"
#include "image/resample.h"

typedef struct spk_decoder_info {
    spk_image_kind kind;
    uint32_t width, height; /* as stored, before orientation */
    int components;         /* of the file: 1 gray, 2 gray and alpha, 3, 4 */
    int orientation;        /* 1 to 8, from the Exif tag; 1 without */
    bool stored;            /* a JPEG stored as coefficients */
} spk_decoder_info;

/* Receives a row of the part, w x channels bytes, SPK_ROW_PAD more readable; valid during the call. */
typedef void (*spk_pixels_fn)(void *ctx, const uint8_t *row);

typedef struct spk_decode_job {
    spk_rect part;     /* in pixels of the scaled image, which it must lie in */
    uint32_t denom;    /* 1; JPEG also 2, 4, 8: the image scaled to 1/denom, sides rounded up */
    uint32_t channels; /* 3: RGB; 1: luma (19595 R + 38470 G + 7471 B + 32768) >> 16, gray as it is */
    spk_pixels_fn row; /* called part.h times, top to bottom */
    void *ctx;
    bool indices; /* with channels 1: of a palette PNG the indices, as Pillow's mode "P", not its colours' luma */
} spk_decode_job;

/* Reusable; keeps its buffers. Confined. */
typedef struct spk_decoder spk_decoder;

SPK_CHECK spk_status spk_decoder_new(spk_decoder **out, spk_error *err);
void spk_decoder_free(spk_decoder *d);
/* Reads the header; the data is borrowed until the part is decoded. max_pixels 0: 178,956,970; LIMIT above, before
 * anything of the image's size is allocated. FORMAT for damage and for what is no image, UNSUPPORTED for formats that
 * are not decoded. */
SPK_CHECK spk_status spk_decoder_open(spk_decoder *d, const void *data, size_t n, uint64_t max_pixels,
                                      spk_decoder_info *out, spk_error *err);
/* Opens the image anew that was decoded last, where what was read of it is still held: one stored as coefficients. Else
 * false, and nothing is open. */
bool spk_decoder_reopen(spk_decoder *d, spk_decoder_info *out);
/* Decodes one part; once for each open. After an error fewer rows have come. */
SPK_CHECK spk_status spk_decoder_run(spk_decoder *d, const spk_decode_job *job, spk_error *err);

#endif
