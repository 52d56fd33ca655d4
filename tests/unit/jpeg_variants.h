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

static inline uint32_t variant_pick(spk_rng *rng, uint32_t low, uint32_t high)
{
    return low + (uint32_t)spk_rng_below(rng, high - low + 1);
}

/* Coefficients that no picture has: libjpeg's vector code overflows in its own way. */
static inline unsigned char *encode_wild(const jpeg_variant *v, const jpeg_scan_info *script, int scans, spk_rng *rng,
                                         size_t *n)
{
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    struct jpeg_error_mgr e;
    unsigned char *data = NULL, *p = encode_variant(v, rng, n);
    unsigned long size = 0;
    in.err = out.err = jpeg_std_error(&e);
    e.output_message = variant_message;
    jpeg_create_decompress(&in);
    jpeg_create_compress(&out);
    jpeg_mem_src(&in, p, *n);
    jpeg_mem_dest(&out, &data, &size);
    jpeg_read_header(&in, TRUE);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&in);
    jpeg_copy_critical_parameters(&in, &out);
    for (int c = 0; c < in.num_components; c++)
        for (JDIMENSION y = 0; y < in.comp_info[c].height_in_blocks; y++) {
            JBLOCKARRAY row = in.mem->access_virt_barray((j_common_ptr)&in, arrays[c], y, 1, TRUE);
            for (JDIMENSION x = 0; x < in.comp_info[c].width_in_blocks; x++)
                for (uint32_t k = variant_pick(rng, 0, 8); k > 0; k--)
                    row[0][x][variant_pick(rng, 0, 2) ? variant_pick(rng, 0, 7) : variant_pick(rng, 0, 63)] =
                        (JCOEF)((int)variant_pick(rng, 0, 2046) - 1023);
        }
    for (int t = 0; t < NUM_QUANT_TBLS; t++)
        for (int i = 0; i < 64 && out.quant_tbl_ptrs[t]; i++)
            out.quant_tbl_ptrs[t]->quantval[i] =
                (UINT16)(variant_pick(rng, 0, 3) ? variant_pick(rng, 1, 60) : variant_pick(rng, 1, 65535));
    if (script) {
        out.scan_info = script;
        out.num_scans = scans;
    }
    jpeg_write_coefficients(&out, arrays);
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
    jpeg_finish_decompress(&in);
    jpeg_destroy_decompress(&in);
    free(p);
    *n = size;
    return data;
}

#endif
