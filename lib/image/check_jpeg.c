/* JPEG check with libjpeg-turbo. All entropy-coded data is decoded, but to one eighth of the size and in the file's own
 * colour space: Huffman decoding, where damage shows, is complete, while IDCT, upsampling and colour conversion, which
 * cannot fail, shrink to next to nothing. One decompressor is kept; jpeg_abort between images keeps its small pools.
 *
 * libjpeg reports corruption mostly as warnings and goes on with grey; here each one ends the check.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/error.h"
#include "image/checker.h"

#define ROWS 16

struct spk_jpeg_check {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf trap;
    const spk_image_job *job;
    spk_status status; /* set where a trap was sprung with more than libjpeg's own text */
    spk_error *err;
    JSAMPLE *rows;
    size_t rows_cap;
    bool created;
};

/* Where libjpeg stands in the file; it reads a byte or two ahead. */
static size_t position(const spk_jpeg_check *c)
{
    size_t left = c->jpeg.src ? c->jpeg.src->bytes_in_buffer : 0;
    return left <= c->job->n ? c->job->n - left : c->job->n;
}

_Noreturn static void spring(j_common_ptr common)
{
    spk_jpeg_check *c = common->client_data;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    size_t len = strlen(text);
    if (len > 0 && text[len - 1] == '.')
        text[len - 1] = '\0';
    if (common->err->msg_code == JERR_OUT_OF_MEMORY)
        c->status = spk_error_set(c->err, SPK_E_NOMEM, "JPEG: %s", text);
    else if (common->err->msg_code == JWRN_JPEG_EOF || common->err->msg_code == JERR_INPUT_EOF)
        c->status = spk_error_set(c->err, SPK_E_FORMAT, "truncated JPEG: %s after %zu bytes", text, c->job->n);
    else
        c->status =
            spk_error_set(c->err, SPK_E_FORMAT, "bad JPEG: %s (near byte %zu of %zu)", text, position(c), c->job->n);
    longjmp(c->trap, 1);
}

static void on_message(j_common_ptr common, int level)
{
    if (level < 0)
        spring(common);
}

static void on_output(j_common_ptr common)
{
    (void)common; /* the library never prints */
}

/* Called while scans are consumed. */
static void on_progress(j_common_ptr common)
{
    spk_jpeg_check *c = common->client_data;
    if (c->jpeg.input_scan_number > SPK_JPEG_SCANS_MAX) {
        c->status = spk_error_set(c->err, SPK_E_LIMIT, "JPEG with more than %d scans", SPK_JPEG_SCANS_MAX);
        longjmp(c->trap, 1);
    }
}

spk_status spk_jpeg_check_new(spk_jpeg_check **out, spk_error *err)
{
    spk_jpeg_check *c = calloc(1, sizeof *c);
    if (!c)
        return spk_error_nomem(err, sizeof *c);
    static const spk_image_job none = {0};
    c->job = &none;
    c->err = err;
    c->jpeg.err = jpeg_std_error(&c->errors);
    c->jpeg.client_data = c;
    c->errors.error_exit = spring;
    c->errors.emit_message = on_message;
    c->errors.output_message = on_output;
    c->progress.progress_monitor = on_progress;
    if (setjmp(c->trap)) {
        spk_status status = c->status;
        spk_jpeg_check_free(c);
        return status;
    }
    jpeg_create_decompress(&c->jpeg); /* keeps err and client_data */
    c->created = true;
    c->jpeg.progress = &c->progress;
    *out = c;
    return SPK_OK;
}

void spk_jpeg_check_free(spk_jpeg_check *c)
{
    if (!c)
        return;
    if (c->created)
        jpeg_destroy_decompress(&c->jpeg);
    free(c->rows);
    free(c);
}

/* Bounds what the header makes libjpeg allocate, before it does. A Huffman-coded image spends at least one bit on each
 * block of 64 coefficients, so a header that promises more blocks than the file has bits is a bomb or a stump. */
static spk_status check_blocks(spk_jpeg_check *c)
{
    const struct jpeg_decompress_struct *j = &c->jpeg;
    uint64_t blocks = 0;
    for (int i = 0; i < j->num_components; i++)
        blocks += (uint64_t)j->comp_info[i].width_in_blocks * j->comp_info[i].height_in_blocks;
    if (!j->arith_code && blocks > 8 * (uint64_t)c->job->n)
        return spk_error_set(c->err, SPK_E_FORMAT,
                             "truncated JPEG: %u x %u pixels need at least %llu bytes, the file has %zu",
                             j->image_width, j->image_height, (unsigned long long)(blocks / 8), c->job->n);
    /* Coefficients of a progressive image are kept: 2 bytes each, and padding at the borders. */
    uint64_t memory = blocks * 128 + blocks * 32 + (16u << 20);
    c->jpeg.mem->max_memory_to_use = memory < INT32_MAX ? (long)memory : INT32_MAX;
    return SPK_OK;
}

static spk_status check_header(spk_jpeg_check *c, spk_image_info *out)
{
    struct jpeg_decompress_struct *j = &c->jpeg;
    c->jpeg.mem->max_memory_to_use = 16L << 20;
    jpeg_mem_src(j, c->job->data, c->job->n);
    jpeg_read_header(j, TRUE);
    out->width = j->image_width;
    out->height = j->image_height;
    out->components = j->num_components;
    SPK_TRY(spk_image_limit(c->job, j->image_width, j->image_height, c->err));
    return check_blocks(c);
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
            return spk_error_nomem(c->err, stride * ROWS);
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
    c->job = job;
    c->err = err;
    c->status = SPK_OK;
    c->errors.num_warnings = 0;
    if (setjmp(c->trap) == 0) {
        c->status = check_header(c, out);
        if (c->status == SPK_OK && job->decode)
            c->status = decode(c);
    }
    jpeg_abort_decompress(&c->jpeg);
    return c->status;
}

const char *spk_jpeg_version(void)
{
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION);
}
