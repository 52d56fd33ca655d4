/* A rectangle of pixels. */
#ifndef SPK_IMAGE_RECT_H
#define SPK_IMAGE_RECT_H

#include <stdint.h>

typedef struct spk_rect {
    uint32_t x, y, w, h; /* w and h at least 1 */
} spk_rect;

#endif
