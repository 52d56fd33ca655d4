/* AVX2 kernels: the eight places of a mask are filled by one shuffle each, 64 of them put in order by a few more, and
 * widened. Nothing depends on how many levels there are but pointers. */
#include "coef/blob.h"

#ifdef __x86_64__
#include <immintrin.h>
#include <string.h>

#define VECTOR __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define INLINE inline __attribute__((always_inline))

/* Levels of a plane's next block in their places: eight bytes. */
VECTOR static INLINE __m128i places(const spk_coef_tables *t, uint32_t mask, const int8_t **level)
{
    __m128i have = _mm_loadl_epi64((const void *)*level);
    *level += t->count[mask];
    return _mm_shuffle_epi8(have, _mm_loadl_epi64((const void *)&t->spread[mask]));
}

/* Levels that are escapes, in zigzag order. */
VECTOR static INLINE void fill_escapes(int16_t *out, const __m128i z[4], uint32_t cls, const uint8_t **escape)
{
    const __m128i least = _mm_set1_epi8(SPK_COEF_ESCAPE);
    for (uint32_t i = 0; i < cls; i++) {
        uint32_t left = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(z[i], least));
        for (; left != 0; left &= left - 1, *escape += 2)
            out[spk_coef_zigzag[16 * i + _tzcnt_u32(left)]] = spk_coef_escape(*escape);
    }
}

VECTOR static INLINE void expand_class(const spk_coef_tables *t, spk_coef_class *c, uint32_t cls,
                                       const uint32_t *blocks, uint32_t n, int16_t *coef, const int16_t *dc)
{
    const int8_t *l0 = c->level[0], *l1 = c->level[1], *l2 = c->level[2], *l3 = c->level[3];
    const uint8_t *mask = c->mask, *escape = c->escape;
    const size_t plane = c->plane;
    const __m128i least = _mm_set1_epi8(SPK_COEF_ESCAPE);
    for (uint32_t b = 0; b < n; b++, mask++) {
        __m128i z[4], row[4];
        z[0] = places(t, mask[0], &l0);
        z[0] = _mm_unpacklo_epi64(z[0], places(t, mask[plane], &l1));
        if (cls > 1) {
            z[1] = places(t, mask[2 * plane], &l2);
            z[1] = _mm_unpacklo_epi64(z[1], places(t, mask[3 * plane], &l2));
        }
        if (cls > 2) {
            z[2] = places(t, mask[4 * plane], &l3);
            z[2] = _mm_unpacklo_epi64(z[2], places(t, mask[5 * plane], &l3));
        }
        if (cls > 3) {
            z[3] = places(t, mask[6 * plane], &l3);
            z[3] = _mm_unpacklo_epi64(z[3], places(t, mask[7 * plane], &l3));
        }
        int16_t *out = coef + 64 * (size_t)blocks[b];
        __m128i any = _mm_setzero_si128();
        for (uint32_t j = 0; j < 4; j++) {
            row[j] = _mm_shuffle_epi8(z[0], _mm_load_si128((const void *)t->order[j][0]));
            for (uint32_t i = 1; i < cls; i++)
                row[j] = _mm_or_si128(row[j], _mm_shuffle_epi8(z[i], _mm_load_si128((const void *)t->order[j][i])));
            any = _mm_or_si128(any, _mm_cmpeq_epi8(row[j], least));
            _mm256_storeu_si256((void *)(out + 16 * j), _mm256_cvtepi8_epi16(row[j]));
        }
        if (__builtin_expect(_mm_movemask_epi8(any) != 0, 0))
            fill_escapes(out, z, cls, &escape);
        out[0] = dc[blocks[b]];
    }
    c->level[0] = l0;
    c->level[1] = l1;
    c->level[2] = l2;
    c->level[3] = l3;
    c->mask = mask;
    c->escape = escape;
}

