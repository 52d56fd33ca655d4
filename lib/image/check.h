/* Is this a sound image? Sniffs by content, reads the header, and if asked decodes everything once. No I/O. */
#ifndef SPK_IMAGE_CHECK_H
#define SPK_IMAGE_CHECK_H

#include <shardpack/error.h>

typedef enum spk_image_kind {
    SPK_IMAGE_NONE = 0, /* not an image format that we know */
    SPK_IMAGE_JPEG,
    SPK_IMAGE_PNG,
    SPK_IMAGE_WEBP,
    SPK_IMAGE_GIF,
    SPK_IMAGE_BMP,
    SPK_IMAGE_TIFF
} spk_image_kind;

typedef struct spk_image_info {
    spk_image_kind kind;
    uint32_t width, height;
    int components; /* 1 gray, 2 gray+alpha, 3, 4 */
} spk_image_info;

/* By the first bytes. */
spk_image_kind spk_image_sniff(const void *data, size_t n);
const char *spk_image_kind_name(spk_image_kind kind); /* "JPEG", "PNG", ..., "unknown" */

/* Checks images; reuse one per thread. Confined. */
typedef struct spk_image_checker spk_image_checker;
SPK_CHECK spk_status spk_image_checker_new(spk_image_checker **out, spk_error *err);
void spk_image_checker_free(spk_image_checker *c);

/* JPEG and PNG: header, dimensions, pixel limit (before anything of the image's size is allocated; LIMIT), and with
 * `decode` every pixel; any warning of the decoder is an error, so a missing end marker is one. WebP, GIF, BMP, TIFF:
 * the header's dimensions only (kind known, not decoded). Others: FORMAT "not an image: ...". FORMAT text is the
 * decoder's own reason, with byte counts where known: "truncated JPEG: ...". */
SPK_CHECK spk_status spk_image_check(spk_image_checker *c, const void *data, size_t n, int decode, uint64_t max_pixels,
                                     spk_image_info *out, spk_error *err);
/* Versions of the image libraries in use, such as "libjpeg-turbo 2.1.5". */
const char *spk_jpeg_version(void);
const char *spk_png_version(void);

#endif
