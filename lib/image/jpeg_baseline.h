/* Private to image/: an own decoder for the JPEG that nearly all files are, baseline in one scan: it is faster than
 * libjpeg-turbo and gives the same pixels. It never finds fault with a file: in whatever is out of order it stops, and
 * libjpeg decodes the image and says what there is to say. */
#ifndef SPK_IMAGE_JPEG_BASELINE_H
#define SPK_IMAGE_JPEG_BASELINE_H

#include <stdio.h> /* before jpeglib.h, which needs size_t and FILE */

#include <jpeglib.h>

#include "image/decoder.h"
#include "image/jpeg_raster.h"

/* What the header of a file that was read says; false for anything but Huffman-coded 8 bits of a known shape, for a
 * table that is not there. */
bool spk_jpeg_shape_of(const struct jpeg_decompress_struct *j, spk_jpeg_shape *s);
bool spk_jpeg_quant_of(const struct jpeg_decompress_struct *j, uint32_t component, int16_t quant[64]);

typedef struct spk_jpeg_baseline spk_jpeg_baseline;

/* Whether it has vectors for this processor; without, libjpeg is faster. */
bool spk_jpeg_baseline_is_fast(void);
SPK_CHECK spk_status spk_jpeg_baseline_new(spk_jpeg_baseline **out, spk_error *err);
void spk_jpeg_baseline_free(spk_jpeg_baseline *d);
/* `j` has read the header and stands behind it; it stays as it is. Decodes job, whose denom is 1, with the kernels of
 * `engine`, OWN or PLAIN. *rows: how many rows were given out; fewer than job->part.h if libjpeg is to decode. */
SPK_CHECK spk_status spk_jpeg_baseline_run(spk_jpeg_baseline *d, const struct jpeg_decompress_struct *j,
                                           const spk_decode_job *job, spk_jpeg_engine engine, uint32_t *rows,
                                           spk_error *err);

#endif
