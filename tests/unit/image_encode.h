/* More kinds of JPEG for tests than image_fixture.h makes: any sampling, colour space and Exif orientation. */
#ifndef IMAGE_ENCODE_H
#define IMAGE_ENCODE_H

#include "image_fixture.h"

typedef struct jpeg_kind {
    J_COLOR_SPACE in, stored;
    int h, v; /* sampling of the first component; the others 1 x 1 */
    int h1;   /* horizontal sampling of the second; 0: 1 */
    int progressive;
    unsigned restart; /* MCUs between markers */
    int orientation;  /* 0: no Exif block */
} jpeg_kind;

/* An Exif block of one entry. type 3 SHORT, 4 LONG; big-endian if big. Returns its length. */
static inline size_t make_exif(unsigned char out[64], int orientation, int type, int big)
{
    static const unsigned char little[] = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\0\0\x01\0\0\0\0\0\0\0\0\0\0\0";
    static const unsigned char large[] = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\0\0\0\0\x01\0\0\0\0\0\0\0\0";
    size_t n = sizeof little - 1;
    memcpy(out, big ? large : little, n);
    out[big ? 19 : 18] = (unsigned char)type;
    out[big ? (type == 3 ? 25 : 27) : 24] = (unsigned char)orientation;
    return n;
}

static inline unsigned char *encode_jpeg(unsigned w, unsigned h, const jpeg_kind *kind, size_t *n)
{
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr e;
    unsigned char *out = NULL, exif[64];
    unsigned long size = 0;
    j.err = jpeg_std_error(&e);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &out, &size);
    j.image_width = w;
    j.image_height = h;
    j.in_color_space = kind->in;
    j.input_components = kind->in == JCS_GRAYSCALE ? 1 : kind->in == JCS_CMYK ? 4 : kind->in == JCS_RGB ? 3 : 2;
    jpeg_set_defaults(&j);
    jpeg_set_colorspace(&j, kind->stored);
    for (int c = 0; c < j.num_components; c++) {
        j.comp_info[c].h_samp_factor = c == 0 ? kind->h : c == 1 && kind->h1 ? kind->h1 : 1;
        j.comp_info[c].v_samp_factor = c == 0 ? kind->v : 1;
    }
    j.restart_interval = kind->restart;
    if (kind->progressive)
        jpeg_simple_progression(&j);
    jpeg_start_compress(&j, TRUE);
    if (kind->orientation)
        jpeg_write_marker(&j, JPEG_APP0 + 1, exif,
                          (unsigned)make_exif(exif, kind->orientation, 3, kind->orientation % 2));
    unsigned char *row = malloc((size_t)w * 4);
    unsigned components = (unsigned)j.input_components;
    for (unsigned y = 0; y < h; y++) {
        for (unsigned x = 0; x < w * components; x++)
            row[x] = image_byte(x / components, y, x % components);
        jpeg_write_scanlines(&j, &row, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    free(row);
    *n = size;
    return out;
}

#define JPEG_KINDS                                                                                                     \
    {                                                                                                                  \
        {JCS_RGB, JCS_YCbCr, 2, 2, 0, 0, 0, 0}, {JCS_RGB, JCS_YCbCr, 2, 1, 0, 0, 3, 0},                                \
            {JCS_RGB, JCS_YCbCr, 1, 1, 0, 0, 0, 0}, {JCS_RGB, JCS_YCbCr, 1, 2, 0, 0, 0, 0},                            \
            {JCS_RGB, JCS_YCbCr, 4, 1, 0, 0, 0, 0}, {JCS_RGB, JCS_YCbCr, 2, 2, 0, 1, 0, 0},                            \
            {JCS_RGB, JCS_YCbCr, 2, 1, 0, 1, 0, 0}, {JCS_RGB, JCS_YCbCr, 2, 2, 2, 0, 0, 0},                            \
            {JCS_RGB, JCS_RGB, 1, 1, 0, 0, 0, 0}, {JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 1, 0, 0, 0, 0},                    \
            {JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 1, 0, 1, 0, 0}, {JCS_CMYK, JCS_CMYK, 1, 1, 0, 0, 0, 0},                  \
            {JCS_CMYK, JCS_YCCK, 2, 2, 0, 0, 0, 0}, {JCS_CMYK, JCS_YCCK, 2, 2, 0, 1, 0, 0},                            \
            {JCS_UNKNOWN, JCS_UNKNOWN, 1, 1, 0, 0, 0, 0},                                                              \
    }

#endif
