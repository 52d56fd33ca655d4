/* Making a blob: coefficients into streams, streams into one zstd frame whose blocks are cut where another set of
 * Huffman codes pays. Costs are integers, so that the bytes do not depend on the processor. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/block.h"
#include "coef/coef.h"
#include "coef/levels.h"
#include "coef/pack.h"

const uint8_t spk_coef_zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                     12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                     35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                     58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* What decoding is worth, in size, by version: 1/4096 bits for a byte of levels, bytes for a block of zstd. A file in
 * several scans is smaller to begin with, and libjpeg takes so long for it that there is time to spare. */
static const struct {
    uint32_t byte, block;
} weights[] = {{0, 0}, {3276, 120}, {819, 40}};

/* Places of each band, with that of DC. */
static const uint8_t band_places[SPK_COEF_BANDS] = {8, 8, 16, 32};

typedef struct kind {
    spk_buf streams[SPK_COEF_STREAMS];
    spk_coef_levels lists[SPK_COEF_LISTS];
} kind;

struct spk_coef_writer {
    kind kinds[2];
    spk_buf content, classes;
    uint8_t ones[256]; /* bits in a mask */
    spk_coef_packer *packer;
};

spk_status spk_coef_writer_new(spk_coef_writer **out, spk_error *err)
{
    spk_coef_writer *w = calloc(1, sizeof *w);
    if (!w)
        return spk_error_nomem(err, sizeof *w);
    for (uint32_t i = 1; i < 256; i++)
        w->ones[i] = (uint8_t)(w->ones[i / 2] + i % 2);
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
    for (size_t k = 0; k < 2; k++) {
        for (size_t s = 0; s < SPK_COEF_STREAMS; s++)
            spk_buf_free(&w->kinds[k].streams[s]);
        for (size_t list = 0; list < SPK_COEF_LISTS; list++)
            spk_coef_levels_free(&w->kinds[k].lists[list]);
    }
    spk_buf_free(&w->content);
    spk_buf_free(&w->classes);
    spk_coef_packer_free(w->packer);
    free(w);
}

/* ---- blocks ---- */

/* There is room for it. */
static void put(kind *k, uint32_t stream, uint32_t byte)
{
    spk_buf *b = &k->streams[stream];
    b->data[b->len++] = (uint8_t)byte;
}

static spk_status put_escape(kind *k, uint32_t stream, int32_t v, spk_error *err)
{
    const uint8_t two[2] = {(uint8_t)v, (uint8_t)((uint32_t)v >> 8)};
    return spk_buf_append(&k->streams[stream], two, sizeof two, err);
}

/* For n blocks and `rows` rows of them, escapes apart. */
static spk_status make_room(kind *k, uint32_t n, uint32_t rows, spk_error *err)
{
    SPK_TRY(spk_buf_reserve(&k->streams[SPK_COEF_DC_HIGH], n, err));
    SPK_TRY(spk_buf_reserve(&k->streams[SPK_COEF_DC_LOW], n / 4 + rows, err));
    SPK_TRY(spk_buf_reserve(&k->streams[SPK_COEF_CLASS], n / 2 + 1, err));
    for (uint32_t s = SPK_COEF_MASK; s < SPK_COEF_LEVEL; s++)
        SPK_TRY(spk_buf_reserve(&k->streams[s], n, err));
    for (uint32_t band = 0; band < SPK_COEF_BANDS; band++)
        for (uint32_t cls = band < 2 ? 1 : band; cls < SPK_COEF_CLASSES; cls++)
            SPK_TRY(spk_coef_levels_reserve(&k->lists[spk_coef_list(band, cls)], (size_t)n * band_places[band], err));
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
        put(k, SPK_COEF_DC_HIGH, (uint32_t)(in ? high : SPK_COEF_ESCAPE) & 255);
        if (!in)
            SPK_TRY(put_escape(k, SPK_COEF_DC_ESCAPE, d, err));
        lows |= (in ? (uint32_t)d & 3 : 0) << (2 * (x % 4));
        if (x % 4 == 3 || x + 1 == n) {
            put(k, SPK_COEF_DC_LOW, lows);
            lows = 0;
        }
    }
    return SPK_OK;
}

/* Masks and levels; the class. */
static uint8_t put_block(kind *k, const int16_t *block)
{
    int16_t zigzag[64];
    uint64_t places = spk_coef_to_zigzag(zigzag, block) & ~(uint64_t)1;
    if (places == 0)
        return 0;
    uint32_t cls = 1 + (63 - (uint32_t)__builtin_clzll(places)) / 16;
    zigzag[0] = 0;
    for (uint32_t g = 0; g < 2 * cls; g++)
        put(k, spk_coef_mask(cls) + g, places >> (8 * g) & 255);
    spk_coef_levels_add(&k->lists[spk_coef_list(0, cls)], zigzag, 8);
    spk_coef_levels_add(&k->lists[spk_coef_list(1, cls)], zigzag + 8, 8);
    if (cls >= 2)
        spk_coef_levels_add(&k->lists[spk_coef_list(2, cls)], zigzag + 16, 16);
    if (cls >= 3)
        spk_coef_levels_add(&k->lists[spk_coef_list(3, cls)], zigzag + 32, cls == 3 ? 16 : 32);
    return (uint8_t)cls;
}

