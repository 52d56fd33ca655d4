/* JPEG files of every make that an own decoder may meet: quality, sampling, tables, restart markers, contents. */
#ifndef JPEG_VARIANTS_H
#define JPEG_VARIANTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/rng.h"

typedef enum jpeg_content {
    CONTENT_SMOOTH, /* waves with a little noise */
    CONTENT_NOISE,  /* each byte at random */
    CONTENT_EDGES,  /* 0 and 255 */
    CONTENT_FLAT
} jpeg_content;

typedef struct jpeg_variant {
    unsigned width, height;
    J_COLOR_SPACE stored; /* JCS_GRAYSCALE, JCS_YCbCr or JCS_RGB */
    int h, v;             /* sampling of the first component */
    int quality;
    int optimize, progressive;
    unsigned restart;   /* MCUs between markers */
    unsigned wide_step; /* if not 0: 16-bit quantisation tables that grow by this */
    jpeg_content content;
} jpeg_variant;

static inline unsigned char variant_byte(const jpeg_variant *v, unsigned x, unsigned y, unsigned c, spk_rng *rng)
{
    unsigned noise = (unsigned)spk_rng_below(rng, 256);
    switch (v->content) {
    case CONTENT_NOISE:
        return (unsigned char)noise;
    case CONTENT_EDGES:
        return noise % 2 ? 255 : 0;
    case CONTENT_FLAT:
        return (unsigned char)(90 + 40 * c);
    default:
        return (unsigned char)(x * (3 + c) + y * 5 + x * y / 32 + noise % 24);
    }
}

static inline void variant_message(j_common_ptr info)
{
    (void)info; /* it warns of 16-bit tables */
}

/* script NULL: one scan, or libjpeg's own script if progressive. */
static inline unsigned char *encode_scans(const jpeg_variant *v, const jpeg_scan_info *script, int scans, spk_rng *rng,
                                          size_t *n)
{
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr e;
    unsigned char *out = NULL;
    unsigned long size = 0;
    unsigned components = v->stored == JCS_GRAYSCALE ? 1 : 3;
    unsigned char *row = malloc((size_t)v->width * 3);
    j.err = jpeg_std_error(&e);
    e.output_message = variant_message;
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &out, &size);
    j.image_width = v->width;
    j.image_height = v->height;
    j.input_components = (int)components;
    j.in_color_space = components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&j);
    jpeg_set_colorspace(&j, v->stored);
    jpeg_set_quality(&j, v->quality, TRUE);
    for (int c = 0; c < j.num_components; c++) {
        j.comp_info[c].h_samp_factor = c == 0 ? v->h : 1;
        j.comp_info[c].v_samp_factor = c == 0 ? v->v : 1;
    }
    for (unsigned i = 0; i < 64 && v->wide_step; i++) /* all odd: at 8192 the encoder divides by zero */
        for (int t = 0; t < 2; t++)
            if (j.quant_tbl_ptrs[t])
                j.quant_tbl_ptrs[t]->quantval[i] = (UINT16)((1 + i * v->wide_step) | 1);
    j.optimize_coding = v->optimize ? TRUE : FALSE;
    j.restart_interval = v->restart;
    if (v->progressive)
        jpeg_simple_progression(&j);
    if (script) {
        j.scan_info = script;
        j.num_scans = scans;
    }
    jpeg_start_compress(&j, TRUE);
    for (unsigned y = 0; y < v->height; y++) {
        for (unsigned x = 0; x < v->width * components; x++)
            row[x] = variant_byte(v, x / components, y, x % components, rng);
        jpeg_write_scanlines(&j, &row, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    free(row);
    *n = size;
    return out;
}

static inline unsigned char *encode_variant(const jpeg_variant *v, spk_rng *rng, size_t *n)
{
    return encode_scans(v, NULL, 0, rng, n);
}

#endif
