/* Gray progressive files as no encoder writes them, and as they may be: codes drawn at random, all of one length, with
 * any zeros, ends and runs of blocks that fit. */
#ifndef JPEG_ODD_SCANS_H
#define JPEG_ODD_SCANS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define ODD_BYTES (1u << 20)
#define ODD_BLOCKS_MAX 400u

typedef struct odd_file {
    uint8_t *p; /* of malloc, ODD_BYTES */
    size_t n;
    spk_rng *rng;
    uint32_t blocks;
    uint32_t code_bits; /* 8, 12 or 16 */
    uint32_t restart;   /* blocks between markers, 0 without */
    uint32_t bits, bits_n;
    uint32_t last; /* of 8: a run ends that often */
    bool known[ODD_BLOCKS_MAX][64];
} odd_file;

static inline uint32_t odd_pick(odd_file *f, uint32_t low, uint32_t high)
{
    return low + (uint32_t)spk_rng_below(f->rng, high - low + 1);
}

static inline void odd_bytes(odd_file *f, const void *p, size_t n)
{
    if (f->n + n > ODD_BYTES)
        abort();
    memcpy(f->p + f->n, p, n);
    f->n += n;
}

static inline void odd_byte(odd_file *f, uint32_t v)
{
    uint8_t b = (uint8_t)v;
    odd_bytes(f, &b, 1);
}

static inline void odd_bits(odd_file *f, uint32_t v, uint32_t n)
{
    while (n-- > 0) {
        f->bits = f->bits << 1 | (v >> n & 1);
        if (++f->bits_n < 8)
            continue;
        odd_byte(f, f->bits & 255);
        if ((f->bits & 255) == 255)
            odd_byte(f, 0);
        f->bits_n = 0;
    }
}

static inline void odd_flush(odd_file *f)
{
    if (f->bits_n > 0)
        odd_bits(f, 0x7F, 8 - f->bits_n);
}

/* A symbol, whose code is its number, and the bits behind it. */
static inline void odd_code(odd_file *f, uint32_t symbol, uint32_t v, uint32_t n)
{
    odd_bits(f, symbol, f->code_bits);
    odd_bits(f, v, n);
}

static inline void odd_table(odd_file *f, uint32_t class)
{
    uint32_t symbols = class == 0 ? 12 : 255;
    const uint8_t head[] = {0xFF, 0xC4, 0, (uint8_t)(19 + symbols), (uint8_t)(class << 4)};
    odd_bytes(f, head, 2);
    odd_byte(f, (19 + symbols) >> 8);
    odd_bytes(f, head + 3, 2);
    for (uint32_t i = 1; i <= 16; i++)
        odd_byte(f, i == f->code_bits ? symbols : 0);
    for (uint32_t i = 0; i < symbols; i++)
        odd_byte(f, i);
}

static inline void odd_scan(odd_file *f, uint32_t from, uint32_t to, uint32_t bits)
{
    const uint8_t head[] = {0xFF, 0xDA, 0, 8, 1, 1, 0, (uint8_t)from, (uint8_t)to, (uint8_t)bits};
    odd_bytes(f, head, sizeof head);
}

/* An end of block, for a run that does not go past `most` blocks. */
static inline uint32_t odd_end(odd_file *f, uint32_t most)
{
    uint32_t size = odd_pick(f, 0, 4);
    while (1u << size > most)
        size--;
    uint32_t more = odd_pick(f, 0, (1u << size) - 1);
    if ((1u << size) + more > most)
        more = 0;
    odd_code(f, size << 4, more, size);
    return (1u << size) + more;
}

static inline uint32_t odd_first(odd_file *f, bool *known, uint32_t from, uint32_t to, uint32_t most)
{
    uint32_t at = from - 1;
    while (at < to) {
        if (odd_pick(f, 0, 7) < f->last)
            return odd_end(f, most);
        if (at + 16 <= to && odd_pick(f, 0, 3) == 0) {
            odd_code(f, 0xF0, 0, 0);
            at += 16;
            continue;
        }
        uint32_t run = odd_pick(f, 0, to - at - 1), size = odd_pick(f, 1, odd_pick(f, 0, 9) ? 3 : 8);
        run = run > 15 ? 15 : odd_pick(f, 0, run);
        odd_code(f, run << 4 | size, odd_pick(f, 0, 255), size);
        at += run + 1;
        known[at] = true;
    }
    return 0;
}

