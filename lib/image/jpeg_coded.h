/* Private to image/: the entropy-coded bytes of one scan as bits, codes and numbers, past restart markers.
 *
 * Reading has no bounds tests inside an MCU: SPK_FEED_SLACK bytes are there before each MCU begins, and no MCU takes
 * more. */
#ifndef SPK_IMAGE_JPEG_CODED_H
#define SPK_IMAGE_JPEG_CODED_H

#include <string.h>

#include "image/jpeg_huffman.h"

#define SPK_INLINE inline __attribute__((always_inline))
/* Of functions for processors that spk_jpeg_kernels_vector is for. */
#ifdef __x86_64__
#define SPK_BMI __attribute__((target("avx2,bmi,bmi2")))
#else
#define SPK_BMI
#endif

/* Bits not used yet: the upper n of `window`, n modulo 64; then those from p on. */
typedef struct spk_bits {
    uint64_t window;
    const uint8_t *p;
    uint32_t n;
} spk_bits;

typedef struct spk_jpeg_coded {
    spk_feed feed;
    const uint8_t *limit; /* at an MCU behind it, the feed must be looked after */
    spk_bits bits;
    int32_t last_dc[3];
    uint32_t run; /* blocks of a progressive scan, from the next one on, without new numbers */
    uint32_t interval, to_go, next_restart; /* restart markers: MCUs between, MCUs until, number of the next one */
} spk_jpeg_coded;

/* src: behind the SOS segment; end: of the file; interval: 0 without restart markers. */
SPK_CHECK spk_status spk_jpeg_coded_begin(spk_jpeg_coded *c, const uint8_t *src, const uint8_t *end, uint32_t interval,
                                          spk_error *err);
void spk_jpeg_coded_free(spk_jpeg_coded *c);
/* Before an MCU whose first byte is behind `limit`, or if to_go is 0: goes past a restart marker, has enough bytes
 * ready. False if the scan has come to its end. */
bool spk_jpeg_coded_look_after(spk_jpeg_coded *c);
/* Whether bits were read that are not there. */
bool spk_jpeg_coded_overrun(const spk_jpeg_coded *c);
/* Behind the last MCU: where the marker is that follows, NULL if it does not follow at once. */
const uint8_t *spk_jpeg_coded_end(spk_jpeg_coded *c);

static SPK_INLINE uint64_t spk_bits_load(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* At least 56 bits are in the window then. */
static SPK_INLINE void spk_bits_refill(spk_bits *b)
{
    b->window |= spk_bits_load(b->p) >> (b->n & 63);
    b->p += ~b->n >> 3 & 7;
    b->n |= 56;
}

/* The entry of the next code. Refilled by itself if the code is long. */
static SPK_INLINE uint32_t spk_bits_peek(spk_bits *b, const spk_huffman *h)
{
    uint32_t e = h->entry[b->window >> (64 - SPK_HUFFMAN_PEEK)];
    if (__builtin_expect((e & SPK_HUFFMAN_LONG) != 0, 0)) {
        spk_bits_refill(b);
        e = spk_huffman_find(h, b->window);
    }
    return e;
}

/* The same for two of AC. */
static SPK_INLINE uint64_t spk_bits_peek_pair(spk_bits *b, const spk_huffman *h)
{
    uint64_t e = h->pair[b->window >> (64 - SPK_HUFFMAN_PEEK)];
    if (__builtin_expect((e & SPK_HUFFMAN_LONG) != 0, 0)) {
        spk_bits_refill(b);
        e = SPK_HUFFMAN_PAIR(spk_huffman_find(h, b->window), 1, 0, 0);
    }
    return e;
}

/* The lower 6 bits of n count. */
static SPK_INLINE void spk_bits_drop(spk_bits *b, uint32_t n)
{
    b->window <<= n & 63;
    b->n -= n;
}

/* The next n bits, at most 56. */
static SPK_INLINE uint64_t spk_bits_next(const spk_bits *b, uint32_t n)
{
    return b->window >> 1 >> (63 - n);
}

/* The number behind a code: T.81, EXTEND. */
static SPK_INLINE int32_t spk_bits_number(const spk_bits *b, uint32_t e)
{
    uint64_t w = b->window << (e >> 8 & 63);
    uint32_t size = e >> 16 & 15, negative = (uint32_t)(w >> 63) - 1; /* 0, or all ones */
    return (int32_t)((uint32_t)(w >> 1 >> (63 - size)) + (negative << size) - negative);
}

/* From zigzag to rows; behind it, where the end of a block leads, the place of DC, which is written last. */
#define SPK_ZIGZAG_ROOM (SPK_HUFFMAN_END + 64 + SPK_HUFFMAN_RUN_MAX)
extern const uint8_t spk_zigzag[SPK_ZIGZAG_ROOM];

/* Reads two numbers behind place `at`, or one; returns where the last one is, 63 and more at the end of the block. */
static SPK_INLINE uint32_t spk_bits_read_pair(spk_bits *b, const spk_huffman *ac, uint32_t at, int16_t *out, bool keep)
{
    uint64_t e = spk_bits_peek_pair(b, ac);
    spk_bits before = *b;
    uint32_t one = at + (uint32_t)(e >> 32 & 255), two = at + (uint32_t)(e >> 24 & 255);
    if (keep) {
        out[spk_zigzag[one]] = (int16_t)(e >> 48);
        out[spk_zigzag[two]] = (int16_t)spk_bits_number(b, (uint32_t)e);
    }
    spk_bits_drop(b, (uint32_t)e);
    if (__builtin_expect(two >= 63 && one >= 63, 0) && (e >> 40 & 255) > 0) { /* what follows is the next block's */
        *b = before;
        spk_bits_drop(b, (uint32_t)(e >> 40 & 255));
        return one;
    }
    return two;
}

/* Reads a block of a sequential scan; its coefficients go to `out`, which is zero, unless it is not kept. Returns where
 * it ended: at 63, or SPK_HUFFMAN_END + the last one's place; anything else is a fault. */
static SPK_INLINE uint32_t spk_bits_read_block(spk_bits *b, const spk_huffman *dc, const spk_huffman *ac,
                                               int32_t *last_dc, int16_t *out, bool keep)
{
    uint32_t at = 0;
    spk_bits_refill(b);
    uint32_t e = spk_bits_peek(b, dc), fault = e >> 24;
    *last_dc += spk_bits_number(b, e);
    spk_bits_drop(b, e);
    fault |= *last_dc != (int16_t)*last_dc;
    do {
        spk_bits_refill(b);
        at = spk_bits_read_pair(b, ac, at, out, keep);
        if (at >= 63)
            break;
        at = spk_bits_read_pair(b, ac, at, out, keep);
    } while (at < 63);
    if (keep)
        out[0] = (int16_t)*last_dc;
    return fault ? SPK_HUFFMAN_BAD : at;
}

/* What spk_bits_read_block returns for a block that is not as it should be. */
static SPK_INLINE bool spk_bits_is_fault(uint32_t at)
{
    return at - SPK_HUFFMAN_BAD < SPK_HUFFMAN_END - SPK_HUFFMAN_BAD;
}

#endif
