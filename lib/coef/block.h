/* Private to coef/: a block in zigzag order. */
#ifndef SPK_COEF_BLOCK_H
#define SPK_COEF_BLOCK_H

#include "base/bytes.h"
#include "coef/layout.h"

/* Eight numbers of `width` bits (at most 8), one in each byte from the lowest on, without the gaps. */
static inline uint64_t spk_coef_close_up(uint64_t bytes, uint32_t width)
{
    uint64_t two = (bytes & 0x00FF00FF00FF00FF) | (bytes >> 8 & 0x00FF00FF00FF00FF) << width;
    uint64_t four = (two & 0x0000FFFF0000FFFF) | (two >> 16 & 0x0000FFFF0000FFFF) << 2 * width;
    return (four & 0xFFFFFFFF) | four >> 32 << 4 * width;
}

/* A block by rows to zigzag order. Bit i of what it returns: place i is not zero. */
static inline uint64_t spk_coef_to_zigzag(int16_t out[64], const int16_t *block)
{
    uint64_t places = 0;
    uint8_t there[64];
    for (uint32_t i = 0; i < 64; i++)
        out[i] = block[spk_coef_zigzag[i]];
    for (uint32_t i = 0; i < 64; i++)
        there[i] = out[i] != 0;
    for (uint32_t g = 0; g < 8; g++) /* the product's upper byte has the lowest bit of each byte */
        places |= spk_le64_load(there + 8 * g) * 0x0102040810204080 >> 56 << 8 * g;
    return places;
}

#endif
