/* Smooth upsampling in the vertical needs the chroma rows above and below: the last two rows of pixels of a row of MCUs
 * wait for the next one, and the last two rows of samples stay for them. Borders of the image count as their own
 * neighbours. */
#include "image/jpeg_raster.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "image/decoder.h"

bool spk_jpeg_shape_known(const spk_jpeg_shape *s)
{
    if (s->width == 0 || s->height == 0 || s->h < 1 || s->h > 2 || s->v < 1 || s->v > 2)
        return false;
    if (s->components == 1)
        return s->colours == SPK_JPEG_GRAY && s->h == 1 && s->v == 1;
    if (s->components != 3 || s->colours == SPK_JPEG_GRAY)
        return false;
    if (s->colours == SPK_JPEG_RGB)
        return s->h == 1 && s->v == 1;
    return s->h == 1 || s->width > 4; /* libjpeg repeats chroma of up to two columns */
}

static uint32_t parts(uint32_t n, uint32_t size)
{
    return n / size + (n % size != 0);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The chroma samples [*lo, *hi) that pixels [from, to) depend on. */
static void chroma_needs(uint32_t from, uint32_t to, uint32_t size, uint32_t factor, uint32_t *lo, uint32_t *hi)
{
    *lo = from;
    *hi = to;
    if (factor == 1)
        return;
    *lo = from / 2 > 0 ? from / 2 - 1 : 0;
    *hi = least((to - 1) / 2 + 2, parts(size, 2));
}

static uint32_t chroma_width(const spk_jpeg_raster *r)
{
    uint32_t first = r->mcu_x0 * 8, all = parts(r->shape.width, r->shape.h);
    return least((r->mcu_x1 - r->mcu_x0) * 8, all - first);
}

/* Places everything in one block of memory; with `base` NULL only counts. */
static size_t place(spk_jpeg_raster *r, uint8_t *base)
{
    const spk_jpeg_shape *s = &r->shape;
    size_t at = SPK_JPEG_SLACK, mcus = r->mcu_x1 - r->mcu_x0;
    for (uint32_t c = 0; c < s->components; c++) {
        size_t rows = r->kept + 8 * (c == 0 ? s->v : 1);
        r->stride[c] = 8 * mcus * (c == 0 ? s->h : 1) + 2 * SPK_JPEG_SLACK;
        r->plane[c] = base ? base + at : NULL;
        at += rows * r->stride[c] + SPK_JPEG_SLACK;
    }
    size_t chroma = 8 * mcus + 2 * SPK_JPEG_SLACK, pixels = 8 * mcus * s->h + 3 * SPK_JPEG_SLACK;
    at = (at + 31) & ~(size_t)31;
    for (uint32_t c = 0; c < 2; c++) {
        r->wide[c] = base ? (uint16_t *)(void *)(base + at) + SPK_JPEG_SLACK : NULL;
        at += chroma * sizeof(uint16_t) + 2 * SPK_JPEG_SLACK;
        r->mixed[c] = base ? base + at : NULL;
        at += (chroma + 31) & ~(size_t)31;
    }
    r->row = base ? base + at : NULL;
    at += 3 * pixels;
    r->gray = base ? base + at : NULL;
    return at + pixels;
}

spk_status spk_jpeg_raster_begin(spk_jpeg_raster *r, const spk_jpeg_shape *shape, const spk_decode_job *job,
                                 spk_error *err)
{
    const spk_rect *p = &job->part;
    uint32_t lo, hi;
    r->shape = *shape;
    r->job = *job;
    r->next_y = p->y;
    r->kept = shape->v == 2 ? 2 : 0;
    r->mcus_x = parts(shape->width, 8 * shape->h);
    r->mcus_y = parts(shape->height, 8 * shape->v);
    chroma_needs(p->x, p->x + p->w, shape->width, shape->h, &lo, &hi);
    r->mcu_x0 = lo / 8;
    r->mcu_x1 = parts(hi, 8);
    chroma_needs(p->y, p->y + p->h, shape->height, shape->v, &lo, &hi);
    r->mcu_y0 = lo / 8;
    r->mcu_y1 = parts(hi, 8);
    size_t had = r->cap_samples;
    SPK_TRY(spk_grow(&r->samples, &r->cap_samples, place(r, NULL), 1, err));
    if (r->cap_samples != had)
        memset(r->samples, 0, r->cap_samples);
    place(r, r->samples);
    return SPK_OK;
}

void spk_jpeg_raster_free(spk_jpeg_raster *r)
{
    free(r->samples);
}

/* Row y of the image in a plane whose MCU row starts at row `top` of the image. */
static const uint8_t *plane_row(const spk_jpeg_raster *r, uint32_t component, uint32_t y, uint32_t top)
{
    return r->plane[component] + (r->kept + y - top) * r->stride[component];
}

/* The chroma row next to that of pixel row y, on the side where the pixel row is. */
static uint32_t beside(const spk_jpeg_raster *r, uint32_t y)
{
    uint32_t c = y / 2, last = parts(r->shape.height, 2) - 1;
    if (y % 2)
        return least(c + 1, last);
    return c > 0 ? c - 1 : 0;
}

/* One row from chroma of half the width, from the even pixel on. */
static void wide_row(spk_jpeg_raster *r, uint32_t y, uint32_t mcu_y, const uint8_t *luma)
{
    uint32_t n = chroma_width(r), from = r->job.part.x / 2 - r->mcu_x0 * 8, v = r->shape.v;
    for (uint32_t c = 0; c < 2; c++) {
        const uint8_t *near = plane_row(r, c + 1, y / v, 8 * mcu_y);
        uint16_t *sums = r->wide[c];
        if (v == 2)
            r->kernels->sum(sums, near, plane_row(r, c + 1, beside(r, y), 8 * mcu_y), n);
        else
            r->kernels->copy(sums, near, n);
        *(sums - 1) = sums[0];
        sums[n] = sums[n - 1];
    }
    spk_jpeg_widening w = v == 2 ? (spk_jpeg_widening){8, 7, 4} : (spk_jpeg_widening){1, 2, 2};
    size_t pixels = r->job.part.w + r->job.part.x % 2;
    r->kernels->rgb_wide(r->row, luma, r->wide[0] + from, r->wide[1] + from, pixels, w);
}

/* One row from chroma of full width, mixed with that beside it where there are half as many rows. */
static void full_row(spk_jpeg_raster *r, uint32_t y, uint32_t mcu_y, const uint8_t *first)
{
    size_t from = r->job.part.x - (size_t)r->mcu_x0 * 8, n = r->job.part.w;
    const uint8_t *c[2];
    for (uint32_t i = 0; i < 2; i++) {
        c[i] = plane_row(r, i + 1, y / r->shape.v, 8 * mcu_y) + from;
        if (r->shape.v == 2) {
            r->kernels->mix(r->mixed[i], c[i], plane_row(r, i + 1, beside(r, y), 8 * mcu_y) + from, 1 + y % 2, n);
            c[i] = r->mixed[i];
        }
    }
    if (r->shape.colours == SPK_JPEG_RGB)
        r->kernels->interleave(r->row, first, c[0], c[1], n);
    else
        r->kernels->rgb(r->row, first, c[0], c[1], n);
}

static void emit_row(spk_jpeg_raster *r, uint32_t y, uint32_t mcu_y)
{
    const spk_rect *p = &r->job.part;
    const spk_jpeg_shape *s = &r->shape;
    const uint8_t *row = r->row;
    const uint8_t *first = plane_row(r, 0, y, 8 * s->v * mcu_y) + (p->x - (size_t)r->mcu_x0 * 8 * s->h);
    if (s->components == 1 && r->job.channels == 1) {
        r->job.row(r->job.ctx, first);
        return;
    }
    if (s->components == 1) {
        r->kernels->interleave(r->row, first, first, first, p->w);
    } else if (s->h == 2) {
        wide_row(r, y, mcu_y, first - p->x % 2);
        row += 3 * (size_t)(p->x % 2);
    } else {
        full_row(r, y, mcu_y, first);
    }
    if (r->job.channels == 1) {
        spk_rgb_to_gray(r->gray, row, p->w);
        row = r->gray;
    }
    r->job.row(r->job.ctx, row);
}

/* The last rows of a row of MCUs go before the first ones of the next. */
static void keep_rows(spk_jpeg_raster *r)
{
    for (uint32_t c = 0; c < r->shape.components && r->kept > 0; c++) {
        size_t rows = 8 * (c == 0 ? r->shape.v : 1), stride = r->stride[c];
        memcpy(r->plane[c], r->plane[c] + rows * stride, r->kept * stride);
    }
}

void spk_jpeg_raster_emit(spk_jpeg_raster *r, uint32_t y)
{
    uint32_t end = r->job.part.y + r->job.part.h, complete = (y + 1) * 8 * r->shape.v - r->kept;
    if (y + 1 == r->mcus_y)
        complete = r->shape.height;
    for (; r->next_y < least(end, complete); r->next_y++)
        emit_row(r, r->next_y, y);
    keep_rows(r);
}
