/* From scan to scan: the segments between them, where the numbers go, and at last the samples. Coefficients are held of
 * the MCUs that the part needs; of the others only which are not zero. */
#include "image/jpeg_scans.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/header.h"
#include "image/checker.h"
#include "image/jpeg_progressive.h"

#define MEMORY_KEPT ((size_t)2 << 20)  /* bytes that stay for the next image */
#define BLOCKS_MAX ((uint64_t)1 << 23) /* larger images are for libjpeg, which has its own bounds */
#define LOW_MAX 5u                     /* 10 bits more still are 16 bits with a sign */
#define ITEMS 32u

struct spk_jpeg_scans {
    spk_jpeg_raster raster;
    spk_coef_walk walk;
    spk_coef_progress progress;
    spk_scan scan;
    _Alignas(32) int16_t quant[3][64];
    spk_huffman dc[3], ac[3]; /* of a component */
    uint8_t *memory;
    size_t bytes;
};

spk_status spk_jpeg_scans_new(spk_jpeg_scans **out, spk_error *err)
{
    size_t size = (sizeof **out + 31) & ~(size_t)31;
    *out = aligned_alloc(32, size);
    if (!*out)
        return spk_error_nomem(err, size);
    memset(*out, 0, size);
    return SPK_OK;
}

static void free_memory(spk_jpeg_scans *d)
{
    free(d->memory);
    d->memory = NULL;
    d->bytes = 0;
}

void spk_jpeg_scans_free(spk_jpeg_scans *d)
{
    if (!d)
        return;
    spk_jpeg_raster_free(&d->raster);
    spk_jpeg_coded_free(&d->scan.coded);
    free_memory(d);
    free(d);
}

/* ---- header ---- */

/* Reads the header again, for what libjpeg does not tell; both must have understood the same. */
static bool read_header(spk_jpeg_scans *d, const struct jpeg_decompress_struct *j, const uint8_t *file, size_t n,
                        const spk_jpeg_shape *s)
{
    spk_coef_walk *w = &d->walk;
    if (j->unread_marker != 0 || !spk_coef_walk_begin(w, file, n) || !spk_coef_walk_next(w))
        return false;
    const spk_coef_header *h = &w->header;
    bool same = file + w->at == j->src->next_input_byte && w->progressive == (j->progressive_mode != 0) &&
                w->interval == j->restart_interval && h->components == s->components && h->width == s->width &&
                h->height == s->height && h->component[0].h == s->h && h->component[0].v == s->v;
    for (uint32_t c = 0; c < s->components && same; c++) {
        same = spk_jpeg_quant_of(j, c, d->quant[c]);
        for (uint32_t other = 0; other < c; other++) /* libjpeg would tell them apart by their order */
            same = same && w->ids[c] != w->ids[other];
    }
    return same;
}

/* Places all in one block of memory, what must be zero first; with `base` NULL only counts. */
static size_t place(spk_jpeg_scans *d, uint8_t *base, size_t *zero)
{
    const spk_jpeg_raster *r = &d->raster;
    size_t at = 0, kept[3] = {0};
    for (uint32_t c = 0; c < r->shape.components; c++) {
        const spk_coef_component *k = &d->walk.header.component[c];
        uint32_t h = c == 0 ? r->shape.h : 1, v = c == 0 ? r->shape.v : 1;
        spk_scan_plane *p = &d->scan.plane[c];
        *p = (spk_scan_plane){.wide = k->wide, .high = k->high, .stride = (size_t)r->mcus_x * h};
        p->x0 = r->mcu_x0 * h;
        p->x1 = r->mcu_x1 * h;
        p->y0 = r->mcu_y0 * v;
        p->y1 = r->mcu_y1 * v;
        kept[c] = (size_t)(p->x1 - p->x0) * (p->y1 - p->y0);
        p->known = base ? (uint64_t *)(void *)(base + at) : NULL;
        at += sizeof *p->known * p->stride * r->mcus_y * v;
    }
    for (uint32_t c = 0; c < r->shape.components; c++) {
        d->scan.plane[c].dc = base ? (int16_t *)(void *)(base + at) : NULL;
        at += sizeof(int16_t) * kept[c];
    }
    *zero = at;
    at = (at + 31) & ~(size_t)31;
    for (uint32_t c = 0; c < r->shape.components; c++) {
        d->scan.plane[c].coef = base ? (int16_t *)(void *)(base + at) : NULL;
        at += 64 * sizeof(int16_t) * kept[c];
    }
    return at;
}

