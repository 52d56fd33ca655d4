/* Private to image/: the pixel arithmetic of JPEG, bit for bit as libjpeg-turbo does it with JDCT_ISLOW and fancy
 * upsampling: the accurate integer inverse DCT (Loeffler, Ligtenberg and Moschytz, 13-bit constants), triangle filters
 * for chroma, and BT.601 colours. The vector kernels and their plain twins give the same bytes.
 *
 * All kernels may read and write up to SPK_JPEG_SLACK elements behind the n that count. */
#ifndef SPK_IMAGE_JPEG_KERNELS_H
#define SPK_IMAGE_JPEG_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPK_JPEG_SLACK 32u

/* A block of 64 coefficients, row by row, still quantised, and where its first sample goes. */
typedef struct spk_idct_item {
    const int16_t *coef;
    uint8_t *out;
} spk_idct_item;

/* Twice as wide: pixel 2 i is (3 c[i] + c[i - 1] + even) >> shift, pixel 2 i + 1 (3 c[i] + c[i + 1] + odd) >> shift. */
typedef struct spk_jpeg_widening {
    uint16_t even, odd, shift;
} spk_jpeg_widening;

typedef struct spk_jpeg_kernels {
    /* Items whose rows of samples are `stride` apart. False: numbers beyond those of any picture, on which the versions
     * of libjpeg-turbo disagree; never on x86-64, where the twin does what libjpeg-turbo's vectors do. */
    bool (*idct)(const spk_idct_item *items, size_t n, const int16_t quant[64], size_t stride);
    /* n blocks side by side, two and two: block i begins at 128 * (i / 2) + 8 * (i % 2), its rows are 16 apart; aligned
     * to 32 bytes. */
    bool (*idct_pairs)(const int16_t *coef, uint8_t *const *out, size_t n, const int16_t quant[64], size_t stride);
    void (*sum)(uint16_t *out, const uint8_t *near, const uint8_t *far, size_t n);               /* 3 near + far */
    void (*mix)(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t bias, size_t n); /* (sum + bias) / 4 */
    void (*copy)(uint16_t *out, const uint8_t *in, size_t n);
    /* n pixels; y and out at an even pixel, cb and cr at the sample of it, with the samples beside readable. */
    void (*rgb_wide)(uint8_t *out, const uint8_t *y, const uint16_t *cb, const uint16_t *cr, size_t n,
                     spk_jpeg_widening w);
    void (*rgb)(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t n);
    void (*interleave)(uint8_t *out, const uint8_t *r, const uint8_t *g, const uint8_t *b, size_t n);
} spk_jpeg_kernels;

extern const spk_jpeg_kernels spk_jpeg_kernels_plain;
/* NULL where the processor has no vectors that there are kernels for. */
const spk_jpeg_kernels *spk_jpeg_kernels_vector(void);

#endif
