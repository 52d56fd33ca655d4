/* Private to coef/: streams into one zstd frame and out of it. The only place of this layer that knows libzstd. */
#ifndef SPK_COEF_PACK_H
#define SPK_COEF_PACK_H

#include "base/buf.h"

typedef struct spk_coef_packer spk_coef_packer;
SPK_CHECK spk_status spk_coef_packer_new(spk_coef_packer **out, spk_error *err);
void spk_coef_packer_free(spk_coef_packer *p);

/* Sum of count * log2(all / count) over n counts, in 1/4096 bits. */
uint64_t spk_coef_entropy(const spk_coef_packer *p, const uint32_t *counts, uint32_t n);

/* Appends the frame of data[0 .. borders[n - 1]]. What lies before borders[0] is a part, and so is what lies between
 * two; neighbours go into the same block where that is cheaper, decoding a block being worth `block` bytes. */
SPK_CHECK spk_status spk_coef_pack(spk_coef_packer *p, const uint8_t *data, const size_t *borders, size_t n,
                                   uint32_t block, spk_buf *out, spk_error *err);
/* Content of a frame to the front of *out, with `slack` more bytes of room, zero; not more than `most` bytes. FORMAT,
 * LIMIT. */
SPK_CHECK spk_status spk_coef_unpack(spk_coef_packer *p, const void *blob, size_t n, size_t most, size_t slack,
                                     spk_buf *out, spk_error *err);

#endif
