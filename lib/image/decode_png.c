/* PNG to rows with libpng. Rows above the part are inflated and dropped, rows below never reached; of an interlaced
 * image the part's rows are kept whole until the last pass. Ancillary chunks are left alone, and what warnings remain
 * are about the pixels and end the image, as in check_png.c.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/buf.h"
#include "image/decoder.h"

#define ROWS_KEPT ((size_t)8 << 20) /* bytes of the buffer that stay for the next image */
#define CHUNK_MAX (8u << 20)        /* of a chunk that libpng must hold in memory */

struct spk_png_decode {
    png_structp png; /* one per image: libpng cannot start over */
    png_infop info;
    spk_image_job image;
    size_t at; /* bytes handed to libpng */
    jmp_buf jump;
    spk_status status;
    spk_error *err;
    uint8_t *rows, *line;
    size_t cap_rows, cap_line;
};

_Noreturn static void fail(spk_png_decode *d, const char *text)
{
    d->status = spk_error_set(d->err, SPK_E_FORMAT, "bad PNG: %s (near byte %zu of %zu)", text, d->at, d->image.n);
    longjmp(d->jump, 1);
}

static void on_error(png_structp png, png_const_charp text)
{
    fail(png_get_error_ptr(png), text);
}

static void on_warning(png_structp png, png_const_charp text)
{
    fail(png_get_error_ptr(png), text);
}

static void on_read(png_structp png, png_bytep out, size_t n)
{
    spk_png_decode *d = png_get_io_ptr(png);
    if (n > d->image.n - d->at) {
        d->status = spk_error_set(d->err, SPK_E_FORMAT, "truncated PNG: ends after %zu bytes", d->image.n);
        longjmp(d->jump, 1);
    }
    memcpy(out, d->image.data + d->at, n);
    d->at += n;
}

spk_status spk_png_decode_new(spk_png_decode **out, spk_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? SPK_OK : spk_error_nomem(err, sizeof **out);
}

void spk_png_decode_free(spk_png_decode *d)
{
    if (!d)
        return;
    png_destroy_read_struct(&d->png, &d->info, NULL);
    free(d->rows);
    free(d->line);
    free(d);
}

/* libpng's own limit of 1,000,000 on each side stays. */
static spk_status read_header(spk_png_decode *d, spk_decoder_info *out)
{
    png_set_read_fn(d->png, d, on_read);
    png_set_chunk_malloc_max(d->png, CHUNK_MAX);
    png_set_chunk_cache_max(d->png, 100);
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(d->png, d->info);
    out->width = png_get_image_width(d->png, d->info);
    out->height = png_get_image_height(d->png, d->info);
    out->components = png_get_channels(d->png, d->info);
    if (png_get_color_type(d->png, d->info) == PNG_COLOR_TYPE_PALETTE)
        out->components = png_get_valid(d->png, d->info, PNG_INFO_tRNS) ? 4 : 3;
    return spk_image_limit(&d->image, out->width, out->height, d->err);
}

spk_status spk_png_decode_open(spk_png_decode *d, const spk_image_job *image, spk_decoder_info *out, spk_error *err)
{
    png_destroy_read_struct(&d->png, &d->info, NULL);
    d->image = *image;
    d->err = err;
    d->at = 0;
    d->status = SPK_OK;
    if (setjmp(d->jump) == 0) {
        d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, on_error, on_warning);
        d->info = d->png ? png_create_info_struct(d->png) : NULL;
        d->status = d->info ? read_header(d, out) : spk_error_set(err, SPK_E_NOMEM, "PNG decoder: out of memory");
    }
    return d->status;
}

/* Everything to 8 bits, gray or RGB or indices of a palette. Returns the bytes of a pixel. */
static size_t set_transforms(spk_png_decode *d, uint32_t channels, bool indices)
{
    int type = png_get_color_type(d->png, d->info);
    if (type == PNG_COLOR_TYPE_PALETTE && channels == 1 && indices) {
        png_set_packing(d->png);
        return 1;
    }
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(d->png);
    else if (type == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(d->png);
    png_set_strip_16(d->png);
    png_set_strip_alpha(d->png);
    if (!(type & PNG_COLOR_MASK_COLOR) && channels == 3)
        png_set_gray_to_rgb(d->png);
    return type & PNG_COLOR_MASK_COLOR || channels == 3 ? 3 : 1;
}

static void emit_row(spk_png_decode *d, const spk_decode_job *job, const uint8_t *row, size_t pixel)
{
    const uint8_t *from = row + job->part.x * pixel;
    if (pixel == job->channels) {
        job->row(job->ctx, from);
        return;
    }
    spk_rgb_to_gray(d->line, from, job->part.w);
    job->row(job->ctx, d->line);
}

static spk_status decode(spk_png_decode *d, const spk_decode_job *job)
{
    size_t pixel = set_transforms(d, job->channels, job->indices);
    uint32_t height = png_get_image_height(d->png, d->info), y0 = job->part.y, y1 = y0 + job->part.h;
    int passes = png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    size_t stride = png_get_rowbytes(d->png, d->info) + SPK_ROW_PAD, kept = passes > 1 ? job->part.h : 0;

    SPK_TRY(spk_grow(&d->rows, &d->cap_rows, stride * (kept + 1), 1, d->err));
    SPK_TRY(spk_grow(&d->line, &d->cap_line, (size_t)job->part.w + SPK_ROW_PAD, 1, d->err));
    uint8_t *one = d->rows + stride * kept; /* behind the rows that are kept */
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < (pass + 1 < passes ? height : y1); y++) {
            bool wanted = y >= y0 && y < y1;
            uint8_t *row = wanted && passes > 1 ? d->rows + stride * (y - y0) : one;
            png_read_row(d->png, row, NULL);
            if (wanted && pass + 1 == passes)
                emit_row(d, job, row, pixel);
        }
    return SPK_OK;
}

spk_status spk_png_decode_run(spk_png_decode *d, const spk_decode_job *job, spk_error *err)
{
    d->err = err;
    d->status = SPK_OK;
    if (setjmp(d->jump) == 0)
        d->status = decode(d, job);
    png_destroy_read_struct(&d->png, &d->info, NULL);
    if (d->cap_rows > ROWS_KEPT) {
        free(d->rows);
        d->rows = NULL;
        d->cap_rows = 0;
    }
    return d->status;
}
