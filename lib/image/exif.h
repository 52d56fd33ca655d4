/* Private to image/: the orientation tag (Exif 2.3, section 4.6.4, tag 0x0112) and what it asks for. Pure functions
 * over borrowed memory; every read is bounds-checked. */
#ifndef SPK_IMAGE_EXIF_H
#define SPK_IMAGE_EXIF_H

#include <stdbool.h>

#include "image/check.h"
#include "image/rect.h"

/* 1 to 8; 1 where there is no tag, or none that makes sense. JPEG: the first APP1 block with "Exif". PNG: the eXIf
 * chunk before the pixels. */
int spk_exif_orientation(spk_image_kind kind, const void *data, size_t n);

/* How to turn an image as it is stored into the oriented one: exchange x and y if `swap`, then mirror. */
typedef struct spk_turn {
    bool swap, mirror_x, mirror_y;
} spk_turn;
spk_turn spk_turn_of(int orientation);
/* The part of a stored image of width x height that becomes `r` of the oriented one. */
spk_rect spk_turn_back(spk_turn t, spk_rect r, uint32_t width, uint32_t height);
/* Row y of the oriented form of a stored part of w x h pixels. */
void spk_turn_row(spk_turn t, uint8_t *out, uint32_t y, const uint8_t *stored, uint32_t w, uint32_t h,
                  uint32_t channels);

#endif
