/* Private to image/: an own decoder for JPEG in several scans, progressive or not. As jpeg_baseline.h: it never finds
 * fault with a file, and in whatever is out of order libjpeg decodes the image. libjpeg reads such a file to its end
 * before it makes the first pixel, so nothing is given out of a file that has a fault anywhere. */
#ifndef SPK_IMAGE_JPEG_SCANS_H
#define SPK_IMAGE_JPEG_SCANS_H

#include "image/jpeg_baseline.h"

typedef struct spk_jpeg_scans spk_jpeg_scans;

SPK_CHECK spk_status spk_jpeg_scans_new(spk_jpeg_scans **out, spk_error *err);
void spk_jpeg_scans_free(spk_jpeg_scans *d);
/* As spk_jpeg_baseline_run, of a file of n bytes whose header `j` has read. */
SPK_CHECK spk_status spk_jpeg_scans_run(spk_jpeg_scans *d, const struct jpeg_decompress_struct *j, size_t n,
                                        const spk_decode_job *job, spk_jpeg_engine engine, uint32_t *rows,
                                        spk_error *err);

#endif
