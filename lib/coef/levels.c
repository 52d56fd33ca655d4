/* The levels of a list: which way is the cheapest, and their streams. Costs are integers (write.c). */
#include "coef/levels.h"

#include <stdlib.h>
#include <string.h>

#include "coef/block.h"

#define GROUP 8u   /* levels at once: their nibbles and lower bits fill bytes */
#define FOLDED 256 /* folded levels from -128 on that are counted; the others are escapes in every way */
#define HALF 128   /* of them */
#define ESCAPE_BITS 26u

typedef struct histogram {
    uint32_t of[FOLDED];
    uint32_t beyond, n;
    int32_t least, most; /* nothing is counted outside of them */
} histogram;

void spk_coef_levels_free(spk_coef_levels *l)
{
    free(l->v);
    free(l->beyond);
}

spk_status spk_coef_levels_reserve(spk_coef_levels *l, size_t more, spk_error *err)
{
    return spk_grow(&l->v, &l->cap, l->n + more + GROUP, sizeof *l->v, err);
}

/* Without zero in the middle. */
static inline int16_t folded(int16_t level)
{
    return (int16_t)(level - (level > 0));
}

/* Whether a way holds a folded level. */
static inline bool fits(int16_t u, uint32_t way)
{
    int16_t q = (int16_t)(u >> (way == SPK_COEF_BYTES ? 0 : way)), most = way == SPK_COEF_BYTES ? 127 : 7;
    return (q >= -most) & (q <= most) & (u <= 126);
}

/* Equal levels often follow each other, and to count one up twice in a row takes long: hence four tables. */
static void count(const spk_coef_levels *l, histogram *h)
{
    uint32_t parts[4][FOLDED];
    memset(parts, 0, sizeof parts);
    *h = (histogram){.n = (uint32_t)l->n, .least = HALF, .most = -HALF};
    for (size_t i = 0; i < l->n; i++) {
        uint32_t at = (uint32_t)(folded(l->v[i]) + HALF);
        if (at < FOLDED)
            parts[i % 4][at]++;
        else
            h->beyond++;
    }
    for (int32_t i = 0; i < FOLDED; i++) {
        h->of[i] = parts[0][i] + parts[1][i] + parts[2][i] + parts[3][i];
        if (h->of[i] > 0) {
            h->least = h->least == HALF ? i - HALF : h->least;
            h->most = i - HALF;
        }
    }
}

/* Cost of a way in 1/4096 bits, of which the decoding of a byte counts for `byte`. */
static uint64_t cost_of(const spk_coef_packer *p, const histogram *h, uint32_t way, uint32_t byte, size_t *escapes)
{
    uint32_t symbols[256] = {0}, lows = way == SPK_COEF_BYTES ? 0 : way;
    uint64_t n = h->n, out = h->beyond;
    for (int32_t u = h->least; u <= h->most; u++) {
        if (fits((int16_t)u, way))
            symbols[way == SPK_COEF_BYTES ? u + 128 : (u >> lows) + 8] += h->of[u + HALF];
        else
            out += h->of[u + HALF];
    }
    symbols[0] += (uint32_t)out;
    *escapes = (size_t)out;
    uint64_t bits = spk_coef_entropy(p, symbols, way == SPK_COEF_BYTES ? 256 : 16);
    uint64_t least = way == SPK_COEF_BYTES ? n * 4096 : 0;
    bits = bits > least ? bits : least;
    return bits + n * lows * 4096 + out * ESCAPE_BITS * 4096 + n * (way == SPK_COEF_BYTES ? byte : byte / 2);
}

void spk_coef_levels_choose(spk_coef_levels *l, const spk_coef_packer *p, uint32_t byte)
{
    static const uint8_t ways[] = {0, 1, 2, 3, 4, SPK_COEF_BYTES};
    histogram h;
    uint64_t best = UINT64_MAX;
    count(l, &h);
    for (size_t i = 0; i < sizeof ways; i++) {
        size_t escapes = 0;
        uint64_t cost = cost_of(p, &h, ways[i], byte, &escapes);
        if (cost < best) {
            best = cost;
            l->way = ways[i];
            l->escapes = escapes;
        }
    }
}

/* ---- streams ---- */

static void put_bytes(const int16_t *v, uint8_t *out)
{
    for (uint32_t i = 0; i < GROUP; i++)
        out[i] = (uint8_t)(fits(folded(v[i]), SPK_COEF_BYTES) ? v[i] : SPK_COEF_ESCAPE);
}

static void put_nibbles(const int16_t *v, uint32_t way, uint8_t *out, uint8_t *low)
{
    uint8_t high[GROUP], rest[GROUP];
    for (uint32_t i = 0; i < GROUP; i++) {
        int16_t u = folded(v[i]);
        bool in = fits(u, way);
        high[i] = (uint8_t)(in ? u >> way & 15 : 8);
        rest[i] = (uint8_t)(in ? u & ((1 << way) - 1) : 0);
    }
    spk_le32_store(out, (uint32_t)spk_coef_close_up(spk_le64_load(high), 4));
    if (way > 0)
        spk_le64_store(low, spk_coef_close_up(spk_le64_load(rest), way));
}

static spk_status find_escapes(spk_coef_levels *l, spk_error *err)
{
    size_t found = 0;
    SPK_TRY(spk_grow(&l->beyond, &l->cap_beyond, l->escapes, sizeof *l->beyond, err));
    for (size_t at = 0; at < l->n && found < l->escapes; at += GROUP) {
        uint8_t out[GROUP];
        for (uint32_t i = 0; i < GROUP; i++)
            out[i] = !fits(folded(l->v[at + i]), l->way);
        for (uint64_t left = spk_le64_load(out); left != 0; left &= left - 1)
            l->beyond[found++] = (uint32_t)at + (uint32_t)__builtin_ctzll(left) / 8;
    }
    return SPK_OK;
}

spk_status spk_coef_levels_put(spk_coef_levels *l, spk_buf *levels, spk_buf *low, spk_error *err)
{
    size_t groups = (l->n + GROUP - 1) / GROUP;
    if (l->n == 0)
        return SPK_OK;
    SPK_TRY(spk_buf_reserve(levels, groups * GROUP, err));
    SPK_TRY(spk_buf_reserve(low, groups * 4 + 8, err));
    memset(l->v + l->n, 0, GROUP * sizeof *l->v);
    uint8_t *to = levels->data + levels->len, *rest = low->data + low->len;
    if (l->way == SPK_COEF_BYTES) {
        for (size_t i = 0; i < groups; i++)
            put_bytes(l->v + i * GROUP, to + i * GROUP);
        levels->len += l->n;
    } else {
        for (size_t i = 0; i < groups; i++)
            put_nibbles(l->v + i * GROUP, l->way, to + 4 * i, rest + l->way * i);
        levels->len += (l->n + 1) / 2;
        low->len += groups * l->way;
    }
    return l->escapes > 0 ? find_escapes(l, err) : SPK_OK;
}
