/* libjpeg-turbo reads the file once: all coefficients, then, from those it holds, the pixels. Its warnings end it, so
 * that a file with damage stays as it is. The stored form is opened once, too: for the file, then for the pixels. */
#include "image/transcode.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/coef.h"
#include "coef/optimal.h"
#include "image/decoder.h"
#include "image/jpeg_trap.h"

#define ROWS 16u

struct spk_transcoder {
    spk_jpeg_trap trap;
    struct jpeg_decompress_struct jpeg;
    spk_coef_writer *writer;
    spk_stored_decode *stored;
    spk_coef_header header;
    spk_buf scans, open; /* the header of several scans; without the codes of its tables */
    int16_t *blocks[3];
    size_t cap_blocks[3];
    uint8_t *pixels; /* of libjpeg */
    size_t cap_pixels;
    spk_buf file;
    size_t rest; /* bytes of the file that libjpeg did not need */
    /* of a comparison under way */
    size_t at, row;
    bool same;
};

spk_status spk_transcoder_new(spk_transcoder **out, spk_error *err)
{
    spk_transcoder *t = calloc(1, sizeof *t);
    if (!t)
        return spk_error_nomem(err, sizeof *t);
    spk_status status = spk_jpeg_trap_create(&t->trap, &t->jpeg, err);
    if (status == SPK_OK)
        status = spk_coef_writer_new(&t->writer, err);
    if (status == SPK_OK)
        status = spk_stored_decode_new(&t->stored, err);
    if (status < 0) {
        spk_transcoder_free(t);
        return status;
    }
    *out = t;
    return SPK_OK;
}

void spk_transcoder_free(spk_transcoder *t)
{
    if (!t)
        return;
    spk_jpeg_trap_destroy(&t->trap);
    spk_coef_writer_free(t->writer);
    spk_stored_decode_free(t->stored);
    for (size_t c = 0; c < 3; c++)
        free(t->blocks[c]);
    free(t->pixels);
    spk_buf_free(&t->file);
    spk_buf_free(&t->scans);
    spk_buf_free(&t->open);
    free(t);
}

static spk_status keep_as_it_is(spk_error *err, const char *reason)
{
    return spk_error_set(err, SPK_E_UNSUPPORTED, "%s", reason);
}

/* Whole rows of libjpeg's arrays, dummy blocks of the last MCUs included. */
static void copy_blocks(spk_transcoder *t, uint32_t c, jvirt_barray_ptr array)
{
    const spk_coef_component *k = &t->header.component[c];
    size_t wide = (size_t)t->header.mcus_x * k->h, rows = (size_t)t->header.mcus_y * k->v;
    for (size_t y = 0; y < rows; y++) {
        JBLOCKARRAY row = t->jpeg.mem->access_virt_barray((j_common_ptr)&t->jpeg, array, (JDIMENSION)y, 1, FALSE);
        memcpy(t->blocks[c] + 64 * wide * y, row[0], 64 * wide * sizeof(int16_t));
    }
}

static spk_status read_blocks(spk_transcoder *t)
{
    const spk_coef_header *h = &t->header;
    for (uint32_t c = 0; c < h->components; c++) {
        size_t blocks = (size_t)h->mcus_x * h->component[c].h * h->mcus_y * h->component[c].v;
        SPK_TRY(spk_grow(&t->blocks[c], &t->cap_blocks[c], 64 * blocks, sizeof(int16_t), t->trap.err));
    }
    int got;
    do /* the header has told how many scans there are */
        got = jpeg_consume_input(&t->jpeg);
    while (got != JPEG_REACHED_EOI && got != JPEG_SUSPENDED);
    t->rest = t->jpeg.src->bytes_in_buffer;
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&t->jpeg);
    for (uint32_t c = 0; c < h->components; c++)
        copy_blocks(t, c, arrays[c]);
    return SPK_OK;
}

