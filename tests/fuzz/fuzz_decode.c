/* Decoding a part of an image. The first eight bytes choose part, scale and channels, the rest is the image. What the
 * check accepts must decode, and every part must equal that part of the whole. */
#include "fuzz_image.h"

#define PIXELS_MAX (1u << 18)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* part {0}: the whole. */
static spk_status decode(const uint8_t *data, size_t n, spk_rect part, uint32_t denom, uint32_t channels, bool indices,
                         rows *out)
{
    spk_decoder *d;
    spk_decoder_info info;
    spk_error err;
    spk_error_clear(&err);
    must(spk_decoder_new(&d, &err) == SPK_OK);
    spk_status status = spk_decoder_open(d, data, n, PIXELS_MAX, &info, &err);
    if (status == SPK_OK) {
        spk_rect whole = {0, 0, (info.width + denom - 1) / denom, (info.height + denom - 1) / denom};
        spk_decode_job job = {part.w ? part : whole, denom, channels, keep, out, indices};
        out->row = (size_t)job.part.w * channels;
        out->cap = out->row * job.part.h;
        out->p = malloc(out->cap);
        status = spk_decoder_run(d, &job, &err);
        must(status < 0 || out->n == out->cap);
    }
    must(status == SPK_OK || (err.code == status && err.text[0] && !strchr(err.text, '\n')));
    spk_decoder_free(d);
    return status;
}

static void check_part(const spk_rect *r, const rows *part, const rows *whole, uint32_t width, uint32_t channels)
{
    for (uint32_t y = 0; y < r->h; y++)
        must(memcmp(part->p + y * part->row, whole->p + ((size_t)(r->y + y) * width + r->x) * channels, part->row) ==
             0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spk_image_checker *checker;
    spk_image_info info;
    spk_error err;
    rows part = {0}, whole = {0};
    if (size < 8)
        return 0;
    const uint8_t *image = data + 8;
    size_t n = size - 8;
    uint32_t channels = data[4] & 1 ? 1 : 3, denom = 1;
    bool indices = data[4] & 8;
    must(spk_image_checker_new(&checker, &err) == SPK_OK);
    int sound = spk_image_check(checker, image, n, 1, PIXELS_MAX, &info, &err) == SPK_OK &&
                (info.kind == SPK_IMAGE_JPEG || info.kind == SPK_IMAGE_PNG);
    spk_image_checker_free(checker);
    if (info.kind == SPK_IMAGE_JPEG)
        denom = 1u << (data[4] >> 1 & 3);
    spk_rect r = {0, 0, 1, 1};
    if (info.width > 0 && info.height > 0) {
        uint32_t w = (info.width + denom - 1) / denom, h = (info.height + denom - 1) / denom;
        r.x = data[0] * w / 256;
        r.y = data[1] * h / 256;
        r.w = 1 + data[2] * (w - 1 - r.x) / 255;
        r.h = 1 + data[3] * (h - 1 - r.y) / 255;
    }
    spk_status status = decode(image, n, r, denom, channels, indices, &part);
    must(!sound || status == SPK_OK);
    if (sound) {
        must(decode(image, n, (spk_rect){0, 0, 0, 0}, denom, channels, indices, &whole) == SPK_OK);
        if (denom == 1)
            check_part(&r, &part, &whole, info.width, channels);
    }
    free(part.p);
    free(whole.p);
    return 0;
}