static spk_status make_room(spk_jpeg_scans *d, spk_error *err)
{
    size_t zero, bytes = (place(d, NULL, &zero) + 31) & ~(size_t)31;
    if (bytes > d->bytes) {
        free_memory(d);
        d->memory = aligned_alloc(32, bytes);
        if (!d->memory)
            return spk_error_nomem(err, bytes);
        d->bytes = bytes;
    }
    place(d, d->memory, &zero);
    memset(d->memory, 0, zero);
    return SPK_OK;
}

/* ---- scans ---- */

static bool make_table(spk_huffman *h, const spk_coef_huffman *t, spk_huffman_kind kind)
{
    return spk_huffman_make(h, t->bits, t->values, kind);
}

/* Tables and slots for the walk's scan; false if libjpeg would complain. */
static bool set_up(spk_jpeg_scans *d)
{
    const spk_coef_walk *w = &d->walk;
    const spk_coef_scan *in = &w->scan;
    spk_scan *s = &d->scan;
    spk_huffman_kind kind = !w->progressive ? SPK_HUFFMAN_AC
                            : in->high > 0  ? SPK_HUFFMAN_AC_FINER
                                            : SPK_HUFFMAN_AC_FIRST;
    bool dc = in->from == 0 && in->high == 0, good = in->low <= LOW_MAX && spk_coef_progress_add(&d->progress, in);
    s->from = in->from;
    s->to = in->to;
    s->low = in->low;
    s->slots_n = 0;
    for (uint32_t i = 0; i < in->components && good; i++) {
        uint32_t c = in->component[i];
        bool alone = in->components == 1;
        uint32_t h = alone ? 1 : w->header.component[c].h, v = alone ? 1 : w->header.component[c].v;
        for (uint32_t k = 0; k < h * v; k++)
            s->slots[s->slots_n++] = (spk_scan_slot){&d->dc[c], c, k % h, k / h, h, v};
        s->ac[c] = &d->ac[c];
        good = (!dc || make_table(&d->dc[c], &w->dc[in->dc[i]], SPK_HUFFMAN_DC)) &&
               (in->to == 0 || make_table(&d->ac[c], &w->ac[in->ac[i]], kind));
    }
    return good;
}

/* Reads the scan's MCUs; those that are kept lie in the same rectangle of each row. */
static bool read_mcus(spk_jpeg_scans *d, bool vectors)
{
    const spk_jpeg_raster *r = &d->raster;
    spk_scan *s = &d->scan;
    uint32_t wide = r->mcus_x, high = r->mcus_y, x0 = r->mcu_x0, x1 = r->mcu_x1, y0 = r->mcu_y0, y1 = r->mcu_y1;
    if (d->walk.scan.components == 1) {
        const spk_scan_plane *p = &s->plane[s->slots[0].component];
        wide = p->wide;
        high = p->high;
        x0 = p->x0;
        x1 = p->x1 < wide ? p->x1 : wide;
        y0 = p->y0;
        y1 = p->y1 < high ? p->y1 : high;
    }
    spk_scan_fn read = spk_scan_reader(s, d->walk.progressive, d->walk.scan.high > 0, vectors);
    for (uint32_t y = 0; y < high; y++) {
        bool some = y >= y0 && y < y1;
        if (some && !(read(s, 0, y, x0, false) && read(s, x0, y, x1 - x0, true) && read(s, x1, y, wide - x1, false)))
            return false;
        if (!some && !read(s, 0, y, wide, false))
            return false;
    }
    return true;
}

static uint32_t big16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

/* Whether nothing but tables and comments stands before the next scan, or nothing at all before the end: *end. */
static bool is_plain(const uint8_t *p, size_t n, bool *end)
{
    for (size_t at = 0; n - at >= 2 && p[at] == 0xFF;) {
        uint32_t marker = p[at + 1];
        *end = marker == 0xD9 && at == 0;
        if (*end || marker == 0xDA)
            return true;
        if ((marker != 0xC4 && marker != 0xDD && marker != 0xFE) || n - at < 4)
            return false;
        at += 2 + (size_t)big16(p + at + 2);
        if (at > n)
            return false;
    }
    return false;
}

