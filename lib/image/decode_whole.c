/* The public calls that decode single images. Those that take the data at once use a decoder of their own. */
#include <shardpack/image.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "coef/coef.h"
#include "image/decoder.h"

struct spk_image_decoder {
    spk_decoder *decoder;
    spk_decoder_info info; /* of the image that is open */
    uint32_t channels;     /* 0: none is open */
};

spk_status spk_image_decoder_new(spk_image_decoder **out, spk_error *err)
{
    *out = NULL;
    spk_image_decoder *d = calloc(1, sizeof *d);
    if (!d)
        return spk_error_nomem(err, sizeof *d);
    spk_status status = spk_decoder_new(&d->decoder, err);
    if (status < 0)
        free(d);
    else
        *out = d;
    return status;
}

void spk_image_decoder_free(spk_image_decoder *decoder)
{
    if (!decoder)
        return;
    spk_decoder_free(decoder->decoder);
    free(decoder);
}

spk_status spk_image_decoder_open(spk_image_decoder *decoder, const void *data, size_t n,
                                  const spk_image_decode_options *options, spk_image_head *out, spk_error *err)
{
    spk_image_decode_options o = {0};
    memset(out, 0, sizeof *out);
    decoder->channels = 0;
    if (options)
        SPK_TRY(spk_options_copy(&o, sizeof o, options, err));
    uint32_t channels = o.channels == 0 ? 3 : o.channels;
    if (channels != 1 && channels != 3)
        return spk_error_set(err, SPK_E_INVALID, "channels of %u: must be 1 or 3", channels);
    SPK_TRY(spk_decoder_open(decoder->decoder, data, n, o.max_pixels, &decoder->info, err));
    const spk_decoder_info *i = &decoder->info;
    decoder->channels = channels;
    *out = (spk_image_head){i->width, i->height, i->orientation, i->stored};
    return SPK_OK;
}

/* Where the next row goes. */
typedef struct rows {
    uint8_t *at;
    size_t row_bytes;
} rows;

static void put_row(void *ctx, const uint8_t *row)
{
    rows *r = ctx;
    memcpy(r->at, row, r->row_bytes);
    r->at += r->row_bytes;
}

spk_status spk_image_decoder_read(spk_image_decoder *decoder, void *pixels, size_t bytes, spk_error *err)
{
    const spk_decoder_info *i = &decoder->info;
    rows to = {pixels, (size_t)i->width * decoder->channels};
    if (decoder->channels == 0)
        return spk_error_set(err, SPK_E_STATE, "no image is open");
    if (bytes != to.row_bytes * i->height)
        return spk_error_set(err, SPK_E_INVALID, "%zu bytes for an image of %ux%u pixels of %u bytes", bytes, i->width,
                             i->height, decoder->channels);
    const spk_decode_job job = {
        .part = {.w = i->width, .h = i->height}, .denom = 1, .channels = decoder->channels, .row = put_row, .ctx = &to};
    decoder->channels = 0;
    return spk_decoder_run(decoder->decoder, &job, err);
}

spk_status spk_image_decoder_header(const spk_image_decoder *decoder, const void **header, size_t *n, spk_error *err)
{
    *header = NULL;
    *n = 0;
    if (decoder->channels == 0 || !decoder->info.stored)
        return spk_error_set(err, SPK_E_STATE, "no encoded image is open");
    *header = spk_decoder_stored_header(decoder->decoder, n);
    return SPK_OK;
}

spk_status spk_image_get_size(const void *data, size_t n, const spk_image_decode_options *options, uint32_t *width,
                              uint32_t *height, spk_error *err)
{
    spk_image_decoder *d = NULL;
    spk_image_head info = {0};
    spk_status status = spk_image_decoder_new(&d, err);
    if (status == SPK_OK)
        status = spk_image_decoder_open(d, data, n, options, &info, err);
    spk_image_decoder_free(d);
    *width = info.width;
    *height = info.height;
    return status;
}

spk_status spk_image_decode(const void *data, size_t n, const spk_image_decode_options *options, void *pixels,
                            size_t bytes, spk_error *err)
{
    spk_image_decoder *d = NULL;
    spk_image_head info;
    spk_status status = spk_image_decoder_new(&d, err);
    if (status == SPK_OK)
        status = spk_image_decoder_open(d, data, n, options, &info, err);
    if (status == SPK_OK)
        status = spk_image_decoder_read(d, pixels, bytes, err);
    spk_image_decoder_free(d);
    return status;
}

spk_status spk_image_restore(const void *stored, size_t n, void **file, size_t *size, spk_error *err)
{
    spk_coef_reader *r = NULL;
    spk_buf out = {0};
    *file = NULL;
    *size = 0;
    spk_status status = spk_coef_reader_new(&r, err);
    if (status == SPK_OK)
        status = spk_coef_open(r, stored, n, err);
    if (status == SPK_OK)
        status = spk_coef_restore(r, &out, err);
    spk_coef_reader_free(r);
    if (status < 0) {
        spk_error_prefix(err, "bad %s", SPK_COEF_NAME);
        spk_buf_free(&out);
        return status;
    }
    *file = out.data;
    *size = out.len;
    return SPK_OK;
}
