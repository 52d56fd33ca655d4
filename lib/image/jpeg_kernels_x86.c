/* AVX2 kernels of jpeg_kernels.h: two blocks at once, one in each half of the vectors; 32 pixels at once. */
#include "image/jpeg_kernels.h"

#ifdef __x86_64__
#include <immintrin.h>

#define VECTOR __attribute__((target("avx2")))
#define INLINE inline __attribute__((always_inline))

/* ---- inverse DCT ---- */

/* Sixteen pairs of 16-bit factors. */
VECTOR static INLINE __m256i factors(int a, int b)
{
    return _mm256_set1_epi32((int)((uint32_t)(uint16_t)a | (uint32_t)b << 16));
}

typedef struct wide {
    __m256i lo, hi;
} wide;

VECTOR static INLINE wide pair(__m256i a, __m256i b)
{
    return (wide){_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};
}

VECTOR static INLINE wide dot(wide ab, int p, int q)
{
    __m256i f = factors(p, q);
    return (wide){_mm256_madd_epi16(ab.lo, f), _mm256_madd_epi16(ab.hi, f)};
}

VECTOR static INLINE wide add(wide a, wide b)
{
    return (wide){_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}

VECTOR static INLINE wide sub(wide a, wide b)
{
    return (wide){_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}

/* v * 2^13, and what makes the shift at the end round: 2^10 for 11, 2^17 for 18. */
VECTOR static INLINE wide scale(__m256i v, int shift)
{
    __m256i one = _mm256_set1_epi16(shift == 11 ? 1 : 16);
    return dot(pair(v, one), 8192, shift == 11 ? 1024 : 8192);
}

VECTOR static INLINE __m256i descale(wide v, int shift)
{
    return _mm256_packs_epi32(_mm256_srai_epi32(v.lo, shift), _mm256_srai_epi32(v.hi, shift));
}

/* One pass over the columns of both blocks. */
VECTOR static INLINE void pass(__m256i x[8], int shift)
{
    wide x26 = pair(x[2], x[6]), x71 = pair(x[7], x[1]), x53 = pair(x[5], x[3]);
    wide z = pair(_mm256_add_epi16(x[3], x[7]), _mm256_add_epi16(x[1], x[5]));
    wide t0 = scale(_mm256_add_epi16(x[0], x[4]), shift), t1 = scale(_mm256_sub_epi16(x[0], x[4]), shift);
    wide t2 = dot(x26, 4433, -10704), t3 = dot(x26, 10703, 4433);
    wide u3 = dot(z, -6436, 9633), u4 = dot(z, 9633, 6437);
    wide e0 = add(t0, t3), e1 = add(t1, t2), e2 = sub(t1, t2), e3 = sub(t0, t3);
    wide o0 = add(dot(x71, -7373, 4926), u4), o1 = add(dot(x53, -20995, 4177), u3);
    wide o2 = add(dot(x53, -4176, -20995), u4), o3 = add(dot(x71, -4927, -7373), u3);
    x[0] = descale(add(e0, o0), shift);
    x[1] = descale(add(e1, o1), shift);
    x[2] = descale(add(e2, o2), shift);
    x[3] = descale(add(e3, o3), shift);
    x[4] = descale(sub(e3, o3), shift);
    x[5] = descale(sub(e2, o2), shift);
    x[6] = descale(sub(e1, o1), shift);
    x[7] = descale(sub(e0, o0), shift);
}

VECTOR static INLINE void transpose(__m256i x[8])
{
    wide a = pair(x[0], x[1]), b = pair(x[2], x[3]), c = pair(x[4], x[5]), d = pair(x[6], x[7]);
    __m256i p0 = _mm256_unpacklo_epi32(a.lo, b.lo), p1 = _mm256_unpackhi_epi32(a.lo, b.lo);
    __m256i p2 = _mm256_unpacklo_epi32(a.hi, b.hi), p3 = _mm256_unpackhi_epi32(a.hi, b.hi);
    __m256i q0 = _mm256_unpacklo_epi32(c.lo, d.lo), q1 = _mm256_unpackhi_epi32(c.lo, d.lo);
    __m256i q2 = _mm256_unpacklo_epi32(c.hi, d.hi), q3 = _mm256_unpackhi_epi32(c.hi, d.hi);
    x[0] = _mm256_unpacklo_epi64(p0, q0);
    x[1] = _mm256_unpackhi_epi64(p0, q0);
    x[2] = _mm256_unpacklo_epi64(p1, q1);
    x[3] = _mm256_unpackhi_epi64(p1, q1);
    x[4] = _mm256_unpacklo_epi64(p2, q2);
    x[5] = _mm256_unpackhi_epi64(p2, q2);
    x[6] = _mm256_unpacklo_epi64(p3, q3);
    x[7] = _mm256_unpackhi_epi64(p3, q3);
}

/* Two rows of eight samples of each block. */
VECTOR static INLINE void store_rows(__m256i v, uint8_t *a, uint8_t *b, size_t stride)
{
    __m128i low = _mm256_castsi256_si128(v), high = _mm256_extracti128_si256(v, 1);
    _mm_storel_epi64((void *)a, low);
    _mm_storeh_pd((void *)(a + stride), _mm_castsi128_pd(low));
    _mm_storel_epi64((void *)b, high);
    _mm_storeh_pd((void *)(b + stride), _mm_castsi128_pd(high));
}

/* The columns of both blocks as 16-bit numbers become bytes and rows at the same time. */
VECTOR static INLINE void store_columns(const __m256i x[8], uint8_t *a, uint8_t *b, size_t stride)
{
    const __m256i centre = _mm256_set1_epi8(-128);
    __m256i c02 = _mm256_add_epi8(_mm256_packs_epi16(x[0], x[2]), centre);
    __m256i c13 = _mm256_add_epi8(_mm256_packs_epi16(x[1], x[3]), centre);
    __m256i c46 = _mm256_add_epi8(_mm256_packs_epi16(x[4], x[6]), centre);
    __m256i c57 = _mm256_add_epi8(_mm256_packs_epi16(x[5], x[7]), centre);
    __m256i c01 = _mm256_unpacklo_epi8(c02, c13), c23 = _mm256_unpackhi_epi8(c02, c13);
    __m256i c45 = _mm256_unpacklo_epi8(c46, c57), c67 = _mm256_unpackhi_epi8(c46, c57);
    __m256i left_top = _mm256_unpacklo_epi16(c01, c23), left_low = _mm256_unpackhi_epi16(c01, c23);
    __m256i right_top = _mm256_unpacklo_epi16(c45, c67), right_low = _mm256_unpackhi_epi16(c45, c67);
    store_rows(_mm256_unpacklo_epi32(left_top, right_top), a, b, stride);
    store_rows(_mm256_unpackhi_epi32(left_top, right_top), a + 2 * stride, b + 2 * stride, stride);
    store_rows(_mm256_unpacklo_epi32(left_low, right_low), a + 4 * stride, b + 4 * stride, stride);
    store_rows(_mm256_unpackhi_epi32(left_low, right_low), a + 6 * stride, b + 6 * stride, stride);
}

/* Written out, as a loop would keep the rows in memory. */
#define EIGHT(row)                                                                                                     \
    {                                                                                                                  \
        row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)                                                 \
    }

VECTOR static INLINE __m256i dequantised(__m256i v, const int16_t *quant)
{
    return _mm256_mullo_epi16(v, _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)quant)));
}

