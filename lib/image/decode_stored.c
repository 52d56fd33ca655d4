/* JPEG stored as coefficients (format-spec/jpeg_coefficients.md) to rows: what decode_jpeg.c gives for the file itself.
 * Blocks come by class, so that those of nothing but DC need no inverse transform; rows of MCUs above the part are gone
 * past in bulk, blocks beside it too, those below are never reached. At 1/2 and less the file is restored and libjpeg
 * decodes it. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/coef.h"
#include "image/exif.h"
#include "image/jpeg_baseline.h"
#include "image/jpeg_trap.h"

struct spk_stored_decode {
    spk_jpeg_trap trap;
    struct jpeg_decompress_struct jpeg; /* for the header */
    spk_coef_reader *reader;
    spk_jpeg_raster raster;
    spk_jpeg_decode *whole; /* decodes restored files */
    spk_buf file;
    int16_t *dc; /* a component's row of MCUs */
    size_t cap_dc;
    _Alignas(16) int16_t quant[3][64];
    spk_jpeg_shape shape;
    uint64_t max_pixels;
};

bool spk_stored_sniff(const void *data, size_t n)
{
    return n >= 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0;
}

spk_status spk_stored_decode_new(spk_stored_decode **out, spk_error *err)
{
    spk_stored_decode *d = calloc(1, sizeof *d);
    if (!d)
        return spk_error_nomem(err, sizeof *d);
    spk_status status = spk_jpeg_trap_create(&d->trap, &d->jpeg, err);
    if (status == SPK_OK)
        status = spk_coef_reader_new(&d->reader, err);
    if (status < 0) {
        spk_stored_decode_free(d);
        return status;
    }
    *out = d;
    return SPK_OK;
}

void spk_stored_decode_free(spk_stored_decode *d)
{
    if (!d)
        return;
    spk_jpeg_trap_destroy(&d->trap);
    spk_coef_reader_free(d->reader);
    spk_jpeg_raster_free(&d->raster);
    spk_jpeg_decode_free(d->whole);
    spk_buf_free(&d->file);
    free(d->dc);
    free(d);
}

/* Colours, size and tables from the header, which libjpeg reads as it would in the file. */
static spk_status read_header(spk_stored_decode *d, const spk_coef_rest *rest)
{
    const spk_coef_header *h = spk_coef_get_header(d->reader);
    spk_jpeg_trap_header(&d->trap, rest->header);
    bool known = spk_jpeg_shape_of(&d->jpeg, &d->shape) && d->shape.components == h->components &&
                 d->shape.width == h->width && d->shape.height == h->height && d->shape.h == h->component[0].h &&
                 d->shape.v == h->component[0].v;
    for (uint32_t c = 0; c < h->components && known; c++)
        known = spk_jpeg_quant_of(&d->jpeg, c, d->quant[c]);
    return known ? SPK_OK : spk_error_set(d->trap.err, SPK_E_FORMAT, "header of an image that cannot be stored so");
}

static spk_status open_blob(spk_stored_decode *d, const spk_image_job *image, spk_decoder_info *out, spk_error *err)
{
    SPK_TRY(spk_coef_open(d->reader, image->data, image->n, err));
    spk_coef_rest rest = spk_coef_get_rest(d->reader);
    spk_jpeg_trap_arm(&d->trap, rest.header_n, err);
    if (setjmp(d->trap.jump) == 0)
        d->trap.status = read_header(d, &rest);
    jpeg_abort_decompress(&d->jpeg);
    SPK_TRY(d->trap.status);
    *out = (spk_decoder_info){SPK_IMAGE_JPEG, d->shape.width, d->shape.height, (int)d->shape.components, 1, true};
    out->orientation = spk_exif_orientation(SPK_IMAGE_JPEG, rest.header, rest.header_n);
    d->max_pixels = image->max_pixels;
    return spk_image_limit(image, out->width, out->height, err);
}

spk_status spk_stored_decode_open(spk_stored_decode *d, const spk_image_job *image, spk_decoder_info *out,
                                  spk_error *err)
{
    spk_status status = open_blob(d, image, out, err);
    if (status < 0)
        spk_error_prefix(err, "bad %s", SPK_COEF_NAME);
    return status;
}

const void *spk_stored_decode_header(const spk_stored_decode *d, size_t *n)
{
    spk_coef_rest rest = spk_coef_get_rest(d->reader);
    *n = rest.header_n;
    return rest.header;
}

