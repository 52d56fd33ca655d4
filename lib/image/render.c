/* The pixel path. An image's two axes are planned in the oriented image: which part of it is resized to how many
 * pixels, which of those are wanted, where they go. The part that they depend on is turned back to the stored image and
 * decoded; its rows run through the resampler into the output. Only a turned or mirrored image is held in memory. */
#include "image/render.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "image/exif.h"
#include "image/nearest.h"

#define PART_KEPT ((size_t)8 << 20) /* bytes of a turned image's buffer that stay for the next one */
#define FAST_KEPT 2u /* with less than this, fine textures come out visibly different: 39 dB instead of 48 */

struct spk_renderer {
    spk_image_params params;
    spk_converter converter;
    spk_decoder *decoder;
    spk_resampler *resampler;
    spk_nearest *nearest;
    uint8_t *part, *line, *padded; /* a turned image's pixels; one of its rows; an output row with padding */
    size_t cap_part, cap_line, cap_padded;
    /* of the image under way */
    uint8_t *out;
    size_t part_bytes; /* so far */
    size_t row_bytes;  /* of a decoded row */
    uint32_t pad_x, pad_y, count_x, count_y;
    bool hflip, vflip;
    bool repeat; /* the next image is the last one */
};

/* An axis of the oriented image. */
typedef struct axis_plan {
    spk_axis axis;   /* of the pixels from `offset` on */
    uint32_t offset; /* in the scaled image */
    uint32_t size;   /* of the scaled image */
    uint32_t lo, hi; /* pixels needed, from offset on */
    uint32_t pad;    /* output pixels before the first that the image fills */
} axis_plan;

spk_status spk_renderer_new(spk_renderer **out, const spk_image_params *params, spk_error *err)
{
    SPK_TRY(spk_image_params_check(params, err));
    spk_renderer *r = calloc(1, sizeof *r);
    if (!r)
        return spk_error_nomem(err, sizeof *r);
    r->params = *params;
    spk_converter_init(&r->converter, &params->format);
    spk_status status = spk_decoder_new(&r->decoder, err);
    if (status == SPK_OK && params->filter == SPK_FILTER_NEAREST)
        status = spk_nearest_new(&r->nearest, err);
    else if (status == SPK_OK)
        status = spk_resampler_new(&r->resampler, err);
    if (status == SPK_OK)
        status = spk_grow(&r->padded, &r->cap_padded, (size_t)params->format.width * params->format.channels, 1, err);
    if (status < 0) {
        spk_renderer_free(r);
        return status;
    }
    *out = r;
    return SPK_OK;
}

void spk_renderer_free(spk_renderer *r)
{
    if (!r)
        return;
    spk_decoder_free(r->decoder);
    spk_resampler_free(r->resampler);
    spk_nearest_free(r->nearest);
    free(r->part);
    free(r->line);
    free(r->padded);
    free(r);
}

/* ---- geometry ---- */

static spk_status choose(const spk_renderer *r, uint32_t width, uint32_t height, const spk_draw_key *key,
                         const spk_geometry *paired, spk_geometry *g, spk_error *err)
{
    const spk_image_params *p = &r->params;
    *g = (spk_geometry){.width = width, .height = height, .crop = {0, 0, width, height}};
    if (paired) {
        if (paired->width != width || paired->height != height)
            return spk_error_set(err, SPK_E_FORMAT, "%u x %u pixels, but the image that it is paired with has %u x %u",
                                 width, height, paired->width, paired->height);
        if (p->crop == SPK_CROP_RANDOM)
            g->crop = paired->crop;
        g->hflip = paired->hflip;
        g->vflip = paired->vflip;
        return SPK_OK;
    }
    if (p->crop == SPK_CROP_RANDOM)
        g->crop = spk_random_crop(width, height, p->scale, p->ratio, key);
    g->hflip = spk_draw_event(key, SPK_DRAW_HFLIP, p->hflip);
    g->vflip = spk_draw_event(key, SPK_DRAW_VFLIP, p->vflip);
    return SPK_OK;
}

/* The part [start, start + length) of an axis of `size` stored pixels, decoded at 1/denom. `mirrored`: the oriented
 * axis runs against the stored one, and so does the rounding of the scaled image's size. */
