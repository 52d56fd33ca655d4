/* JPEG to rows: with jpeg_baseline.c and, in several scans, jpeg_scans.c, which are faster; what they do not know, and
 * files that they stop in, with libjpeg-turbo, whose errors are the only ones. What was given out before they stopped
 * is not given out again.
 *
 * Of libjpeg: only the part is brought to pixels: rows above are skipped from row 0 on, columns beside are cropped,
 * rows below are never reached. Smooth chroma upsampling looks one chroma sample to either side, so a crop of libjpeg's
 * differs from the whole image in its first and last column; one column more to the left and two to the right, thrown
 * away, make the rest exact.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "image/jpeg_scans.h"
#include "image/jpeg_trap.h"

#define ROWS 16u
#define LEAST 16u /* columns of a crop: a single column of chroma would not be smoothed as in the whole image */

struct spk_jpeg_decode {
    spk_jpeg_trap trap;
    struct jpeg_decompress_struct jpeg;
    uint8_t *rows; /* ROWS rows as libjpeg gives them, each with SPK_ROW_PAD behind */
    uint8_t *line; /* one row converted */
    size_t cap_rows, cap_line;
    spk_jpeg_baseline *baseline; /* made when first used */
    spk_jpeg_scans *scans;       /* that, too */
    uint32_t given;              /* rows that they gave out */
    bool did_own;
};

spk_status spk_jpeg_decode_new(spk_jpeg_decode **out, spk_error *err)
{
    spk_jpeg_decode *d = calloc(1, sizeof *d);
    if (!d)
        return spk_error_nomem(err, sizeof *d);
    spk_status status = spk_jpeg_trap_create(&d->trap, &d->jpeg, err);
    if (status < 0) {
        spk_jpeg_decode_free(d);
        return status;
    }
    *out = d;
    return SPK_OK;
}

void spk_jpeg_decode_free(spk_jpeg_decode *d)
{
    if (!d)
        return;
    spk_jpeg_trap_destroy(&d->trap);
    spk_jpeg_baseline_free(d->baseline);
    spk_jpeg_scans_free(d->scans);
    free(d->rows);
    free(d->line);
    free(d);
}

static spk_status read_header(spk_jpeg_decode *d, const spk_image_job *image, spk_decoder_info *out)
{
    spk_jpeg_trap_header(&d->trap, image->data);
    out->width = d->jpeg.image_width;
    out->height = d->jpeg.image_height;
    out->components = d->jpeg.num_components;
    SPK_TRY(spk_image_limit(image, out->width, out->height, d->trap.err));
    return spk_jpeg_trap_limit(&d->trap);
}

spk_status spk_jpeg_decode_open(spk_jpeg_decode *d, const spk_image_job *image, spk_decoder_info *out, spk_error *err)
{
    spk_jpeg_trap_arm(&d->trap, image->n, err);
    if (setjmp(d->trap.jump) == 0)
        return read_header(d, image, out);
    return d->trap.status;
}

/* What libjpeg is to make of the file's own colours. Anything but gray, RGB, CMYK and their kin comes as it is. */
static void pick_colours(struct jpeg_decompress_struct *j, uint32_t channels)
{
    switch (j->jpeg_color_space) {
    case JCS_GRAYSCALE:
        j->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
        break;
    case JCS_RGB:
    case JCS_YCbCr:
        j->out_color_space = JCS_RGB;
        break;
    case JCS_CMYK:
    case JCS_YCCK:
        j->out_color_space = JCS_CMYK;
        break;
    default:
        j->out_color_space = j->jpeg_color_space;
        break;
    }
}

/* A progressive file may lack the last bits of its coefficients; libjpeg then smooths across blocks, and a crop would
 * cut that short. */
static bool is_smoothed(const struct jpeg_decompress_struct *j)
{
    if (!j->progressive_mode || !j->coef_bits)
        return false;
    for (int c = 0; c < j->num_components; c++)
        for (int i = 0; i < DCTSIZE2; i++)
            if (j->coef_bits[c][i] != 0)
                return true;
    return false;
}

