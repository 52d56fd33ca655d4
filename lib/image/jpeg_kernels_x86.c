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

/* v * 2^13, and what makes the shift at the end round. */
VECTOR static INLINE wide scale(__m256i v, int shift)
{
    wide w = pair(_mm256_setzero_si256(), v);
    __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    return (wide){_mm256_add_epi32(_mm256_srai_epi32(w.lo, 3), half),
                  _mm256_add_epi32(_mm256_srai_epi32(w.hi, 3), half)};
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

VECTOR static INLINE __m256i load_rows(const spk_idct_item *a, const spk_idct_item *b, size_t row)
{
    __m128i low = _mm_loadu_si128((const void *)(a->coef + 8 * row));
    __m128i high = _mm_loadu_si128((const void *)(b->coef + 8 * row));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* A block with nothing below its first row skips the first pass, where numbers wrap instead of saturating. That
 * matters from 8192 on only: left to the plain twin, as pictures have no such numbers. */
VECTOR static INLINE bool idct_pair(const spk_idct_item *a, const spk_idct_item *b, const int16_t quant[64],
                                    size_t stride)
{
    __m256i x[8], below = _mm256_setzero_si256();
    for (size_t i = 0; i < 8; i++) {
        __m128i q = _mm_loadu_si128((const void *)(quant + 8 * i));
        x[i] = load_rows(a, b, i);
        below = i == 0 ? below : _mm256_or_si256(below, x[i]);
        x[i] = _mm256_mullo_epi16(x[i], _mm256_broadcastsi128_si256(q));
    }
    __m256i beyond = _mm256_add_epi16(x[0], _mm256_set1_epi16(8192)); /* 0 to 16383 if within */
    if (!_mm256_testz_si256(beyond, _mm256_set1_epi16((short)0xC000)))
        return false;
    if (_mm256_testz_si256(below, below)) {
        x[0] = _mm256_slli_epi16(x[0], 2);
        for (size_t i = 1; i < 8; i++)
            x[i] = x[0];
    } else {
        pass(x, 11);
    }
    transpose(x);
    pass(x, 18);
    store_columns(x, a->out, b->out, stride);
    return true;
}

VECTOR static bool idct(const spk_idct_item *items, size_t n, const int16_t quant[64], size_t stride)
{
    bool same = true;
    for (size_t i = 0; i < n; i += 2) {
        const spk_idct_item *a = items + i, *b = a + (i + 1 < n);
        if (!idct_pair(a, b, quant, stride))
            same = spk_jpeg_kernels_plain.idct(a, (size_t)(b - a) + 1, quant, stride) && same;
    }
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

/* Sixteen pixels, chroma already less 128. The factor of red is 1 + 0.402, that of blue 2 - 0.228, that of green for cr
 * 0.28586 - 1, so that each part fits into 16 bits; products are taken twice as large and halved with rounding. */
VECTOR static INLINE colours to_rgb(__m256i y, __m256i cb, __m256i cr)
{
    const __m256i one = _mm256_set1_epi16(1), half = _mm256_set1_epi32(32768);
    __m256i r = _mm256_mulhi_epi16(_mm256_add_epi16(cr, cr), _mm256_set1_epi16(26345));
    __m256i b = _mm256_mulhi_epi16(_mm256_add_epi16(cb, cb), _mm256_set1_epi16(-14942));
    r = _mm256_add_epi16(_mm256_srai_epi16(_mm256_add_epi16(r, one), 1), cr);
    b = _mm256_add_epi16(_mm256_srai_epi16(_mm256_add_epi16(b, one), 1), _mm256_add_epi16(cb, cb));
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

/* Sixteen samples, each with the one before it and the one behind. */
VECTOR static INLINE void upsample(const uint16_t *c, const widener *w, __m256i *even, __m256i *odd)
{
    const __m256i centre = _mm256_set1_epi16(128);
    __m256i near = triple(_mm256_loadu_si256((const void *)c));
    __m256i left = _mm256_loadu_si256((const void *)(c - 1)), right = _mm256_loadu_si256((const void *)(c + 1));
    left = _mm256_add_epi16(_mm256_add_epi16(near, left), w->even);
    right = _mm256_add_epi16(_mm256_add_epi16(near, right), w->odd);
    *even = _mm256_sub_epi16(_mm256_srl_epi16(left, w->shift), centre);
    *odd = _mm256_sub_epi16(_mm256_srl_epi16(right, w->shift), centre);
}

VECTOR static void rgb_wide(uint8_t *out, const uint8_t *y, const uint16_t *cb, const uint16_t *cr, size_t n,
                            spk_jpeg_widening w)
{
    widener k = {_mm256_set1_epi16((short)w.even), _mm256_set1_epi16((short)w.odd), _mm_cvtsi32_si128(w.shift)};
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

static const spk_jpeg_kernels kernels = {idct, sum, mix, copy, rgb_wide, rgb, interleave};

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
