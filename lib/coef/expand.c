/* Rows of MCUs out of the streams, and the plain kernels. */
#include <string.h>

#include "coef/blob.h"

void spk_coef_tables_make(spk_coef_tables *t)
{
    for (uint32_t mask = 0; mask < 256; mask++) {
        uint64_t spread = 0;
        uint8_t n = 0;
        for (uint32_t i = 0; i < 8; i++)
            spread |= (uint64_t)(mask >> i & 1 ? n++ : 0x80) << (8 * i);
        t->spread[mask] = spread;
        t->count[mask] = n;
    }
    memset(t->order, 0x80, sizeof t->order);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t to = spk_coef_zigzag[i];
        t->order[to / 16][i / 16][to % 16] = (uint8_t)(i % 16);
    }
}

static void expand(const spk_coef_tables *t, spk_coef_class *c, uint32_t cls, const uint32_t *blocks, uint32_t n,
                   int16_t *coef, const int16_t *dc)
{
    (void)t;
    for (uint32_t b = 0; b < n; b++, c->mask++) {
        int16_t *out = coef + 64 * (size_t)blocks[b];
        memset(out, 0, 64 * sizeof *out);
        for (uint32_t g = 0; g < 2 * cls; g++) {
            const int8_t **level = &c->level[spk_coef_band(g)];
            uint32_t mask = c->mask[g * c->plane];
            for (uint32_t i = 0; i < 8; i++) {
                if (!(mask >> i & 1))
                    continue;
                int16_t v = *(*level)++;
                if (v == SPK_COEF_ESCAPE) {
                    v = spk_coef_escape(c->escape);
                    c->escape += 2;
                }
                out[spk_coef_zigzag[8 * g + i]] = v;
            }
        }
        out[0] = dc[blocks[b]];
    }
}

static size_t escapes(const int8_t *p, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += p[i] == SPK_COEF_ESCAPE;
    return sum;
}

static size_t bits(const uint8_t *p, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (size_t)__builtin_popcount(p[i]);
    return sum;
}

static void skip(const spk_coef_tables *t, spk_coef_class *c, uint32_t cls, size_t n)
{
    size_t levels[SPK_COEF_BANDS] = {0};
    for (uint32_t g = 0; g < 2 * cls; g++)
        for (size_t i = 0; i < n; i++)
            levels[spk_coef_band(g)] += t->count[c->mask[g * c->plane + i]];
    for (uint32_t band = 0; band < spk_coef_bands(cls); band++) {
        c->escape += 2 * escapes(c->level[band], levels[band]);
        c->level[band] += levels[band];
    }
    c->mask += n;
}

static void unpack(int8_t *out, const uint8_t *nibbles, const uint8_t *low, uint32_t lows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t q = nibbles[i / 2] >> (4 * (i % 2)) & 15;
        uint64_t eight = 0;
        for (uint32_t k = 0; k < lows; k++)
            eight |= (uint64_t)low[i / 8 * lows + k] << (8 * k);
        int32_t u = q == 8 ? SPK_COEF_ESCAPE : (q < 8 ? q : q - 16) * (1 << lows);
        u += (int32_t)(eight >> (lows * (i % 8)) & ((1u << lows) - 1));
        out[i] = (int8_t)(u >= 0 ? u + 1 : u);
    }
}

const spk_coef_kernels spk_coef_kernels_plain = {expand, skip, unpack, escapes, bits};

spk_status spk_coef_begin(spk_coef_reader *r, bool vectors, spk_error *err)
{
    size_t most = (size_t)r->header.mcus_x * 4;
    const spk_coef_kernels *vector = vectors ? spk_coef_kernels_vector() : NULL;
    r->kernels = vector ? vector : &spk_coef_kernels_plain;
    memcpy(r->at, r->start, sizeof r->at);
    memset(r->above, 0, sizeof r->above);
    return spk_grow(&r->lists, &r->lists_cap, SPK_COEF_CLASSES * most, sizeof *r->lists, err);
}

