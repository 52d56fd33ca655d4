/* Decoding single images, whole and unscaled, for callers that transform them on their own. Pixels are those that the
 * loader's exact decoding gives.
 *
 * An image is a JPEG file, a PNG file, or a JPEG in the stored form that shards hold it in after `pack --jpeg fast`
 * (encodings "jpeg_coefficients" and "jpeg_pixels"; spk_reader_set_stored and SPK_COLUMN_STORED give it). The stored
 * form has the pixels of its file and takes a third to a half of the time. */
#ifndef SHARDPACK_IMAGE_H
#define SHARDPACK_IMAGE_H

#include <shardpack/error.h>
#include <shardpack/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spk_image_decode_options {
    size_t size;       /* sizeof(spk_image_decode_options) */
    uint32_t channels; /* 3 (default): RGB, or 1: gray (luma as Pillow's "L") */
    int reserved;
    uint64_t max_pixels; /* 0: 178,956,970 */
} spk_image_decode_options;

/* Width and height in pixels of an image, as stored. Errors: FORMAT, UNSUPPORTED (another image format), LIMIT, NOMEM.
 * options may be NULL. Thread-safe. */
SPK_API SPK_CHECK spk_status spk_image_get_size(const void *data, size_t n, const spk_image_decode_options *options,
                                                uint32_t *width, uint32_t *height, spk_error *err);
/* Writes height x width x channels bytes, row by row from the top; `bytes` must be just that (INVALID). After an error
 * their content is undefined. Errors as above. Thread-safe. */
SPK_API SPK_CHECK spk_status spk_image_decode(const void *data, size_t n, const spk_image_decode_options *options,
                                              void *pixels, size_t bytes, spk_error *err);

/* ---- many images ---- */

/* Decodes one image after another, each opened once, in buffers that it keeps: as large as the largest needed them.
 * Thread-safety: confined (one thread at a time; different decoders are independent). */
typedef struct spk_image_decoder spk_image_decoder;

/* What is known of an image before its pixels are. */
typedef struct spk_image_head {
    uint32_t width, height; /* in pixels, as stored: no Exif turn */
    int orientation;        /* of the Exif tag, 1 to 8; 1 without */
    int encoded;            /* nonzero: the stored form of a JPEG, not a file */
} spk_image_head;

/* NOMEM. Free with spk_image_decoder_free. */
SPK_API SPK_CHECK spk_status spk_image_decoder_new(spk_image_decoder **out, spk_error *err);
SPK_API void spk_image_decoder_free(spk_image_decoder *decoder);
/* Reads what stands before the pixels (a stored form is checked as a whole). The data is borrowed until the pixels are
 * read or another image is opened. options may be NULL. Errors as those of spk_image_get_size; then none is open. */
SPK_API SPK_CHECK spk_status spk_image_decoder_open(spk_image_decoder *decoder, const void *data, size_t n,
                                                    const spk_image_decode_options *options, spk_image_head *out,
                                                    spk_error *err);
/* Pixels of the open image as spk_image_decode gives them, uint8 [height, width, channels]; once for each open, and
 * then none is open (STATE). */
SPK_API SPK_CHECK spk_status spk_image_decoder_read(spk_image_decoder *decoder, void *pixels, size_t bytes,
                                                    spk_error *err);
/* Of the open image, which must be encoded (else STATE): its JPEG file up to the header of the last scan, but without
 * the scans and perhaps without Huffman tables. Metadata (Exif, ICC profile, comments) is read from it as from the
 * file. Borrowed from the decoder until another image is opened. */
SPK_API SPK_CHECK spk_status spk_image_decoder_header(const spk_image_decoder *decoder, const void **header, size_t *n,
                                                      spk_error *err);

/* The JPEG file of a stored form, byte for byte as it was packed ("jpeg_pixels": another file with the same pixels and
 * metadata). *file is to be released with spk_free; NULL after an error. Errors: FORMAT, UNSUPPORTED (a newer version
 * of the form), LIMIT, NOMEM. Thread-safe. */
SPK_API SPK_CHECK spk_status spk_image_restore(const void *stored, size_t n, void **file, size_t *size, spk_error *err);

#ifdef __cplusplus
}
#endif

#endif
