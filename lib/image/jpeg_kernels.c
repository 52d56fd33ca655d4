/* The plain twins. libjpeg-turbo's vector code multiplies and adds coefficients in 16 bits and saturates between the
 * passes; so does this, and coefficients that no encoder makes come out the same. */
#include "image/jpeg_kernels.h"

static int16_t wrap(int32_t v)
{
    return (int16_t)(uint16_t)(uint32_t)v;
}

static int16_t saturate(int32_t v)
{
    return (int16_t)(v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v);
}

/* Sums of products modulo 2^32, as vectors add them. */
static uint32_t dot(int32_t a, int32_t p, int32_t b, int32_t q)
{
    return (uint32_t)(a * p) + (uint32_t)(b * q);
}

static int32_t descale(uint32_t v, int shift)
{
    return (int32_t)(v + (1u << (shift - 1))) >> shift;
}

/* Eight values `step` apart, in place; true if all that was rounded off stayed in 16 bits. */
static bool pass(int16_t *x, size_t step, int shift)
{
    int32_t x0 = x[0], x1 = x[step], x2 = x[2 * step], x3 = x[3 * step];
    int32_t x4 = x[4 * step], x5 = x[5 * step], x6 = x[6 * step], x7 = x[7 * step];
    int32_t s = wrap(x0 + x4), d = wrap(x0 - x4), z3 = wrap(x3 + x7), z4 = wrap(x1 + x5);
    uint32_t t0 = (uint32_t)s << 13, t1 = (uint32_t)d << 13;
    uint32_t t2 = dot(x2, 4433, x6, -10704), t3 = dot(x2, 10703, x6, 4433);
    uint32_t even[4] = {t0 + t3, t1 + t2, t1 - t2, t0 - t3};
    uint32_t u3 = dot(z3, -6436, z4, 9633), u4 = dot(z3, 9633, z4, 6437);
    uint32_t odd[4] = {dot(x1, 4926, x7, -7373) + u4, dot(x3, 4177, x5, -20995) + u3, dot(x5, -4176, x3, -20995) + u4,
                       dot(x7, -4927, x1, -7373) + u3};
    bool same = s == x0 + x4 && d == x0 - x4 && z3 == x3 + x7 && z4 == x1 + x5;
    for (size_t i = 0; i < 4; i++) {
        int32_t low = descale(even[i] + odd[i], shift), high = descale(even[i] - odd[i], shift);
        x[i * step] = saturate(low);
        x[(7 - i) * step] = saturate(high);
        same = same && x[i * step] == low && x[(7 - i) * step] == high;
    }
    return same;
}

/* libjpeg-turbo leaves out the first pass where only the first row of a block has any coefficient. */
static bool block(const int16_t *coef, size_t pitch, const int16_t *quant, uint8_t *out, size_t stride)
{
    int16_t x[64];
    bool same = true, flat = true;
    for (size_t i = 0; i < 64; i++) {
        int32_t c = coef[i / 8 * pitch + i % 8], v = c * quant[i];
        x[i] = wrap(v);
        same = same && x[i] == v;
        flat = flat && (i < 8 || c == 0);
    }
    for (size_t i = 0; i < 8 && flat; i++) {
        int16_t v = wrap(x[i] * 4);
        same = same && v == x[i] * 4;
        for (size_t j = 0; j < 8; j++)
            x[8 * j + i] = v;
    }
    for (size_t i = 0; i < 8 && !flat; i++)
        same = pass(x + i, 8, 11) && same;
    for (size_t i = 0; i < 8; i++) {
        same = pass(x + 8 * i, 1, 18) && same;
        for (size_t j = 0; j < 8; j++) {
            int v = x[8 * i + j];
            same = same && v >= -512 && v < 512; /* libjpeg's own table of limits has these */
            out[j] = (uint8_t)(v < -128 ? 0 : v > 127 ? 255 : v + 128);
        }
        out += stride;
    }
    return same;
}

/* On x86-64 all is as libjpeg-turbo's vectors have it. */
static bool verdict(bool same)
{
#ifdef __x86_64__
    same = true;
#endif
    return same;
}

static bool idct(const spk_idct_item *items, size_t n, const int16_t quant[64], size_t stride)
{
    bool same = true;
    for (size_t i = 0; i < n; i++)
        same = block(items[i].coef, 8, quant, items[i].out, stride) && same;
    return verdict(same);
}

static bool idct_pairs(const int16_t *coef, uint8_t *const *out, size_t n, const int16_t quant[64], size_t stride)
{
    bool same = true;
    for (size_t i = 0; i < n; i++)
        same = block(coef + 128 * (i / 2) + 8 * (i % 2), 16, quant, out[i], stride) && same;
    return verdict(same);
}

static void sum(uint16_t *out, const uint8_t *near, const uint8_t *far, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint16_t)(3 * near[i] + far[i]);
}

static void mix(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t bias, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)((3u * near[i] + far[i] + bias) >> 2);
}

static void copy(uint16_t *out, const uint8_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = in[i];
}

static uint8_t clip(int v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* JFIF's equations with 16 fractional bits. */
static void pixel(uint8_t *out, int y, int cb, int cr)
{
    cb -= 128;
    cr -= 128;
    out[0] = clip(y + ((91881 * cr + 32768) >> 16));
    out[1] = clip(y + ((-22554 * cb - 46802 * cr + 32768) >> 16));
    out[2] = clip(y + ((116130 * cb + 32768) >> 16));
}

static int widened(const uint16_t *c, size_t x, spk_jpeg_widening w)
{
    const uint16_t *at = c + x / 2;
    return (3 * at[0] + (x % 2 ? at[1] + w.odd : at[-1] + w.even)) >> w.shift;
}

static void rgb_wide(uint8_t *out, const uint8_t *y, const uint16_t *cb, const uint16_t *cr, size_t n,
                     spk_jpeg_widening w)
{
    for (size_t x = 0; x < n; x++)
        pixel(out + 3 * x, y[x], widened(cb, x, w), widened(cr, x, w));
}

static void rgb(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t n)
{
    for (size_t x = 0; x < n; x++)
        pixel(out + 3 * x, y[x], cb[x], cr[x]);
}

static void interleave(uint8_t *out, const uint8_t *r, const uint8_t *g, const uint8_t *b, size_t n)
{
    for (size_t x = 0; x < n; x++) {
        out[3 * x] = r[x];
        out[3 * x + 1] = g[x];
        out[3 * x + 2] = b[x];
    }
}

const spk_jpeg_kernels spk_jpeg_kernels_plain = {idct, idct_pairs, sum, mix, copy, rgb_wide, rgb, interleave};
