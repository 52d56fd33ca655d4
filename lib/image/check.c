/* The checker: picks the decoder by content and owns one of each. What a decoder says is passed on as it is. */
#include "image/check.h"

#include <stdlib.h>

#include "base/error.h"
#include "image/checker.h"

struct spk_image_checker {
    spk_jpeg_check *jpeg; /* made when the first such image comes */
    spk_png_check *png;
};

spk_status spk_image_limit(const spk_image_job *job, uint64_t width, uint64_t height, spk_error *err)
{
    if (width == 0 || height == 0)
        return spk_error_set(err, SPK_E_FORMAT, "image of %llu x %llu pixels", (unsigned long long)width,
                             (unsigned long long)height);
    if (width > job->max_pixels / height)
        return spk_error_set(err, SPK_E_LIMIT, "%llu x %llu is %llu pixels: more than the limit of %llu",
                             (unsigned long long)width, (unsigned long long)height,
                             (unsigned long long)(width * height), (unsigned long long)job->max_pixels);
    return SPK_OK;
}

spk_status spk_image_checker_new(spk_image_checker **out, spk_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? SPK_OK : spk_error_nomem(err, sizeof **out);
}

void spk_image_checker_free(spk_image_checker *c)
{
    if (!c)
        return;
    spk_jpeg_check_free(c->jpeg);
    spk_png_check_free(c->png);
    free(c);
}

/* "begins with" helps to tell an error page, a text or an LFS pointer at a glance. */
static spk_status no_image(const uint8_t *p, size_t n, spk_error *err)
{
    char hex[3 * 8 + 1] = "";
    size_t shown = n < 24 ? n : 24, text = 0;
    while (text < shown && ((p[text] >= 0x20 && p[text] < 0x7F) || p[text] == '\n' || p[text] == '\r'))
        text++;
    for (size_t i = 0; i < text; i++)
        if (p[i] == '\n' || p[i] == '\r')
            text = i;
    if (text > 0 && (text == shown || p[text] == '\n' || p[text] == '\r'))
        return spk_error_set(err, SPK_E_FORMAT, "not an image: begins with \"%.*s\"", (int)text, (const char *)p);
    for (size_t i = 0; i < 8 && i < n; i++) {
        hex[3 * i] = "0123456789abcdef"[p[i] >> 4];
        hex[3 * i + 1] = "0123456789abcdef"[p[i] & 15];
        hex[3 * i + 2] = ' ';
        hex[3 * i + 3] = '\0';
    }
    hex[3 * (n < 8 ? n : 8) - 1] = '\0';
    return spk_error_set(err, SPK_E_FORMAT, "not an image: begins with bytes %s", hex);
}

spk_status spk_image_check(spk_image_checker *c, const void *data, size_t n, int decode, uint64_t max_pixels,
                           spk_image_info *out, spk_error *err)
{
    spk_image_job job = {data, n, decode != 0, max_pixels > 0 ? max_pixels : SPK_IMAGE_PIXELS_DEFAULT};
    *out = (spk_image_info){.kind = spk_image_sniff(data, n)};
    if (n == 0)
        return spk_error_set(err, SPK_E_FORMAT, "empty file");
    switch (out->kind) {
    case SPK_IMAGE_NONE:
        return no_image(data, n, err);
    case SPK_IMAGE_JPEG:
        if (!c->jpeg)
            SPK_TRY(spk_jpeg_check_new(&c->jpeg, err));
        return spk_jpeg_check_run(c->jpeg, &job, out, err);
    case SPK_IMAGE_PNG:
        if (!c->png)
            SPK_TRY(spk_png_check_new(&c->png, err));
        return spk_png_check_run(c->png, &job, out, err);
    case SPK_IMAGE_WEBP:
    case SPK_IMAGE_GIF:
    case SPK_IMAGE_BMP:
    case SPK_IMAGE_TIFF:
        break;
    }
    return spk_header_check(&job, out, err);
}
