/* The geometry of crops and resizes, as torchvision computes it for PIL images. Pure arithmetic. */
#ifndef SPK_IMAGE_TRANSFORM_H
#define SPK_IMAGE_TRANSFORM_H

#include <stdbool.h>

#include "image/rect.h"

/* Where random numbers come from: those of sample `index`, delivered for the `repeat`-th time in `epoch`. */
typedef struct spk_draw_key {
    uint64_t seed;
    uint32_t epoch, repeat;
    uint64_t index;
} spk_draw_key;

/* Number k (0 to 63) of the key, in [0, 1): the upper 53 bits of format-spec/epoch-order.md's draw of domain
 * augmentation, lane `repeat`, step index * 64 + k. */
double spk_draw_uniform(const spk_draw_key *key, unsigned k);
enum {
    SPK_DRAW_CROP = 0, /* + 4 * try: area, ratio, top, left; ten tries */
    SPK_DRAW_HFLIP = 60,
    SPK_DRAW_VFLIP = 61
};
/* Whether an event of probability p happens. */
bool spk_draw_event(const spk_draw_key *key, unsigned k, double p);

/* RandomResizedCrop's crop of an image: area uniform in scale (shares of the image's), width / height log-uniform in
 * ratio; after ten crops that do not fit, the largest centred one within ratio. */
spk_rect spk_random_crop(uint32_t width, uint32_t height, const double scale[2], const double ratio[2],
                         const spk_draw_key *key);

/* Resize(size): the shorter side becomes `size`, the longer one in proportion, fractions cut off. */
void spk_resize_shorter(uint32_t width, uint32_t height, uint32_t size, uint32_t *out_width, uint32_t *out_height);

/* One axis of CenterCrop: `count` pixels from `first` on come to `pad`; zeros on both sides where have < want. */
typedef struct spk_centre {
    uint32_t first, count, pad;
} spk_centre;
spk_centre spk_centre_crop(uint32_t have, uint32_t want);

#endif
