/* Our JPEG decoders against libjpeg-turbo: the same status, text and pixels, with vectors and without. The first six
 * bytes choose part and channels, the rest is the file. */
#include "fuzz_image.h"

#include "image/decoder.h"

#define PIXELS_MAX (1u << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static spk_status decode(spk_decoder *d, const uint8_t *data, size_t n, spk_jpeg_engine engine, rows *out,
                         spk_error *err)
{
    spk_decoder_info info;
    spk_error_clear(err);
    spk_decoder_use(d, engine);
    spk_status status = spk_decoder_open(d, data + 6, n - 6, PIXELS_MAX, &info, err);
    if (status < 0)
        return status;
    spk_decode_job job = {choose(data, &info), 1, data[5] & 1 ? 1 : 3, keep, out, false};
    out->row = (size_t)job.part.w * job.channels;
    out->cap = out->row * job.part.h;
    out->p = malloc(out->cap);
    status = spk_decoder_run(d, &job, err);
    must(status < 0 || out->n == out->cap);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spk_decoder *d = NULL;
    spk_error want, err;
    if (size < 8 || spk_image_sniff(data + 6, size - 6) != SPK_IMAGE_JPEG)
        return 0;
    must(spk_decoder_new(&d, &err) == SPK_OK);
    rows expected = {0};
    spk_status status = decode(d, data, size, SPK_JPEG_LIBJPEG, &expected, &want);
    for (int engine = SPK_JPEG_OWN; engine <= SPK_JPEG_PLAIN; engine++) {
        rows got = {0};
        must(decode(d, data, size, (spk_jpeg_engine)engine, &got, &err) == status);
        must(strcmp(err.text, want.text) == 0);
        if (status == SPK_OK)
            must(got.n == expected.n && memcmp(got.p, expected.p, got.n) == 0);
        free(got.p);
    }
    free(expected.p);
    spk_decoder_free(d);
    return 0;
}
