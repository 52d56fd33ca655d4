/* Private to coef/: from coefficients to entropy-coded bytes, block by block (ITU-T T.81, annexes F.1.2 and G.1.2).
 * restore.c codes whole scans with it. */
#ifndef SPK_COEF_CODER_H
#define SPK_COEF_CODER_H

#include <string.h>

#include "coef/coef.h"

/* libjpeg holds back the correction bits of so many; a run of blocks ends before they could become more. */
#define SPK_COEF_CORRECTIONS 1000u
/* No block takes more, with the bits that were not written yet: in sequence 64 codes of 16 bits with 16 bits behind
 * each; in a refinement a run with 1000 corrections, then codes of 17 bits. All of it stuffed. */
#define SPK_COEF_BLOCK_BYTES 640u

/* The code of a symbol, with room below it for the number that follows, whose size the symbol's lower four bits tell.
 */
typedef struct spk_coef_code {
    uint32_t code;
    uint32_t bits; /* of code and number together; 0: no code */
} spk_coef_code;

/* Most numbers are from -SPK_COEF_SMALL on and below SPK_COEF_SMALL: for these there are codes with the number in
 * place, by the run of zeros before it and the number. */
#define SPK_COEF_SMALL 32
static inline uint32_t spk_coef_small(uint32_t run, int32_t v)
{
    return run * 2 * SPK_COEF_SMALL + (uint32_t)(v + SPK_COEF_SMALL);
}

typedef struct spk_coef_bits {
    uint8_t *p;
    uint64_t bits; /* the lower n; n < 64 */
    uint32_t n;
} spk_coef_bits;

typedef struct spk_coef_coder spk_coef_coder;
/* Codes a block of the scan's component number i. False if there is no code for it. */
typedef bool (*spk_coef_block_fn)(spk_coef_coder *c, uint32_t i, const int16_t *block);

struct spk_coef_coder {
    spk_coef_scan scan;
    spk_coef_bits out;
    spk_coef_code dc[4][256], ac[4][256];            /* those that the scan names */
    spk_coef_code small[4][16 * 2 * SPK_COEF_SMALL]; /* of ac, for scans in sequence */
    uint32_t (*counts)[256]; /* of the symbols of tables dc 0 to 3, ac 0 to 3: counted, nothing is coded; or NULL */
    spk_coef_block_fn block;
    int32_t last_dc[3];
    uint32_t run; /* blocks whose rest is zero and that are not coded yet: T.81's EOBRUN */
    uint32_t corrections;
    uint8_t correction[SPK_COEF_CORRECTIONS]; /* bits that follow the code of the run */
};

/* Whatever a scan needs but the codes. counts: 8 times 256, or NULL. */
void spk_coef_coder_begin(spk_coef_coder *c, const spk_coef_walk *w, uint32_t (*counts)[256]);
/* What is to be coded before a restart marker or the end; then the last byte is filled and all is written. */
bool spk_coef_coder_end(spk_coef_coder *c, uint8_t padding);

/* False for codes that cannot be. */
bool spk_coef_codes_make(spk_coef_code codes[256], const spk_coef_huffman *h);

/* The four kinds of progressive scans (progressive.c). */
bool spk_coef_dc_first(spk_coef_coder *c, uint32_t i, const int16_t *block);
bool spk_coef_dc_more(spk_coef_coder *c, uint32_t i, const int16_t *block);
bool spk_coef_ac_first(spk_coef_coder *c, uint32_t i, const int16_t *block);
bool spk_coef_ac_more(spk_coef_coder *c, uint32_t i, const int16_t *block);
/* Codes c->run and what belongs to it. */
bool spk_coef_end_run(spk_coef_coder *c);

/* The upper bytes first; FF is followed by 00. */
uint8_t *spk_coef_put_bytes(uint8_t *p, uint64_t bits, uint32_t bytes);

static inline uint8_t *spk_coef_put_word(uint8_t *p, uint64_t bits)
{
    bool maybe_ff = (bits & ~(bits + 0x0101010101010101) & 0x8080808080808080) != 0;
    if (maybe_ff)
        return spk_coef_put_bytes(p, bits, 8);
    for (uint32_t i = 0; i < 8; i++)
        p[i] = (uint8_t)(bits >> (56 - 8 * i));
    return p + 8;
}

/* At most 32 bits. */
static inline void spk_coef_put_bits(spk_coef_bits *b, uint32_t bits, uint32_t n)
{
    uint32_t sum = b->n + n;
    if (sum < 64) {
        b->bits = b->bits << n | bits;
        b->n = sum;
        return;
    }
    b->n = sum - 64;
    b->p = spk_coef_put_word(b->p, b->bits << (n - b->n) | (uint64_t)bits >> b->n);
    b->bits = bits; /* what is above the lower n is shifted out */
}

/* Bits that a number's magnitude has. No branch: signs are a coin's toss. */
static inline uint32_t spk_coef_size(int32_t v)
{
    int32_t sign = -(v < 0);
    return 31 - (uint32_t)__builtin_clz((uint32_t)((v ^ sign) - sign) << 1 | 1);
}

/* The bits that stand for a number of that size. */
static inline uint32_t spk_coef_bits_of(int32_t v, uint32_t size)
{
    return (uint32_t)(v - (v < 0)) & ((1u << size) - 1);
}

#endif