static spk_status read_pixels(spk_transcoder *t)
{
    JSAMPROW rows[ROWS];
    t->row = (size_t)t->header.width * (size_t)t->jpeg.output_components;
    SPK_TRY(spk_grow(&t->pixels, &t->cap_pixels, t->row * t->header.height, 1, t->trap.err));
    jpeg_start_output(&t->jpeg, t->jpeg.input_scan_number);
    for (JDIMENSION y = t->jpeg.output_scanline; y < t->header.height; y = t->jpeg.output_scanline) {
        JDIMENSION n = t->header.height - y < ROWS ? t->header.height - y : ROWS;
        for (JDIMENSION i = 0; i < n; i++)
            rows[i] = t->pixels + (y + i) * t->row;
        jpeg_read_scanlines(&t->jpeg, rows, n);
    }
    jpeg_finish_output(&t->jpeg);
    return SPK_OK;
}

/* In libjpeg's buffered-image mode, which keeps the coefficients and makes pixels of them when it is asked to. */
static spk_status read_image(spk_transcoder *t, const uint8_t *data)
{
    struct jpeg_decompress_struct *j = &t->jpeg;
    spk_jpeg_trap_header(&t->trap, data);
    SPK_TRY(spk_jpeg_trap_limit(&t->trap));
    j->mem->max_memory_to_use = INT32_MAX; /* all coefficients are held; their number is in bounds */
    j->buffered_image = TRUE;
    j->dct_method = JDCT_ISLOW;
    j->do_fancy_upsampling = TRUE;
    j->out_color_space = t->header.components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(j);
    SPK_TRY(read_blocks(t));
    SPK_TRY(read_pixels(t));
    jpeg_finish_decompress(j);
    return SPK_OK;
}

static spk_status read_file(spk_transcoder *t, const uint8_t *data, size_t n, spk_error *err)
{
    spk_jpeg_trap_arm(&t->trap, n, err);
    if (setjmp(t->trap.jump) == 0)
        t->trap.status = read_image(t, data);
    jpeg_abort_decompress(&t->jpeg);
    if (t->trap.status < 0)
        return t->trap.status == SPK_E_NOMEM ? t->trap.status : keep_as_it_is(err, "damaged");
    return t->rest + 2 <= n - t->header.bytes ? SPK_OK : keep_as_it_is(err, "no end marker");
}

static spk_status make_blob(spk_transcoder *t, const uint8_t *data, size_t n, const spk_buf *header, uint8_t padding,
                            spk_buf *out, spk_error *err)
{
    size_t tail = t->rest + 2; /* from EOI on */
    spk_coef_rest rest = {header->data, header->len, data + n - tail, tail, padding};
    spk_coef_plane planes[3] = {{t->blocks[0]}, {t->blocks[1]}, {t->blocks[2]}};
    out->len = 0;
    return spk_coef_write(t->writer, &t->header, planes, &rest, out, err);
}

/* Nearly all encoders fill the last byte with ones; what the others do shows when the file is restored. */
static spk_status try_header(spk_transcoder *t, const spk_image_job *file, const spk_buf *header, spk_buf *out,
                             spk_error *err)
{
    for (int padding = 1; padding >= 0; padding--) {
        spk_decoder_info info;
        SPK_TRY(make_blob(t, file->data, file->n, header, (uint8_t)padding, out, err));
        spk_image_job image = {out->data, out->len, true, file->max_pixels};
        t->file.len = 0;
        SPK_TRY(spk_stored_decode_open(t->stored, &image, &info, err));
        if (info.width != t->header.width || info.height != t->header.height)
            return keep_as_it_is(err, "other size");
        SPK_TRY(spk_stored_decode_restore(t->stored, &t->file, err));
        if (t->file.len == file->n && memcmp(t->file.data, file->data, file->n) == 0)
            return SPK_OK;
    }
    return keep_as_it_is(err, "the file could not be restored byte for byte");
}

