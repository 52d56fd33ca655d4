/* Making a blob: coefficients into streams, streams into one zstd frame whose blocks are cut where another set of
 * Huffman codes pays. Costs are integers, so that the bytes do not depend on the processor. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/coef.h"
#include "coef/layout.h"
#include "coef/pack.h"

const uint8_t spk_coef_zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                     12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                     35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                     58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

#define LEVELS 256u /* histogram of u from -128 on; the rest are escapes in every way */

/* Numbers that wait until a byte is full. */
typedef struct half_bytes {
    bool high; /* a nibble waits */
    uint8_t nibble;
    uint32_t lows; /* levels whose lower bits wait */
    uint64_t bits;
} half_bytes;

typedef struct kind {
    spk_buf streams[SPK_COEF_STREAMS];
    uint8_t ways[SPK_COEF_LISTS];
    half_bytes waiting[SPK_COEF_LISTS];
    uint32_t levels[SPK_COEF_LISTS][LEVELS];
    uint32_t beyond[SPK_COEF_LISTS];
} kind;

struct spk_coef_writer {
    kind kinds[2];
    spk_buf content, classes;
    spk_coef_packer *packer;
};

spk_status spk_coef_writer_new(spk_coef_writer **out, spk_error *err)
{
    spk_coef_writer *w = calloc(1, sizeof *w);
    if (!w)
        return spk_error_nomem(err, sizeof *w);
    spk_status status = spk_coef_packer_new(&w->packer, err);
    if (status < 0) {
        spk_coef_writer_free(w);
        return status;
    }
    *out = w;
    return SPK_OK;
}

void spk_coef_writer_free(spk_coef_writer *w)
{
    if (!w)
        return;
    for (size_t k = 0; k < 2; k++)
        for (size_t s = 0; s < SPK_COEF_STREAMS; s++)
            spk_buf_free(&w->kinds[k].streams[s]);
    spk_buf_free(&w->content);
    spk_buf_free(&w->classes);
    spk_coef_packer_free(w->packer);
    free(w);
}

static spk_status put(kind *k, uint32_t stream, uint32_t byte, spk_error *err)
{
    spk_buf *b = &k->streams[stream];
    if (b->len == b->cap)
        SPK_TRY(spk_buf_reserve(b, 1, err));
    b->data[b->len++] = (uint8_t)byte;
    return SPK_OK;
}

static spk_status put_two(kind *k, uint32_t stream, int32_t v, spk_error *err)
{
    SPK_TRY(put(k, stream, (uint32_t)v & 255, err));
    return put(k, stream, (uint32_t)v >> 8 & 255, err);
}

/* ---- the ways of the lists ---- */

static uint32_t class_of(const int16_t *block)
{
    for (uint32_t i = 63; i > 0; i--)
        if (block[spk_coef_zigzag[i]] != 0)
            return 1 + i / 16;
    return 0;
}

/* Without zero in the middle. */
static int32_t folded(int32_t level)
{
    return level > 0 ? level - 1 : level;
}

static void count_block(kind *k, const int16_t *block)
{
    uint32_t cls = class_of(block);
    for (uint32_t i = 1; i < 16 * cls; i++) {
        int32_t level = block[spk_coef_zigzag[i]], u = folded(level);
        uint32_t list = spk_coef_list(spk_coef_band(i / 8), cls);
        if (level != 0 && (u < -128 || u > 127))
            k->beyond[list]++;
        else if (level != 0)
            k->levels[list][u + 128]++;
    }
}

/* Whether a folded level fits into nibbles with `lows` lower bits. */
static bool fits(int32_t u, uint32_t lows)
{
    int32_t q = u >> lows;
    return q >= -7 && q <= 7 && u <= 126;
}

/* Cost of a way in 1/4096 bits; a symbol's decoding counts for 0.4 bits, an escape for 26. */
static uint64_t cost_of(const spk_coef_packer *p, const uint32_t *levels, uint32_t beyond, uint32_t way)
{
    uint32_t h[256] = {0}, lows = way == SPK_COEF_BYTES ? 0 : way;
    uint64_t n = beyond, escapes = beyond;
    for (int32_t u = -128; u <= 127; u++) {
        uint32_t count = levels[u + 128];
        bool in = way == SPK_COEF_BYTES ? u >= -127 && u <= 126 : fits(u, lows);
        n += count;
        if (in)
            h[way == SPK_COEF_BYTES ? u + 128 : (u >> lows) + 8] += count;
        else
            escapes += count;
    }
    h[0] += (uint32_t)escapes;
    uint64_t bits = spk_coef_entropy(p, h), least = way == SPK_COEF_BYTES ? n * 4096 : 0;
    bits = bits > least ? bits : least;
    return bits + n * lows * 4096 + escapes * 26 * 4096 + n * (way == SPK_COEF_BYTES ? 1638 : 819);
}