VECTOR static INLINE __m256i load_rows(const int16_t *a, const int16_t *b)
{
    __m128i low = _mm_loadu_si128((const void *)a), high = _mm_loadu_si128((const void *)b);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* A block with nothing below its first row skips the first pass in libjpeg-turbo, where numbers wrap instead of
 * saturating. That matters from 8192 on only: left to the plain twin, as pictures have no such numbers. */
VECTOR static INLINE bool transform(__m256i x[8], uint8_t *a, uint8_t *b, size_t stride)
{
    __m256i beyond = _mm256_add_epi16(x[0], _mm256_set1_epi16(8192)); /* 0 to 16383 if within */
    if (!_mm256_testz_si256(beyond, _mm256_set1_epi16((short)0xC000)))
        return false;
    pass(x, 11);
    transpose(x);
    pass(x, 18);
    store_columns(x, a, b, stride);
    return true;
}

VECTOR static bool idct(const spk_idct_item *items, size_t n, const int16_t quant[64], size_t stride)
{
    bool same = true;
    for (size_t i = 0; i < n; i += 2) {
        const spk_idct_item *a = items + i, *b = a + (i + 1 < n);
#define ROW(y) dequantised(load_rows(a->coef + 8 * (y), b->coef + 8 * (y)), quant + 8 * (y))
        __m256i x[8] = EIGHT(ROW);
#undef ROW
        if (!transform(x, a->out, b->out, stride))
            same = spk_jpeg_kernels_plain.idct(a, (size_t)(b - a) + 1, quant, stride) && same;
    }
    return same;
}

/* The first block of a pair. */
VECTOR static bool transform_last(const int16_t *coef, uint8_t *out, const int16_t quant[64], size_t stride)
{
#define ROW(y) dequantised(load_rows(coef + 16 * (y), coef + 16 * (y)), quant + 8 * (y))
    __m256i x[8] = EIGHT(ROW);
#undef ROW
    return transform(x, out, out, stride);
}

VECTOR static bool idct_pairs(const int16_t *coef, uint8_t *const *out, size_t n, const int16_t quant[64],
                              size_t stride)
{
    bool same = true;
    for (size_t i = 0; i + 2 <= n; i += 2, coef += 128) {
#define ROW(y) dequantised(_mm256_load_si256((const void *)(coef + 16 * (y))), quant + 8 * (y))
        __m256i x[8] = EIGHT(ROW);
#undef ROW
        if (!transform(x, out[i], out[i + 1], stride))
            same = spk_jpeg_kernels_plain.idct_pairs(coef, out + i, 2, quant, stride) && same;
    }
    if (n % 2 && !transform_last(coef, out[n - 1], quant, stride))
        same = spk_jpeg_kernels_plain.idct_pairs(coef, out + n - 1, 1, quant, stride) && same;
    return same;
}

/* ---- upsampling ---- */

VECTOR static INLINE __m256i widen(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)p));
}

