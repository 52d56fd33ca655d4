/* JPEG check with libjpeg-turbo. All entropy-coded data is decoded, but to one eighth of the size and in the file's own
 * colour space: Huffman decoding, where damage shows, is complete, while IDCT, upsampling and colour conversion, which
 * cannot fail, shrink to next to nothing. Each warning of libjpeg's ends the check (jpeg_trap.h).
 */
#include <stdlib.h>

#include "image/checker.h"
#include "image/jpeg_trap.h"

#define ROWS 16

struct spk_jpeg_check {
    spk_jpeg_trap trap;
    struct jpeg_decompress_struct jpeg;
    JSAMPLE *rows;
    size_t rows_cap;
};

spk_status spk_jpeg_check_new(spk_jpeg_check **out, spk_error *err)
{
    spk_jpeg_check *c = calloc(1, sizeof *c);
    if (!c)
        return spk_error_nomem(err, sizeof *c);
    spk_status status = spk_jpeg_trap_create(&c->trap, &c->jpeg, err);
    if (status < 0) {
        spk_jpeg_check_free(c);
        return status;
    }
    *out = c;
    return SPK_OK;
}

void spk_jpeg_check_free(spk_jpeg_check *c)
{
    if (!c)
        return;
    spk_jpeg_trap_destroy(&c->trap);
    free(c->rows);
    free(c);
}

static spk_status check_header(spk_jpeg_check *c, const spk_image_job *job, spk_image_info *out)
{
    spk_jpeg_trap_header(&c->trap, job->data);
    out->width = c->jpeg.image_width;
    out->height = c->jpeg.image_height;
    out->components = c->jpeg.num_components;
    SPK_TRY(spk_image_limit(job, out->width, out->height, c->trap.err));
    return spk_jpeg_trap_limit(&c->trap);
}

static spk_status decode(spk_jpeg_check *c)
{
    struct jpeg_decompress_struct *j = &c->jpeg;
    j->out_color_space = j->jpeg_color_space;
    j->scale_num = 1;
    j->scale_denom = 8;
    j->dct_method = JDCT_IFAST;
    j->do_fancy_upsampling = FALSE;
    j->do_block_smoothing = FALSE;
    jpeg_start_decompress(j);
    size_t stride = (size_t)j->output_width * (size_t)j->output_components;
    if (stride * ROWS > c->rows_cap) {
        JSAMPLE *fresh = realloc(c->rows, stride * ROWS);
        if (!fresh)
            return spk_error_nomem(c->trap.err, stride * ROWS);
        c->rows = fresh;
        c->rows_cap = stride * ROWS;
    }
    JSAMPROW rows[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        rows[i] = c->rows + i * stride;
    while (j->output_scanline < j->output_height)
        jpeg_read_scanlines(j, rows, ROWS);
    jpeg_finish_decompress(j); /* reads on to the end marker: a missing one shows here */
    return SPK_OK;
}

spk_status spk_jpeg_check_run(spk_jpeg_check *c, const spk_image_job *job, spk_image_info *out, spk_error *err)
{
    spk_jpeg_trap_arm(&c->trap, job->n, err);
    if (setjmp(c->trap.jump) == 0) {
        c->trap.status = check_header(c, job, out);
        if (c->trap.status == SPK_OK && job->decode)
            c->trap.status = decode(c);
    }
    jpeg_abort_decompress(&c->jpeg);
    return c->trap.status;
}

const char *spk_jpeg_version(void)
{
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION);
}
