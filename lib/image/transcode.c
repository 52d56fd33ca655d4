/* Coefficients are read by libjpeg-turbo, whose warnings end it: a file with damage stays as it is. */
#include "image/transcode.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/coef.h"
#include "image/decoder.h"
#include "image/jpeg_trap.h"

struct spk_transcoder {
    spk_jpeg_trap trap;
    struct jpeg_decompress_struct jpeg;
    spk_coef_writer *writer;
    spk_coef_reader *reader;
    spk_decoder *decoder;
    spk_coef_header header;
    int16_t *blocks[3];
    size_t cap_blocks[3];
    uint8_t *pixels; /* of libjpeg */
    size_t cap_pixels;
    spk_buf file;
    size_t rest; /* bytes of the file that libjpeg did not need */
    /* of a comparison under way */
    size_t at, row;
    bool first, same;
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
        status = spk_coef_reader_new(&t->reader, err);
    if (status == SPK_OK)
        status = spk_decoder_new(&t->decoder, err);
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
    spk_coef_reader_free(t->reader);
    spk_decoder_free(t->decoder);
    for (size_t c = 0; c < 3; c++)
        free(t->blocks[c]);
    free(t->pixels);
    spk_buf_free(&t->file);
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

static spk_status read_blocks(spk_transcoder *t, const uint8_t *data, size_t n)
{
    const spk_coef_header *h = &t->header;
    spk_jpeg_trap_header(&t->trap, data);
    SPK_TRY(spk_jpeg_trap_limit(&t->trap));
    t->jpeg.mem->max_memory_to_use = INT32_MAX; /* all coefficients are held; their number is in bounds */
    for (uint32_t c = 0; c < h->components; c++) {
        size_t blocks = (size_t)h->mcus_x * h->component[c].h * h->mcus_y * h->component[c].v;
        SPK_TRY(spk_grow(&t->blocks[c], &t->cap_blocks[c], 64 * blocks, sizeof(int16_t), t->trap.err));
    }
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&t->jpeg);
    for (uint32_t c = 0; c < h->components; c++)
        copy_blocks(t, c, arrays[c]);
    jpeg_finish_decompress(&t->jpeg);
    t->rest = t->jpeg.src->bytes_in_buffer;
    return t->rest <= n ? SPK_OK : keep_as_it_is(t->trap.err, "end not found");
}

static spk_status read_file(spk_transcoder *t, const uint8_t *data, size_t n, spk_error *err)
{
    spk_jpeg_trap_arm(&t->trap, n, err);
    if (setjmp(t->trap.jump) == 0)
        t->trap.status = read_blocks(t, data, n);
    jpeg_abort_decompress(&t->jpeg);
    if (t->trap.status < 0)
        return t->trap.status == SPK_E_NOMEM ? t->trap.status : keep_as_it_is(err, "damaged");
    return t->rest + 2 <= n - t->header.bytes ? SPK_OK : keep_as_it_is(err, "no end marker");
}

static spk_status make_blob(spk_transcoder *t, const uint8_t *data, size_t n, uint8_t padding, spk_buf *out,
                            spk_error *err)
{
    size_t tail = t->rest + 2; /* from EOI on */
    spk_coef_rest rest = {data, t->header.bytes, data + n - tail, tail, padding};
    spk_coef_plane planes[3] = {{t->blocks[0]}, {t->blocks[1]}, {t->blocks[2]}};
    out->len = 0;
    return spk_coef_write(t->writer, &t->header, planes, &rest, out, err);
}

/* Nearly all encoders fill the last byte with ones; what the others do shows when the file is restored. */
static spk_status make_restorable(spk_transcoder *t, const void *data, size_t n, spk_buf *out, spk_error *err)
{
    for (int padding = 1; padding >= 0; padding--) {
        SPK_TRY(make_blob(t, data, n, (uint8_t)padding, out, err));
        t->file.len = 0;
        SPK_TRY(spk_coef_open(t->reader, out->data, out->len, err));
        SPK_TRY(spk_coef_restore(t->reader, &t->file, err));
        if (t->file.len == n && memcmp(t->file.data, data, n) == 0)
            return SPK_OK;
    }
    return keep_as_it_is(err, "the file could not be restored byte for byte");
}

static void on_row(void *ctx, const uint8_t *row)
{
    spk_transcoder *t = ctx;
    if (t->first)
        memcpy(t->pixels + t->at, row, t->row);
    else if (memcmp(t->pixels + t->at, row, t->row) != 0)
        t->same = false;
    t->at += t->row;
}

static spk_status decode(spk_transcoder *t, const void *data, size_t n, uint64_t max_pixels, bool first, spk_error *err)
{
    spk_decoder_info info;
    spk_decoder_use(t->decoder, first ? SPK_JPEG_LIBJPEG : SPK_JPEG_OWN);
    SPK_TRY(spk_decoder_open(t->decoder, data, n, max_pixels, &info, err));
    spk_decode_job job = {{0, 0, info.width, info.height}, 1, info.components == 1 ? 1 : 3, on_row, t, false};
    size_t row = (size_t)info.width * job.channels, bytes = row * info.height;
    if (first)
        SPK_TRY(spk_grow(&t->pixels, &t->cap_pixels, bytes, 1, err));
    else if (row != t->row || bytes > t->cap_pixels)
        return keep_as_it_is(err, "other size");
    t->row = row;
    t->at = 0;
    t->first = first;
    t->same = true;
    SPK_TRY(spk_decoder_run(t->decoder, &job, err));
    return t->same ? SPK_OK : keep_as_it_is(err, "other pixels");
}

static spk_status verify(spk_transcoder *t, const void *data, size_t n, uint64_t max_pixels, const spk_buf *blob,
                         spk_error *err)
{
    SPK_TRY(decode(t, data, n, max_pixels, true, err));
    return decode(t, blob->data, blob->len, max_pixels, false, err);
}

/* NOMEM is an error, anything else a result. */
static spk_status settle(spk_status status, spk_transcode_result failed, spk_transcode_result *result)
{
    if (status < 0)
        *result = failed;
    return status == SPK_E_NOMEM ? status : SPK_OK;
}

spk_status spk_transcode(spk_transcoder *t, const void *data, size_t n, uint64_t max_pixels, spk_buf *out,
                         spk_transcode_result *result, spk_error *err)
{
    spk_error why;
    spk_error_clear(&why);
    *result = SPK_TRANSCODED;
    if (!spk_coef_header_parse(&t->header, data, n)) {
        *result = SPK_TRANSCODE_OTHER;
        return SPK_OK;
    }
    spk_status status = settle(read_file(t, data, n, &why), SPK_TRANSCODE_DAMAGED, result);
    if (status == SPK_OK && *result == SPK_TRANSCODED)
        status = settle(make_restorable(t, data, n, out, &why), SPK_TRANSCODE_UNEQUAL, result);
    if (status == SPK_OK && *result == SPK_TRANSCODED)
        status = settle(verify(t, data, n, max_pixels, out, &why), SPK_TRANSCODE_UNEQUAL, result);
    if (status == SPK_OK && *result == SPK_TRANSCODED && out->len >= n)
        *result = SPK_TRANSCODE_NO_GAIN;
    if (status < 0 && err)
        *err = why;
    return status;
}