static void choose_ways(spk_coef_writer *w, kind *k)
{
    for (uint32_t list = 0; list < SPK_COEF_LISTS; list++) {
        uint64_t best = UINT64_MAX;
        for (uint32_t way = 0; way <= SPK_COEF_BYTES;
             way = way < SPK_COEF_LOWS_MAX ? way + 1 : way + SPK_COEF_BYTES - 4) {
            uint64_t cost = cost_of(w->packer, k->levels[list], k->beyond[list], way);
            if (cost < best)
                k->ways[list] = (uint8_t)way;
            best = cost < best ? cost : best;
        }
    }
}

/* ---- streams ---- */

static spk_status put_level(kind *k, uint32_t cls, uint32_t list, int32_t level, spk_error *err)
{
    uint32_t way = k->ways[list], escape = SPK_COEF_AC_ESCAPE + cls - 1;
    int32_t u = folded(level);
    if (way == SPK_COEF_BYTES) {
        bool in = level >= -127 && level <= 127;
        SPK_TRY(put(k, SPK_COEF_LEVEL + list, (uint32_t)(in ? level : SPK_COEF_ESCAPE) & 255, err));
        return in ? SPK_OK : put_two(k, escape, level, err);
    }
    half_bytes *b = &k->waiting[list];
    bool in = fits(u, way);
    uint8_t nibble = (uint8_t)((in ? u >> way : -8) & 15);
    if (!in)
        SPK_TRY(put_two(k, escape, level, err));
    if (b->high)
        SPK_TRY(put(k, SPK_COEF_LEVEL + list, (uint32_t)b->nibble | (uint32_t)nibble << 4, err));
    b->high = !b->high;
    b->nibble = nibble;
    b->bits |= (in ? (uint64_t)u & ((1u << way) - 1) : 0) << (way * b->lows);
    if (++b->lows < 8)
        return SPK_OK;
    for (uint32_t i = 0; i < way; i++)
        SPK_TRY(put(k, SPK_COEF_LOW + list, (uint32_t)(b->bits >> (8 * i)) & 255, err));
    b->lows = 0;
    b->bits = 0;
    return SPK_OK;
}

static spk_status end_lists(kind *k, spk_error *err)
{
    for (uint32_t list = 0; list < SPK_COEF_LISTS; list++) {
        half_bytes *b = &k->waiting[list];
        if (b->high)
            SPK_TRY(put(k, SPK_COEF_LEVEL + list, b->nibble, err));
        for (uint32_t i = 0; i < k->ways[list] && b->lows > 0; i++)
            SPK_TRY(put(k, SPK_COEF_LOW + list, (uint32_t)(b->bits >> (8 * i)) & 255, err));
    }
    return SPK_OK;
}

static spk_status put_block(kind *k, const int16_t *block, uint32_t cls, spk_error *err)
{
    for (uint32_t g = 0; g < 2 * cls; g++) {
        uint32_t mask = 0, list = spk_coef_list(spk_coef_band(g), cls);
        for (uint32_t i = g == 0; i < 8; i++) {
            int32_t level = block[spk_coef_zigzag[8 * g + i]];
            if (level == 0)
                continue;
            mask |= 1u << i;
            SPK_TRY(put_level(k, cls, list, level, err));
        }
        SPK_TRY(put(k, spk_coef_mask(cls) + g, mask, err));
    }
    return SPK_OK;
}

/* DC of one row of blocks: differences from the left, of the first from above. */
static spk_status put_dc(kind *k, const int16_t *row, uint32_t n, int32_t above, spk_error *err)
{
    uint32_t lows = 0;
    for (uint32_t x = 0; x < n; x++) {
        int32_t d = row[64 * (size_t)x] - (x == 0 ? above : row[64 * (size_t)(x - 1)]), high = d >> 2;
        bool in = high >= -127 && high <= 127;
        if (d < INT16_MIN || d > INT16_MAX)
            return spk_error_set(err, SPK_E_UNSUPPORTED, "coefficients beyond 16 bits");
        SPK_TRY(put(k, SPK_COEF_DC_HIGH, (uint32_t)(in ? high : SPK_COEF_ESCAPE) & 255, err));
        if (!in)
            SPK_TRY(put_two(k, SPK_COEF_DC_ESCAPE, d, err));
        lows |= (in ? (uint32_t)d & 3 : 0) << (2 * (x % 4));
        if (x % 4 == 3 || x + 1 == n) {
            SPK_TRY(put(k, SPK_COEF_DC_LOW, lows, err));
            lows = 0;
        }
    }
    return SPK_OK;
}

