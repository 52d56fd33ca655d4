/* JPEG files to the stored encoding jpeg-coefficients, each verified at once. No I/O. */
#ifndef SPK_IMAGE_TRANSCODE_H
#define SPK_IMAGE_TRANSCODE_H

#include "base/buf.h"

/* Reusable. Confined. */
typedef struct spk_transcoder spk_transcoder;
SPK_CHECK spk_status spk_transcoder_new(spk_transcoder **out, spk_error *err);
void spk_transcoder_free(spk_transcoder *t);
/* *out becomes the blob, from which the file is made anew byte for byte and decodes to the same pixels as the file does
 * with libjpeg; both were tried. SPK_E_UNSUPPORTED for a file that stays as it is, with the reason in a few words;
 * NOMEM.
 */
SPK_CHECK spk_status spk_transcode(spk_transcoder *t, const void *data, size_t n, uint64_t max_pixels, spk_buf *out,
                                   spk_error *err);

#endif