/* All scans, up to the end marker. *good: there was no fault. */
static spk_status read_scans(spk_jpeg_scans *d, bool vectors, bool *good, spk_error *err)
{
    spk_coef_walk *w = &d->walk;
    const uint8_t *end = w->p + w->n, *next;
    bool last = false;
    spk_coef_progress_begin(&d->progress);
    for (uint32_t scans = 1; !last && scans < SPK_JPEG_SCANS_MAX; scans++) {
        if (!set_up(d))
            return SPK_OK;
        SPK_TRY(spk_jpeg_coded_begin(&d->scan.coded, w->p + w->at, end, w->interval, err));
        if (!read_mcus(d, vectors) || (next = spk_jpeg_coded_end(&d->scan.coded)) == NULL ||
            !is_plain(next, (size_t)(end - next), &last))
            return SPK_OK;
        w->at = (size_t)(next - w->p);
        if (!last && !spk_coef_walk_next(w))
            return SPK_OK;
    }
    *good = last && spk_coef_progress_is_done(&d->progress, w->header.components);
    return SPK_OK;
}

/* ---- samples ---- */

/* A row of blocks of a component. */
static bool transform_row(spk_jpeg_scans *d, uint32_t c, uint32_t y, uint8_t *out)
{
    const spk_scan_plane *p = &d->scan.plane[c];
    const spk_jpeg_kernels *k = d->raster.kernels;
    size_t stride = d->raster.stride[c];
    uint32_t n = 0, wide = (p->x1 < p->wide ? p->x1 : p->wide) - p->x0;
    const uint64_t *known = p->known + y * p->stride + p->x0;
    size_t first = (size_t)(y - p->y0) * (p->x1 - p->x0);
    const int16_t *dc = p->dc + first;
    int16_t *coef = p->coef + 64 * first;
    spk_idct_item items[ITEMS];
    bool same = true;
    for (uint32_t x = 0; x < wide; x++, coef += 64, out += 8) {
        if (known[x] == 0) {
            same = spk_jpeg_raster_fill(out, stride, dc[x] * d->quant[c][0]) && same;
            continue;
        }
        coef[0] = dc[x];
        items[n++] = (spk_idct_item){coef, out};
        if (n == ITEMS) {
            same = k->idct(items, n, d->quant[c], stride) && same;
            n = 0;
        }
    }
    return (n == 0 || k->idct(items, n, d->quant[c], stride)) && same;
}

/* False if libjpeg is to go on. */
static bool emit(spk_jpeg_scans *d)
{
    spk_jpeg_raster *r = &d->raster;
    for (uint32_t y = r->mcu_y0; y < r->mcu_y1; y++) {
        bool same = true;
        for (uint32_t c = 0; c < r->shape.components; c++) {
            uint32_t v = c == 0 ? r->shape.v : 1;
            for (uint32_t by = 0; by < v && y * v + by < d->scan.plane[c].high; by++)
                same = transform_row(d, c, y * v + by, spk_jpeg_raster_at(r, c, r->mcu_x0, 0, by)) && same;
        }
        if (!same)
            return false;
        spk_jpeg_raster_emit(r, y);
    }
    return true;
}

static spk_status decode(spk_jpeg_scans *d, const spk_decode_job *job, bool vectors, uint32_t *rows, spk_error *err)
{
    bool good = false;
    SPK_TRY(make_room(d, err));
    SPK_TRY(read_scans(d, vectors, &good, err));
    if (good)
        *rows = emit(d) ? job->part.h : d->raster.next_y - job->part.y;
    return SPK_OK;
}

spk_status spk_jpeg_scans_run(spk_jpeg_scans *d, const struct jpeg_decompress_struct *j, size_t n,
                              const spk_decode_job *job, spk_jpeg_engine engine, uint32_t *rows, spk_error *err)
{
    const spk_jpeg_kernels *vector = engine == SPK_JPEG_OWN ? spk_jpeg_kernels_vector() : NULL;
    const uint8_t *file = j->src->next_input_byte + j->src->bytes_in_buffer - n;
    uint64_t blocks = 0;
    spk_jpeg_shape shape;
    *rows = 0;
    for (int c = 0; c < j->num_components; c++)
        blocks += (uint64_t)j->comp_info[c].width_in_blocks * j->comp_info[c].height_in_blocks;
    if (blocks > BLOCKS_MAX || !spk_jpeg_shape_of(j, &shape) || !read_header(d, j, file, n, &shape))
        return SPK_OK;
    d->raster.kernels = vector ? vector : &spk_jpeg_kernels_plain;
    SPK_TRY(spk_jpeg_raster_begin(&d->raster, &shape, job, err));
    spk_status status = decode(d, job, vector != NULL, rows, err);
    if (d->bytes > MEMORY_KEPT)
        free_memory(d);
    return status;
}
