/* Each MCU is read to its end; those that the part needs are kept as coefficients, a few at a time, and brought to
 * samples while they are in cache. The file is looked at as far as libjpeg would look at it, and not less.
 *
 * No code with its number is longer than SPK_HUFFMAN_BITS_MAX bits, and no block has more than 64 of them. */
#include "image/jpeg_baseline.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/jpeg_coded.h"
#include "image/jpeg_raster.h"

#define SLOTS_MAX 6u /* blocks of an MCU */
#define CHUNK 8u     /* MCUs whose coefficients are held */

_Static_assert(SLOTS_MAX * 64 * SPK_HUFFMAN_BITS_MAX / 8 + 32 < SPK_FEED_SLACK, "an MCU fits into the slack");

/* A block's place in an MCU. */
typedef struct slot {
    const spk_huffman *dc, *ac;
    uint32_t component, bx, by;
} slot;

/* Blocks with the same quantisation and stride. */
typedef struct block_list {
    spk_idct_item full[CHUNK * 4 + 1], flat[CHUNK * 4 + 1]; /* flat: DC alone */
    size_t fulls, flats;
    int16_t quant[64];
    size_t stride;
} block_list;

struct spk_jpeg_baseline {
    spk_jpeg_raster raster;
    spk_jpeg_coded coded;
    slot slots[SLOTS_MAX];
    uint32_t slots_n;
    block_list lists[3]; /* that of a component: list_of */
    uint32_t list_of[3];
    spk_huffman dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];
    _Alignas(32) int16_t coef[CHUNK * SLOTS_MAX * 64];
};

bool spk_jpeg_baseline_is_fast(void)
{
    return spk_jpeg_kernels_vector() != NULL;
}

spk_status spk_jpeg_baseline_new(spk_jpeg_baseline **out, spk_error *err)
{
    size_t size = (sizeof **out + 31) & ~(size_t)31;
    *out = aligned_alloc(32, size);
    if (!*out)
        return spk_error_nomem(err, size);
    memset(*out, 0, size);
    return SPK_OK;
}

void spk_jpeg_baseline_free(spk_jpeg_baseline *d)
{
    if (!d)
        return;
    spk_jpeg_raster_free(&d->raster);
    spk_jpeg_coded_free(&d->coded);
    free(d);
}

/* ---- header ---- */

bool spk_jpeg_shape_of(const struct jpeg_decompress_struct *j, spk_jpeg_shape *s)
{
    *s = (spk_jpeg_shape){j->image_width, j->image_height, (uint32_t)j->num_components, 1, 1, SPK_JPEG_GRAY};
    if (j->jpeg_color_space == JCS_YCbCr)
        s->colours = SPK_JPEG_YCC;
    else if (j->jpeg_color_space == JCS_RGB)
        s->colours = SPK_JPEG_RGB;
    else if (j->jpeg_color_space != JCS_GRAYSCALE)
        return false;
    bool known = j->data_precision == 8 && !j->arith_code && !j->CCIR601_sampling;
    for (int c = 1; c < j->num_components; c++)
        known = known && j->comp_info[c].h_samp_factor == 1 && j->comp_info[c].v_samp_factor == 1;
    if (!known || s->components == 1)
        return known && spk_jpeg_shape_known(s);
    s->h = (uint32_t)j->comp_info[0].h_samp_factor;
    s->v = (uint32_t)j->comp_info[0].v_samp_factor;
#if LIBJPEG_TURBO_VERSION_NUMBER < 2001000 /* which upsampled 4:4:0 otherwise */
    if (s->h == 1 && s->v == 2)
        return false;
#endif
    return spk_jpeg_shape_known(s);
}

static bool is_baseline_in_one_scan(const struct jpeg_decompress_struct *j)
{
    bool all = !j->progressive_mode && j->comps_in_scan == j->num_components && j->unread_marker == 0;
    for (int c = 0; c < j->comps_in_scan && all; c++)
        all = j->cur_comp_info[c] == &j->comp_info[c];
    if (j->num_components == 1 && j->comp_info[0].v_samp_factor > 1) /* libjpeg reads so many rows of blocks at once */
        return false;
    return all && j->Ss == 0 && j->Se == 63 && j->Ah == 0 && j->Al == 0;
}

