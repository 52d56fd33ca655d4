/* The resampling kernels in plain C: the reference for every faster one. */
#include "image/resample.h"

static uint8_t clip8(int32_t acc)
{
    int32_t v = acc >> 22;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

void spk_horizontal_scalar(uint8_t *out, const uint8_t *in, const spk_weights *w, uint32_t channels, bool flip)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const uint8_t *p = in + (size_t)w->first[i] * channels;
        const int32_t *q = w->weight + (size_t)i * w->stride;
        uint8_t *o = out + (size_t)(flip ? w->n - 1 - i : i) * channels;
        for (uint32_t c = 0; c < channels; c++) {
            int32_t acc = 1 << 21;
            for (uint32_t k = 0; k < w->count[i]; k++)
                acc += p[(size_t)k * channels + c] * q[k];
            o[c] = clip8(acc);
        }
    }
}

void spk_vertical_scalar(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, uint32_t count, size_t n)
{
    for (size_t x = 0; x < n; x++) {
        int32_t acc = 1 << 21;
        for (uint32_t k = 0; k < count; k++)
            acc += rows[k][x] * weight[k];
        out[x] = clip8(acc);
    }
}