/* DC of one row of blocks; of the first block only if dc is NULL. */
static void read_dc(spk_coef_kind *k, uint32_t n, int16_t *above, int16_t *dc)
{
    int32_t v = *above;
    for (uint32_t x = 0; x < (dc ? n : 1); x++) {
        int32_t high = k->dc_high[x], d = high * 4 + (k->dc_low[x / 4] >> (2 * (x % 4)) & 3);
        if (high == SPK_COEF_ESCAPE) {
            d = spk_coef_escape(k->dc_escape);
            k->dc_escape += dc ? 2 : 0;
        }
        v = (int16_t)(v + d);
        if (x == 0)
            *above = (int16_t)v;
        if (dc)
            dc[x] = (int16_t)v;
    }
    for (uint32_t x = 0; x < n && !dc; x++)
        k->dc_escape += k->dc_high[x] == SPK_COEF_ESCAPE ? 2 : 0;
    k->dc_high += n;
    k->dc_low += (n + 3) / 4;
}

void spk_coef_skip(spk_coef_reader *r, uint32_t rows)
{
    const spk_coef_header *h = &r->header;
    size_t counts[2][16] = {{0}};
    for (uint32_t y = 0; y < rows; y++)
        for (uint32_t c = 0; c < h->components; c++) {
            spk_coef_kind *k = &r->at[c > 0];
            uint32_t wide = h->mcus_x * h->component[c].h, n = wide * h->component[c].v;
            for (uint32_t i = 0; i < h->component[c].v; i++)
                read_dc(k, wide, &r->above[c], NULL);
            for (uint32_t i = 0; i < (n + 1) / 2; i++) {
                counts[c > 0][*k->classes & 15]++;
                counts[c > 0][*k->classes++ >> 4]++;
            }
        }
    for (uint32_t kind = 0; kind < 2; kind++)
        for (uint32_t cls = 1; cls < SPK_COEF_CLASSES; cls++)
            if (counts[kind][cls] > 0)
                r->kernels->skip(&r->tables, &r->at[kind].of[cls], cls, counts[kind][cls]);
}

/* The blocks of one row of MCUs by class. */
static void make_lists(const uint8_t *classes, uint32_t n, spk_coef_lists *lists)
{
    memset(lists->n, 0, sizeof lists->n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t cls = classes[i / 2] >> (4 * (i % 2)) & 15;
        lists->blocks[cls][lists->n[cls]++] = i;
    }
}

/* Goes through the list of a class: blocks in columns from .. to - 1 are expanded, the others gone past. The list keeps
 * the former. `of` is NULL for class 0, of which there is nothing to read. */
static void read_list(spk_coef_reader *r, spk_coef_class *of, uint32_t cls, uint32_t wide, uint32_t from, uint32_t to,
                      spk_coef_lists *lists, int16_t *coef, const int16_t *dc)
{
    uint32_t *blocks = lists->blocks[cls], n = lists->n[cls], kept = 0;
    for (uint32_t i = 0; i < n;) {
        uint32_t begin = i, column = blocks[i] % wide, row = blocks[i] - column;
        bool in = column >= from && column < to;
        uint32_t limit = row + (column < from ? from : column < to ? to : wide);
        while (i < n && blocks[i] < limit)
            i++;
        if (of && in)
            r->kernels->expand(&r->tables, of, cls, blocks + begin, i - begin, coef, dc);
        else if (of)
            r->kernels->skip(&r->tables, of, cls, i - begin);
        if (in) {
            memmove(blocks + kept, blocks + begin, (i - begin) * sizeof *blocks);
            kept += i - begin;
        }
    }
    lists->n[cls] = kept;
}

void spk_coef_row(spk_coef_reader *r, uint32_t component, uint32_t x0, uint32_t x1, int16_t *coef, int16_t *dc,
                  spk_coef_lists *lists)
{
    const spk_coef_component *c = &r->header.component[component];
    spk_coef_kind *k = &r->at[component > 0];
    uint32_t wide = r->header.mcus_x * c->h, n = wide * c->v;
    for (uint32_t cls = 0; cls < SPK_COEF_CLASSES; cls++)
        lists->blocks[cls] = r->lists + (size_t)cls * r->header.mcus_x * 4;
    for (uint32_t y = 0; y < c->v; y++)
        read_dc(k, wide, &r->above[component], dc + (size_t)y * wide);
    make_lists(k->classes, n, lists);
    k->classes += (n + 1) / 2;
    bool whole = x0 == 0 && x1 == r->header.mcus_x;
    for (uint32_t cls = 0; cls < SPK_COEF_CLASSES; cls++) {
        spk_coef_class *of = cls > 0 ? &k->of[cls] : NULL;
        if (!whole)
            read_list(r, of, cls, wide, x0 * c->h, x1 * c->h, lists, coef, dc);
        else if (of)
            r->kernels->expand(&r->tables, of, cls, lists->blocks[cls], lists->n[cls], coef, dc);
    }
}