/* In several scans the tables are mostly the best ones for each, as libjpeg makes them, and need not be stored. */
static spk_status make_restorable(spk_transcoder *t, const spk_image_job *file, spk_buf *out, spk_error *err)
{
    spk_buf header = {(uint8_t *)(uintptr_t)file->data, t->header.bytes, 0};
    if (t->header.version == 1)
        return try_header(t, file, &header, out, err);
    t->open.len = 0;
    SPK_TRY(spk_coef_header_open(t->scans.data, t->scans.len, &t->open, err));
    spk_status status = try_header(t, file, &t->open, out, err);
    return status == SPK_OK || status == SPK_E_NOMEM ? status : try_header(t, file, &t->scans, out, err);
}

static void on_row(void *ctx, const uint8_t *row)
{
    spk_transcoder *t = ctx;
    t->same = t->same && memcmp(t->pixels + t->at, row, t->row) == 0;
    t->at += t->row;
}

/* The pixels of the stored form that was restored last against those of libjpeg. */
static spk_status compare_pixels(spk_transcoder *t, spk_error *err)
{
    const spk_coef_header *h = &t->header;
    spk_decode_job job = {{0, 0, h->width, h->height}, 1, h->components, on_row, t, false};
    t->at = 0;
    t->same = true;
    SPK_TRY(spk_stored_decode_run(t->stored, &job, SPK_JPEG_OWN, err));
    return t->same && t->at == t->row * h->height ? SPK_OK : keep_as_it_is(err, "other pixels");
}

static spk_status make_verified(spk_transcoder *t, const spk_image_job *file, spk_buf *out, spk_error *err)
{
    SPK_TRY(make_restorable(t, file, out, err));
    return compare_pixels(t, err);
}

/* *known: it is a file that has a stored form. */
static spk_status parse(spk_transcoder *t, const uint8_t *data, size_t n, bool *known, spk_error *err)
{
    size_t tail = 0;
    *known = spk_coef_header_parse(&t->header, data, n);
    if (*known)
        return SPK_OK;
    t->scans.len = 0;
    SPK_TRY(spk_coef_header_collect(data, n, &t->scans, &tail, err));
    *known = tail > 0 && spk_coef_header_parse_scans(&t->header, t->scans.data, t->scans.len);
    return SPK_OK;
}

/* NOMEM is an error, anything else a result. */
static spk_status settle(spk_status status, spk_transcode_result failed, spk_transcode_result *result)
{
    if (status < 0)
        *result = failed;
    return status == SPK_E_NOMEM ? status : SPK_OK;
}

/* Bytes that the stored form may have more than the file. In several scans JPEG is about as small, but takes libjpeg
 * eight times as long. */
static size_t allowance(const spk_coef_header *h, size_t n)
{
    return h->version > 1 ? n / 32 : 0;
}

spk_status spk_transcode(spk_transcoder *t, const void *data, size_t n, uint64_t max_pixels, spk_buf *out,
                         spk_transcode_result *result, spk_error *err)
{
    spk_error why;
    bool known = false;
    spk_image_job file = {data, n, true, max_pixels > 0 ? max_pixels : SPK_IMAGE_PIXELS_DEFAULT};
    spk_error_clear(&why);
    *result = SPK_TRANSCODED;
    spk_status status = parse(t, data, n, &known, &why);
    if (!known)
        *result = SPK_TRANSCODE_OTHER;
    if (status == SPK_OK && *result == SPK_TRANSCODED)
        status = settle(spk_image_limit(&file, t->header.width, t->header.height, &why), SPK_TRANSCODE_UNEQUAL, result);
    if (status == SPK_OK && *result == SPK_TRANSCODED)
        status = settle(read_file(t, data, n, &why), SPK_TRANSCODE_DAMAGED, result);
    if (status == SPK_OK && *result == SPK_TRANSCODED)
        status = settle(make_verified(t, &file, out, &why), SPK_TRANSCODE_UNEQUAL, result);
    if (status == SPK_OK && *result == SPK_TRANSCODED && out->len >= n + allowance(&t->header, n))
        *result = SPK_TRANSCODE_NO_GAIN;
    if (status < 0 && err)
        *err = why;
    return status;
}
