/* Files to the stored form: what is made of any file gives that file byte for byte, and libjpeg-turbo's pixels in every
 * part, with vectors and without; one transcoder used again makes the same bytes as a fresh one. The first six bytes
 * choose part and channels, the rest is the file. */
#include "fuzz_image.h"

#include "coef/coef.h"
#include "image/decoder.h"
#include "image/transcode.h"

#define PIXELS_MAX (1u << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(spk_decoder *d, const uint8_t *head, const uint8_t *data, size_t n, spk_jpeg_engine engine,
                   rows *out)
{
    spk_decoder_info info;
    spk_error err;
    spk_decoder_use(d, engine);
    must(spk_decoder_open(d, data, n, PIXELS_MAX, &info, &err) == SPK_OK);
    spk_decode_job job = {choose(head, &info), 1, head[5] & 1 ? 1 : 3, keep, out, false};
    out->row = (size_t)job.part.w * job.channels;
    out->cap = out->row * job.part.h;
    out->p = malloc(out->cap);
    must(spk_decoder_run(d, &job, &err) == SPK_OK);
    must(out->n == out->cap);
}

/* The blob against the file that it was made of. */
static void check_blob(const uint8_t *head, const uint8_t *data, size_t n, const spk_buf *blob)
{
    spk_coef_reader *r = NULL;
    spk_decoder *d = NULL;
    spk_buf file = {0};
    spk_error err;
    rows expected = {0};
    must(spk_coef_reader_new(&r, &err) == SPK_OK && spk_decoder_new(&d, &err) == SPK_OK);
    must(spk_coef_open(r, blob->data, blob->len, &err) == SPK_OK && spk_coef_restore(r, &file, &err) == SPK_OK);
    must(file.len == n && memcmp(file.data, data, n) == 0);
    decode(d, head, data, n, SPK_JPEG_LIBJPEG, &expected);
    for (int engine = SPK_JPEG_OWN; engine <= SPK_JPEG_LIBJPEG; engine++) {
        rows got = {0};
        decode(d, head, blob->data, blob->len, (spk_jpeg_engine)engine, &got);
        must(got.n == expected.n && memcmp(got.p, expected.p, got.n) == 0);
        free(got.p);
    }
    free(expected.p);
    spk_buf_free(&file);
    spk_decoder_free(d);
    spk_coef_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static spk_transcoder *again;
    spk_transcoder *fresh = NULL;
    spk_transcode_result first, second;
    spk_buf one = {0}, two = {0};
    spk_error err;
    if (size < 8)
        return 0;
    must(again || spk_transcoder_new(&again, &err) == SPK_OK);
    must(spk_transcode(again, data + 6, size - 6, PIXELS_MAX, &one, &first, &err) == SPK_OK);
    if (first == SPK_TRANSCODED || first == SPK_TRANSCODE_NO_GAIN) {
        must(spk_transcoder_new(&fresh, &err) == SPK_OK);
        must(spk_transcode(fresh, data + 6, size - 6, PIXELS_MAX, &two, &second, &err) == SPK_OK);
        must(first == second && one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
        check_blob(data, data + 6, size - 6, &one);
        spk_transcoder_free(fresh);
    }
    spk_buf_free(&one);
    spk_buf_free(&two);
    return 0;
}
