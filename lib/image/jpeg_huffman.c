/* Tables are made as in T.81's annex C. Numbers are of at most 11 bits for DC, 10 for AC, as 8-bit samples need. */
#include "image/jpeg_huffman.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define LOOKAHEAD 64u /* more than libjpeg's */

static bool make_entry(uint8_t symbol, uint32_t length, spk_huffman_kind kind, uint32_t *out)
{
    bool dc = kind == SPK_HUFFMAN_DC, progressive = kind >= SPK_HUFFMAN_AC_FIRST;
    uint32_t run = dc ? 0 : symbol >> 4, size = dc ? symbol : symbol & 15u, advance = dc ? 0 : run + 1;
    bool good = size <= (dc ? 11u : kind == SPK_HUFFMAN_AC_FINER ? 1u : 10u);
    if (!dc && size == 0 && run < 15) {
        good = progressive || run == 0;
        size = run;
        advance = SPK_HUFFMAN_END;
    }
    if (!good && progressive)
        *out = SPK_HUFFMAN_ENTRY(length, length, 0, SPK_HUFFMAN_BAD);
    else
        *out = SPK_HUFFMAN_ENTRY(length + size, length, size, advance);
    return good || progressive;
}

static bool make(spk_huffman *h)
{
    uint32_t code = 0, n = 0;
    for (size_t i = 0; i < 1u << SPK_HUFFMAN_PEEK; i++)
        h->entry[i] = SPK_HUFFMAN_LONG;
    for (uint32_t length = 1; length <= 16; length++) {
        h->offset[length] = (int32_t)n - (int32_t)code;
        h->max[length] = -1;
        for (uint32_t i = 0; i < h->bits[length]; i++, n++, code++) {
            bool fits = code + 1 < 1u << length; /* none may be all ones */
            if (n == 256 || !fits || !make_entry(h->values[n], length, h->kind, &h->symbol[n]))
                return false;
            h->max[length] = (int32_t)code;
            for (uint32_t k = 0; length <= SPK_HUFFMAN_PEEK && k < 1u << (SPK_HUFFMAN_PEEK - length); k++)
                h->entry[(code << (SPK_HUFFMAN_PEEK - length)) + k] = h->symbol[n];
        }
        code <<= 1;
    }
    return true;
}

/* The number of `size` bits that starts at bit `at` of PEEK ones: T.81, EXTEND. */
static int32_t number_in(uint32_t window, uint32_t at, uint32_t size)
{
    uint32_t v = (window >> (SPK_HUFFMAN_PEEK - at - size)) & ((1u << size) - 1);
    return size == 0 || v >> (size - 1) != 0 ? (int32_t)v : (int32_t)v - (int32_t)(1u << size) + 1;
}

static void make_pairs(spk_huffman *h)
{
    for (uint32_t i = 0; i < 1u << SPK_HUFFMAN_PEEK; i++) {
        uint32_t one = h->entry[i], bits = one & 255, code_bits = one >> 8 & 255, size = one >> 16 & 255;
        h->pair[i] = SPK_HUFFMAN_PAIR(one, 1, 0, 0);
        if (bits >= SPK_HUFFMAN_PEEK || one >> 24 > SPK_HUFFMAN_RUN_MAX) /* also what is long, or the end */
            continue;
        uint32_t two = h->entry[(i << bits) & ((1u << SPK_HUFFMAN_PEEK) - 1)], advance = (one >> 24) + (two >> 24);
        if ((two & SPK_HUFFMAN_LONG) || (two >> 8 & 255) > SPK_HUFFMAN_PEEK - bits || two >> 24 == SPK_HUFFMAN_BAD)
            continue;
        two = SPK_HUFFMAN_ENTRY(bits + (two & 255), bits + (two >> 8 & 255), two >> 16 & 255, advance);
        h->pair[i] = SPK_HUFFMAN_PAIR(two, one >> 24, bits, number_in(i, code_bits, size));
    }
}

bool spk_huffman_make(spk_huffman *h, const uint8_t bits[17], const uint8_t values[256], spk_huffman_kind kind)
{
    if (h->made && h->kind == kind && memcmp(h->bits + 1, bits + 1, 16) == 0 && memcmp(h->values, values, 256) == 0)
        return true;
    memcpy(h->bits, bits, sizeof h->bits);
    memcpy(h->values, values, sizeof h->values);
    h->kind = kind;
    h->made = make(h);
    if (h->made && (kind == SPK_HUFFMAN_AC || kind == SPK_HUFFMAN_AC_FIRST))
        make_pairs(h);
    return h->made;
}

uint32_t spk_huffman_find(const spk_huffman *h, uint64_t window)
{
    for (uint32_t length = 1; length <= 16; length++) {
        int32_t code = (int32_t)(window >> (64 - length));
        if (code <= h->max[length])
            return h->symbol[code + h->offset[length]];
    }
    return SPK_HUFFMAN_ENTRY(0, 0, 0, SPK_HUFFMAN_BAD);
}

spk_status spk_feed_begin(spk_feed *f, const uint8_t *src, const uint8_t *end, spk_error *err)
{
    if (!f->bytes)
        f->bytes = malloc(SPK_FEED_BYTES + SPK_FEED_SLACK);
    if (!f->bytes)
        return spk_error_nomem(err, SPK_FEED_BYTES + SPK_FEED_SLACK);
    f->src = src;
    f->end = end;
    f->len = 0;
    f->closed = f->cut = false;
    return SPK_OK;
}

void spk_feed_free(spk_feed *f)
{
    free(f->bytes);
}

/* Copies up to and including the next FF byte, whose stuffing it takes away, and no more than the space that is left.
 * Behind fill bytes, a stuffed FF ends it like a marker: libjpeg-turbo decodes such an MCU in a way of its own. */
static void copy_span(spk_feed *f)
{
    size_t left = (size_t)(f->end - f->src), space = SPK_FEED_BYTES - f->len, n = left < space ? left : space;
    const uint8_t *mark = memchr(f->src, 0xFF, n);
    bool filled = false;
    if (mark)
        n = (size_t)(mark - f->src);
    memcpy(f->bytes + f->len, f->src, n);
    f->src += n;
    f->len += n;
    for (; mark && f->end - f->src > 1 && f->src[1] == 0xFF; filled = true)
        f->src++;
    bool stuffed = mark && f->end - f->src > 1 && f->src[1] == 0;
    if (f->src == f->end || (mark && (!stuffed || filled))) {
        f->closed = true;
        f->cut = f->end - f->src < 2 || stuffed;
    } else if (mark) {
        f->bytes[f->len++] = 0xFF;
        f->src += 2;
    }
}

void spk_feed_more(spk_feed *f, const uint8_t **p)
{
    size_t at = (size_t)(*p - f->bytes);
    if (at > f->len)
        return; /* what was read is not there: the caller sees it from spk_feed_usable */
    memmove(f->bytes, *p, f->len - at);
    f->len -= at;
    *p = f->bytes;
    while (!f->closed && f->len < SPK_FEED_BYTES)
        copy_span(f);
    memset(f->bytes + f->len, 0, SPK_FEED_SLACK);
}

bool spk_feed_restart(spk_feed *f, uint32_t n)
{
    if (!f->closed || f->end - f->src < 2 || f->src[1] != 0xD0 + n)
        return false;
    f->src += 2;
    f->closed = false;
    f->len = 0;
    return true;
}

size_t spk_feed_usable(const spk_feed *f)
{
    return !f->cut ? f->len : f->len > LOOKAHEAD ? f->len - LOOKAHEAD : 0;
}
