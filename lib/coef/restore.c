/* The file anew: header, the coefficients in the file's own Huffman codes (ITU-T T.81, annex F.1.2), tail. */
#include <string.h>

#include "base/error.h"
#include "coef/blob.h"
#include "coef/block.h"

/* Longest entropy-coded block: 64 codes of 16 bits with 16 bits behind each, all stuffed. */
#define BLOCK_BYTES_MAX 512u

/* The code of a symbol, with room below it for the number that follows. */
typedef struct code {
    uint32_t code;
    uint32_t bits; /* of code and number together; 0: no code */
} code;

typedef struct bit_writer {
    uint8_t *p;
    uint64_t bits; /* the lower n; n < 64 */
    uint32_t n;
} bit_writer;

static bool make_codes(code codes[256], const spk_coef_huffman *h)
{
    uint32_t next = 0, n = 0;
    memset(codes, 0, 256 * sizeof *codes);
    for (uint32_t length = 1; length <= 16; length++, next <<= 1)
        for (uint32_t i = 0; i < h->bits[length]; i++, next++, n++) {
            uint32_t symbol = h->values[n], size = symbol & 15;
            if (next >= 1u << length || codes[symbol].bits != 0)
                return false;
            codes[symbol] = (code){next << size, length + size};
        }
    return true;
}

/* The upper bytes first; FF is followed by 00. */
static uint8_t *put_bytes(uint8_t *p, uint64_t bits, uint32_t bytes)
{
    for (uint32_t i = bytes; i-- > 0;) {
        uint8_t byte = (uint8_t)(bits >> (8 * i));
        *p++ = byte;
        if (byte == 0xFF)
            *p++ = 0;
    }
    return p;
}

static inline uint8_t *put_word(uint8_t *p, uint64_t bits)
{
    bool maybe_ff = (bits & ~(bits + 0x0101010101010101) & 0x8080808080808080) != 0;
    if (maybe_ff)
        return put_bytes(p, bits, 8);
    for (uint32_t i = 0; i < 8; i++)
        p[i] = (uint8_t)(bits >> (56 - 8 * i));
    return p + 8;
}

/* At most 32 bits. */
static inline void put_bits(bit_writer *b, uint32_t bits, uint32_t n)
{
    uint32_t sum = b->n + n;
    if (sum < 64) {
        b->bits = b->bits << n | bits;
        b->n = sum;
        return;
    }
    b->n = sum - 64;
    b->p = put_word(b->p, b->bits << (n - b->n) | (uint64_t)bits >> b->n);
    b->bits = bits; /* what is above the lower n is shifted out */
}

/* Fills the last byte. */
static void end_bits(bit_writer *b, uint8_t padding)
{
    uint32_t left = (8 - b->n % 8) % 8;
    put_bits(b, padding ? (1u << left) - 1 : 0, left);
    b->p = put_bytes(b->p, b->bits, b->n / 8);
    b->n = 0;
}

/* A code and the number behind it; false if there is no code. No branch but that: signs are a coin's toss. */
static inline bool put_number(bit_writer *b, const code codes[256], uint32_t run, int32_t v)
{
    int32_t sign = -(v < 0);
    uint32_t size = 31 - (uint32_t)__builtin_clz((uint32_t)((v ^ sign) - sign) << 1 | 1);
    const code *k = &codes[(run << 4 | size) & 255];
    if (size > 15 || k->bits == 0)
        return false;
    put_bits(b, k->code | ((uint32_t)(v + sign) & ((1u << size) - 1)), k->bits);
    return true;
}

static inline bool put_symbol(bit_writer *b, const code *k)
{
    if (k->bits == 0)
        return false;
    put_bits(b, k->code, k->bits);
    return true;
}

static bool put_block(bit_writer *to, const code dc[256], const code ac[256], const int16_t *block, int32_t *last_dc)
{
    int16_t zigzag[64];
    bit_writer b = *to;
    uint64_t left = spk_coef_to_zigzag(zigzag, block) & ~(uint64_t)1;
    uint32_t at = 0;
    if (!put_number(&b, dc, 0, block[0] - *last_dc))
        return false;
    *last_dc = block[0];
    for (; left != 0; left &= left - 1) {
        uint32_t next = (uint32_t)__builtin_ctzll(left), run = next - at - 1;
        for (; run > 15; run -= 16)
            if (!put_symbol(&b, &ac[0xF0]))
                return false;
        if (!put_number(&b, ac, run, zigzag[next]))
            return false;
        at = next;
    }
    if (at < 63 && !put_symbol(&b, &ac[0]))
        return false;
    *to = b;
    return true;
}

