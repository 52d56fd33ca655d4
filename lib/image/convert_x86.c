/* AVX2, FMA and F16C kernels of convert.c, eight numbers at a time. The tables are nearly as fast in cache, but not
 * into the memory of a batch, for which whole vectors are better.
 *
 * A quotient is made from the reciprocal r of the divisor d: q = x r, then q + (x - q d) r with both steps fused, which
 * rounds as the division does but for rare divisors; convert.c tries all 256 bytes and does without the kernel then. */
#include "image/convert.h"

#ifdef __x86_64__
#include <immintrin.h>

#define VECTOR __attribute__((target("avx2,fma,f16c")))
#define INLINE inline __attribute__((always_inline))

typedef struct constants {
    __m256 mean, std, inverse;
} constants;

VECTOR static INLINE __m256 quotient(__m256 x, __m256 divisor, __m256 inverse)
{
    __m256 q = _mm256_mul_ps(x, inverse);
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(q, divisor, x), inverse, q);
}

/* The lower eight bytes. */
VECTOR static INLINE __m256 normalized(__m128i bytes, const constants *k, bool normalize)
{
    __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    x = quotient(x, _mm256_set1_ps(255.0f), _mm256_set1_ps(1.0f / 255.0f));
    return normalize ? quotient(_mm256_sub_ps(x, k->mean), k->std, k->inverse) : x;
}

VECTOR static INLINE void store(void *out, size_t at, __m256 v, bool half)
{
    if (half)
        _mm_storeu_si128((void *)((uint16_t *)out + at), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    else
        _mm256_storeu_ps((float *)out + at, v);
}

VECTOR static INLINE constants constants_of(const spk_converter *c, uint32_t ch)
{
    float std = c->format.std[ch];
    return (constants){_mm256_set1_ps(c->format.mean[ch]), _mm256_set1_ps(std), _mm256_set1_ps(1.0f / std)};
}

/* The bytes of one channel of eight pixels: from bytes 0 to 15 and 8 to 23. */
VECTOR static INLINE __m128i pick(__m128i low, __m128i high, uint32_t ch)
{
    const __m128i from_low = _mm_setr_epi8(0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i from_high = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i from_low1 = _mm_setr_epi8(1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i from_high1 = _mm_setr_epi8(-1, -1, -1, -1, -1, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i from_low2 = _mm_setr_epi8(2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i from_high2 = _mm_setr_epi8(-1, -1, -1, -1, -1, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1);
    __m128i a = ch == 0 ? from_low : ch == 1 ? from_low1 : from_low2;
    __m128i b = ch == 0 ? from_high : ch == 1 ? from_high1 : from_high2;
    return _mm_or_si128(_mm_shuffle_epi8(low, a), _mm_shuffle_epi8(high, b));
}

/* Three channels apart. */
VECTOR static INLINE void planes(const spk_converter *c, void *out, size_t at, const uint8_t *row, uint32_t pixels,
                                 bool half)
{
    bool normalize = c->format.normalize;
    size_t plane = (size_t)c->format.width * c->format.height;
    constants k0 = constants_of(c, 0), k1 = constants_of(c, 1), k2 = constants_of(c, 2);
    for (uint32_t i = 0; i < pixels; i += 8, row += 24) {
        __m128i low = _mm_loadu_si128((const void *)row), high = _mm_loadu_si128((const void *)(row + 8));
        store(out, at + i, normalized(pick(low, high, 0), &k0, normalize), half);
        store(out, at + plane + i, normalized(pick(low, high, 1), &k1, normalize), half);
        store(out, at + 2 * plane + i, normalized(pick(low, high, 2), &k2, normalize), half);
    }
}

VECTOR static INLINE __m128i load8(const uint8_t *p)
{
    return _mm_loadl_epi64((const void *)p);
}

VECTOR static INLINE constants lanes(const spk_converter *c, uint32_t i)
{
    return (constants){_mm256_loadu_ps(c->mean + i), _mm256_loadu_ps(c->std + i), _mm256_loadu_ps(c->inverse + i)};
}

/* In the order of the row, channels taking turns: after 24 values all begins anew. */
VECTOR static INLINE void values(const spk_converter *c, void *out, size_t at, const uint8_t *row, uint32_t n,
                                 bool half)
{
    bool normalize = c->format.normalize;
    constants k0 = lanes(c, 0), k1 = lanes(c, 8), k2 = lanes(c, 16);
    for (uint32_t i = 0; i < n; i += 24, row += 24, at += 24) {
        store(out, at, normalized(load8(row), &k0, normalize), half);
        store(out, at + 8, normalized(load8(row + 8), &k1, normalize), half);
        store(out, at + 16, normalized(load8(row + 16), &k2, normalize), half);
    }
}

VECTOR static INLINE uint32_t numbers(const spk_converter *c, void *out, uint32_t y, const uint8_t *row, bool half)
{
    const spk_pixel_format *f = &c->format;
    size_t at = (size_t)y * f->width;
    uint32_t done;
    if (f->channels == 3 && f->order == SPK_PIXEL_NCHW) {
        done = f->width / 8 * 8;
        planes(c, out, at, row, done, half);
        return done;
    }
    done = f->width * f->channels / 24 * 24; /* whole pixels, as 24 is a multiple of 1 and 3 */
    values(c, out, at * f->channels, row, done, half);
    return done / f->channels;
}

VECTOR static uint32_t floats(const spk_converter *c, void *out, uint32_t y, const uint8_t *row)
{
    return numbers(c, out, y, row, false);
}

VECTOR static uint32_t halves(const spk_converter *c, void *out, uint32_t y, const uint8_t *row)
{
    return numbers(c, out, y, row, true);
}

/* Three channels apart. */
VECTOR static uint32_t bytes(const spk_converter *c, void *out, uint32_t y, const uint8_t *row)
{
    size_t plane = (size_t)c->format.width * c->format.height;
    uint32_t done = c->format.width / 8 * 8;
    uint8_t *p = (uint8_t *)out + (size_t)y * c->format.width;
    for (uint32_t i = 0; i < done; i += 8, row += 24) {
        __m128i low = _mm_loadu_si128((const void *)row), high = _mm_loadu_si128((const void *)(row + 8));
        _mm_storel_epi64((void *)(p + i), pick(low, high, 0));
        _mm_storel_epi64((void *)(p + plane + i), pick(low, high, 1));
        _mm_storel_epi64((void *)(p + 2 * plane + i), pick(low, high, 2));
    }
    return done;
}

spk_convert_fn spk_convert_best(const spk_pixel_format *f)
{
    bool able = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); /* F16C is older than both */
    if (!able)
        return NULL;
    if (f->type != SPK_PIXEL_UINT8)
        return f->type == SPK_PIXEL_FLOAT16 ? halves : floats;
    return f->channels == 3 && f->order == SPK_PIXEL_NCHW ? bytes : NULL;
}

#else

spk_convert_fn spk_convert_best(const spk_pixel_format *f)
{
    (void)f;
    return NULL;
}

#endif
