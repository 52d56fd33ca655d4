/* Rows of 8-bit pixels into an output image: number type, normalisation and layout.
 *
 * Floats are x / 255, then with normalize (x / 255 - mean) / std, each step rounded to float32 as torchvision's
 * ToTensor and Normalize do; float16 is that float32 rounded to the nearest, ties to even. With 256 possible bytes per
 * channel all of it is a table. */
#ifndef SPK_IMAGE_CONVERT_H
#define SPK_IMAGE_CONVERT_H

#include <shardpack/error.h>
#include <stdbool.h>

typedef enum spk_pixel_type { SPK_PIXEL_UINT8 = 0, SPK_PIXEL_FLOAT16 = 1, SPK_PIXEL_FLOAT32 = 2 } spk_pixel_type;
typedef enum spk_pixel_order { SPK_PIXEL_NHWC = 0, SPK_PIXEL_NCHW = 1 } spk_pixel_order;

typedef struct spk_pixel_format {
    spk_pixel_type type;
    spk_pixel_order order;
    uint32_t width, height, channels; /* channels 1 or 3 */
    bool normalize;                   /* not for UINT8 */
    float mean[3], std[3];
} spk_pixel_format;

typedef struct spk_converter spk_converter;
/* Converts pixels of row y from the left and says how many; the tables do the rest. */
typedef uint32_t (*spk_convert_fn)(const spk_converter *c, void *out, uint32_t y, const uint8_t *row);

/* Immutable once made; may be shared by threads. */
struct spk_converter {
    spk_pixel_format format;
    float f32[3][256];
    uint16_t f16[3][256];
    float mean[24], std[24], inverse[24]; /* of 24 values in a row, channels taking turns; inverse is 1 / std */
    spk_convert_fn kernel;                /* NULL: none */
};

void spk_converter_init(spk_converter *c, const spk_pixel_format *format);
/* Row y of the image at out, all of it: width x channels bytes. */
void spk_convert_row(const spk_converter *c, void *out, uint32_t y, const uint8_t *row);
/* Bytes of an image. */
size_t spk_pixel_bytes(const spk_pixel_format *format);

/* The fastest kernel for this processor, NULL without; convert_x86.c. */
spk_convert_fn spk_convert_best(const spk_pixel_format *format);

/* IEEE 754 binary16, to the nearest, ties to even. */
uint16_t spk_float16(float v);

#endif