typedef struct restoring {
    spk_coef_reader *r;
    code dc[3][256], ac[3][256];
    int32_t last_dc[3];
    size_t begin[3]; /* of each component in a row of MCUs, in blocks */
    uint32_t to_go, next_restart;
    bit_writer out;
} restoring;

static void restart(restoring *s)
{
    end_bits(&s->out, s->r->padding);
    *s->out.p++ = 0xFF;
    *s->out.p++ = (uint8_t)(0xD0 + s->next_restart);
    s->next_restart = (s->next_restart + 1) % 8;
    s->to_go = s->r->header.interval;
    memset(s->last_dc, 0, sizeof s->last_dc);
}

static bool put_mcu(restoring *s, uint32_t x)
{
    const spk_coef_header *h = &s->r->header;
    if (h->interval > 0 && s->to_go == 0)
        restart(s);
    s->to_go--;
    for (uint32_t c = 0; c < h->components; c++) {
        const spk_coef_component *k = &h->component[c];
        for (uint32_t i = 0; i < k->h * k->v; i++) {
            size_t at = s->begin[c] + (size_t)(i / k->h) * h->mcus_x * k->h + (size_t)x * k->h + i % k->h;
            if (!put_block(&s->out, s->dc[c], s->ac[c], s->r->coef + 64 * at, &s->last_dc[c]))
                return false;
        }
    }
    return true;
}

static void read_row(restoring *s)
{
    spk_coef_reader *r = s->r;
    spk_coef_run run;
    for (uint32_t c = 0; c < r->header.components; c++) {
        spk_coef_row(r, c, 0, r->header.mcus_x, r->dc);
        while (spk_coef_next(r, &run))
            for (uint32_t i = 0; i < run.n; i++) {
                int16_t *out = r->coef + 64 * (s->begin[c] + run.blocks[i]);
                const int16_t *in = run.coef ? run.coef + spk_coef_at(i) : NULL;
                if (!in)
                    memset(out, 0, 64 * sizeof *out);
                for (size_t y = 0; y < 8 && in; y++)
                    memcpy(out + 8 * y, in + 16 * y, 8 * sizeof *out);
                out[0] = r->dc[run.blocks[i]];
            }
    }
}

static spk_status put_scan(restoring *s, spk_buf *out, spk_error *err)
{
    const spk_coef_header *h = &s->r->header;
    for (uint32_t y = 0; y < h->mcus_y; y++) {
        read_row(s);
        for (uint32_t x = 0; x < h->mcus_x; x++) {
            SPK_TRY(spk_buf_reserve(out, 6 * BLOCK_BYTES_MAX + 16, err));
            s->out.p = out->data + out->len;
            if (!put_mcu(s, x))
                return spk_error_set(err, SPK_E_FORMAT, "a coefficient for which there is no Huffman code");
            out->len = (size_t)(s->out.p - out->data);
        }
    }
    SPK_TRY(spk_buf_reserve(out, 16, err));
    s->out.p = out->data + out->len;
    end_bits(&s->out, s->r->padding);
    out->len = (size_t)(s->out.p - out->data);
    return SPK_OK;
}

spk_status spk_coef_restore(spk_coef_reader *r, spk_buf *out, spk_error *err)
{
    const spk_coef_header *h = &r->header;
    restoring s = {.r = r, .to_go = h->interval};
    size_t blocks = 0;
    for (uint32_t c = 0; c < h->components; c++) {
        const spk_coef_component *k = &h->component[c];
        if (!make_codes(s.dc[c], &h->dc[k->dc]) || !make_codes(s.ac[c], &h->ac[k->ac]))
            return spk_error_set(err, SPK_E_FORMAT, "Huffman codes that cannot be");
        s.begin[c] = blocks;
        blocks += (size_t)h->mcus_x * k->h * k->v;
    }
    SPK_TRY(spk_grow(&r->coef, &r->coef_cap, blocks * 64, sizeof *r->coef, err));
    SPK_TRY(spk_grow(&r->dc, &r->dc_cap, (size_t)h->mcus_x * 4 + SPK_COEF_DC_ROOM, sizeof *r->dc, err));
    SPK_TRY(spk_coef_begin(r, true, err));
    SPK_TRY(spk_buf_append(out, r->jpeg_header.data, r->jpeg_header.len, err));
    SPK_TRY(put_scan(&s, out, err));
    return r->tail_n > 0 ? spk_buf_append(out, r->tail, r->tail_n, err) : SPK_OK;
}
