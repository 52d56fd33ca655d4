/* Table look-ups; one loop per type and layout, so that the compiler sees constant strides. */
#include "image/convert.h"

#include <string.h>

uint16_t spk_float16(float v)
{
    uint32_t bits, sign, mantissa, shift;
    memcpy(&bits, &v, 4);
    sign = bits >> 16 & 0x8000;
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000) /* a NaN stays one */
        return (uint16_t)(sign | 0x7E00 | (bits >> 13 & 0x3FF));
    if (bits >= 0x47800000) /* 65536 and more, infinity */
        return (uint16_t)(sign | 0x7C00);
    if (bits < 0x33000000) /* less than half of the smallest */
        return (uint16_t)sign;
    if (bits >= 0x38800000) { /* normal: drop 13 bits and re-bias; a carry may reach the exponent, even infinity */
        mantissa = bits - 0x38000000;
        shift = 13;
    } else { /* subnormal: a multiple of 2^-24 */
        mantissa = (bits & 0x7FFFFF) | 0x800000;
        shift = 126 - (bits >> 23);
    }
    uint32_t half = 1u << (shift - 1), rest = mantissa & ((half << 1) - 1), kept = mantissa >> shift;
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    return (uint16_t)(sign | kept);
}

size_t spk_pixel_bytes(const spk_pixel_format *f)
{
    static const size_t size[] = {1, 2, 4};
    return (size_t)f->width * f->height * f->channels * size[f->type];
}

/* Columns from `from` on of one row of each type: interleaved channels, and one channel of a plane. */
#define DEFINE_ROWS(NAME, TYPE, VALUE)                                                                                 \
    static void NAME##_interleaved(const spk_converter *c, TYPE *out, const uint8_t *row, uint32_t n)                  \
    {                                                                                                                  \
        (void)c;                                                                                                       \
        for (uint32_t x = 0; x < n; x++, row += 3, out += 3) {                                                         \
            out[0] = VALUE(c, 0, row[0]);                                                                              \
            out[1] = VALUE(c, 1, row[1]);                                                                              \
            out[2] = VALUE(c, 2, row[2]);                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void NAME##_plane(const spk_converter *c, TYPE *out, const uint8_t *row, uint32_t n, uint32_t ch)           \
    {                                                                                                                  \
        (void)c;                                                                                                       \
        for (uint32_t x = 0; x < n; x++)                                                                               \
            out[x] = VALUE(c, ch, row[(size_t)x * c->format.channels + ch]);                                           \
    }                                                                                                                  \
    static void NAME##_row(const spk_converter *c, void *image, uint32_t y, const uint8_t *row, uint32_t from)         \
    {                                                                                                                  \
        const spk_pixel_format *f = &c->format;                                                                        \
        uint32_t n = f->width - from;                                                                                  \
        TYPE *out = image;                                                                                             \
        row += (size_t)from * f->channels;                                                                             \
        if (f->channels == 3 && f->order == SPK_PIXEL_NHWC)                                                            \
            NAME##_interleaved(c, out + ((size_t)y * f->width + from) * 3, row, n);                                    \
        else                                                                                                           \
            for (uint32_t ch = 0; ch < f->channels; ch++)                                                              \
                NAME##_plane(c, out + ((size_t)ch * f->height + y) * f->width + from, row, n, ch);                     \
    }

#define BYTE(c, ch, v) (v)
#define HALF(c, ch, v) ((c)->f16[ch][v])
#define FLOAT(c, ch, v) ((c)->f32[ch][v])
DEFINE_ROWS(byte, uint8_t, BYTE)
DEFINE_ROWS(half, uint16_t, HALF)
DEFINE_ROWS(full, float, FLOAT)

void spk_convert_row(const spk_converter *c, void *out, uint32_t y, const uint8_t *row)
{
    const spk_pixel_format *f = &c->format;
    size_t bytes = (size_t)f->width * f->channels;
    uint32_t done = c->kernel ? c->kernel(c, out, y, row) : 0;
    if (f->type == SPK_PIXEL_FLOAT16)
        half_row(c, out, y, row, done);
    else if (f->type == SPK_PIXEL_FLOAT32)
        full_row(c, out, y, row, done);
    else if (f->order == SPK_PIXEL_NHWC || f->channels == 1)
        memcpy((uint8_t *)out + y * bytes, row, bytes);
    else
        byte_row(c, out, y, row, done);
}

/* Whether a kernel gives the tables' numbers for each of the 256 bytes in each channel. */
static bool is_exact(const spk_converter *c, spk_convert_fn kernel)
{
    spk_converter probe = *c;
    uint8_t row[3 * 256];
    float one[3 * 256] = {0}, two[3 * 256] = {0};
    probe.format.width = 256;
    probe.format.height = 1;
    for (uint32_t i = 0; i < 256 * probe.format.channels; i++)
        row[i] = (uint8_t)(i / probe.format.channels);
    probe.kernel = NULL;
    spk_convert_row(&probe, one, 0, row);
    probe.kernel = kernel;
    spk_convert_row(&probe, two, 0, row);
    return memcmp(one, two, spk_pixel_bytes(&probe.format)) == 0;
}

void spk_converter_init(spk_converter *c, const spk_pixel_format *format)
{
    memset(c, 0, sizeof *c);
    c->format = *format;
    for (uint32_t ch = 0; ch < format->channels; ch++)
        for (uint32_t v = 0; v < 256; v++) {
            float x = (float)v / 255.0f;
            if (format->normalize) {
                x = x - format->mean[ch];
                x = x / format->std[ch];
            }
            c->f32[ch][v] = x;
            c->f16[ch][v] = spk_float16(x);
        }
    for (uint32_t i = 0; i < 24 && format->normalize; i++) {
        c->mean[i] = format->mean[i % format->channels];
        c->std[i] = format->std[i % format->channels];
        c->inverse[i] = 1.0f / c->std[i];
    }
    spk_convert_fn kernel = spk_convert_best(format);
    if (kernel && is_exact(c, kernel))
        c->kernel = kernel;
}
