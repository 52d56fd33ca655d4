/* Decoding single images, whole and unscaled, for callers that transform them on their own. Pixels are those that the
 * loader's exact decoding gives. */
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

/* Width and height in pixels of a JPEG or PNG, as stored. Errors: FORMAT, UNSUPPORTED (another image format), LIMIT,
 * NOMEM. options may be NULL. */
SPK_API SPK_CHECK spk_status spk_image_get_size(const void *data, size_t n, const spk_image_decode_options *options,
                                                uint32_t *width, uint32_t *height, spk_error *err);
/* Writes height x width x channels bytes, row by row from the top; `bytes` must be just that (INVALID). After an error
 * their content is undefined. Errors as above. Thread-safe. */
SPK_API SPK_CHECK spk_status spk_image_decode(const void *data, size_t n, const spk_image_decode_options *options,
                                              void *pixels, size_t bytes, spk_error *err);

#ifdef __cplusplus
}
#endif

#endif
