/* Any bytes as an image: header only, then decoded; the two must agree, and one checker serves for all. */
#include <stdlib.h>

#include "image/check.h"

#define PIXELS (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static spk_image_checker *checker;
    spk_image_info header, full;
    spk_error err;
    if (!checker && spk_image_checker_new(&checker, &err) != SPK_OK)
        abort();
    spk_status first = spk_image_check(checker, data, size, 0, PIXELS, &header, &err);
    spk_status second = spk_image_check(checker, data, size, 1, PIXELS, &full, &err);
    if (first == SPK_OK && header.width > PIXELS / header.height)
        abort();
    if (second == SPK_OK && (first != SPK_OK || header.width != full.width || header.height != full.height))
        abort();
    if (second == SPK_OK && (full.kind == SPK_IMAGE_NONE || full.components < 1))
        abort();
    return 0;
}
