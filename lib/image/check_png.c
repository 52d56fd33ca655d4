/* PNG check with libpng: every row of every pass is decoded, so each IDAT byte goes through inflate and the checksums.
 * Ancillary chunks (colour profiles, texts, times) are checked by CRC and otherwise left alone: libpng warns about
 * many profiles that never hurt a pixel. What warnings remain are about the pixels, and end the check.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/error.h"
#include "image/checker.h"

#define CHUNK_MAX (8u << 20) /* of a chunk that libpng must hold in memory */

struct spk_png_check {
    png_structp png; /* one per image: libpng cannot start over */
    png_infop info;
    const spk_image_job *job;
    size_t at; /* bytes handed to libpng */
    jmp_buf trap;
    spk_status status;
    spk_error *err;
    png_byte *row;
    size_t row_cap;
};

_Noreturn static void fail(spk_png_check *c, const char *text)
{
    c->status = spk_error_set(c->err, SPK_E_FORMAT, "bad PNG: %s (near byte %zu of %zu)", text, c->at, c->job->n);
    longjmp(c->trap, 1);
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
    spk_png_check *c = png_get_io_ptr(png);
    if (n > c->job->n - c->at) {
        c->status = spk_error_set(c->err, SPK_E_FORMAT, "truncated PNG: ends after %zu bytes", c->job->n);
        longjmp(c->trap, 1);
    }
    memcpy(out, c->job->data + c->at, n);
    c->at += n;
}

spk_status spk_png_check_new(spk_png_check **out, spk_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? SPK_OK : spk_error_nomem(err, sizeof **out);
}

void spk_png_check_free(spk_png_check *c)
{
    if (!c)
        return;
    free(c->row);
    free(c);
}

/* libpng's own limit of 1,000,000 on each side stays, so a row has at most 8 MB. */
static spk_status check_header(spk_png_check *c, spk_image_info *out)
{
    png_set_read_fn(c->png, c, on_read);
    png_set_chunk_malloc_max(c->png, CHUNK_MAX);
    png_set_chunk_cache_max(c->png, 100);
    png_set_keep_unknown_chunks(c->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(c->png, c->info);
    out->width = png_get_image_width(c->png, c->info);
    out->height = png_get_image_height(c->png, c->info);
    out->components = png_get_channels(c->png, c->info);
    if (png_get_color_type(c->png, c->info) == PNG_COLOR_TYPE_PALETTE)
        out->components = png_get_valid(c->png, c->info, PNG_INFO_tRNS) ? 4 : 3;
    return spk_image_limit(c->job, out->width, out->height, c->err);
}

static spk_status decode(spk_png_check *c, const spk_image_info *image)
{
    int passes = png_set_interlace_handling(c->png);
    png_start_read_image(c->png);
    size_t bytes = png_get_rowbytes(c->png, c->info);
    if (bytes > c->row_cap) {
        png_byte *fresh = realloc(c->row, bytes);
        if (!fresh)
            return spk_error_nomem(c->err, bytes);
        c->row = fresh;
        c->row_cap = bytes;
    }
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < image->height; y++)
            png_read_row(c->png, c->row, NULL);
    png_read_end(c->png, NULL);
    return SPK_OK;
}

spk_status spk_png_check_run(spk_png_check *c, const spk_image_job *job, spk_image_info *out, spk_error *err)
{
    c->job = job;
    c->err = err;
    c->at = 0;
    c->status = SPK_OK;
    c->png = NULL;
    c->info = NULL;
    if (setjmp(c->trap) == 0) {
        c->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, c, on_error, on_warning);
        c->info = c->png ? png_create_info_struct(c->png) : NULL;
        c->status = c->info ? check_header(c, out) : spk_error_set(err, SPK_E_NOMEM, "PNG decoder: out of memory");
        if (c->status == SPK_OK && job->decode)
            c->status = decode(c, out);
    }
    png_destroy_read_struct(&c->png, &c->info, NULL);
    return c->status;
}

const char *spk_png_version(void)
{
    return "libpng " PNG_LIBPNG_VER_STRING;
}
