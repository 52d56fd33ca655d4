/* AVX2 kernels: the eight places of a mask are filled by one shuffle each, 64 of them put in order by a few more, and
 * widened. Nothing depends on how many levels there are but pointers. */
#include "coef/blob.h"

#ifdef __x86_64__
#include <immintrin.h>
#include <string.h>

#define VECTOR __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define INLINE inline __attribute__((always_inline))

/* Two masks' levels in their places, a list for each, which may be the same: sixteen bytes. */
VECTOR static INLINE __m128i places(const spk_coef_tables *t, uint32_t m0, uint32_t m1, const int8_t **l0,
                                    const int8_t **l1)
{
    __m128d have = _mm_castsi128_pd(_mm_loadl_epi64((const void *)*l0));
    __m128d how = _mm_castsi128_pd(_mm_loadl_epi64((const void *)&t->spread[0][m0]));
    *l0 += _mm_popcnt_u32(m0);
    have = _mm_loadh_pd(have, (const void *)*l1);
    how = _mm_loadh_pd(how, (const void *)&t->spread[1][m1]);
    *l1 += _mm_popcnt_u32(m1);
    return _mm_shuffle_epi8(_mm_castpd_si128(have), _mm_castpd_si128(how));
}

/* The next block of a class in zigzag order. */
VECTOR static INLINE void read_block(const spk_coef_tables *t, const uint8_t *mask, size_t plane, uint32_t cls,
                                     const int8_t *l[SPK_COEF_BANDS], __m128i z[4])
{
    z[0] = places(t, mask[0], mask[plane], &l[0], &l[1]);
    if (cls > 1)
        z[1] = places(t, mask[2 * plane], mask[3 * plane], &l[2], &l[2]);
    if (cls > 2)
        z[2] = places(t, mask[4 * plane], mask[5 * plane], &l[3], &l[3]);
    if (cls > 3)
        z[3] = places(t, mask[6 * plane], mask[7 * plane], &l[3], &l[3]);
}

/* Levels that are escapes, in zigzag order. */
VECTOR static INLINE void fill_escapes(int16_t *out, const __m128i z[4], uint32_t cls, const uint8_t **escape)
{
    const __m128i least = _mm_set1_epi8(SPK_COEF_ESCAPE);
    for (uint32_t i = 0; i < cls; i++) {
        uint32_t left = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(z[i], least));
        for (; left != 0; left &= left - 1, *escape += 2) {
            uint32_t to = spk_coef_zigzag[16 * i + _tzcnt_u32(left)];
            out[to / 8 * 16 + to % 8] = spk_coef_escape(*escape);
        }
    }
}

VECTOR static INLINE __m256i order(const spk_coef_tables *t, __m256i z, uint32_t j, uint32_t i)
{
    return _mm256_shuffle_epi8(z, _mm256_load_si256((const void *)t->order[j][i]));
}

/* Rows 2 j and 2 j + 1 of two blocks. The last sixteen places have nothing of the first part, the first ones nothing
 * of the last. */
VECTOR static INLINE void put_rows(const spk_coef_tables *t, const __m256i z[4], uint32_t cls, uint32_t j, int16_t *out)
{
    __m256i row = j < 3 ? order(t, z[0], j, 0) : _mm256_setzero_si256();
    if (cls > 1)
        row = _mm256_or_si256(row, order(t, z[1], j, 1));
    if (cls > 2)
        row = _mm256_or_si256(row, order(t, z[2], j, 2));
    if (cls > 3 && j > 0)
        row = _mm256_or_si256(row, order(t, z[3], j, 3));
    __m256i sign = _mm256_cmpgt_epi8(_mm256_setzero_si256(), row);
    _mm256_store_si256((void *)(out + 32 * j), _mm256_unpacklo_epi8(row, sign));
    _mm256_store_si256((void *)(out + 32 * j + 16), _mm256_unpackhi_epi8(row, sign));
}