bool spk_jpeg_quant_of(const struct jpeg_decompress_struct *j, uint32_t component, int16_t quant[64])
{
    int q = j->comp_info[component].quant_tbl_no;
    const JQUANT_TBL *t = q >= 0 && q < NUM_QUANT_TBLS ? j->quant_tbl_ptrs[q] : NULL;
    for (size_t i = 0; i < 64 && t; i++)
        quant[i] = (int16_t)t->quantval[i]; /* as libjpeg's vectors take it */
    return t != NULL;
}

static bool make_huffman(spk_huffman *h, JHUFF_TBL *const tables[NUM_HUFF_TBLS], int which, spk_huffman_kind kind)
{
    const JHUFF_TBL *t = which >= 0 && which < NUM_HUFF_TBLS ? tables[which] : NULL;
    return t && spk_huffman_make(h + which, t->bits, t->huffval, kind);
}

/* Tables and slots of all components; false if libjpeg would complain of one. */
static bool take_tables(spk_jpeg_baseline *d, const struct jpeg_decompress_struct *j, const spk_jpeg_shape *s)
{
    d->slots_n = 0;
    for (uint32_t c = 0; c < s->components; c++) {
        const jpeg_component_info *info = &j->comp_info[c];
        if (!spk_jpeg_quant_of(j, c, d->lists[c].quant) ||
            !make_huffman(d->dc, j->dc_huff_tbl_ptrs, info->dc_tbl_no, SPK_HUFFMAN_DC) ||
            !make_huffman(d->ac, j->ac_huff_tbl_ptrs, info->ac_tbl_no, SPK_HUFFMAN_AC))
            return false;
        d->list_of[c] = c;
        if (c == 2 && memcmp(d->lists[1].quant, d->lists[2].quant, sizeof d->lists[2].quant) == 0)
            d->list_of[c] = 1;
        uint32_t h = c == 0 ? s->h : 1, v = c == 0 ? s->v : 1;
        for (uint32_t i = 0; i < h * v; i++)
            d->slots[d->slots_n++] = (slot){d->dc + info->dc_tbl_no, d->ac + info->ac_tbl_no, c, i % h, i / h};
    }
    return true;
}

/* ---- blocks ---- */

static SPK_INLINE void list_block(spk_jpeg_baseline *d, const slot *s, uint32_t x, const int16_t *coef, bool flat)
{
    block_list *l = &d->lists[d->list_of[s->component]];
    spk_idct_item item = {coef, spk_jpeg_raster_at(&d->raster, s->component, x, s->bx, s->by)};
    l->full[l->fulls] = item;
    l->flat[l->flats] = item;
    l->flats += flat;
    l->fulls += !flat;
}

/* Reads `count` MCUs from column x on, at most CHUNK if they are kept. */
static SPK_INLINE bool read_mcus(spk_jpeg_baseline *d, uint32_t x, uint32_t count, bool keep)
{
    spk_bits b = d->coded.bits; /* no pointer to it is left behind, so it is in registers */
    uint32_t faults = 0;
    int16_t *coef = d->coef;
    if (keep)
        memset(coef, 0, (size_t)count * d->slots_n * 64 * sizeof *coef);
    for (; count > 0; count--, x++) {
        if (b.p > d->coded.limit || d->coded.to_go == 0) {
            d->coded.bits = b;
            if (!spk_jpeg_coded_look_after(&d->coded))
                return false;
            b = d->coded.bits;
        }
        d->coded.to_go--;
        for (uint32_t i = 0; i < d->slots_n; i++) {
            const slot *s = &d->slots[i];
            uint32_t at = spk_bits_read_block(&b, s->dc, s->ac, &d->coded.last_dc[s->component], coef, keep);
            faults |= spk_bits_is_fault(at);
            if (keep) {
                list_block(d, s, x, coef, at == SPK_HUFFMAN_END);
                coef += 64;
            }
        }
    }
    d->coded.bits = b;
    return !faults;
}

