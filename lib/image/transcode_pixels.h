/* JPEG files that cannot be made anew byte for byte, as stored coefficients: those of another file with the same
 * coefficients, quantisation tables and markers, baseline in one scan. No I/O. */
#ifndef SPK_IMAGE_TRANSCODE_PIXELS_H
#define SPK_IMAGE_TRANSCODE_PIXELS_H

#include "image/transcode.h"

/* Reusable. Confined. */
typedef struct spk_pixel_transcoder spk_pixel_transcoder;
SPK_CHECK spk_status spk_pixel_transcoder_new(spk_pixel_transcoder **out, spk_error *err);
void spk_pixel_transcoder_free(spk_pixel_transcoder *t);
/* With SPK_TRANSCODED, *out becomes the stored form of a file of *file_bytes bytes, to whose pixels libjpeg decodes the
 * given file, too; all of it was tried. Else the file should stay as it is. Error: NOMEM. */
SPK_CHECK spk_status spk_transcode_pixels(spk_pixel_transcoder *t, spk_transcoder *plain, const void *data, size_t n,
                                          uint64_t max_pixels, spk_buf *out, uint64_t *file_bytes,
                                          spk_transcode_result *result, spk_error *err);

#endif
