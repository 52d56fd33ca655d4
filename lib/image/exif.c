/* Finds the orientation tag and applies it. */
#include "image/exif.h"

#include <string.h>

#define TAG_ORIENTATION 0x0112u

static uint32_t load(const uint8_t *p, int bytes, bool big)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << 8 * (big ? bytes - 1 - i : i);
    return v;
}

/* A TIFF structure: byte order, then the first directory's entries of 12 bytes. */
static int from_tiff(const uint8_t *p, size_t n)
{
    if (n < 8 || (memcmp(p, "II*\0", 4) != 0 && memcmp(p, "MM\0*", 4) != 0))
        return 1;
    bool big = p[0] == 'M';
    size_t at = load(p + 4, 4, big);
    if (at > n || n - at < 2)
        return 1;
    uint32_t entries = load(p + at, 2, big);
    at += 2;
    for (uint32_t i = 0; i < entries && n - at >= 12; i++, at += 12) {
        if (load(p + at, 2, big) != TAG_ORIENTATION)
            continue;
        uint32_t type = load(p + at + 2, 2, big); /* SHORT as it should be, or LONG */
        uint32_t value = type == 3 ? load(p + at + 8, 2, big) : type == 4 ? load(p + at + 8, 4, big) : 1;
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* Marker segments (ITU-T T.81, annex B) up to the start of the first scan. */
static int from_jpeg(const uint8_t *p, size_t n)
{
    size_t at = 2;
    while (n - at >= 4) {
        if (p[at] != 0xFF)
            return 1;
        uint8_t marker = p[at + 1];
        if (marker == 0xFF) { /* a fill byte */
            at++;
            continue;
        }
        if (marker == 0xDA || marker == 0xD9)
            return 1;
        if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) { /* without parameters */
            at += 2;
            continue;
        }
        size_t len = load(p + at + 2, 2, true);
        if (len < 2 || len > n - at - 2)
            return 1;
        if (marker == 0xE1 && len >= 8 && memcmp(p + at + 4, "Exif\0\0", 6) == 0)
            return from_tiff(p + at + 10, len - 8);
        at += 2 + len;
    }
    return 1;
}

/* Chunks: length, type, data, checksum. */
static int from_png(const uint8_t *p, size_t n)
{
    size_t at = 8;
    while (n - at >= 12) {
        size_t len = load(p + at, 4, true);
        if (len > n - at - 12 || memcmp(p + at + 4, "IDAT", 4) == 0)
            return 1;
        if (memcmp(p + at + 4, "eXIf", 4) == 0)
            return from_tiff(p + at + 8, len);
        at += 12 + len;
    }
    return 1;
}

int spk_exif_orientation(spk_image_kind kind, const void *data, size_t n)
{
    if (kind == SPK_IMAGE_JPEG && n >= 2)
        return from_jpeg(data, n);
    if (kind == SPK_IMAGE_PNG && n >= 8)
        return from_png(data, n);
    return 1;
}

spk_turn spk_turn_of(int orientation)
{
    static const spk_turn turns[9] = {
        [2] = {false, true, false}, [3] = {false, true, true}, [4] = {false, false, true}, [5] = {true, false, false},
        [6] = {true, true, false},  [7] = {true, true, true},  [8] = {true, false, true},
    };
    return orientation >= 1 && orientation <= 8 ? turns[orientation] : turns[0];
}

spk_rect spk_turn_back(spk_turn t, spk_rect r, uint32_t width, uint32_t height)
{
    uint32_t turned_w = t.swap ? height : width, turned_h = t.swap ? width : height;
    if (t.mirror_x)
        r.x = turned_w - r.x - r.w;
    if (t.mirror_y)
        r.y = turned_h - r.y - r.h;
    return t.swap ? (spk_rect){r.y, r.x, r.h, r.w} : r;
}

void spk_turn_row(spk_turn t, uint8_t *out, uint32_t y, const uint8_t *stored, uint32_t w, uint32_t h,
                  uint32_t channels)
{
    uint32_t turned_w = t.swap ? h : w, turned_h = t.swap ? w : h;
    uint32_t v = t.mirror_y ? turned_h - 1 - y : y;
    for (uint32_t x = 0; x < turned_w; x++) {
        uint32_t u = t.mirror_x ? turned_w - 1 - x : x;
        size_t at = t.swap ? (size_t)u * w + v : (size_t)v * w + u;
        for (uint32_t c = 0; c < channels; c++)
            out[(size_t)x * channels + c] = stored[at * channels + c];
    }
}
