/* Rows of MCUs out of the streams, and the plain kernels. */
#include <string.h>

#include "coef/blob.h"

void spk_coef_tables_make(spk_coef_tables *t)
{
    memset(t, 0, sizeof *t);
    for (uint32_t mask = 0; mask < 256; mask++) {
        uint64_t spread = 0, n = 0;
        for (uint32_t i = 0; i < 8; i++) {
            bool has = mask >> i & 1;
            t->places[mask] |= has ? (uint64_t)i << (8 * n) : 0;
            spread |= (has ? n : 0x80) << (8 * i);
            n += has;
        }
        t->spread[0][mask] = spread;
        t->spread[1][mask] = spread | 0x0808080808080808u;
    }
    memset(t->order, 0x80, sizeof t->order);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t to = spk_coef_zigzag[i];
        t->order[to / 16][i / 16][to % 16] = t->order[to / 16][i / 16][16 + to % 16] = (uint8_t)(i % 16);
    }
}

static void expand(const spk_coef_tables *t, spk_coef_class *c, uint32_t cls, uint32_t n, int16_t *coef)
{
    (void)t;
    memset(coef, 0, spk_coef_at(n + n % 2) * sizeof *coef);
    for (uint32_t b = 0; b < n; b++, c->mask++) {
        int16_t *out = coef + spk_coef_at(b);
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
                uint32_t to = spk_coef_zigzag[8 * g + i];
                out[to / 8 * 16 + to % 8] = v;
            }
        }
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

static void skip(spk_coef_class *c, uint32_t cls, size_t n)
{
    size_t levels[SPK_COEF_BANDS] = {0};
    for (uint32_t g = 0; g < 2 * cls; g++)
        levels[spk_coef_band(g)] += bits(c->mask + g * c->plane, n);
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

static void sums(int16_t *out, const int8_t *high, const uint8_t *low, size_t n, int16_t v)
{
    for (size_t x = 0; x < n; x++) {
        v = (int16_t)(v + high[x] * 4 + (low[x / 4] >> (2 * (x % 4)) & 3));
        out[x] = v;
    }
}

static void sort(const spk_coef_tables *t, const uint8_t *classes, uint32_t n, uint16_t *const lists[SPK_COEF_CLASSES],
                 uint32_t counts[SPK_COEF_CLASSES])
{
    (void)t;
    memset(counts, 0, SPK_COEF_CLASSES * sizeof *counts);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t cls = classes[i / 2] >> (4 * (i % 2)) & 15;
        lists[cls][counts[cls]++] = (uint16_t)i;
    }
}

const spk_coef_kernels spk_coef_kernels_plain = {expand, skip, unpack, sums, sort, escapes, bits};

/* Numbers in a list of a row of MCUs, of which there are at most 4 * 8192. */
static size_t list_room(const spk_coef_header *h)
{
    return (size_t)h->mcus_x * 4 + 8;
}

spk_status spk_coef_begin(spk_coef_reader *r, bool vectors, spk_error *err)
{
    const spk_coef_kernels *vector = vectors ? spk_coef_kernels_vector() : NULL;
    r->kernels = vector ? vector : &spk_coef_kernels_plain;
    memcpy(r->at, r->start, sizeof r->at);
    memset(r->above, 0, sizeof r->above);
    return spk_grow(&r->lists, &r->lists_cap, SPK_COEF_CLASSES * list_room(&r->header), sizeof *r->lists, err);
}

void spk_coef_tally(const uint8_t *p, size_t n, size_t counts[16])
{
    uint32_t sums[2][256] = {{0}}; /* in turn, as many bytes are like the one before */
    for (size_t i = 0; i < n; i++)
        sums[i % 2][p[i]]++;
    memset(counts, 0, 16 * sizeof *counts);
    for (uint32_t high = 0; high < 16; high++) {
        size_t row = 0;
        for (uint32_t low = 0; low < 16; low++) {
            uint32_t both = sums[0][16 * high + low] + sums[1][16 * high + low];
            counts[low] += both;
            row += both;
        }
        counts[high] += row;
    }
}

/* DC of the first block of a row of blocks. */
static int16_t first_dc(const spk_coef_kind *k, int16_t above)
{
    int32_t high = k->dc_high[0], d = high * 4 + (k->dc_low[0] & 3);
    return (int16_t)(above + (high == SPK_COEF_ESCAPE ? spk_coef_escape(k->dc_escape) : d));
}

