/* The decoder: picks the format by content and owns one decoder of each. */
#include "image/decode.h"

#include <stdlib.h>

#include "base/error.h"
#include "image/decoder.h"
#include "image/exif.h"

struct spk_decoder {
    spk_jpeg_decode *jpeg; /* made when the first such image comes */
    spk_stored_decode *stored;
    spk_png_decode *png;
    bool is_stored; /* the image that is open */
    spk_jpeg_engine engine;
    spk_decoder_info info; /* of the image that is open; kind NONE: none is */
    spk_decoder_info held; /* of the image that can be opened anew; kind NONE: none can */
};

spk_status spk_decoder_new(spk_decoder **out, spk_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? SPK_OK : spk_error_nomem(err, sizeof **out);
}

void spk_decoder_free(spk_decoder *d)
{
    if (!d)
        return;
    spk_jpeg_decode_free(d->jpeg);
    spk_stored_decode_free(d->stored);
    spk_png_decode_free(d->png);
    free(d);
}

void spk_decoder_use(spk_decoder *d, spk_jpeg_engine engine)
{
    d->engine = engine;
}

bool spk_decoder_did_own(const spk_decoder *d)
{
    return d->jpeg && spk_jpeg_decode_did_own(d->jpeg);
}

static spk_status open_kind(spk_decoder *d, spk_image_kind kind, const spk_image_job *job, spk_error *err)
{
    if (d->is_stored) {
        if (!d->stored)
            SPK_TRY(spk_stored_decode_new(&d->stored, err));
        return spk_stored_decode_open(d->stored, job, &d->info, err);
    }
    if (kind == SPK_IMAGE_JPEG) {
        if (!d->jpeg)
            SPK_TRY(spk_jpeg_decode_new(&d->jpeg, err));
        return spk_jpeg_decode_open(d->jpeg, job, &d->info, err);
    }
    if (kind == SPK_IMAGE_PNG) {
        if (!d->png)
            SPK_TRY(spk_png_decode_new(&d->png, err));
        return spk_png_decode_open(d->png, job, &d->info, err);
    }
    if (kind == SPK_IMAGE_NONE)
        return spk_error_set(err, SPK_E_FORMAT, job->n ? "not an image (%zu bytes)" : "empty image (%zu bytes)",
                             job->n);
    return spk_error_set(err, SPK_E_UNSUPPORTED, "%s images are not decoded, only JPEG and PNG",
                         spk_image_kind_name(kind));
}

spk_status spk_decoder_open(spk_decoder *d, const void *data, size_t n, uint64_t max_pixels, spk_decoder_info *out,
                            spk_error *err)
{
    spk_image_job job = {data, n, true, max_pixels > 0 ? max_pixels : SPK_IMAGE_PIXELS_DEFAULT};
    d->is_stored = spk_stored_sniff(data, n);
    spk_image_kind kind = d->is_stored ? SPK_IMAGE_JPEG : n > 0 ? spk_image_sniff(data, n) : SPK_IMAGE_NONE;
    d->info = d->held = (spk_decoder_info){0};
    SPK_TRY(open_kind(d, kind, &job, err));
    d->info.kind = kind;
    if (!d->is_stored)
        d->info.orientation = spk_exif_orientation(kind, data, n);
    *out = d->info;
    return SPK_OK;
}

const void *spk_decoder_stored_header(const spk_decoder *d, size_t *n)
{
    return spk_stored_decode_header(d->stored, n);
}

bool spk_decoder_reopen(spk_decoder *d, spk_decoder_info *out)
{
    *out = d->info = d->held;
    return d->held.kind != SPK_IMAGE_NONE;
}

static uint32_t scaled(uint32_t n, uint32_t denom)
{
    return n / denom + (n % denom != 0);
}

static spk_status check_job(const spk_decoder_info *info, const spk_decode_job *job, spk_error *err)
{
    bool whole = job->denom == 1;
    bool known = whole || (info->kind == SPK_IMAGE_JPEG && (job->denom == 2 || job->denom == 4 || job->denom == 8));
    if (info->kind == SPK_IMAGE_NONE)
        return spk_error_set(err, SPK_E_STATE, "no image is open");
    if (!known || (job->channels != 1 && job->channels != 3))
        return spk_error_set(err, SPK_E_INVALID, "cannot decode %s at 1/%u with %u channels",
                             spk_image_kind_name(info->kind), job->denom, job->channels);
    uint32_t w = scaled(info->width, job->denom), h = scaled(info->height, job->denom);
    const spk_rect *p = &job->part;
    if (p->w == 0 || p->h == 0 || p->x >= w || p->y >= h || p->w > w - p->x || p->h > h - p->y)
        return spk_error_set(err, SPK_E_INVALID, "part %ux%u at %u, %u is not inside %ux%u", p->w, p->h, p->x, p->y, w,
                             h);
    return SPK_OK;
}

spk_status spk_decoder_run(spk_decoder *d, const spk_decode_job *job, spk_error *err)
{
    SPK_TRY(check_job(&d->info, job, err));
    spk_decoder_info info = d->info;
    d->info = d->held = (spk_decoder_info){0};
    if (d->is_stored) {
        SPK_TRY(spk_stored_decode_run(d->stored, job, d->engine, err));
        d->held = info;
        return SPK_OK;
    }
    return info.kind == SPK_IMAGE_JPEG ? spk_jpeg_decode_run(d->jpeg, job, d->engine, err)
                                       : spk_png_decode_run(d->png, job, err);
}

void spk_rgb_to_gray(uint8_t *out, const uint8_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 3)
        out[i] = (uint8_t)((in[0] * 19595u + in[1] * 38470u + in[2] * 7471u + 0x8000u) >> 16);
}

static uint8_t ink(uint32_t inverted, uint32_t white)
{
    uint32_t t = (255 - inverted) * white + 128;
    int32_t v = (int32_t)white - (int32_t)(((t >> 8) + t) >> 8);
    return (uint8_t)(v < 0 ? 0 : v);
}

void spk_cmyk_to_rgb(uint8_t *out, const uint8_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 4, out += 3) {
        uint32_t white = in[3]; /* 255 - black, as stored */
        uint8_t r = ink(in[0], white), g = ink(in[1], white), b = ink(in[2], white);
        out[0] = r;
        out[1] = g;
        out[2] = b;
    }
}