VECTOR static INLINE __m256i triple(__m256i v)
{
    return _mm256_add_epi16(_mm256_add_epi16(v, v), v);
}

VECTOR static void sum(uint16_t *out, const uint8_t *near, const uint8_t *far, size_t n)
{
    for (size_t i = 0; i < n; i += 16)
        _mm256_storeu_si256((void *)(out + i), _mm256_add_epi16(triple(widen(near + i)), widen(far + i)));
}

VECTOR static void mix(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t bias, size_t n)
{
    __m256i add = _mm256_set1_epi16((short)bias);
    for (size_t i = 0; i < n; i += 16) {
        __m256i v = _mm256_add_epi16(_mm256_add_epi16(triple(widen(near + i)), widen(far + i)), add);
        v = _mm256_srli_epi16(v, 2);
        _mm_storeu_si128((void *)(out + i),
                         _mm_packus_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
    }
}

VECTOR static void copy(uint16_t *out, const uint8_t *in, size_t n)
{
    for (size_t i = 0; i < n; i += 16)
        _mm256_storeu_si256((void *)(out + i), widen(in + i));
}

/* ---- colour ---- */

typedef struct colours {
    __m256i r, g, b;
} colours;

/* Sixteen pixels, chroma already less 128. The factor of red is 1 + 13173 / 2^15, that of blue 2 - 7471 / 2^15, that of
 * green for cr 18734 / 2^16 - 1, so that each part fits into 16 bits; 13173 is not quite 0.40199 but gives the same for
 * all of -128 to 127. */
VECTOR static INLINE colours to_rgb(__m256i y, __m256i cb, __m256i cr)
{
    const __m256i half = _mm256_set1_epi32(32768);
    __m256i r = _mm256_add_epi16(_mm256_mulhrs_epi16(cr, _mm256_set1_epi16(13173)), cr);
    __m256i b = _mm256_mulhrs_epi16(cb, _mm256_set1_epi16(-7471));
    b = _mm256_add_epi16(b, _mm256_add_epi16(cb, cb));
    wide g = dot(pair(cb, cr), -22554, 18734);
    __m256i low = _mm256_srai_epi32(_mm256_add_epi32(g.lo, half), 16);
    __m256i high = _mm256_srai_epi32(_mm256_add_epi32(g.hi, half), 16);
    __m256i green = _mm256_sub_epi16(_mm256_packs_epi32(low, high), cr);
    return (colours){_mm256_add_epi16(y, r), _mm256_add_epi16(y, green), _mm256_add_epi16(y, b)};
}

/* Where the bytes of one colour go in each of the three 16-byte parts of 16 pixels. */
#define NO -1
#define SPREAD(c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15)                                   \
    _mm256_setr_epi8(c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c0, c1, c2, c3, c4, c5, c6, \
                     c7, c8, c9, c10, c11, c12, c13, c14, c15)

/* 32 pixels from three vectors of 32 bytes. */
VECTOR static INLINE void store_pixels(uint8_t *out, __m256i r, __m256i g, __m256i b)
{
    const __m256i r0 = SPREAD(0, NO, NO, 1, NO, NO, 2, NO, NO, 3, NO, NO, 4, NO, NO, 5);
    const __m256i g0 = SPREAD(NO, 0, NO, NO, 1, NO, NO, 2, NO, NO, 3, NO, NO, 4, NO, NO);
    const __m256i b0 = SPREAD(NO, NO, 0, NO, NO, 1, NO, NO, 2, NO, NO, 3, NO, NO, 4, NO);
    const __m256i r1 = SPREAD(NO, NO, 6, NO, NO, 7, NO, NO, 8, NO, NO, 9, NO, NO, 10, NO);
    const __m256i g1 = SPREAD(5, NO, NO, 6, NO, NO, 7, NO, NO, 8, NO, NO, 9, NO, NO, 10);
    const __m256i b1 = SPREAD(NO, 5, NO, NO, 6, NO, NO, 7, NO, NO, 8, NO, NO, 9, NO, NO);
    const __m256i r2 = SPREAD(NO, 11, NO, NO, 12, NO, NO, 13, NO, NO, 14, NO, NO, 15, NO, NO);
    const __m256i g2 = SPREAD(NO, NO, 11, NO, NO, 12, NO, NO, 13, NO, NO, 14, NO, NO, 15, NO);
    const __m256i b2 = SPREAD(10, NO, NO, 11, NO, NO, 12, NO, NO, 13, NO, NO, 14, NO, NO, 15);
    __m256i p0 = _mm256_or_si256(_mm256_shuffle_epi8(r, r0), _mm256_shuffle_epi8(g, g0));
    __m256i p1 = _mm256_or_si256(_mm256_shuffle_epi8(r, r1), _mm256_shuffle_epi8(g, g1));
    __m256i p2 = _mm256_or_si256(_mm256_shuffle_epi8(r, r2), _mm256_shuffle_epi8(g, g2));
    p0 = _mm256_or_si256(p0, _mm256_shuffle_epi8(b, b0));
    p1 = _mm256_or_si256(p1, _mm256_shuffle_epi8(b, b1));
    p2 = _mm256_or_si256(p2, _mm256_shuffle_epi8(b, b2));
    _mm256_storeu_si256((void *)out, _mm256_permute2x128_si256(p0, p1, 0x20));
    _mm256_storeu_si256((void *)(out + 32), _mm256_permute2x128_si256(p2, p0, 0x30));
    _mm256_storeu_si256((void *)(out + 64), _mm256_permute2x128_si256(p1, p2, 0x31));
}

/* Sixteen even and sixteen odd pixels in turn. */
VECTOR static INLINE __m256i in_turn(__m256i even, __m256i odd)
{
    const __m256i turns = SPREAD(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return _mm256_shuffle_epi8(_mm256_packus_epi16(even, odd), turns);
}

typedef struct widener {
    __m256i even, odd;
    __m128i shift;
} widener;

/* Sixteen samples, each with the one before it and the one behind, less 128. */
VECTOR static INLINE void upsample(const uint16_t *c, const widener *w, __m256i *even, __m256i *odd)
{
    __m256i near = triple(_mm256_loadu_si256((const void *)c));
    __m256i left = _mm256_loadu_si256((const void *)(c - 1)), right = _mm256_loadu_si256((const void *)(c + 1));
    left = _mm256_add_epi16(_mm256_add_epi16(near, left), w->even);
    right = _mm256_add_epi16(_mm256_add_epi16(near, right), w->odd);
    *even = _mm256_sra_epi16(left, w->shift);
    *odd = _mm256_sra_epi16(right, w->shift);
}

VECTOR static void rgb_wide(uint8_t *out, const uint8_t *y, const uint16_t *cb, const uint16_t *cr, size_t n,
                            spk_jpeg_widening w)
{
    int centre = 128 << w.shift;
    widener k = {_mm256_set1_epi16((short)(w.even - centre)), _mm256_set1_epi16((short)(w.odd - centre)),
                 _mm_cvtsi32_si128(w.shift)};
    for (size_t x = 0; x < n; x += 32, out += 96) {
        __m256i cb_even, cb_odd, cr_even, cr_odd, luma = _mm256_loadu_si256((const void *)(y + x));
        upsample(cb + x / 2, &k, &cb_even, &cb_odd);
        upsample(cr + x / 2, &k, &cr_even, &cr_odd);
        colours even = to_rgb(_mm256_and_si256(luma, _mm256_set1_epi16(255)), cb_even, cr_even);
        colours odd = to_rgb(_mm256_srli_epi16(luma, 8), cb_odd, cr_odd);
        store_pixels(out, in_turn(even.r, odd.r), in_turn(even.g, odd.g), in_turn(even.b, odd.b));
    }
}

VECTOR static void rgb(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t n)
{
    const __m256i low = _mm256_set1_epi16(255), centre = _mm256_set1_epi16(128);
    for (size_t x = 0; x < n; x += 32, out += 96) {
        __m256i luma = _mm256_loadu_si256((const void *)(y + x));
        __m256i blue = _mm256_loadu_si256((const void *)(cb + x)), red = _mm256_loadu_si256((const void *)(cr + x));
        colours even = to_rgb(_mm256_and_si256(luma, low), _mm256_sub_epi16(_mm256_and_si256(blue, low), centre),
                              _mm256_sub_epi16(_mm256_and_si256(red, low), centre));
        colours odd = to_rgb(_mm256_srli_epi16(luma, 8), _mm256_sub_epi16(_mm256_srli_epi16(blue, 8), centre),
                             _mm256_sub_epi16(_mm256_srli_epi16(red, 8), centre));
        store_pixels(out, in_turn(even.r, odd.r), in_turn(even.g, odd.g), in_turn(even.b, odd.b));
    }
}

VECTOR static void interleave(uint8_t *out, const uint8_t *r, const uint8_t *g, const uint8_t *b, size_t n)
{
    for (size_t x = 0; x < n; x += 32, out += 96)
        store_pixels(out, _mm256_loadu_si256((const void *)(r + x)), _mm256_loadu_si256((const void *)(g + x)),
                     _mm256_loadu_si256((const void *)(b + x)));
}

static const spk_jpeg_kernels kernels = {idct, idct_pairs, sum, mix, copy, rgb_wide, rgb, interleave};

const spk_jpeg_kernels *spk_jpeg_kernels_vector(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? &kernels : NULL;
}

#else

const spk_jpeg_kernels *spk_jpeg_kernels_vector(void)
{
    return NULL;
}

#endif