static bool keep_plain(spk_jpeg_baseline *d, uint32_t x, uint32_t count)
{
    return read_mcus(d, x, count, true);
}

static bool skip_plain(spk_jpeg_baseline *d, uint32_t x, uint32_t count)
{
    return read_mcus(d, x, count, false);
}

SPK_BMI static bool keep_bmi(spk_jpeg_baseline *d, uint32_t x, uint32_t count)
{
    return read_mcus(d, x, count, true);
}

SPK_BMI static bool skip_bmi(spk_jpeg_baseline *d, uint32_t x, uint32_t count)
{
    return read_mcus(d, x, count, false);
}

/* ---- samples ---- */

static bool make_samples(spk_jpeg_baseline *d)
{
    bool same = true;
    for (uint32_t c = 0; c < d->raster.shape.components; c++) {
        block_list *l = &d->lists[c];
        same = d->raster.kernels->idct(l->full, l->fulls, l->quant, l->stride) && same;
        for (size_t i = 0; i < l->flats; i++) {
            int32_t dc = l->flat[i].coef[0] * l->quant[0];
            same = spk_jpeg_raster_fill(l->flat[i].out, l->stride, dc) && same;
        }
        l->fulls = l->flats = 0;
    }
    return same;
}

typedef bool (*read_fn)(spk_jpeg_baseline *d, uint32_t x, uint32_t count);

static bool decode(spk_jpeg_baseline *d, read_fn keep, read_fn skip)
{
    spk_jpeg_raster *r = &d->raster;
    for (uint32_t y = 0; y < r->mcu_y1; y++) {
        uint32_t x0 = y < r->mcu_y0 ? r->mcus_x : r->mcu_x0, x1 = y < r->mcu_y0 ? r->mcus_x : r->mcu_x1;
        if (!skip(d, 0, x0))
            return false;
        for (uint32_t x = x0; x < x1; x += CHUNK)
            if (!keep(d, x, x1 - x < CHUNK ? x1 - x : CHUNK) || !make_samples(d))
                return false;
        if (!skip(d, x1, r->mcus_x - x1) || spk_jpeg_coded_overrun(&d->coded))
            return false;
        if (y >= r->mcu_y0)
            spk_jpeg_raster_emit(r, y);
    }
    return true;
}

spk_status spk_jpeg_baseline_run(spk_jpeg_baseline *d, const struct jpeg_decompress_struct *j,
                                 const spk_decode_job *job, spk_jpeg_engine engine, uint32_t *rows, spk_error *err)
{
    const spk_jpeg_kernels *vector = engine == SPK_JPEG_OWN ? spk_jpeg_kernels_vector() : NULL;
    spk_jpeg_shape shape;
    *rows = 0;
    if (!is_baseline_in_one_scan(j) || !spk_jpeg_shape_of(j, &shape) || !take_tables(d, j, &shape))
        return SPK_OK;
    d->raster.kernels = vector ? vector : &spk_jpeg_kernels_plain;
    SPK_TRY(spk_jpeg_raster_begin(&d->raster, &shape, job, err));
    for (uint32_t c = 0; c < shape.components; c++) {
        d->lists[c].stride = d->raster.stride[c];
        d->lists[c].fulls = d->lists[c].flats = 0;
    }
    const uint8_t *src = j->src->next_input_byte;
    SPK_TRY(spk_jpeg_coded_begin(&d->coded, src, src + j->src->bytes_in_buffer, j->restart_interval, err));
    bool done = decode(d, vector ? keep_bmi : keep_plain, vector ? skip_bmi : skip_plain);
    *rows = done ? job->part.h : d->raster.next_y - job->part.y;
    return SPK_OK;
}
