/* Sources: torchvision.transforms (RandomResizedCrop.get_params, functional.resize, functional.center_crop), restated.
 * Python's round() is to the even neighbour at halves, as rint() is. */
#include "image/transform.h"

#include <math.h>

#include "base/rng.h"

#define DOMAIN_AUGMENT 2u /* plan/plan.h */
#define TRIES 10u

double spk_draw_uniform(const spk_draw_key *key, unsigned k)
{
    uint64_t step = key->index * 64 + k;
    const uint32_t seed[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)step, (uint32_t)(step >> 32), key->repeat,
                                 key->epoch | DOMAIN_AUGMENT << 30};
    uint32_t out[4];
    spk_philox(counter, seed, out);
    return (double)(((uint64_t)out[0] | (uint64_t)out[1] << 32) >> 11) * 0x1p-53;
}

bool spk_draw_event(const spk_draw_key *key, unsigned k, double p)
{
    return spk_draw_uniform(key, k) < p;
}

/* 0 to bound - 1. */
static uint32_t draw_below(const spk_draw_key *key, unsigned k, uint32_t bound)
{
    return (uint32_t)(spk_draw_uniform(key, k) * bound);
}

static spk_rect centred(uint32_t width, uint32_t height, const double ratio[2])
{
    double shape = (double)width / height, w = width, h = height;
    if (shape < ratio[0])
        h = rint(width / ratio[0]);
    else if (shape > ratio[1])
        w = rint(height * ratio[1]);
    uint32_t cw = w < 1 ? 1 : w > width ? width : (uint32_t)w, ch = h < 1 ? 1 : h > height ? height : (uint32_t)h;
    return (spk_rect){(width - cw) / 2, (height - ch) / 2, cw, ch};
}

spk_rect spk_random_crop(uint32_t width, uint32_t height, const double scale[2], const double ratio[2],
                         const spk_draw_key *key)
{
    double area = (double)width * height, low = log(ratio[0]), high = log(ratio[1]);
    for (unsigned t = 0; t < TRIES; t++) {
        unsigned k = SPK_DRAW_CROP + 4 * t;
        double target = area * (scale[0] + (scale[1] - scale[0]) * spk_draw_uniform(key, k));
        double shape = exp(low + (high - low) * spk_draw_uniform(key, k + 1));
        double w = rint(sqrt(target * shape)), h = rint(sqrt(target / shape));
        if (w < 1 || w > width || h < 1 || h > height)
            continue;
        uint32_t cw = (uint32_t)w, ch = (uint32_t)h, top = draw_below(key, k + 2, height - ch + 1);
        return (spk_rect){draw_below(key, k + 3, width - cw + 1), top, cw, ch};
    }
    return centred(width, height, ratio);
}

/* A quotient of integers below 2^53, rounded once, then cut: Python's int(size * long / short). */
static uint32_t in_proportion(uint32_t size, uint32_t longer, uint32_t shorter)
{
    double v = (double)size * longer / shorter;
    return v < INT32_MAX ? (uint32_t)v : INT32_MAX;
}

void spk_resize_shorter(uint32_t width, uint32_t height, uint32_t size, uint32_t *out_width, uint32_t *out_height)
{
    bool tall = width <= height;
    *out_width = tall ? size : in_proportion(size, width, height);
    *out_height = tall ? in_proportion(size, height, width) : size;
}

spk_centre spk_centre_crop(uint32_t have, uint32_t want)
{
    if (have <= want)
        return (spk_centre){0, have, (want - have) / 2};
    return (spk_centre){(uint32_t)rint((have - want) / 2.0), want, 0};
}
