/* AVX2 twins of resample_scalar.c, chosen at run time; the same integers.
 *
 * A weight q of 23 bits is split as 2048 * high + low with 0 <= low < 2048, so that both parts fit the 16-bit
 * multiply-add: sum(p q) = 2048 sum(p high) + sum(p low), and all sums are taken modulo 2^32 as in the scalar code.
 * Input rows are read up to SPK_ROW_PAD bytes too far; output rows are written exactly. */
#include "image/resample.h"

#include "base/buf.h"
#include "base/error.h"

#ifdef __x86_64__
#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define LOW_BITS 11
#define LOW_MASK ((1 << LOW_BITS) - 1)

static inline int16_t high_part(int32_t q)
{
    return (int16_t)(q >> LOW_BITS);
}

static inline int16_t low_part(int32_t q)
{
    return (int16_t)(q & LOW_MASK);
}

/* Weights of taps k, k + 1 as one 32-bit lane. */
static inline int32_t pair_of(int16_t a, int16_t b)
{
    return (int32_t)((uint32_t)(uint16_t)a | (uint32_t)(uint16_t)b << 16);
}

/* ---- horizontal, three channels, two outputs at a time: one in each 128-bit half ---- */

#define GROUP 4         /* taps: 12 bytes of a 16-byte load */
#define GROUP_WORDS 64u /* two outputs: four vectors of 16 words */

/* For outputs 2 i, 2 i + 1 and each group of taps four vectors: high parts of taps 0, 1, of 2, 3, low parts of 0, 1, of
 * 2, 3; each pair repeated for r, g, b. All outputs take the same number of groups; those near the right edge start
 * further left, with zero weights first, lest they read beyond the row. */
spk_status spk_weights_split(spk_weights *w, uint32_t channels, spk_error *err)
{
    uint32_t most = 0;
    w->groups = 0;
    if (channels != 3 || !__builtin_cpu_supports("avx2"))
        return SPK_OK;
    for (uint32_t i = 0; i < w->n; i++)
        most = w->count[i] > most ? w->count[i] : most;
    uint32_t groups = (most + GROUP - 1) / GROUP, pairs = (w->n + 1) / 2;
    if (groups * GROUP > w->in) /* a row narrower than the window: not worth a path of its own */
        return SPK_OK;
    SPK_TRY(spk_grow(&w->start, &w->cap_start, (size_t)pairs * 2, sizeof *w->start, err));
    SPK_TRY(spk_grow(&w->split, &w->cap_split, (size_t)pairs * groups * GROUP_WORDS, sizeof *w->split, err));
    w->groups = groups;
    for (uint32_t i = 0; i < 2 * pairs; i++) {
        uint32_t from = i < w->n ? i : w->n - 1, last = w->in - groups * GROUP;
        uint32_t start = w->first[from] < last ? w->first[from] : last, skip = w->first[from] - start;
        const int32_t *q = w->weight + (size_t)from * w->stride;
        w->start[i] = 3 * start;
        for (uint32_t g = 0; g < groups; g++) {
            int16_t *out = w->split + ((size_t)(i / 2) * groups + g) * GROUP_WORDS + 8 * (i % 2);
            for (uint32_t half = 0; half < 2; half++) {
                uint32_t k = g * GROUP + 2 * half;
                int32_t a = k >= skip && k - skip < w->count[from] ? q[k - skip] : 0;
                int32_t b = k + 1 >= skip && k + 1 - skip < w->count[from] ? q[k + 1 - skip] : 0;
                int32_t high = pair_of(high_part(a), high_part(b)), low = pair_of(low_part(a), low_part(b));
                for (uint32_t c = 0; c < 4; c++) {
                    memcpy(out + 16 * half + 2 * c, &high, 4);
                    memcpy(out + 32 + 16 * half + 2 * c, &low, 4);
                }
            }
        }
    }
    return SPK_OK;
}

AVX2 static inline __m256i load256(const void *p)
{
    return _mm256_loadu_si256(p);
}

#define INLINE inline __attribute__((always_inline))

/* Outputs 2 i and 2 i + 1 as 32-bit r, g, b, (nothing). */
AVX2 static INLINE __m256i two_outputs(const uint8_t *in, const spk_weights *w, uint32_t i, uint32_t groups)
{
    const __m256i taps01 = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, /* */
                                            0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    const __m256i taps23 = _mm256_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1, /* */
                                            6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const int16_t *q = w->split + (size_t)i * groups * GROUP_WORDS;
    const uint8_t *a = in + w->start[2 * i], *b = in + w->start[2 * i + 1];
    __m256i high = _mm256_setzero_si256(), low = _mm256_set1_epi32(1 << 21);
    for (uint32_t g = 0; g < groups; g++, a += 3 * GROUP, b += 3 * GROUP, q += GROUP_WORDS) {
        __m256i px = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)a)),
                                             _mm_loadu_si128((const void *)b), 1);
        __m256i p01 = _mm256_shuffle_epi8(px, taps01), p23 = _mm256_shuffle_epi8(px, taps23);
        high = _mm256_add_epi32(high, _mm256_madd_epi16(p01, load256(q)));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(p23, load256(q + 16)));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(p01, load256(q + 32)));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(p23, load256(q + 48)));
    }
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, LOW_BITS), low), 22);
}

