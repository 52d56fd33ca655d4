/* Antialiased resampling of 8-bit pixels, bit for bit as Pillow's Image.resize (Pillow, src/libImaging/Resample.c:
 * separable, horizontal pass first, 8-bit rows between the passes, 22-bit fixed point). Rows stream in from the top and
 * out as soon as their window is complete. Only a window of the output need be made, from only the input that it
 * depends on; its pixels are those of the whole. No I/O, no statics. */
#ifndef SPK_IMAGE_RESAMPLE_H
#define SPK_IMAGE_RESAMPLE_H

#include <shardpack/error.h>
#include <stdbool.h>

typedef enum spk_filter {
    SPK_FILTER_BILINEAR = 0,
    SPK_FILTER_BICUBIC = 1,
    SPK_FILTER_NEAREST = 2 /* nearest.h only */
} spk_filter;

/* Bytes that must be readable behind the last pixel of an input row. */
#define SPK_ROW_PAD 16u

/* Receives row y of the output window, top to bottom; the row is valid during the call. */
typedef void (*spk_row_fn)(void *ctx, uint32_t y, const uint8_t *row);

/* One axis of a resize: the part [box0, box1) of `in` pixels becomes `out` pixels, of which `count` from `first` on are
 * wanted. Nothing outside of the `in` pixels counts, even where the image goes on. */
typedef struct spk_axis {
    uint32_t in;           /* 1 to SPK_AXIS_IN_MAX */
    uint32_t out;          /* 1 to INT32_MAX */
    double box0, box1;     /* 0 <= box0 < box1 <= in */
    uint32_t first, count; /* count at least 1, first + count <= out */
} spk_axis;
#define SPK_AXIS_IN_MAX (1u << 24)

/* All of in to all of out. */
spk_axis spk_axis_whole(uint32_t in, uint32_t out);
/* Pillow leaves such an axis alone. */
bool spk_axis_is_copy(const spk_axis *a);
/* INVALID unless the members are in their ranges. */
SPK_CHECK spk_status spk_axis_check(const spk_axis *a, spk_error *err);
/* The input pixels [lo, hi) that the wanted outputs depend on. Not for NEAREST. */
void spk_axis_needs(const spk_axis *a, spk_filter filter, uint32_t *lo, uint32_t *hi);

typedef struct spk_resample_job {
    spk_axis x, y;
    uint32_t channels; /* 1 to 4 */
    spk_filter filter; /* BILINEAR or BICUBIC */
    bool flip;         /* mirror the window left to right */
    spk_row_fn emit;
    void *ctx;
} spk_resample_job;

/* Reusable state: coefficient tables and a few rows. Confined. */
typedef struct spk_resampler spk_resampler;

SPK_CHECK spk_status spk_resampler_new(spk_resampler **out, spk_error *err);
void spk_resampler_free(spk_resampler *r);
/* Starts an image. NOMEM, INVALID (sizes), or LIMIT (a window that needs more than 1 GiB of rows). */
SPK_CHECK spk_status spk_resampler_begin(spk_resampler *r, const spk_resample_job *job, spk_error *err);
/* The next input row: the pixels that x needs, SPK_ROW_PAD more bytes readable. Call once for each row that y needs. */
void spk_resampler_row(spk_resampler *r, const uint8_t *row);

/* Weights of the wanted outputs of one axis: output i is the sum over k < count[i] of in[first[i] + k] *
 * weight[i * stride + k], with in[0] the first input pixel needed. */
typedef struct spk_weights {
    uint32_t stride;
    uint32_t in, n; /* pixels needed, outputs */
    uint32_t *first, *count;
    int32_t *weight; /* 22 fractional bits; zero behind count, up to stride */
    size_t cap_n, cap_w;
    /* For the vector kernel of three channels (resample_x86.c), else unused. */
    int16_t *split;
    uint32_t *start;
    uint32_t groups; /* of four taps; 0: the kernel cannot be used */
    size_t cap_split, cap_start;
} spk_weights;
SPK_CHECK spk_status spk_weights_make(spk_weights *w, const spk_axis *a, spk_filter filter, spk_error *err);
void spk_weights_free(spk_weights *w);

/* The two kernels, with their scalar twins. horizontal makes outputs 0 .. w->n - 1, vertical
 * out[x] = clip8(sum rows[k][x] * weight[k]) for x < n. */
typedef void (*spk_horizontal_fn)(uint8_t *out, const uint8_t *in, const spk_weights *w, uint32_t channels, bool flip);
typedef void (*spk_vertical_fn)(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, uint32_t count,
                                size_t n);
void spk_horizontal_scalar(uint8_t *out, const uint8_t *in, const spk_weights *w, uint32_t channels, bool flip);
void spk_vertical_scalar(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, uint32_t count, size_t n);
/* The fastest that this processor has; the scalar one where there is no other. */
spk_horizontal_fn spk_horizontal_best(void);
spk_vertical_fn spk_vertical_best(void);
/* Makes what the fastest horizontal kernel needs beside the weights. */
SPK_CHECK spk_status spk_weights_split(spk_weights *w, uint32_t channels, spk_error *err);

#endif