/* A component's row of MCUs. */
static spk_status put_row(spk_coef_writer *w, kind *k, const int16_t *blocks, uint32_t width, uint32_t rows,
                          int32_t above, spk_error *err)
{
    uint32_t n = width * rows;
    uint8_t *classes = w->classes.data;
    SPK_TRY(make_room(k, n, rows, err));
    for (uint32_t y = 0; y < rows; y++) {
        const int16_t *row = blocks + 64 * (size_t)width * y;
        SPK_TRY(put_dc(k, row, width, above, err));
        above = row[0];
    }
    for (uint32_t i = 0; i < n; i++)
        classes[i] = put_block(k, blocks + 64 * (size_t)i);
    for (uint32_t i = 0; i < n; i += 2)
        put(k, SPK_COEF_CLASS, classes[i] | (i + 1 < n ? (uint32_t)classes[i + 1] << 4 : 0));
    return SPK_OK;
}

static spk_status put_blocks(spk_coef_writer *w, const spk_coef_header *h, const spk_coef_plane planes[3],
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
    return SPK_OK;
}

/* ---- levels ---- */

/* Escapes of a list that are not in the stream yet. */
typedef struct list_escapes {
    const spk_coef_levels *l;
    size_t done, levels; /* escapes in the stream; levels of the list in the blocks so far */
} list_escapes;

/* Levels of a class that do not fit into their ways, block by block. */
static spk_status put_escapes(spk_coef_writer *w, kind *k, uint32_t cls, spk_error *err)
{
    list_escapes of[SPK_COEF_BANDS] = {{0}};
    const spk_buf *masks = &k->streams[spk_coef_mask(cls)];
    size_t left = 0;
    for (uint32_t band = 0; band < spk_coef_bands(cls); band++) {
        of[band].l = &k->lists[spk_coef_list(band, cls)];
        left += of[band].l->escapes;
    }
    for (size_t b = 0; b < masks->len && left > 0; b++) {
        for (uint32_t g = 0; g < 2 * cls; g++)
            of[spk_coef_band(g)].levels += w->ones[masks[g].data[b]];
        for (uint32_t band = 0; band < spk_coef_bands(cls); band++) {
            list_escapes *e = &of[band];
            for (; e->done < e->l->escapes && e->l->beyond[e->done] < e->levels; e->done++, left--)
                SPK_TRY(put_escape(k, SPK_COEF_AC_ESCAPE + cls - 1, e->l->v[e->l->beyond[e->done]], err));
        }
    }
    return SPK_OK;
}

static spk_status put_levels(spk_coef_writer *w, kind *k, uint32_t version, spk_error *err)
{
    for (uint32_t list = 0; list < SPK_COEF_LISTS; list++) {
        spk_coef_levels *l = &k->lists[list];
        spk_coef_levels_choose(l, w->packer, weights[version].byte);
        SPK_TRY(spk_coef_levels_put(l, &k->streams[SPK_COEF_LEVEL + list], &k->streams[SPK_COEF_LOW + list], err));
    }
    for (uint32_t cls = 1; cls < SPK_COEF_CLASSES; cls++)
        SPK_TRY(put_escapes(w, k, cls, err));
    return SPK_OK;
}

/* ---- the blob ---- */

static void reset(kind *k)
{
    for (size_t s = 0; s < SPK_COEF_STREAMS; s++)
        k->streams[s].len = 0;
    for (size_t list = 0; list < SPK_COEF_LISTS; list++)
        k->lists[list].n = 0;
}

static size_t kinds_of(const spk_coef_header *h)
{
    return h->components > 1 ? 2 : 1;
}

/* Everything before the streams. */
static spk_status put_head(spk_coef_writer *w, const spk_coef_header *h, const spk_coef_rest *rest, spk_error *err)
{
    spk_buf *out = &w->content, *shorter = &w->classes;
    const uint8_t head[2] = {(uint8_t)h->version, rest->padding};
    out->len = shorter->len = 0;
    SPK_TRY(spk_coef_header_shorten(rest->header, rest->header_n, h->version, shorter, err));
    SPK_TRY(spk_buf_append(out, head, sizeof head, err));
    SPK_TRY(spk_buf_varint(out, shorter->len, err));
    SPK_TRY(spk_buf_append(out, shorter->data, shorter->len, err));
    SPK_TRY(spk_buf_varint(out, rest->tail_n, err));
    if (rest->tail_n > 0)
        SPK_TRY(spk_buf_append(out, rest->tail, rest->tail_n, err));
    for (size_t k = 0; k < kinds_of(h); k++) {
        uint8_t ways[SPK_COEF_LISTS];
        for (size_t list = 0; list < SPK_COEF_LISTS; list++)
            ways[list] = (uint8_t)w->kinds[k].lists[list].way;
        SPK_TRY(spk_buf_append(out, ways, sizeof ways, err));
    }
    return SPK_OK;
}

spk_status spk_coef_write(spk_coef_writer *w, const spk_coef_header *h, const spk_coef_plane planes[3],
                          const spk_coef_rest *rest, spk_buf *out, spk_error *err)
{
    size_t borders[1 + 2 * SPK_COEF_STREAMS], n = 0;
    if (rest->header_n > SPK_COEF_HEADER_MAX / 2)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "header of %zu bytes", rest->header_n);
    for (size_t k = 0; k < 2; k++)
        reset(&w->kinds[k]);
    SPK_TRY(put_blocks(w, h, planes, err));
    for (size_t k = 0; k < kinds_of(h); k++)
        SPK_TRY(put_levels(w, &w->kinds[k], h->version, err));
    SPK_TRY(put_head(w, h, rest, err));
    borders[n++] = w->content.len;
    for (size_t k = 0; k < kinds_of(h); k++)
        for (size_t s = 0; s < SPK_COEF_STREAMS; s++) {
            const spk_buf *b = &w->kinds[k].streams[s];
            if (b->len > 0)
                SPK_TRY(spk_buf_append(&w->content, b->data, b->len, err));
            if (b->len > 0)
                borders[n++] = w->content.len;
        }
    return spk_coef_pack(w->packer, w->content.data, borders, n, weights[h->version].block, out, err);
}
