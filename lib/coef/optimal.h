/* Huffman tables that are not stored, since they are the best ones for the scan that follows. In a
 * header such a table has no codes. */
#ifndef SPK_COEF_OPTIMAL_H
#define SPK_COEF_OPTIMAL_H

#include "coef/coef.h"

/* The table that T.81, K.2 makes of how often each symbol comes. */
void spk_coef_huffman_best(spk_coef_huffman *h, const uint32_t counts[256]);
/* Whether it is yet to be made. */
bool spk_coef_huffman_is_open(const spk_coef_huffman *h);
/* Appends a header that was parsed, its tables without their codes. */
SPK_CHECK spk_status spk_coef_header_open(const uint8_t *p, size_t n, spk_buf *out, spk_error *err);
/* Appends n bytes of a header, whole segments, tables without codes replaced by those of the walk. FORMAT if that one
 * is open, too. */
SPK_CHECK spk_status spk_coef_header_fill(const spk_coef_walk *w, const uint8_t *p, size_t n, spk_buf *out,
                                          spk_error *err);

#endif
