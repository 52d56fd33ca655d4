/* JPEG files to the stored encoding jpeg_coefficients, each verified at once. No I/O. */
#ifndef SPK_IMAGE_TRANSCODE_H
#define SPK_IMAGE_TRANSCODE_H

#include "base/buf.h"

typedef enum spk_transcode_result {
    SPK_TRANSCODED = 0,
    SPK_TRANSCODE_OTHER = 1,   /* not Huffman-coded, not of 1 or 3 usual components, or its scans do not tell all */
    SPK_TRANSCODE_DAMAGED = 2, /* libjpeg warns, or there is no end */
    SPK_TRANSCODE_UNEQUAL = 3, /* file or pixels would not come back as they were */
    /* It would be larger; in several scans: by more than a 32nd. *out is as good as with SPK_TRANSCODED. */
    SPK_TRANSCODE_NO_GAIN = 4
} spk_transcode_result;
#define SPK_TRANSCODE_RESULTS 5

/* Reusable. Confined. */
typedef struct spk_transcoder spk_transcoder;
SPK_CHECK spk_status spk_transcoder_new(spk_transcoder **out, spk_error *err);
void spk_transcoder_free(spk_transcoder *t);
/* With SPK_TRANSCODED, *out becomes the stored form, from which the file is made anew byte for byte and which decodes
 * to the pixels that libjpeg makes of the file; both were tried. Else the file should stay as it is. Error: NOMEM. */
SPK_CHECK spk_status spk_transcode(spk_transcoder *t, const void *data, size_t n, uint64_t max_pixels, spk_buf *out,
                                   spk_transcode_result *result, spk_error *err);

#endif