VECTOR static INLINE void expand_class(const spk_coef_tables *t, spk_coef_class *c, uint32_t cls, uint32_t n,
                                       int16_t *out)
{
    const int8_t *l[SPK_COEF_BANDS] = {c->level[0], c->level[1], c->level[2], c->level[3]};
    const uint8_t *mask = c->mask, *end = mask + n, *escape = c->escape;
    const size_t plane = c->plane;
    const __m128i least = _mm_set1_epi8(SPK_COEF_ESCAPE), zero = _mm_setzero_si128();
    for (; mask < end; mask += 2, out += 128) {
        __m128i a[4], b[4] = {zero, zero, zero, zero}, low = zero;
        __m256i z[4];
        read_block(t, mask, plane, cls, l, a);
        if (mask + 1 < end)
            read_block(t, mask + 1, plane, cls, l, b);
        for (uint32_t i = 0; i < cls; i++) {
            z[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(a[i]), b[i], 1);
            low = _mm_min_epi8(low, _mm_min_epi8(a[i], b[i]));
        }
        put_rows(t, z, cls, 0, out);
        put_rows(t, z, cls, 1, out);
        put_rows(t, z, cls, 2, out);
        put_rows(t, z, cls, 3, out);
        if (__builtin_expect(_mm_movemask_epi8(_mm_cmpeq_epi8(low, least)) != 0, 0)) {
            fill_escapes(out, a, cls, &escape);
            fill_escapes(out + 8, b, cls, &escape);
        }
    }
    memcpy(c->level, l, sizeof l);
    c->mask = end;
    c->escape = escape;
}

VECTOR static void expand(const spk_coef_tables *t, spk_coef_class *c, uint32_t cls, uint32_t n, int16_t *coef)
{
    if (cls == 1)
        expand_class(t, c, 1, n, coef);
    else if (cls == 2)
        expand_class(t, c, 2, n, coef);
    else if (cls == 3)
        expand_class(t, c, 3, n, coef);
    else
        expand_class(t, c, 4, n, coef);
}

VECTOR static size_t bits(const uint8_t *p, size_t n)
{
    size_t sum = 0, i = 0;
    uint64_t v = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&v, p + i, 8);
        sum += (size_t)_mm_popcnt_u64(v);
    }
    memcpy(&v, p + i, 8);
    return sum + (size_t)_mm_popcnt_u64(_bzhi_u64(v, (uint32_t)(8 * (n - i))));
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

VECTOR static void skip(spk_coef_class *c, uint32_t cls, size_t n)
{
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

/* Eight at a time: each is added to those behind it in three steps. */
VECTOR static void sums(int16_t *out, const int8_t *high, const uint8_t *low, size_t n, int16_t v)
{
    const __m128i last = _mm_set1_epi16(0x0F0E);
    __m128i before = _mm_set1_epi16(v);
    for (size_t x = 0; x < n; x += 8, high += 8, low += 2) {
        uint64_t lows = _pdep_u64((uint64_t)low[0] | (uint64_t)low[1] << 8, 0x0303030303030303u);
        __m128i d = _mm_slli_epi16(_mm_cvtepi8_epi16(_mm_loadl_epi64((const void *)high)), 2);
        d = _mm_add_epi16(d, _mm_cvtepu8_epi16(_mm_cvtsi64_si128((long long)lows)));
        d = _mm_add_epi16(d, _mm_slli_si128(d, 2));
        d = _mm_add_epi16(d, _mm_slli_si128(d, 4));
        d = _mm_add_epi16(_mm_add_epi16(d, _mm_slli_si128(d, 8)), before);
        _mm_storeu_si128((void *)(out + x), d);
        before = _mm_shuffle_epi8(d, last);
    }
}

/* Eight blocks at a time: for each class a mask of its blocks, and their places by table. */
VECTOR static void sort(const spk_coef_tables *t, const uint8_t *classes, uint32_t n,
                        uint16_t *const lists[SPK_COEF_CLASSES], uint32_t counts[SPK_COEF_CLASSES])
{
    uint32_t sums[SPK_COEF_CLASSES] = {0};
    for (uint32_t i = 0; i < n; i += 8, classes += 4) {
        uint32_t four = 0, there = n - i < 8 ? (1u << (n - i)) - 1 : 255;
        memcpy(&four, classes, 4);
        __m128i all = _mm_cvtsi64_si128((long long)_pdep_u64(four, 0x0F0F0F0F0F0F0F0Fu));
        for (uint32_t cls = 0; cls < SPK_COEF_CLASSES; cls++) {
            uint32_t mask = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8((char)cls))) & there;
            __m128i places = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)&t->places[mask]));
            places = _mm_add_epi16(places, _mm_set1_epi16((short)i));
            _mm_storeu_si128((void *)(lists[cls] + sums[cls]), places);
            sums[cls] += (uint32_t)_mm_popcnt_u32(mask);
        }
    }
    memcpy(counts, sums, sizeof sums);
}

static const spk_coef_kernels kernels = {expand, skip, unpack, sums, sort, escapes, bits};

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