/* Corrections from place `at` on, up to the zero number `zeros` behind it, or all; returns where that is. */
static inline uint32_t odd_corrections(odd_file *f, const bool *known, uint32_t at, uint32_t to, uint32_t zeros)
{
    for (; at <= to; at++)
        if (known[at])
            odd_bits(f, odd_pick(f, 0, 1), 1);
        else if (zeros-- == 0)
            break;
    return at;
}

static inline uint32_t odd_finer(odd_file *f, bool *known, uint32_t from, uint32_t to, uint32_t most, uint32_t run)
{
    bool before[64];
    uint32_t at = from;
    memcpy(before, known, sizeof before);
    while (at <= to && run == 0) {
        uint32_t zeros = 0;
        for (uint32_t k = at; k <= to; k++)
            zeros += !before[k];
        if (zeros == 0 || odd_pick(f, 0, 7) < f->last) {
            run = odd_end(f, most);
            break;
        }
        bool none = zeros >= 16 && odd_pick(f, 0, 3) == 0;
        uint32_t skip = none ? 15 : odd_pick(f, 0, odd_pick(f, 0, zeros > 16 ? 15 : zeros - 1));
        odd_code(f, skip << 4 | !none, odd_pick(f, 0, 1), !none);
        at = odd_corrections(f, before, at, to, skip);
        known[at++] |= !none;
    }
    if (run > 0)
        odd_corrections(f, before, at, to, UINT32_MAX);
    return run;
}

/* All blocks of a scan. */
static inline void odd_blocks(odd_file *f, uint32_t from, uint32_t to, bool finer)
{
    uint32_t run = 0, next = 0;
    for (uint32_t i = 0; i < f->blocks; i++) {
        if (f->restart > 0 && i > 0 && i % f->restart == 0) {
            odd_flush(f);
            odd_byte(f, 0xFF);
            odd_byte(f, 0xD0 + next++ % 8);
        }
        uint32_t most = f->blocks - i;
        if (f->restart > 0 && most > f->restart - i % f->restart)
            most = f->restart - i % f->restart;
        if (from == 0 && finer)
            odd_bits(f, odd_pick(f, 0, 1), 1);
        else if (from == 0)
            odd_code(f, i % 7 ? 3 : 5, odd_pick(f, 0, 31), i % 7 ? 3 : 5);
        else if (finer)
            run = odd_finer(f, f->known[i], from, to, most, run);
        else if (run == 0)
            run = odd_first(f, f->known[i], from, to, most);
        run -= run > 0;
    }
    odd_flush(f);
}

/* Some scans of wide x high blocks. */
static inline void odd_write(odd_file *f, uint32_t wide, uint32_t high)
{
    static const uint8_t start[] = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0}, eoi[] = {0xFF, 0xD9};
    const uint8_t frame[] = {0xFF, 0xC2, 0, 11, 8, 0, (uint8_t)(8 * high), 0, (uint8_t)(8 * wide), 1, 1, 0x11, 0};
    const uint8_t interval[] = {0xFF, 0xDD, 0, 4, 0, (uint8_t)f->restart};
    uint32_t middle = odd_pick(f, 1, 62), low = odd_pick(f, 0, 3);
    f->blocks = wide * high;
    f->n = 0;
    memset(f->known, 0, sizeof f->known);
    odd_bytes(f, start, sizeof start);
    for (uint32_t i = 0; i < 64; i++)
        odd_byte(f, 1 + i / 8);
    odd_bytes(f, frame, sizeof frame);
    odd_bytes(f, interval, sizeof interval);
    odd_table(f, 0);
    odd_table(f, 1);
    odd_scan(f, 0, 0, 1);
    odd_blocks(f, 0, 0, false);
    odd_scan(f, 1, middle, low);
    odd_blocks(f, 1, middle, false);
    odd_scan(f, middle + 1, 63, low);
    odd_blocks(f, middle + 1, 63, false);
    odd_scan(f, 0, 0, 0x10);
    odd_blocks(f, 0, 0, true);
    for (; low > 0; low--) {
        odd_scan(f, 1, 63, low << 4 | (low - 1));
        odd_blocks(f, 1, 63, true);
    }
    odd_bytes(f, eoi, sizeof eoi);
}

#endif