static axis_plan plan_axis(uint32_t size, uint32_t start, uint32_t length, uint32_t resized, spk_centre window,
                           uint32_t denom, bool mirrored)
{
    uint32_t scaled = size / denom + (size % denom != 0);
    double from = (double)start / denom, to = (double)(start + length) / denom;
    if (mirrored && denom > 1) {
        double slack = scaled - (double)size / denom;
        from += slack;
        to += slack;
    }
    uint32_t first = (uint32_t)from, end = (uint32_t)ceil(to);
    axis_plan a = {.offset = first, .size = scaled, .pad = window.pad};
    a.axis = (spk_axis){end - first, resized, from - first, to - first, window.first, window.count};
    return a;
}

/* 1/2, 1/4 or 1/8, so that the filter still has FAST_KEPT times the target to work on. */
static uint32_t choose_denom(const spk_image_params *p, spk_image_kind kind, const spk_rect *crop, uint32_t w,
                             uint32_t h)
{
    uint32_t denom = 1;
    if (!p->fast || kind != SPK_IMAGE_JPEG || p->filter == SPK_FILTER_NEAREST)
        return 1;
    while (denom < 8 && crop->w / (denom * 2 * FAST_KEPT) >= w && crop->h / (denom * 2 * FAST_KEPT) >= h)
        denom *= 2;
    return denom;
}

typedef struct plan {
    axis_plan x, y;
    spk_turn turn;
    spk_rect stored; /* to decode */
    uint32_t denom;
} plan;

static void needs(const spk_image_params *p, axis_plan *a)
{
    if (p->filter == SPK_FILTER_NEAREST)
        spk_nearest_needs(&a->axis, &a->lo, &a->hi);
    else
        spk_axis_needs(&a->axis, p->filter, &a->lo, &a->hi);
}

static plan make_plan(const spk_renderer *r, const spk_decoder_info *info, const spk_geometry *g, spk_turn turn)
{
    const spk_image_params *p = &r->params;
    uint32_t w = p->format.width, h = p->format.height;
    spk_centre x = {0, w, 0}, y = {0, h, 0};
    if (p->crop == SPK_CROP_CENTRE) {
        spk_resize_shorter(g->width, g->height, p->resize, &w, &h);
        x = spk_centre_crop(w, p->format.width);
        y = spk_centre_crop(h, p->format.height);
    }
    plan q = {.turn = turn, .denom = choose_denom(p, info->kind, &g->crop, w, h)};
    q.x = plan_axis(g->width, g->crop.x, g->crop.w, w, x, q.denom, turn.mirror_x);
    q.y = plan_axis(g->height, g->crop.y, g->crop.h, h, y, q.denom, turn.mirror_y);
    needs(p, &q.x);
    needs(p, &q.y);
    spk_rect oriented = {q.x.offset + q.x.lo, q.y.offset + q.y.lo, q.x.hi - q.x.lo, q.y.hi - q.y.lo};
    q.stored = spk_turn_back(turn, oriented, turn.swap ? q.y.size : q.x.size, turn.swap ? q.x.size : q.y.size);
    return q;
}

/* ---- rows ---- */

static void put_row(spk_renderer *r, uint32_t y, const uint8_t *row)
{
    uint32_t height = r->params.format.height;
    spk_convert_row(&r->converter, r->out, r->vflip ? height - 1 - y : y, row);
}

/* A row of the resampler; it is narrower than the output where there is padding. */
static void on_output(void *ctx, uint32_t y, const uint8_t *row)
{
    spk_renderer *r = ctx;
    const spk_pixel_format *f = &r->params.format;
    if (r->count_x == f->width) {
        put_row(r, r->pad_y + y, row);
        return;
    }
    uint32_t left = r->hflip ? f->width - r->pad_x - r->count_x : r->pad_x;
    memset(r->padded, 0, (size_t)f->width * f->channels);
    memcpy(r->padded + (size_t)left * f->channels, row, (size_t)r->count_x * f->channels);
    put_row(r, r->pad_y + y, r->padded);
}