static spk_status put_row(spk_coef_writer *w, kind *k, const int16_t *blocks, uint32_t width, uint32_t rows,
                          int32_t above, spk_error *err)
{
    uint32_t n = width * rows;
    uint8_t *classes = w->classes.data;
    for (uint32_t y = 0; y < rows; y++) {
        const int16_t *row = blocks + 64 * (size_t)width * y;
        SPK_TRY(put_dc(k, row, width, above, err));
        above = row[0];
    }
    for (uint32_t i = 0; i < n; i++) {
        classes[i] = (uint8_t)class_of(blocks + 64 * (size_t)i);
        SPK_TRY(put_block(k, blocks + 64 * (size_t)i, classes[i], err));
    }
    for (uint32_t i = 0; i < n; i += 2)
        SPK_TRY(put(k, SPK_COEF_CLASS, classes[i] | (i + 1 < n ? (uint32_t)classes[i + 1] << 4 : 0), err));
    return SPK_OK;
}

static spk_status make_streams(spk_coef_writer *w, const spk_coef_header *h, const spk_coef_plane planes[3],
                               spk_error *err)
{
    w->classes.len = 0;
    SPK_TRY(spk_buf_reserve(&w->classes, (size_t)h->mcus_x * 4, err));
    for (uint32_t y = 0; y < h->mcus_y; y++)
        for (uint32_t c = 0; c < h->components; c++) {
            const spk_coef_component *k = &h->component[c];
            size_t row = 64 * (size_t)h->mcus_x * k->h;
            const int16_t *at = planes[c].blocks + y * k->v * row;
            SPK_TRY(put_row(w, &w->kinds[c > 0], at, h->mcus_x * k->h, k->v, y == 0 ? 0 : *(at - row), err));
        }
    for (size_t k = 0; k < 2; k++)
        SPK_TRY(end_lists(&w->kinds[k], err));
    return SPK_OK;
}

static void reset(spk_coef_writer *w, const spk_coef_header *h, const spk_coef_plane planes[3])
{
    for (size_t i = 0; i < 2; i++) {
        kind *k = &w->kinds[i];
        for (size_t s = 0; s < SPK_COEF_STREAMS; s++)
            k->streams[s].len = 0;
        memset(k->waiting, 0, sizeof k->waiting);
        memset(k->levels, 0, sizeof k->levels);
        memset(k->beyond, 0, sizeof k->beyond);
    }
    for (uint32_t c = 0; c < h->components; c++) {
        const spk_coef_component *k = &h->component[c];
        size_t blocks = (size_t)h->mcus_x * k->h * h->mcus_y * k->v;
        for (size_t i = 0; i < blocks; i++)
            count_block(&w->kinds[c > 0], planes[c].blocks + 64 * i);
    }
    for (size_t i = 0; i < 2; i++)
        choose_ways(w, &w->kinds[i]);
}

/* Everything before the streams. */
static spk_status put_head(spk_coef_writer *w, const spk_coef_header *h, const spk_coef_rest *rest, spk_error *err)
{
    spk_buf *out = &w->content, *shorter = &w->classes;
    const uint8_t head[2] = {1, rest->padding};
    out->len = shorter->len = 0;
    SPK_TRY(spk_coef_header_shorten(rest->header, rest->header_n, shorter, err));
    SPK_TRY(spk_buf_append(out, head, sizeof head, err));
    SPK_TRY(spk_buf_varint(out, shorter->len, err));
    SPK_TRY(spk_buf_append(out, shorter->data, shorter->len, err));
    SPK_TRY(spk_buf_varint(out, rest->tail_n, err));
    if (rest->tail_n > 0)
        SPK_TRY(spk_buf_append(out, rest->tail, rest->tail_n, err));
    for (size_t k = 0; k < (h->components > 1 ? 2u : 1u); k++)
        SPK_TRY(spk_buf_append(out, w->kinds[k].ways, SPK_COEF_LISTS, err));
    return SPK_OK;
}

spk_status spk_coef_write(spk_coef_writer *w, const spk_coef_header *h, const spk_coef_plane planes[3],
                          const spk_coef_rest *rest, spk_buf *out, spk_error *err)
{
    size_t borders[1 + 2 * SPK_COEF_STREAMS], n = 0;
    if (rest->header_n > SPK_COEF_HEADER_MAX / 2)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "header of %zu bytes", rest->header_n);
    reset(w, h, planes);
    SPK_TRY(put_head(w, h, rest, err));
    borders[n++] = w->content.len;
    SPK_TRY(make_streams(w, h, planes, err));
    for (size_t k = 0; k < (h->components > 1 ? 2u : 1u); k++)
        for (size_t s = 0; s < SPK_COEF_STREAMS; s++) {
            const spk_buf *b = &w->kinds[k].streams[s];
            if (b->len > 0)
                SPK_TRY(spk_buf_append(&w->content, b->data, b->len, err));
            if (b->len > 0)
                borders[n++] = w->content.len;
        }
    return spk_coef_pack(w->packer, w->content.data, borders, n, out, err);
}
