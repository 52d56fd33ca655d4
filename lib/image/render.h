/* From the bytes of an image to the pixels of one row of a batch: decode, crop, resize, flip, convert in one pass.
 *
 * Exact by default: pixel for pixel what torchvision gives on PIL images (16-bit samples apart, decode.h). With NEAREST
 * and one channel a palette PNG gives its indices, which are the classes of a segmentation mask: what Pillow gives when
 * the image stays in mode "P". With `fast`,
 * a JPEG is decoded at 1/2, 1/4 or 1/8 where the crop is at least 4, 8 or 16 times the target on both axes, so that at
 * least twice the target is left for the filter; the crop keeps its exact, then fractional, borders. Against the exact
 * pixels that is 45 dB and more on average. */
#ifndef SPK_IMAGE_RENDER_H
#define SPK_IMAGE_RENDER_H

#include "image/convert.h"
#include "image/decode.h"
#include "image/resample.h"
#include "image/transform.h"

typedef enum spk_crop_kind {
    SPK_CROP_RANDOM = 0, /* random crop, resized to width x height */
    SPK_CROP_CENTRE = 1, /* shorter side to `resize`, then the centre width x height; zero pixels where it is smaller */
    SPK_CROP_NONE = 2    /* the whole image to width x height */
} spk_crop_kind;

#define SPK_IMAGE_SIDE_MAX 16384u /* of an output */

typedef struct spk_image_params {
    spk_crop_kind crop;
    uint32_t resize;           /* CENTRE */
    double scale[2], ratio[2]; /* RANDOM */
    double hflip, vflip;       /* probabilities */
    spk_filter filter;
    spk_pixel_format format; /* size of the output, and how it is stored */
    bool exif_orientation;
    bool fast;
    uint64_t max_pixels; /* 0: the default of decode.h */
} spk_image_params;

/* INVALID, naming the option and its range. */
SPK_CHECK spk_status spk_image_params_check(const spk_image_params *p, spk_error *err);

/* What was done to an image, for a column paired with it. */
typedef struct spk_geometry {
    uint32_t width, height; /* of the image, oriented */
    spk_rect crop;          /* RANDOM: what was resized; else the whole */
    bool hflip, vflip;
} spk_geometry;

/* One for each image column and thread. Confined. */
typedef struct spk_renderer spk_renderer;

/* The parameters are checked and copied. */
SPK_CHECK spk_status spk_renderer_new(spk_renderer **out, const spk_image_params *params, spk_error *err);
void spk_renderer_free(spk_renderer *r);
/* Writes every byte of spk_pixel_bytes(&params.format) at `out`, aligned for its type; after an error their content is
 * undefined. `paired` may be NULL; else its crop and flips are taken, and an image of other dimensions is an error
 * (FORMAT). `used` may be NULL. Errors of the image: FORMAT, UNSUPPORTED, LIMIT; else NOMEM. */
SPK_CHECK spk_status spk_renderer_run(spk_renderer *r, const void *data, size_t n, const spk_draw_key *key,
                                      const spk_geometry *paired, void *out, spk_geometry *used, spk_error *err);

/* Says that the next run's image is byte for byte that of the last: what was read of it may serve again. */
void spk_renderer_repeat(spk_renderer *r);
/* Its decoder, whose engine measurements choose (decoder.h). */
spk_decoder *spk_renderer_decoder(spk_renderer *r);

#endif