/* DC of one row of n blocks, of the first `wanted` only. */
static void read_dc(const spk_coef_kernels *kernels, spk_coef_kind *k, uint32_t n, uint32_t wanted, int16_t *above,
                    int16_t *dc)
{
    int32_t v = *above;
    size_t escapes = kernels->escapes(k->dc_high, n);
    if (escapes == 0)
        kernels->sums(dc, k->dc_high, k->dc_low, wanted, *above);
    for (uint32_t x = 0, seen = 0; x < wanted && escapes > 0; x++) {
        int32_t high = k->dc_high[x], d = high * 4 + (k->dc_low[x / 4] >> (2 * (x % 4)) & 3);
        v = (int16_t)(v + (high == SPK_COEF_ESCAPE ? spk_coef_escape(k->dc_escape + 2 * (size_t)seen++) : d));
        dc[x] = (int16_t)v;
    }
    *above = first_dc(k, *above);
    k->dc_high += n;
    k->dc_low += (n + 3) / 4;
    k->dc_escape += 2 * escapes;
}

void spk_coef_skip(spk_coef_reader *r, uint32_t rows)
{
    const spk_coef_header *h = &r->header;
    size_t classes[2] = {0}, counts[16];
    for (uint32_t y = 0; y < rows; y++)
        for (uint32_t c = 0; c < h->components; c++) {
            spk_coef_kind *k = &r->at[c > 0];
            uint32_t wide = h->mcus_x * h->component[c].h, n = wide * h->component[c].v;
            for (uint32_t i = 0; i < h->component[c].v; i++) {
                r->above[c] = first_dc(k, r->above[c]);
                k->dc_escape += 2 * r->kernels->escapes(k->dc_high, wide);
                k->dc_high += wide;
                k->dc_low += (wide + 3) / 4;
            }
            classes[c > 0] += (n + 1) / 2;
        }
    for (uint32_t kind = 0; kind < (h->components > 1 ? 2u : 1u) && rows > 0; kind++) {
        spk_coef_kind *k = &r->at[kind];
        spk_coef_tally(k->classes, classes[kind], counts);
        k->classes += classes[kind];
        for (uint32_t cls = 1; cls < SPK_COEF_CLASSES; cls++)
            k->of[cls].unread += counts[cls];
    }
}

void spk_coef_row(spk_coef_reader *r, uint32_t component, uint32_t x0, uint32_t x1, int16_t *dc)
{
    const spk_coef_component *c = &r->header.component[component];
    spk_coef_kind *k = &r->at[component > 0];
    uint32_t wide = r->header.mcus_x * c->h, n = wide * c->v;
    r->row = (spk_coef_reading){.component = component, .wide = wide, .from = x0 * c->h, .to = x1 * c->h, .dc = dc};
    for (uint32_t cls = 0; cls < SPK_COEF_CLASSES; cls++)
        r->row.blocks[cls] = r->lists + cls * list_room(&r->header);
    for (uint32_t y = 0; y < c->v; y++)
        read_dc(r->kernels, k, wide, r->row.to, &r->above[component], dc + (size_t)y * wide);
    r->kernels->sort(&r->tables, k->classes, n, r->row.blocks, r->row.n);
    k->classes += (n + 1) / 2;
}

/* How many blocks from `next` on are all wanted, or all not. */
static uint32_t alike(const spk_coef_reading *row, bool *wanted)
{
    const uint16_t *blocks = row->blocks[row->cls] + row->next;
    uint32_t left = row->n[row->cls] - row->next, n = 0;
    *wanted = true;
    if (row->to - row->from == row->wide)
        return left;
    uint32_t column = blocks[0] % row->wide, begin = blocks[0] - column;
    *wanted = column >= row->from && column < row->to;
    uint32_t end = begin + (*wanted ? row->to : column < row->from ? row->from : row->wide);
    while (n < left && blocks[n] < end)
        n++;
    return n;
}

/* The next n blocks, which are wanted. */
static spk_coef_run read_run(spk_coef_reader *r, uint32_t n)
{
    spk_coef_reading *row = &r->row;
    spk_coef_run run = {row->cls, n, row->blocks[row->cls] + row->next, NULL};
    spk_coef_class *of = &r->at[row->component > 0].of[run.cls];
    if (run.cls > 0) {
        if (of->unread > 0)
            r->kernels->skip(of, run.cls, of->unread);
        of->unread = 0;
        r->kernels->expand(&r->tables, of, run.cls, n, r->run);
        for (uint32_t i = 0; i < n; i++)
            r->run[spk_coef_at(i)] = row->dc[run.blocks[i]];
        run.coef = r->run;
    }
    return run;
}

bool spk_coef_next(spk_coef_reader *r, spk_coef_run *out)
{
    spk_coef_reading *row = &r->row;
    for (; row->cls < SPK_COEF_CLASSES; row->cls++, row->next = 0)
        while (row->next < row->n[row->cls]) {
            bool wanted = false;
            uint32_t n = alike(row, &wanted);
            if (wanted) {
                *out = read_run(r, n < SPK_COEF_RUN ? n : SPK_COEF_RUN);
                row->next += out->n;
                return true;
            }
            r->at[row->component > 0].of[row->cls].unread += n;
            row->next += n;
        }
    return false;
}
