/* Private to image/: from blocks of a JPEG to rows of pixels, whole or a part. The samples of one row of MCUs and the
 * few rows above that smooth upsampling needs are held, so that all of it stays in cache. No I/O. */
#ifndef SPK_IMAGE_JPEG_RASTER_H
#define SPK_IMAGE_JPEG_RASTER_H

#include <string.h>

#include "image/decode.h"
#include "image/jpeg_kernels.h"

typedef enum spk_jpeg_colours { SPK_JPEG_GRAY = 0, SPK_JPEG_YCC = 1, SPK_JPEG_RGB = 2 } spk_jpeg_colours;

/* An image whose MCUs are h x v blocks of the first component and one of each other. */
typedef struct spk_jpeg_shape {
    uint32_t width, height;
    uint32_t components; /* 1: gray, then h and v are 1; 3 */
    uint32_t h, v;       /* 1 or 2; 1 for RGB */
    spk_jpeg_colours colours;
} spk_jpeg_shape;

/* False for what only libjpeg decodes: shapes other than these, and chroma so narrow that libjpeg upsamples it
 * otherwise. */
bool spk_jpeg_shape_known(const spk_jpeg_shape *s);

typedef struct spk_jpeg_raster {
    const spk_jpeg_kernels *kernels;
    spk_jpeg_shape shape;
    spk_decode_job job;
    uint32_t mcus_x, mcus_y;                 /* of the image */
    uint32_t mcu_x0, mcu_x1, mcu_y0, mcu_y1; /* those that the part depends on */
    uint32_t next_y;                         /* of the image, the next row to give out */
    size_t stride[3];                        /* of the planes */
    uint32_t kept;                           /* rows of each plane from the row of MCUs before */
    uint8_t *plane[3];                       /* in `samples`: rows kept, then the rows of the MCUs */
    uint16_t *wide[2];                       /* chroma sums of one row */
    uint8_t *mixed[2];                       /* chroma of one row */
    uint8_t *row, *gray;                     /* pixels of one row */
    uint8_t *samples;
    size_t cap_samples;
} spk_jpeg_raster;

/* Begins an image; the kernels must be set. The shape must be known, the job have been checked against its size. */
SPK_CHECK spk_status spk_jpeg_raster_begin(spk_jpeg_raster *r, const spk_jpeg_shape *shape, const spk_decode_job *job,
                                           spk_error *err);
void spk_jpeg_raster_free(spk_jpeg_raster *r);
/* Gives out the rows of the part that are complete with the samples of row y of the MCUs, each of mcu_y0 .. mcu_y1 - 1
 * in turn. */
void spk_jpeg_raster_emit(spk_jpeg_raster *r, uint32_t y);

/* Where the first sample of a block goes: column x of the MCUs, block (bx, by) of the component inside the MCU. */
static inline uint8_t *spk_jpeg_raster_at(const spk_jpeg_raster *r, uint32_t component, uint32_t x, uint32_t bx,
                                          uint32_t by)
{
    uint32_t h = component == 0 ? r->shape.h : 1;
    return r->plane[component] + (r->kept + 8 * by) * r->stride[component] + 8 * ((size_t)(x - r->mcu_x0) * h + bx);
}

/* A block of nothing but DC, dequantised. False for numbers on which versions of libjpeg-turbo disagree. */
static inline bool spk_jpeg_raster_fill(uint8_t *out, size_t stride, int32_t dc)
{
    int32_t v = (int32_t)(((uint32_t)dc + 4 + (1u << 30)) >> 3) - (1 << 27) + 128; /* (dc + 4) / 8, rounded down */
    uint64_t row = 0x0101010101010101u * (uint64_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    for (size_t i = 0; i < 8; i++)
        memcpy(out + i * stride, &row, 8);
    return dc >= -8192 && dc < 8192;
}

#endif
