/* libjpeg writes the other file, as jpegtran would; it is then transcoded like any file. That both have the same pixels
 * is not taken from the arithmetic but seen. */
#include "image/transcode_pixels.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/decoder.h"
#include "image/jpeg_trap.h"

#define MARKER_MAX 0xFFFF /* a whole APPn or COM segment is kept */
#define FILE_ROOM 4096u   /* at least, for libjpeg to go on writing */

struct spk_pixel_transcoder {
    spk_jpeg_trap trap; /* first: what libjpeg calls finds the transcoder by it */
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    struct jpeg_destination_mgr to; /* our own: libjpeg's loses its memory when writing fails */
    bool out_created;
    spk_decoder *decoder;
    spk_buf file; /* the other file; its room is libjpeg's while it writes */
    uint8_t *pixels;
    size_t cap_pixels;
    /* of a comparison under way */
    size_t at, row;
    bool first, same;
};

spk_status spk_pixel_transcoder_new(spk_pixel_transcoder **out, spk_error *err)
{
    spk_pixel_transcoder *t = calloc(1, sizeof *t);
    if (!t)
        return spk_error_nomem(err, sizeof *t);
    spk_status status = spk_jpeg_trap_create(&t->trap, &t->in, err);
    if (status == SPK_OK)
        status = spk_decoder_new(&t->decoder, err);
    if (status < 0) {
        spk_pixel_transcoder_free(t);
        return status;
    }
    *out = t;
    return SPK_OK;
}

static void end_writing(spk_pixel_transcoder *t)
{
    if (t->out_created)
        jpeg_destroy_compress(&t->out);
    t->out_created = false;
}

void spk_pixel_transcoder_free(spk_pixel_transcoder *t)
{
    if (!t)
        return;
    end_writing(t);
    spk_jpeg_trap_destroy(&t->trap);
    spk_decoder_free(t->decoder);
    spk_buf_free(&t->file);
    free(t->pixels);
    free(t);
}

/* Makes room behind what was written. */
static void give_room(spk_pixel_transcoder *t)
{
    t->trap.status = spk_buf_reserve(&t->file, FILE_ROOM, t->trap.err);
    if (t->trap.status < 0)
        longjmp(t->trap.jump, 1);
    t->to.next_output_byte = t->file.data + t->file.len;
    t->to.free_in_buffer = t->file.cap - t->file.len;
}

static void on_begin(j_compress_ptr out)
{
    spk_pixel_transcoder *t = out->client_data;
    t->file.len = 0;
    give_room(t);
}

/* All of the room is in use, whatever free_in_buffer says. */
static boolean on_full(j_compress_ptr out)
{
    spk_pixel_transcoder *t = out->client_data;
    t->file.len = t->file.cap;
    give_room(t);
    return TRUE;
}

static void on_end(j_compress_ptr out)
{
    spk_pixel_transcoder *t = out->client_data;
    t->file.len = t->file.cap - t->to.free_in_buffer;
}

/* libjpeg writes JFIF's and Adobe's segments by itself. */
static bool is_written(const struct jpeg_compress_struct *out, const struct jpeg_marker_struct *m)
{
    return (out->write_JFIF_header && m->marker == JPEG_APP0 && m->data_length >= 5 &&
            memcmp(m->data, "JFIF\0", 5) == 0) ||
           (out->write_Adobe_marker && m->marker == JPEG_APP0 + 14 && m->data_length >= 5 &&
            memcmp(m->data, "Adobe", 5) == 0);
}

/* Reads the header again, now keeping what other programs put into the file. */
static void read_markers(spk_pixel_transcoder *t, const void *data)
{
    jpeg_abort_decompress(&t->in);
    jpeg_mem_src(&t->in, data, t->trap.file_bytes);
    for (int i = 0; i < 16; i++)
        jpeg_save_markers(&t->in, JPEG_APP0 + i, MARKER_MAX);
    jpeg_save_markers(&t->in, JPEG_COM, MARKER_MAX);
    jpeg_read_header(&t->in, TRUE);
}

