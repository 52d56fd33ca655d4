/* Image formats by their first bytes, and the dimensions of those formats that we store but do not decode (WebP, GIF,
 * BMP, TIFF). Pure functions over borrowed memory; every read is bounds-checked.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "image/checker.h"

static bool starts(const uint8_t *p, size_t n, const char *magic, size_t len)
{
    return n >= len && memcmp(p, magic, len) == 0;
}

/* "BM" alone begins many a text, so the size of the header that follows must be one that exists. */
static bool is_bmp(const uint8_t *p, size_t n)
{
    if (n < 26 || !starts(p, n, "BM", 2))
        return false;
    uint32_t header = spk_le32_load(p + 14);
    return header == 12 || header == 40 || header == 52 || header == 56 || header == 64 || header == 108 ||
           header == 124;
}

spk_image_kind spk_image_sniff(const void *data, size_t n)
{
    const uint8_t *p = data;
    if (starts(p, n, "\xff\xd8\xff", 3))
        return SPK_IMAGE_JPEG;
    if (starts(p, n, "\x89PNG\r\n\x1a\n", 8))
        return SPK_IMAGE_PNG;
    if (n >= 12 && starts(p, n, "RIFF", 4) && memcmp(p + 8, "WEBP", 4) == 0)
        return SPK_IMAGE_WEBP;
    if (starts(p, n, "GIF87a", 6) || starts(p, n, "GIF89a", 6))
        return SPK_IMAGE_GIF;
    if (starts(p, n, "II*\0", 4) || starts(p, n, "MM\0*", 4))
        return SPK_IMAGE_TIFF;
    return is_bmp(p, n) ? SPK_IMAGE_BMP : SPK_IMAGE_NONE;
}

const char *spk_image_kind_name(spk_image_kind kind)
{
    static const char *const names[] = {"unknown", "JPEG", "PNG", "WebP", "GIF", "BMP", "TIFF"};
    return (size_t)kind < SPK_ARRAY_SIZE(names) ? names[kind] : names[0];
}

static uint32_t le16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t le24(const uint8_t *p)
{
    return le16(p) | (uint32_t)p[2] << 16;
}

/* RFC 9649: the first chunk is VP8 (lossy), VP8L (lossless) or VP8X (extended). */
static bool webp_size(const uint8_t *p, size_t n, spk_image_info *out)
{
    if (n < 30)
        return false;
    out->components = 3;
    if (memcmp(p + 12, "VP8X", 4) == 0) {
        out->components = p[20] & 0x10 ? 4 : 3;
        out->width = le24(p + 24) + 1;
        out->height = le24(p + 27) + 1;
    } else if (memcmp(p + 12, "VP8L", 4) == 0 && p[20] == 0x2F) {
        uint32_t bits = spk_le32_load(p + 21);
        out->components = bits >> 28 & 1 ? 4 : 3;
        out->width = (bits & 0x3FFF) + 1;
        out->height = (bits >> 14 & 0x3FFF) + 1;
    } else if (memcmp(p + 12, "VP8 ", 4) == 0 && memcmp(p + 23, "\x9d\x01\x2a", 3) == 0) {
        out->width = le16(p + 26) & 0x3FFF;
        out->height = le16(p + 28) & 0x3FFF;
    } else {
        return false;
    }
    return true;
}

static bool bmp_size(const uint8_t *p, spk_image_info *out)
{
    bool core = spk_le32_load(p + 14) == 12;
    uint32_t height = core ? le16(p + 20) : spk_le32_load(p + 22);
    out->width = core ? le16(p + 18) : spk_le32_load(p + 18);
    out->height = height & 0x80000000u ? 0u - height : height; /* negative: rows from the top */
    out->components = 3;
    return !(out->width & 0x80000000u);
}

static uint32_t tiff_load(const uint8_t *p, int bytes, bool big)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << 8 * (big ? bytes - 1 - i : i);
    return v;
}

/* TIFF 6.0 section 2: the first directory; tags 256, 257 and 277 (samples per pixel) as SHORT (3) or LONG (4). */
static bool tiff_size(const uint8_t *p, size_t n, spk_image_info *out)
{
    bool big = p[0] == 'M';
    if (n < 8)
        return false;
    uint64_t at = tiff_load(p + 4, 4, big);
    if (at + 2 > n)
        return false;
    uint64_t entries = tiff_load(p + at, 2, big);
    out->components = 1;
    for (uint64_t i = 0; i < entries && at + 2 + 12 * (i + 1) <= n; i++) {
        const uint8_t *e = p + at + 2 + 12 * i;
        uint32_t tag = tiff_load(e, 2, big), type = tiff_load(e + 2, 2, big);
        if (type != 3 && type != 4)
            continue;
        uint32_t value = tiff_load(e + 8, type == 3 ? 2 : 4, big);
        if (tag == 256)
            out->width = value;
        else if (tag == 257)
            out->height = value;
        else if (tag == 277)
            out->components = value >= 1 && value <= 4 ? (int)value : 4;
    }
    return out->width > 0 && out->height > 0;
}

spk_status spk_header_check(const spk_image_job *job, spk_image_info *out, spk_error *err)
{
    bool ok = false;
    switch (out->kind) {
    case SPK_IMAGE_WEBP:
        ok = webp_size(job->data, job->n, out);
        break;
    case SPK_IMAGE_GIF:
        ok = job->n >= 13;
        out->width = ok ? le16(job->data + 6) : 0;
        out->height = ok ? le16(job->data + 8) : 0;
        out->components = 3;
        break;
    case SPK_IMAGE_BMP:
        ok = bmp_size(job->data, out);
        break;
    case SPK_IMAGE_TIFF:
        ok = tiff_size(job->data, job->n, out);
        break;
    default:
        break;
    }
    if (!ok)
        return spk_error_set(err, SPK_E_FORMAT, "bad %s: no dimensions in the header, file has %zu bytes",
                             spk_image_kind_name(out->kind), job->n);
    return spk_image_limit(job, out->width, out->height, err);
}