static void put_padding(spk_renderer *r)
{
    const spk_pixel_format *f = &r->params.format;
    if (r->count_y == f->height)
        return;
    memset(r->padded, 0, (size_t)f->width * f->channels);
    for (uint32_t y = 0; y < f->height; y++)
        if (y < r->pad_y || y >= r->pad_y + r->count_y)
            put_row(r, y, r->padded);
}

static void feed(spk_renderer *r, const uint8_t *row)
{
    if (r->nearest)
        spk_nearest_row(r->nearest, row);
    else
        spk_resampler_row(r->resampler, row);
}

static void on_pixels(void *ctx, const uint8_t *row)
{
    feed(ctx, row);
}

static void on_kept_pixels(void *ctx, const uint8_t *row)
{
    spk_renderer *r = ctx;
    memcpy(r->part + r->part_bytes, row, r->row_bytes);
    r->part_bytes += r->row_bytes;
}

static spk_status run_turned(spk_renderer *r, spk_decode_job *job, spk_turn turn, spk_error *err)
{
    uint32_t channels = job->channels, w = job->part.w, h = job->part.h;
    uint32_t turned_w = turn.swap ? h : w, turned_h = turn.swap ? w : h;
    r->part_bytes = 0;
    r->row_bytes = (size_t)w * channels;
    SPK_TRY(spk_grow(&r->part, &r->cap_part, r->row_bytes * h, 1, err));
    SPK_TRY(spk_grow(&r->line, &r->cap_line, (size_t)turned_w * channels + SPK_ROW_PAD, 1, err));
    job->row = on_kept_pixels;
    SPK_TRY(spk_decoder_run(r->decoder, job, err));
    for (uint32_t y = 0; y < turned_h; y++) {
        spk_turn_row(turn, r->line, y, r->part, w, h, channels);
        feed(r, r->line);
    }
    return SPK_OK;
}

static spk_status run_plan(spk_renderer *r, const plan *q, spk_error *err)
{
    uint32_t channels = r->params.format.channels;
    spk_resample_job resize = {q->x.axis, q->y.axis, channels, r->params.filter, r->hflip, on_output, r};
    spk_decode_job decode = {q->stored, q->denom, channels, on_pixels, r, r->params.filter == SPK_FILTER_NEAREST};
    r->pad_x = q->x.pad;
    r->pad_y = q->y.pad;
    r->count_x = q->x.axis.count;
    r->count_y = q->y.axis.count;
    SPK_TRY(r->nearest ? spk_nearest_begin(r->nearest, &resize, err) : spk_resampler_begin(r->resampler, &resize, err));
    put_padding(r);
    if (q->turn.swap || q->turn.mirror_x || q->turn.mirror_y)
        return run_turned(r, &decode, q->turn, err);
    return spk_decoder_run(r->decoder, &decode, err);
}

spk_status spk_renderer_run(spk_renderer *r, const void *data, size_t n, const spk_draw_key *key,
                            const spk_geometry *paired, void *out, spk_geometry *used, spk_error *err)
{
    spk_decoder_info info;
    spk_geometry g;
    bool repeat = r->repeat;
    r->repeat = false;
    if (!repeat || !spk_decoder_reopen(r->decoder, &info))
        SPK_TRY(spk_decoder_open(r->decoder, data, n, r->params.max_pixels, &info, err));
    spk_turn turn = spk_turn_of(r->params.exif_orientation ? info.orientation : 1);
    SPK_TRY(
        choose(r, turn.swap ? info.height : info.width, turn.swap ? info.width : info.height, key, paired, &g, err));
    plan q = make_plan(r, &info, &g, turn);
    r->out = out;
    r->hflip = g.hflip;
    r->vflip = g.vflip;
    spk_status status = run_plan(r, &q, err);
    if (r->cap_part > PART_KEPT) {
        free(r->part);
        r->part = NULL;
        r->cap_part = 0;
    }
    if (status == SPK_OK && used)
        *used = g;
    return status;
}

void spk_renderer_repeat(spk_renderer *r)
{
    r->repeat = true;
}

spk_decoder *spk_renderer_decoder(spk_renderer *r)
{
    return r->decoder;
}
