/* Nearest-neighbour resampling, bit for bit as Pillow's Image.resize with NEAREST: output i takes input
 * (int)(box0 + (i + 0.5) * scale), the position being summed up step by step in double as Pillow does. Rows stream as
 * in resample.h. */
#ifndef SPK_IMAGE_NEAREST_H
#define SPK_IMAGE_NEAREST_H

#include "image/resample.h"

/* Reusable state. Confined. */
typedef struct spk_nearest spk_nearest;

SPK_CHECK spk_status spk_nearest_new(spk_nearest **out, spk_error *err);
void spk_nearest_free(spk_nearest *r);
/* job->filter is not looked at. NOMEM, INVALID. */
SPK_CHECK spk_status spk_nearest_begin(spk_nearest *r, const spk_resample_job *job, spk_error *err);
/* The next input row: pixels [lo, hi) of spk_nearest_needs. */
void spk_nearest_row(spk_nearest *r, const uint8_t *row);
/* The input pixels [lo, hi) that the wanted outputs take. */
void spk_nearest_needs(const spk_axis *a, uint32_t *lo, uint32_t *hi);

#endif
