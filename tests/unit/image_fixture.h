/* Small JPEG and PNG images for tests, made by the libraries themselves: gradients with some noise. */
#ifndef IMAGE_FIXTURE_H
#define IMAGE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

static inline unsigned char image_byte(unsigned x, unsigned y, unsigned c)
{
    unsigned v = x * 3 + y * 5 + c * 40 + ((x * 7919 + y * 104729 + c) % 31);
    return (unsigned char)v;
}

/* components: 1, 3 or 4 (CMYK). progressive 2: sequential with a scan for each of three components. The result is
 * malloc'ed. */
static inline unsigned char *make_jpeg(unsigned w, unsigned h, int components, int progressive, size_t *n)
{
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr e;
    unsigned char *out = NULL;
    unsigned long size = 0;
    unsigned char *row = malloc((size_t)w * 4);
    j.err = jpeg_std_error(&e);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &out, &size);
    j.image_width = w;
    j.image_height = h;
    j.input_components = components;
    j.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&j);
    static const jpeg_scan_info apart[3] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    if (progressive == 1)
        jpeg_simple_progression(&j);
    if (progressive == 2) {
        j.scan_info = apart;
        j.num_scans = 3;
    }
    jpeg_start_compress(&j, TRUE);
    for (unsigned y = 0; y < h; y++) {
        for (unsigned x = 0; x < w * (unsigned)components; x++)
            row[x] = image_byte(x / (unsigned)components, y, x % (unsigned)components);
        jpeg_write_scanlines(&j, &row, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    free(row);
    *n = size;
    return out;
}

typedef struct png_memory {
    unsigned char *p;
    size_t n;
} png_memory;

static inline void png_memory_write(png_structp png, png_bytep p, size_t n)
{
    png_memory *m = png_get_io_ptr(png);
    m->p = realloc(m->p, m->n + n);
    memcpy(m->p + m->n, p, n);
    m->n += n;
}

static inline unsigned char *make_png(unsigned w, unsigned h, int color, int depth, int interlaced, size_t *n)
{
    png_memory m = {NULL, 0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &m, png_memory_write, NULL);
    png_set_IHDR(png, info, w, h, depth, color, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
    png_color palette[256];
    for (int i = 0; i < 256; i++)
        palette[i] = (png_color){(png_byte)i, (png_byte)(255 - i), (png_byte)(i * 3)};
    if (color == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, palette, 1 << depth);
    png_write_info(png, info);
    unsigned char *row = malloc((size_t)w * 8 + 8);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (unsigned y = 0; y < h; y++) {
            for (unsigned x = 0; x < w * 8; x++)
                row[x] = image_byte(x, y, 0);
            png_write_row(png, row);
        }
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(row);
    *n = m.n;
    return m.p;
}

#endif
