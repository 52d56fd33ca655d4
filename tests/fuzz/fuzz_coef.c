/* JPEG stored as coefficients, from untrusted bytes: with vectors and without, the same status and pixels, which are
 * also libjpeg's of the restored file if it finds no fault with that. The first six bytes choose part and channels; the
 * rest is the content of the blob's zstd frame, so that zstd does not stand in the way, or from 0x28 on the blob
 * itself. */
#include "fuzz_image.h"

#include "coef/coef.h"
#include "image/decoder.h"

#define PIXELS_MAX (1u << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static spk_status decode(spk_decoder *d, const uint8_t *head, const spk_buf *blob, spk_jpeg_engine engine, rows *out)
{
    spk_decoder_info info;
    spk_error err;
    spk_decoder_use(d, engine);
    spk_status status = spk_decoder_open(d, blob->data, blob->len, PIXELS_MAX, &info, &err);
    if (status < 0)
        return status;
    spk_decode_job job = {choose(head, &info), 1, head[5] & 1 ? 1 : 3, keep, out, false};
    out->row = (size_t)job.part.w * job.channels;
    out->cap = out->row * job.part.h;
    out->p = malloc(out->cap);
    status = spk_decoder_run(d, &job, &err);
    must(status < 0 || out->n == out->cap);
    return status;
}

/* A zstd frame of raw blocks with the size of its content (RFC 8878, 3.1.1). */
static void wrap(spk_buf *out, const uint8_t *p, size_t n)
{
    spk_error err;
    uint8_t head[8] = {0x28, 0xB5, 0x2F, 0xFD, 0xA0, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16)};
    must(n < 1u << 17);
    must(spk_buf_append(out, head, sizeof head, &err) == SPK_OK && spk_buf_append(out, "", 1, &err) == SPK_OK);
    uint32_t block = (uint32_t)n << 3 | 1;
    uint8_t block_head[3] = {(uint8_t)block, (uint8_t)(block >> 8), (uint8_t)(block >> 16)};
    must(spk_buf_append(out, block_head, 3, &err) == SPK_OK && spk_buf_append(out, p, n, &err) == SPK_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spk_decoder *d = NULL;
    spk_coef_reader *r = NULL;
    spk_error err;
    spk_buf blob = {0}, file = {0};
    rows one = {0}, two = {0}, three = {0};
    if (size < 8 || size > 1u << 16)
        return 0;
    if (data[6] == 0x28)
        must(spk_buf_append(&blob, data + 6, size - 6, &err) == SPK_OK);
    else
        wrap(&blob, data + 6, size - 6);
    must(spk_decoder_new(&d, &err) == SPK_OK && spk_coef_reader_new(&r, &err) == SPK_OK);
    spk_status decoded = decode(d, data, &blob, SPK_JPEG_OWN, &one);
    must(decode(d, data, &blob, SPK_JPEG_PLAIN, &two) == decoded);
    if (decoded == SPK_OK)
        must(one.n == two.n && memcmp(one.p, two.p, one.n) == 0);
    if (spk_coef_open(r, blob.data, blob.len, &err) == SPK_OK) {
        spk_status status = spk_coef_restore(r, &file, &err);
        must(status == SPK_OK || err.text[0]);
        if (status == SPK_OK && decoded == SPK_OK && decode(d, data, &file, SPK_JPEG_LIBJPEG, &three) == SPK_OK)
            must(one.n == three.n && memcmp(one.p, three.p, one.n) == 0);
    }
    free(one.p);
    free(two.p);
    free(three.p);
    spk_buf_free(&blob);
    spk_buf_free(&file);
    spk_coef_reader_free(r);
    spk_decoder_free(d);
    return 0;
}