static spk_status write_file(spk_pixel_transcoder *t, const void *data)
{
    spk_jpeg_trap_header(&t->trap, data);
    SPK_TRY(spk_jpeg_trap_limit(&t->trap));
    t->in.mem->max_memory_to_use = INT32_MAX; /* all coefficients are held; their number is in bounds */
    read_markers(t, data);
    t->out.err = t->in.err;
    t->out.client_data = &t->trap;
    jpeg_create_compress(&t->out);
    t->out_created = true;
    t->to = (struct jpeg_destination_mgr){
        .init_destination = on_begin, .empty_output_buffer = on_full, .term_destination = on_end};
    t->out.dest = &t->to;
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&t->in);
    jpeg_copy_critical_parameters(&t->in, &t->out);
    t->out.optimize_coding = TRUE;
    jpeg_write_coefficients(&t->out, arrays);
    for (const struct jpeg_marker_struct *m = t->in.marker_list; m; m = m->next)
        if (!is_written(&t->out, m))
            jpeg_write_marker(&t->out, m->marker, m->data, m->data_length);
    jpeg_finish_compress(&t->out);
    jpeg_finish_decompress(&t->in);
    return SPK_OK;
}

static spk_status rewrite(spk_pixel_transcoder *t, const void *data, size_t n, spk_error *err)
{
    spk_jpeg_trap_arm(&t->trap, n, err);
    if (setjmp(t->trap.jump) == 0)
        t->trap.status = write_file(t, data);
    end_writing(t);
    jpeg_abort_decompress(&t->in);
    return t->trap.status;
}

static void on_row(void *ctx, const uint8_t *row)
{
    spk_pixel_transcoder *t = ctx;
    if (t->first)
        memcpy(t->pixels + t->at, row, t->row);
    else if (memcmp(t->pixels + t->at, row, t->row) != 0)
        t->same = false;
    t->at += t->row;
}

static spk_status decode(spk_pixel_transcoder *t, const void *data, size_t n, uint64_t max_pixels, bool first,
                         spk_error *err)
{
    spk_decoder_info info;
    spk_decoder_use(t->decoder, SPK_JPEG_LIBJPEG);
    SPK_TRY(spk_decoder_open(t->decoder, data, n, max_pixels, &info, err));
    spk_decode_job job = {{0, 0, info.width, info.height}, 1, info.components == 1 ? 1 : 3, on_row, t, false};
    size_t row = (size_t)info.width * job.channels, bytes = row * info.height;
    if (first)
        SPK_TRY(spk_grow(&t->pixels, &t->cap_pixels, bytes, 1, err));
    else if (row != t->row || bytes > t->cap_pixels)
        return spk_error_set(err, SPK_E_FORMAT, "other size");
    t->row = row;
    t->at = 0;
    t->first = first;
    t->same = true;
    SPK_TRY(spk_decoder_run(t->decoder, &job, err));
    return t->same ? SPK_OK : spk_error_set(err, SPK_E_FORMAT, "other pixels");
}

spk_status spk_transcode_pixels(spk_pixel_transcoder *t, spk_transcoder *plain, const void *data, size_t n,
                                uint64_t max_pixels, spk_buf *out, uint64_t *file_bytes, spk_transcode_result *result,
                                spk_error *err)
{
    spk_error why;
    spk_error_clear(&why);
    *result = SPK_TRANSCODE_DAMAGED;
    spk_status status = rewrite(t, data, n, &why);
    if (status == SPK_OK)
        status = spk_transcode(plain, t->file.data, t->file.len, max_pixels, out, result, &why);
    /* Whether it is smaller than the other file, whose codes are made to measure, is of no interest. */
    if (status == SPK_OK && (*result == SPK_TRANSCODED || *result == SPK_TRANSCODE_NO_GAIN)) {
        *result = SPK_TRANSCODE_UNEQUAL;
        status = decode(t, data, n, max_pixels, true, &why);
        if (status == SPK_OK)
            status = decode(t, t->file.data, t->file.len, max_pixels, false, &why);
        if (status == SPK_OK)
            *result = out->len < n ? SPK_TRANSCODED : SPK_TRANSCODE_NO_GAIN;
    }
    *file_bytes = t->file.len;
    if (status == SPK_E_NOMEM && err)
        *err = why;
    return status == SPK_E_NOMEM ? status : SPK_OK;
}
