/* Private to image/: the parts of the decoder, one for each format, and pixel arithmetic that they share. */
#ifndef SPK_IMAGE_DECODER_H
#define SPK_IMAGE_DECODER_H

#include "base/buf.h"
#include "image/checker.h"
#include "image/decode.h"

/* What decodes a JPEG at full size. OWN: our decoder with the processor's vectors for what it can do, libjpeg for the
 * rest and where there are no such vectors. PLAIN: the same without vectors, slower than libjpeg; for tests. */
typedef enum spk_jpeg_engine { SPK_JPEG_OWN = 0, SPK_JPEG_PLAIN = 1, SPK_JPEG_LIBJPEG = 2 } spk_jpeg_engine;
void spk_decoder_use(spk_decoder *d, spk_jpeg_engine engine);
/* Whether the last JPEG was decoded without libjpeg, its header apart. */
bool spk_decoder_did_own(const spk_decoder *d);
/* Of an open image that is stored as coefficients: its file without the scans, borrowed until the next one is opened.
 */
const void *spk_decoder_stored_header(const spk_decoder *d, size_t *n);

typedef struct spk_jpeg_decode spk_jpeg_decode;
SPK_CHECK spk_status spk_jpeg_decode_new(spk_jpeg_decode **out, spk_error *err);
void spk_jpeg_decode_free(spk_jpeg_decode *d);
SPK_CHECK spk_status spk_jpeg_decode_open(spk_jpeg_decode *d, const spk_image_job *image, spk_decoder_info *out,
                                          spk_error *err);
SPK_CHECK spk_status spk_jpeg_decode_run(spk_jpeg_decode *d, const spk_decode_job *job, spk_jpeg_engine engine,
                                         spk_error *err);
bool spk_jpeg_decode_did_own(const spk_jpeg_decode *d);

/* A JPEG stored as coefficients (coef/coef.h). */
typedef struct spk_stored_decode spk_stored_decode;
bool spk_stored_sniff(const void *data, size_t n);
SPK_CHECK spk_status spk_stored_decode_new(spk_stored_decode **out, spk_error *err);
void spk_stored_decode_free(spk_stored_decode *d);
SPK_CHECK spk_status spk_stored_decode_open(spk_stored_decode *d, const spk_image_job *image, spk_decoder_info *out,
                                            spk_error *err);
SPK_CHECK spk_status spk_stored_decode_run(spk_stored_decode *d, const spk_decode_job *job, spk_jpeg_engine engine,
                                           spk_error *err);
/* See spk_decoder_stored_header. */
const void *spk_stored_decode_header(const spk_stored_decode *d, size_t *n);
/* The file that the open image is stored for, appended to *out. The image is still open. */
SPK_CHECK spk_status spk_stored_decode_restore(spk_stored_decode *d, spk_buf *out, spk_error *err);

typedef struct spk_png_decode spk_png_decode;
SPK_CHECK spk_status spk_png_decode_new(spk_png_decode **out, spk_error *err);
void spk_png_decode_free(spk_png_decode *d);
SPK_CHECK spk_status spk_png_decode_open(spk_png_decode *d, const spk_image_job *image, spk_decoder_info *out,
                                         spk_error *err);
SPK_CHECK spk_status spk_png_decode_run(spk_png_decode *d, const spk_decode_job *job, spk_error *err);

/* n pixels; out may be in. Luma as Pillow's convert("L"). */
void spk_rgb_to_gray(uint8_t *out, const uint8_t *in, size_t n);
/* As libjpeg gives it, inverted as Adobe writes it, by Pillow's formula. */
void spk_cmyk_to_rgb(uint8_t *out, const uint8_t *in, size_t n);

#endif
