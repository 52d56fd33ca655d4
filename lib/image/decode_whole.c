/* The public calls that decode single images: a decoder for each call. */
#include <shardpack/image.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "image/decode.h"

/* An open decoder over the caller's data. */
typedef struct whole {
    spk_decoder *decoder;
    spk_decoder_info info;
    spk_image_decode_options options;
} whole;

static spk_status open_whole(whole *w, const void *data, size_t n, const spk_image_decode_options *options,
                             spk_error *err)
{
    memset(w, 0, sizeof *w);
    if (options)
        SPK_TRY(spk_options_copy(&w->options, sizeof w->options, options, err));
    if (w->options.channels == 0)
        w->options.channels = 3;
    if (w->options.channels != 1 && w->options.channels != 3)
        return spk_error_set(err, SPK_E_INVALID, "channels of %u: must be 1 or 3", w->options.channels);
    SPK_TRY(spk_decoder_new(&w->decoder, err));
    return spk_decoder_open(w->decoder, data, n, w->options.max_pixels, &w->info, err);
}

spk_status spk_image_get_size(const void *data, size_t n, const spk_image_decode_options *options, uint32_t *width,
                              uint32_t *height, spk_error *err)
{
    whole w;
    spk_status status = open_whole(&w, data, n, options, err);
    spk_decoder_free(w.decoder);
    *width = w.info.width;
    *height = w.info.height;
    return status;
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

static spk_status decode(whole *w, void *pixels, size_t bytes, spk_error *err)
{
    rows to = {pixels, (size_t)w->info.width * w->options.channels};
    if (bytes != to.row_bytes * w->info.height)
        return spk_error_set(err, SPK_E_INVALID, "%zu bytes for an image of %ux%u pixels of %u bytes", bytes,
                             w->info.width, w->info.height, w->options.channels);
    const spk_decode_job job = {.part = {.w = w->info.width, .h = w->info.height},
                                .denom = 1,
                                .channels = w->options.channels,
                                .row = put_row,
                                .ctx = &to};
    return spk_decoder_run(w->decoder, &job, err);
}

spk_status spk_image_decode(const void *data, size_t n, const spk_image_decode_options *options, void *pixels,
                            size_t bytes, spk_error *err)
{
    whole w;
    spk_status status = open_whole(&w, data, n, options, err);
    if (status == SPK_OK)
        status = decode(&w, pixels, bytes, err);
    spk_decoder_free(w.decoder);
    return status;
}