VECTOR static void expand(const spk_coef_tables *t, spk_coef_class *c, uint32_t cls, const uint32_t *blocks, uint32_t n,
                          int16_t *coef, const int16_t *dc)
{
    if (cls == 1)
        expand_class(t, c, 1, blocks, n, coef, dc);
    else if (cls == 2)
        expand_class(t, c, 2, blocks, n, coef, dc);
    else if (cls == 3)
        expand_class(t, c, 3, blocks, n, coef, dc);
    else
        expand_class(t, c, 4, blocks, n, coef, dc);
}

VECTOR static size_t bits(const uint8_t *p, size_t n)
{
    size_t sum = 0, i = 0;
    uint64_t v = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&v, p + i, 8);
        sum += (size_t)_mm_popcnt_u64(v);
    }
    v = 0;
    memcpy(&v, p + i, n - i);
    return sum + (size_t)_mm_popcnt_u64(v);
}

/* Bytes that are -128. */
VECTOR static size_t escapes(const int8_t *p, size_t n)
{
    const __m256i least = _mm256_set1_epi8(SPK_COEF_ESCAPE);
    size_t sum = 0, i = 0;
    for (; i + 32 <= n; i += 32)
        sum += (size_t)_mm_popcnt_u32(
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)(p + i)), least)));
    uint32_t rest = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)(p + i)), least));
    return sum + (size_t)_mm_popcnt_u32(_bzhi_u32(rest, (uint32_t)(n - i)));
}

VECTOR static void skip(const spk_coef_tables *t, spk_coef_class *c, uint32_t cls, size_t n)
{
    (void)t;
    size_t levels[SPK_COEF_BANDS] = {0};
    for (uint32_t g = 0; g < 2 * cls; g++)
        levels[spk_coef_band(g)] += bits(c->mask + g * c->plane, n);
    for (uint32_t band = 0; band < spk_coef_bands(cls); band++) {
        c->escape += 2 * escapes(c->level[band], levels[band]);
        c->level[band] += levels[band];
    }
    c->mask += n;
}

/* Eight levels' lower bits, one a byte. */
VECTOR static INLINE uint64_t lower_bits(const uint8_t *low, uint32_t lows)
{
    uint64_t v;
    memcpy(&v, low, 8);
    return _pdep_u64(v, 0x0101010101010101u * ((1u << lows) - 1));
}

VECTOR static void unpack(int8_t *out, const uint8_t *nibbles, const uint8_t *low, uint32_t lows, size_t n)
{
    int8_t value[32];
    for (int32_t i = 0; i < 32; i++) {
        int32_t q = i % 16 < 8 ? i % 16 : i % 16 - 16;
        value[i] = (int8_t)(q == -8 ? SPK_COEF_ESCAPE : q * (1 << lows));
    }
    const __m256i values = _mm256_loadu_si256((const void *)value), none = _mm256_set1_epi8(-1);
    const __m128i four = _mm_set1_epi8(15);
    for (size_t i = 0; i < n; i += 32, nibbles += 16) {
        __m128i x = _mm_loadu_si128((const void *)nibbles);
        __m128i even = _mm_and_si128(x, four), odd = _mm_and_si128(_mm_srli_epi16(x, 4), four);
        __m256i u = _mm256_setr_m128i(_mm_unpacklo_epi8(even, odd), _mm_unpackhi_epi8(even, odd));
        u = _mm256_shuffle_epi8(values, u);
        if (lows > 0) {
            uint64_t a = lower_bits(low, lows), b = lower_bits(low + lows, lows);
            uint64_t c = lower_bits(low + 2 * lows, lows), d = lower_bits(low + 3 * lows, lows);
            low += 4 * (size_t)lows;
            u = _mm256_or_si256(u, _mm256_setr_epi64x((long long)a, (long long)b, (long long)c, (long long)d));
        }
        /* From zero on, one more. */
        _mm256_storeu_si256((void *)(out + i), _mm256_sub_epi8(u, _mm256_cmpgt_epi8(u, none)));
    }
}

static const spk_coef_kernels kernels = {expand, skip, unpack, escapes, bits};

const spk_coef_kernels *spk_coef_kernels_vector(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? &kernels : NULL;
}

#else

const spk_coef_kernels *spk_coef_kernels_vector(void)
{
    return NULL;
}

#endif
