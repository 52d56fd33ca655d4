/* Nearly all encoders that make tables of their own for a file follow T.81, K.2, to the letter, since libjpeg does. */
#include "coef/optimal.h"

#include <string.h>

#include "base/error.h"

#define SYMBOLS 257u /* one more that no block has takes the code of nothing but ones */
#define LONGEST 16u

/* The symbol that comes least often, of equal ones the last; SYMBOLS if none but `but` is left. */
static uint32_t least(const uint64_t counts[SYMBOLS], uint32_t but)
{
    uint32_t found = SYMBOLS;
    for (uint32_t i = 0; i < SYMBOLS; i++)
        if (i != but && counts[i] > 0 && (found == SYMBOLS || counts[i] <= counts[found]))
            found = i;
    return found;
}

static void lengthen(uint32_t *sizes, const uint32_t *next, uint32_t i)
{
    for (; i < SYMBOLS; i = next[i])
        sizes[i]++;
}

/* Figure K.1: how long each code would be. */
static void code_sizes(uint64_t counts[SYMBOLS], uint32_t sizes[SYMBOLS])
{
    uint32_t next[SYMBOLS]; /* symbols of a branch in a chain */
    for (uint32_t i = 0; i < SYMBOLS; i++)
        next[i] = SYMBOLS;
    for (;;) {
        uint32_t one = least(counts, SYMBOLS), two = least(counts, one), end = one;
        if (two == SYMBOLS)
            return;
        counts[one] += counts[two];
        counts[two] = 0;
        lengthen(sizes, next, one);
        lengthen(sizes, next, two);
        while (next[end] < SYMBOLS)
            end = next[end];
        next[end] = two;
    }
}

/* Figure K.3: codes of more than 16 bits go, and so does that of the symbol that no block has. */
static void shorten(uint32_t bits[SYMBOLS])
{
    for (uint32_t i = SYMBOLS - 1; i > LONGEST; i--)
        while (bits[i] > 0) {
            uint32_t j = i - 2;
            while (bits[j] == 0)
                j--;
            bits[i] -= 2;
            bits[i - 1]++;
            bits[j + 1] += 2;
            bits[j]--;
        }
    uint32_t last = LONGEST;
    while (bits[last] == 0)
        last--;
    bits[last]--;
}

void spk_coef_huffman_best(spk_coef_huffman *h, const uint32_t counts[256])
{
    uint64_t left[SYMBOLS];
    uint32_t sizes[SYMBOLS] = {0}, bits[SYMBOLS] = {0}, n = 0;
    for (uint32_t i = 0; i < 256; i++)
        left[i] = counts[i];
    left[256] = 1;
    memset(h, 0, sizeof *h);
    code_sizes(left, sizes);
    for (uint32_t i = 0; i < SYMBOLS; i++)
        bits[sizes[i]]++;
    bits[0] = 0;
    if (sizes[256] > 0)
        shorten(bits);
    for (uint32_t i = 1; i <= LONGEST; i++)
        h->bits[i] = (uint8_t)bits[i];
    for (uint32_t size = 1; size < SYMBOLS; size++) /* figure K.4 */
        for (uint32_t i = 0; i < 256; i++)
            if (sizes[i] == size)
                h->values[n++] = (uint8_t)i;
    h->there = true;
}

bool spk_coef_huffman_is_open(const spk_coef_huffman *h)
{
    uint32_t any = 0;
    for (uint32_t i = 1; i <= LONGEST; i++)
        any |= h->bits[i];
    return any == 0;
}

static uint32_t symbols(const uint8_t bits[LONGEST])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < LONGEST; i++)
        n += bits[i];
    return n;
}

static spk_status open_table(const spk_coef_walk *w, const uint8_t *p, spk_buf *out, spk_error *err)
{
    static const uint8_t none[LONGEST];
    (void)w;
    SPK_TRY(spk_buf_append(out, p, 1, err));
    return spk_buf_append(out, none, LONGEST, err);
}

static spk_status fill_table(const spk_coef_walk *w, const uint8_t *p, spk_buf *out, spk_error *err)
{
    const spk_coef_huffman *made = p[0] >> 4 ? &w->ac[p[0] & 15] : &w->dc[p[0] & 15];
    if (symbols(p + 1) > 0)
        return spk_buf_append(out, p, 17 + (size_t)symbols(p + 1), err);
    if (spk_coef_huffman_is_open(made))
        return spk_error_set(err, SPK_E_FORMAT, "a Huffman table without codes that the next scan does not use");
    SPK_TRY(spk_buf_append(out, p, 1, err));
    SPK_TRY(spk_buf_append(out, made->bits + 1, LONGEST, err));
    return spk_buf_append(out, made->values, symbols(made->bits + 1), err);
}

typedef spk_status (*table_fn)(const spk_coef_walk *w, const uint8_t *p, spk_buf *out, spk_error *err);

/* A segment DHT of n bytes at p with its tables changed. */
static spk_status change_segment(const spk_coef_walk *w, const uint8_t *p, size_t n, table_fn change, spk_buf *out,
                                 spk_error *err)
{
    size_t begin = out->len;
    SPK_TRY(spk_buf_append(out, p, 4, err));
    for (size_t at = 4; at < n; at += 17 + (size_t)symbols(p + at + 1))
        SPK_TRY(change(w, p + at, out, err));
    size_t length = out->len - begin - 2;
    if (length > UINT16_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "a segment of %zu bytes of Huffman tables", length);
    out->data[begin + 2] = (uint8_t)(length >> 8);
    out->data[begin + 3] = (uint8_t)length;
    return SPK_OK;
}

/* Segments whose lengths were checked; SOI may stand before them. */
static spk_status change_tables(const spk_coef_walk *w, const uint8_t *p, size_t n, table_fn change, spk_buf *out,
                                spk_error *err)
{
    size_t at = n >= 2 && p[1] == 0xD8 ? 2 : 0, segment;
    if (at > 0)
        SPK_TRY(spk_buf_append(out, p, at, err));
    for (; at < n; at += segment) {
        segment = 2 + ((size_t)p[at + 2] << 8 | p[at + 3]);
        if (p[at + 1] == 0xC4)
            SPK_TRY(change_segment(w, p + at, segment, change, out, err));
        else
            SPK_TRY(spk_buf_append(out, p + at, segment, err));
    }
    return SPK_OK;
}

spk_status spk_coef_header_open(const uint8_t *p, size_t n, spk_buf *out, spk_error *err)
{
    return change_tables(NULL, p, n, open_table, out, err);
}

spk_status spk_coef_header_fill(const spk_coef_walk *w, const uint8_t *p, size_t n, spk_buf *out, spk_error *err)
{
    return change_tables(w, p, n, fill_table, out, err);
}