/* Four outputs as 12 bytes in order, or mirrored. */
AVX2 static inline void store_four(uint8_t *out, __m256i v01, __m256i v23, bool flip)
{
    const __m128i forth = _mm_setr_epi8(0, 1, 2, 8, 9, 10, 4, 5, 6, 12, 13, 14, -1, -1, -1, -1);
    const __m128i back = _mm_setr_epi8(12, 13, 14, 4, 5, 6, 8, 9, 10, 0, 1, 2, -1, -1, -1, -1);
    __m256i words = _mm256_packs_epi32(v01, v23); /* outputs 0, 2 | 1, 3 */
    __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    bytes = _mm_shuffle_epi8(bytes, flip ? back : forth);
    _mm_storel_epi64((void *)out, bytes);
    int32_t rest = _mm_extract_epi32(bytes, 2);
    memcpy(out + 8, &rest, 4);
}

AVX2 static INLINE void horizontal_rgb(uint8_t *out, const uint8_t *in, const spk_weights *w, bool flip,
                                       uint32_t groups)
{
    uint32_t i = 0, n = w->n;
    for (; i + 4 <= n; i += 4) {
        __m256i v01 = two_outputs(in, w, i / 2, groups), v23 = two_outputs(in, w, i / 2 + 1, groups);
        store_four(out + 3 * (size_t)(flip ? n - 4 - i : i), v01, v23, flip);
    }
    if (i < n) {
        uint8_t last[12];
        __m256i v01 = two_outputs(in, w, i / 2, groups);
        __m256i v23 = n - i > 2 ? two_outputs(in, w, i / 2 + 1, groups) : v01;
        store_four(last, v01, v23, flip);
        size_t rest = 3 * (size_t)(n - i);
        memcpy(flip ? out : out + 3 * (size_t)i, flip ? last + 12 - rest : last, rest);
    }
}

/* Most crops take one or two groups; with their number known the loop over them is gone. */
AVX2 static void horizontal_avx2(uint8_t *out, const uint8_t *in, const spk_weights *w, uint32_t channels, bool flip)
{
    if (channels != 3 || w->groups == 0)
        spk_horizontal_scalar(out, in, w, channels, flip);
    else if (w->groups == 1)
        horizontal_rgb(out, in, w, flip, 1);
    else if (w->groups == 2)
        horizontal_rgb(out, in, w, flip, 2);
    else
        horizontal_rgb(out, in, w, flip, w->groups);
}

/* ---- vertical, 32 columns at a time ---- */

AVX2 static inline __m256i widen8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
}

/* Columns x to x + 31. The 32-bit multiply is as fast here as the 16-bit one: no weights to split, no rows to pair. */
AVX2 static inline __m256i columns(const uint8_t *const *rows, const int32_t *weight, uint32_t count, size_t x)
{
    __m256i a = _mm256_set1_epi32(1 << 21), b = a, c = a, d = a;
    for (uint32_t k = 0; k < count; k++) {
        const uint8_t *p = rows[k] + x;
        __m256i w = _mm256_set1_epi32(weight[k]);
        a = _mm256_add_epi32(a, _mm256_mullo_epi32(widen8(p), w));
        b = _mm256_add_epi32(b, _mm256_mullo_epi32(widen8(p + 8), w));
        c = _mm256_add_epi32(c, _mm256_mullo_epi32(widen8(p + 16), w));
        d = _mm256_add_epi32(d, _mm256_mullo_epi32(widen8(p + 24), w));
    }
    __m256i ab = _mm256_packs_epi32(_mm256_srai_epi32(a, 22), _mm256_srai_epi32(b, 22));
    __m256i cd = _mm256_packs_epi32(_mm256_srai_epi32(c, 22), _mm256_srai_epi32(d, 22));
    return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(ab, cd), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

AVX2 static void vertical_avx2(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, uint32_t count,
                               size_t n)
{
    if (n < 32) {
        spk_vertical_scalar(out, rows, weight, count, n);
        return;
    }
    for (size_t at = 0; at < n; at += 32) {
        size_t x = at + 32 <= n ? at : n - 32; /* the last block overlaps the one before */
        _mm256_storeu_si256((void *)(out + x), columns(rows, weight, count, x));
    }
}

spk_horizontal_fn spk_horizontal_best(void)
{
    return __builtin_cpu_supports("avx2") ? horizontal_avx2 : spk_horizontal_scalar;
}

spk_vertical_fn spk_vertical_best(void)
{
    return __builtin_cpu_supports("avx2") ? vertical_avx2 : spk_vertical_scalar;
}

#else

spk_status spk_weights_split(spk_weights *w, uint32_t channels, spk_error *err)
{
    (void)w;
    (void)channels;
    (void)err;
    return SPK_OK;
}

spk_horizontal_fn spk_horizontal_best(void)
{
    return spk_horizontal_scalar;
}

spk_vertical_fn spk_vertical_best(void)
{
    return spk_vertical_scalar;
}

#endif