/* Crops and skips; *left is the column of the part in the rows that come. */
static void enter_part(struct jpeg_decompress_struct *j, const spk_rect *part, JSAMPARRAY rows, JDIMENSION *left)
{
    JDIMENSION x0 = part->x > 0 ? part->x - 1 : 0, x1 = part->x + part->w + 2;
    *left = part->x;
    if (is_smoothed(j)) {
        while (j->output_scanline < part->y)
            jpeg_read_scanlines(j, rows, part->y - j->output_scanline < ROWS ? part->y - j->output_scanline : ROWS);
        return;
    }
    x1 = x1 < j->output_width ? x1 : j->output_width;
    if (x1 - x0 < LEAST)
        x0 = x1 > LEAST ? x1 - LEAST : 0;
    if (x0 > 0 || x1 < j->output_width) {
        JDIMENSION width = x1 - x0;
        jpeg_crop_scanline(j, &x0, &width);
        *left = part->x - x0;
    }
    if (part->y > 0)
        jpeg_skip_scanlines(j, part->y);
}

static void emit_row(spk_jpeg_decode *d, const spk_decode_job *job, const uint8_t *row)
{
    uint32_t w = job->part.w, from = (uint32_t)d->jpeg.output_components, to = job->channels;
    uint8_t *line = d->line;
    if (d->jpeg.out_color_space == JCS_CMYK) {
        spk_cmyk_to_rgb(line, row, w);
        if (to == 1)
            spk_rgb_to_gray(line, line, w);
    } else if (from == to) {
        job->row(job->ctx, row);
        return;
    } else if (d->jpeg.out_color_space == JCS_RGB) {
        spk_rgb_to_gray(line, row, w);
    } else { /* two components, or five and more: the first as gray */
        for (uint32_t x = 0; x < w; x++)
            for (uint32_t c = 0; c < to; c++)
                line[(size_t)x * to + c] = row[(size_t)x * from];
    }
    job->row(job->ctx, line);
}

static spk_status decode(spk_jpeg_decode *d, const spk_decode_job *job)
{
    struct jpeg_decompress_struct *j = &d->jpeg;
    JSAMPROW rows[ROWS];
    JDIMENSION left;

    j->scale_num = 1;
    j->scale_denom = job->denom;
    j->dct_method = JDCT_ISLOW;
    j->do_fancy_upsampling = TRUE;
    pick_colours(j, job->channels);
    jpeg_start_decompress(j);
    size_t pixel = (size_t)j->output_components, stride = j->output_width * pixel + SPK_ROW_PAD;
    SPK_TRY(spk_grow(&d->rows, &d->cap_rows, stride * ROWS, 1, d->trap.err));
    SPK_TRY(spk_grow(&d->line, &d->cap_line, 3 * (size_t)job->part.w + SPK_ROW_PAD, 1, d->trap.err));
    for (size_t i = 0; i < ROWS; i++)
        rows[i] = d->rows + i * stride;
    enter_part(j, &job->part, rows, &left);
    for (uint32_t todo = job->part.h; todo > 0;) {
        JDIMENSION got = jpeg_read_scanlines(j, rows, todo < ROWS ? todo : ROWS);
        for (JDIMENSION i = 0; i < got; i++)
            if (job->part.h - todo + i >= d->given)
                emit_row(d, job, rows[i] + left * pixel);
        todo -= got;
    }
    return SPK_OK;
}

static spk_status decode_own(spk_jpeg_decode *d, const spk_decode_job *job, spk_jpeg_engine engine, spk_error *err)
{
    d->given = 0;
    d->did_own = false;
    if (engine == SPK_JPEG_LIBJPEG || job->denom != 1 || (engine == SPK_JPEG_OWN && !spk_jpeg_baseline_is_fast()))
        return SPK_OK;
    if (jpeg_has_multiple_scans(&d->jpeg)) {
        if (!d->scans)
            SPK_TRY(spk_jpeg_scans_new(&d->scans, err));
        SPK_TRY(spk_jpeg_scans_run(d->scans, &d->jpeg, d->trap.file_bytes, job, engine, &d->given, err));
    } else {
        if (!d->baseline)
            SPK_TRY(spk_jpeg_baseline_new(&d->baseline, err));
        SPK_TRY(spk_jpeg_baseline_run(d->baseline, &d->jpeg, job, engine, &d->given, err));
    }
    d->did_own = d->given == job->part.h;
    return SPK_OK;
}

spk_status spk_jpeg_decode_run(spk_jpeg_decode *d, const spk_decode_job *job, spk_jpeg_engine engine, spk_error *err)
{
    spk_jpeg_trap_arm(&d->trap, d->trap.file_bytes, err);
    d->trap.status = decode_own(d, job, engine, err);
    if (d->trap.status == SPK_OK && !d->did_own && setjmp(d->trap.jump) == 0)
        d->trap.status = decode(d, job);
    jpeg_abort_decompress(&d->jpeg);
    return d->trap.status;
}

bool spk_jpeg_decode_did_own(const spk_jpeg_decode *d)
{
    return d->did_own;
}