/* Samples of blocks. */
static bool transform(spk_stored_decode *d, uint32_t component, const spk_coef_run *run)
{
    const spk_jpeg_raster *r = &d->raster;
    uint32_t h = component == 0 ? r->shape.h : 1, wide = r->mcus_x * h;
    size_t stride = r->stride[component];
    size_t second = 8 * (stride - wide); /* a second row of blocks begins that much behind the first one's end */
    uint8_t *first = r->plane[component] + r->kept * stride - 8 * (size_t)r->mcu_x0 * h, *out[SPK_COEF_RUN];
    for (uint32_t i = 0; i < run->n; i++)
        out[i] = first + 8 * (size_t)run->blocks[i] + (run->blocks[i] >= wide ? second : 0);
    if (run->coef)
        return r->kernels->idct_pairs(run->coef, out, run->n, d->quant[component], stride);
    bool same = true;
    for (uint32_t i = 0; i < run->n; i++)
        same = spk_jpeg_raster_fill(out[i], stride, d->dc[run->blocks[i]] * d->quant[component][0]) && same;
    return same;
}

static spk_status decode(spk_stored_decode *d, const spk_decode_job *job, bool vectors, bool *same, spk_error *err)
{
    spk_jpeg_raster *r = &d->raster;
    spk_coef_run run;
    SPK_TRY(spk_jpeg_raster_begin(r, &d->shape, job, err));
    SPK_TRY(spk_grow(&d->dc, &d->cap_dc, (size_t)r->mcus_x * 4 + SPK_COEF_DC_ROOM, sizeof *d->dc, err));
    SPK_TRY(spk_coef_begin(d->reader, vectors, err));
    spk_coef_skip(d->reader, r->mcu_y0);
    for (uint32_t y = r->mcu_y0; y < r->mcu_y1 && *same; y++) {
        for (uint32_t c = 0; c < d->shape.components; c++) {
            spk_coef_row(d->reader, c, r->mcu_x0, r->mcu_x1, d->dc);
            while (spk_coef_next(d->reader, &run))
                *same = transform(d, c, &run) && *same;
        }
        if (*same)
            spk_jpeg_raster_emit(r, y);
    }
    return SPK_OK;
}

/* What only libjpeg does. `given`: rows that were given out already. */
typedef struct later_rows {
    const spk_decode_job *job;
    uint32_t given;
} later_rows;

static void on_later_row(void *ctx, const uint8_t *row)
{
    later_rows *l = ctx;
    if (l->given > 0)
        l->given--;
    else
        l->job->row(l->job->ctx, row);
}

static spk_status decode_restored(spk_stored_decode *d, const spk_decode_job *job, uint32_t given, spk_error *err)
{
    spk_decoder_info info = {0};
    later_rows later = {job, given};
    spk_decode_job other = *job;
    other.row = on_later_row;
    other.ctx = &later;
    d->file.len = 0;
    if (!d->whole)
        SPK_TRY(spk_jpeg_decode_new(&d->whole, err));
    SPK_TRY(spk_coef_restore(d->reader, &d->file, err));
    spk_image_job image = {d->file.data, d->file.len, true, d->max_pixels};
    SPK_TRY(spk_jpeg_decode_open(d->whole, &image, &info, err));
    return spk_jpeg_decode_run(d->whole, &other, SPK_JPEG_LIBJPEG, err);
}

spk_status spk_stored_decode_run(spk_stored_decode *d, const spk_decode_job *job, spk_jpeg_engine engine,
                                 spk_error *err)
{
    const spk_jpeg_kernels *vector = engine == SPK_JPEG_OWN ? spk_jpeg_kernels_vector() : NULL;
    bool same = true;
    if (job->denom != 1 || engine == SPK_JPEG_LIBJPEG)
        return decode_restored(d, job, 0, err);
    d->raster.kernels = vector ? vector : &spk_jpeg_kernels_plain;
    SPK_TRY(decode(d, job, engine == SPK_JPEG_OWN, &same, err));
    return same ? SPK_OK : decode_restored(d, job, d->raster.next_y - job->part.y, err);
}

spk_status spk_stored_decode_restore(spk_stored_decode *d, spk_buf *out, spk_error *err)
{
    return spk_coef_restore(d->reader, out, err);
}
