/* Blocks of scans in sequence in Huffman codes (ITU-T T.81, F.1.2); codes, bits, and what all scans have in common. */
#include <string.h>

#include "coef/block.h"
#include "coef/coder.h"

bool spk_coef_codes_make(spk_coef_code codes[256], const spk_coef_huffman *h)
{
    uint32_t next = 0, n = 0;
    memset(codes, 0, 256 * sizeof *codes);
    for (uint32_t length = 1; length <= 16; length++, next <<= 1)
        for (uint32_t i = 0; i < h->bits[length]; i++, next++, n++) {
            uint32_t symbol = h->values[n], size = symbol & 15;
            if (next >= 1u << length || codes[symbol].bits != 0)
                return false;
            codes[symbol] = (spk_coef_code){next << size, length + size};
        }
    return true;
}

uint8_t *spk_coef_put_bytes(uint8_t *p, uint64_t bits, uint32_t bytes)
{
    for (uint32_t i = bytes; i-- > 0;) {
        uint8_t byte = (uint8_t)(bits >> (8 * i));
        *p++ = byte;
        if (byte == 0xFF)
            *p++ = 0;
    }
    return p;
}

/* Fills the last byte. */
static void end_bits(spk_coef_bits *b, uint8_t padding)
{
    uint32_t left = (8 - b->n % 8) % 8;
    spk_coef_put_bits(b, padding ? (1u << left) - 1 : 0, left);
    b->p = spk_coef_put_bytes(b->p, b->bits, b->n / 8);
    b->n = 0;
}

/* A code and the number behind it; false if there is no code. */
static inline bool put_number(spk_coef_bits *b, const spk_coef_code codes[256], uint32_t run, int32_t v)
{
    uint32_t size = spk_coef_size(v);
    const spk_coef_code *k = &codes[(run << 4 | size) & 255];
    if (size > 15 || k->bits == 0)
        return false;
    spk_coef_put_bits(b, k->code | spk_coef_bits_of(v, size), k->bits);
    return true;
}

static inline bool put_symbol(spk_coef_bits *b, const spk_coef_code *k)
{
    if (k->bits == 0)
        return false;
    spk_coef_put_bits(b, k->code, k->bits);
    return true;
}

static bool put_block(spk_coef_coder *c, uint32_t i, const int16_t *block)
{
    const spk_coef_code *dc = c->dc[c->scan.dc[i]], *ac = c->ac[c->scan.ac[i]], *small = c->small[c->scan.ac[i]];
    int16_t zigzag[64];
    spk_coef_bits b = c->out;
    uint64_t left = spk_coef_to_zigzag(zigzag, block) & ~(uint64_t)1;
    uint32_t at = 0;
    if (!put_number(&b, dc, 0, block[0] - c->last_dc[i]))
        return false;
    c->last_dc[i] = block[0];
    for (; left != 0; left &= left - 1) {
        uint32_t next = (uint32_t)__builtin_ctzll(left), run = next - at - 1;
        for (; run > 15; run -= 16)
            if (!put_symbol(&b, &ac[0xF0]))
                return false;
        int32_t v = zigzag[next];
        bool is_small = v >= -SPK_COEF_SMALL && v < SPK_COEF_SMALL;
        if (!(is_small ? put_symbol(&b, &small[spk_coef_small(run, v)]) : put_number(&b, ac, run, v)))
            return false;
        at = next;
    }
    if (at < 63 && !put_symbol(&b, &ac[0]))
        return false;
    c->out = b;
    return true;
}

static bool count_block(spk_coef_coder *c, uint32_t i, const int16_t *block)
{
    uint32_t *ac = c->counts[4 + c->scan.ac[i]], dc = spk_coef_size(block[0] - c->last_dc[i]), at = 0;
    int16_t zigzag[64];
    uint64_t left = spk_coef_to_zigzag(zigzag, block) & ~(uint64_t)1;
    c->counts[c->scan.dc[i]][dc]++;
    c->last_dc[i] = block[0];
    for (; left != 0; left &= left - 1) {
        uint32_t next = (uint32_t)__builtin_ctzll(left), run = next - at - 1;
        ac[0xF0] += run / 16;
        ac[(run % 16 << 4 | spk_coef_size(zigzag[next])) & 255]++;
        at = next;
    }
    ac[0] += at < 63;
    return true;
}

static void make_small(spk_coef_code *out, const spk_coef_code ac[256])
{
    for (uint32_t run = 0; run < 16; run++)
        for (int32_t v = -SPK_COEF_SMALL; v < SPK_COEF_SMALL; v++) {
            uint32_t size = spk_coef_size(v);
            const spk_coef_code *k = &ac[run << 4 | size];
            out[spk_coef_small(run, v)] = (spk_coef_code){k->code | spk_coef_bits_of(v, size), k->bits};
        }
}

void spk_coef_coder_begin(spk_coef_coder *c, const spk_coef_walk *w, uint32_t (*counts)[256])
{
    const spk_coef_scan *s = &w->scan;
    c->scan = *s;
    c->counts = counts;
    for (uint32_t i = 0; i < s->components && !w->progressive && !counts; i++)
        if (i == 0 || s->ac[i] != s->ac[i - 1])
            make_small(c->small[s->ac[i]], c->ac[s->ac[i]]);
    if (!w->progressive)
        c->block = counts ? count_block : put_block;
    else if (s->from == 0)
        c->block = s->high == 0 ? spk_coef_dc_first : spk_coef_dc_more;
    else
        c->block = s->high == 0 ? spk_coef_ac_first : spk_coef_ac_more;
    c->run = c->corrections = 0;
    memset(c->last_dc, 0, sizeof c->last_dc);
}

bool spk_coef_coder_end(spk_coef_coder *c, uint8_t padding)
{
    bool good = spk_coef_end_run(c);
    if (!c->counts)
        end_bits(&c->out, padding);
    return good;
}
