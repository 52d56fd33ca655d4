/* Private to image/: the parts of the checker. Each decoder owns its own state and keeps its buffers between images. */
#ifndef SPK_IMAGE_CHECKER_H
#define SPK_IMAGE_CHECKER_H

#include <stdbool.h>

#include "image/check.h"

#define SPK_IMAGE_PIXELS_DEFAULT 178956970u
#define SPK_JPEG_SCANS_MAX 1000 /* of one image: libjpeg itself has no limit, and each scan costs a pass over it */

/* The image under check, borrowed. */
typedef struct spk_image_job {
    const uint8_t *data;
    size_t n;
    bool decode;
    uint64_t max_pixels; /* never 0 */
} spk_image_job;

/* FORMAT for a side of zero, LIMIT above the pixel limit. */
SPK_CHECK spk_status spk_image_limit(const spk_image_job *job, uint64_t width, uint64_t height, spk_error *err);

typedef struct spk_jpeg_check spk_jpeg_check;
SPK_CHECK spk_status spk_jpeg_check_new(spk_jpeg_check **out, spk_error *err);
void spk_jpeg_check_free(spk_jpeg_check *c);
SPK_CHECK spk_status spk_jpeg_check_run(spk_jpeg_check *c, const spk_image_job *job, spk_image_info *out,
                                        spk_error *err);

typedef struct spk_png_check spk_png_check;
SPK_CHECK spk_status spk_png_check_new(spk_png_check **out, spk_error *err);
void spk_png_check_free(spk_png_check *c);
SPK_CHECK spk_status spk_png_check_run(spk_png_check *c, const spk_image_job *job, spk_image_info *out, spk_error *err);

/* WebP, GIF, BMP, TIFF: dimensions from the header. */
SPK_CHECK spk_status spk_header_check(const spk_image_job *job, spk_image_info *out, spk_error *err);

#endif
