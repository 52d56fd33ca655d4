/* What the fuzz targets of image decoders share: a check, a place for rows, a part chosen by bytes. */
#ifndef FUZZ_IMAGE_H
#define FUZZ_IMAGE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/decode.h"

static inline void must(int ok)
{
    if (!ok)
        abort();
}

typedef struct rows {
    uint8_t *p;
    size_t row, n, cap;
} rows;

static inline void keep(void *ctx, const uint8_t *row)
{
    rows *out = ctx;
    must(out->n + out->row <= out->cap);
    memcpy(out->p + out->n, row, out->row);
    out->n += out->row;
}

/* The part that four bytes choose; the whole if the fifth is odd. */
static inline spk_rect choose(const uint8_t *head, const spk_decoder_info *info)
{
    uint32_t w = info->width, h = info->height;
    if (head[4] & 1)
        return (spk_rect){0, 0, w, h};
    spk_rect r = {head[0] * w / 256, head[1] * h / 256, 1, 1};
    r.w = 1 + head[2] * (w - 1 - r.x) / 255;
    r.h = 1 + head[3] * (h - 1 - r.y) / 255;
    return r;
}

#endif
