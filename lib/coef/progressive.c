/* Blocks of progressive scans in Huffman codes (ITU-T T.81, G.1.2). Where the standard leaves a choice, it is
 * libjpeg's: runs of blocks are as long as their code and the corrections that are held back allow. */
#include "coef/coder.h"
#include "coef/layout.h"

#define RUN_MAX 0x7FFFu
#define ZEROS 0xF0u /* 16 of them */

/* A symbol with the number that belongs to it. */
static bool put_symbol(spk_coef_coder *c, uint32_t table, const spk_coef_code codes[256], uint32_t symbol,
                       uint32_t number)
{
    const spk_coef_code *k = &codes[symbol];
    if (c->counts) {
        c->counts[table][symbol]++;
        return true;
    }
    spk_coef_put_bits(&c->out, k->code | number, k->bits);
    return k->bits > 0;
}

static void put_plain(spk_coef_coder *c, uint32_t bits, uint32_t n)
{
    if (!c->counts)
        spk_coef_put_bits(&c->out, bits, n);
}

/* Scans of AC have one component. */
static bool put_ac(spk_coef_coder *c, uint32_t symbol, uint32_t number)
{
    uint32_t table = c->scan.ac[0];
    return put_symbol(c, 4 + table, c->ac[table], symbol, number);
}

bool spk_coef_dc_first(spk_coef_coder *c, uint32_t i, const int16_t *block)
{
    int32_t v = block[0] >> c->scan.low, d = v - c->last_dc[i];
    uint32_t size = spk_coef_size(d), table = c->scan.dc[i];
    c->last_dc[i] = v;
    return size <= 15 && put_symbol(c, table, c->dc[table], size, spk_coef_bits_of(d, size));
}

bool spk_coef_dc_more(spk_coef_coder *c, uint32_t i, const int16_t *block)
{
    (void)i;
    put_plain(c, (uint32_t)(block[0] >> c->scan.low) & 1, 1);
    return true;
}

static void put_corrections(spk_coef_coder *c, const uint8_t *bits, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        put_plain(c, bits[i], 1);
}

bool spk_coef_end_run(spk_coef_coder *c)
{
    if (c->run == 0)
        return true;
    uint32_t size = spk_coef_size((int32_t)c->run) - 1;
    bool good = put_ac(c, size << 4, 0);
    put_plain(c, c->run & ((1u << size) - 1), size);
    put_corrections(c, c->correction, c->corrections);
    c->run = c->corrections = 0;
    return good;
}

/* Magnitude of a coefficient without its lower bits. */
static uint32_t magnitude(const spk_coef_coder *c, int16_t v)
{
    return (uint32_t)(v < 0 ? -v : v) >> c->scan.low;
}

bool spk_coef_ac_first(spk_coef_coder *c, uint32_t i, const int16_t *block)
{
    uint32_t zeros = 0;
    bool good = true;
    (void)i;
    for (uint32_t k = c->scan.from; k <= c->scan.to && good; k++) {
        int16_t v = block[spk_coef_zigzag[k]];
        uint32_t m = magnitude(c, v), size = spk_coef_size((int32_t)m);
        if (m == 0) {
            zeros++;
            continue;
        }
        good = spk_coef_end_run(c);
        for (; zeros > 15 && good; zeros -= 16)
            good = put_ac(c, ZEROS, 0);
        good = good && size < 16 && put_ac(c, zeros << 4 | size, (v < 0 ? ~m : m) & ((1u << size) - 1));
        zeros = 0;
    }
    c->run += zeros > 0;
    return c->run < RUN_MAX ? good : spk_coef_end_run(c) && good;
}

/* The last place whose coefficient becomes known with this scan; 0 without. */
static uint32_t last_new(const spk_coef_coder *c, const int16_t *block)
{
    for (uint32_t k = c->scan.to; k >= c->scan.from; k--)
        if (magnitude(c, block[spk_coef_zigzag[k]]) == 1)
            return k;
    return 0;
}

bool spk_coef_ac_more(spk_coef_coder *c, uint32_t i, const int16_t *block)
{
    uint32_t last = last_new(c, block), zeros = 0;
    uint32_t held = 0; /* corrections of this block that wait behind those of the run */
    bool good = true;
    (void)i;
    for (uint32_t k = c->scan.from; k <= c->scan.to && good; k++) {
        int16_t v = block[spk_coef_zigzag[k]];
        uint32_t m = magnitude(c, v);
        for (; m > 0 && zeros > 15 && k <= last && good; zeros -= 16) {
            uint32_t before = c->corrections;
            good = spk_coef_end_run(c) && put_ac(c, ZEROS, 0);
            put_corrections(c, c->correction + before, held);
            held = 0;
        }
        if (m == 0) {
            zeros++;
        } else if (m > 1) {
            c->correction[c->corrections + held++] = m & 1;
        } else {
            uint32_t before = c->corrections;
            good = good && spk_coef_end_run(c) && put_ac(c, zeros << 4 | 1, v >= 0);
            put_corrections(c, c->correction + before, held);
            zeros = held = 0;
        }
    }
    if (zeros > 0 || held > 0) {
        c->run++;
        c->corrections += held;
        if (c->run == RUN_MAX || c->corrections > SPK_COEF_CORRECTIONS - 63)
            good = spk_coef_end_run(c) && good;
    }
    return good;
}
