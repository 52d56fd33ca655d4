/* The file anew: the header piece by piece, after each its scan, in the file's own Huffman codes or the best ones, then
 * the tail. A scan is a pass over all coefficients, which are expanded row by row each time; one more counts symbols
 * where a table is yet to be made. */
#include <string.h>

#include "base/error.h"
#include "coef/blob.h"
#include "coef/coder.h"
#include "coef/optimal.h"

#define MCU_BLOCKS_MAX 6u

typedef struct restoring {
    spk_coef_reader *r;
    spk_coef_walk walk;
    spk_coef_coder coder;
    uint32_t counts[8][256];
    size_t begin[3]; /* of each component in a row of MCUs, in blocks */
    uint32_t to_go, next_restart;
} restoring;

static bool restart(restoring *s)
{
    spk_coef_coder *c = &s->coder;
    bool good = spk_coef_coder_end(c, s->r->padding);
    if (!c->counts) {
        *c->out.p++ = 0xFF;
        *c->out.p++ = (uint8_t)(0xD0 + s->next_restart);
    }
    s->next_restart = (s->next_restart + 1) % 8;
    s->to_go = s->walk.interval;
    memset(c->last_dc, 0, sizeof c->last_dc);
    return good;
}

/* Makes room for an MCU, which may begin with a restart marker. */
static spk_status begin_mcu(restoring *s, spk_buf *out, bool *good, spk_error *err)
{
    if (!s->coder.counts) {
        SPK_TRY(spk_buf_reserve(out, MCU_BLOCKS_MAX * SPK_COEF_BLOCK_BYTES + 16, err));
        s->coder.out.p = out->data + out->len;
    }
    *good = s->walk.interval == 0 || s->to_go > 0 || restart(s);
    s->to_go--;
    return SPK_OK;
}

static spk_status end_mcu(restoring *s, spk_buf *out, bool good, spk_error *err)
{
    if (!good)
        return spk_error_set(err, SPK_E_FORMAT, "a coefficient for which there is no Huffman code");
    if (!s->coder.counts)
        out->len = (size_t)(s->coder.out.p - out->data);
    return SPK_OK;
}

/* The blocks of all components of the scan in column x. */
static bool put_mcu(restoring *s, uint32_t x)
{
    const spk_coef_header *h = &s->r->header;
    spk_coef_coder *coder = &s->coder;
    for (uint32_t n = 0; n < coder->scan.components; n++) {
        uint32_t c = coder->scan.component[n];
        const spk_coef_component *k = &h->component[c];
        for (uint32_t i = 0; i < k->h * k->v; i++) {
            size_t at = s->begin[c] + (size_t)(i / k->h) * h->mcus_x * k->h + (size_t)x * k->h + i % k->h;
            if (!coder->block(coder, n, s->r->coef + 64 * at))
                return false;
        }
    }
    return true;
}

/* A row of MCUs of several components. */
static spk_status put_together(restoring *s, spk_buf *out, spk_error *err)
{
    for (uint32_t x = 0; x < s->r->header.mcus_x; x++) {
        bool good = true;
        SPK_TRY(begin_mcu(s, out, &good, err));
        SPK_TRY(end_mcu(s, out, good && put_mcu(s, x), err));
    }
    return SPK_OK;
}

/* Row y of MCUs, of one component: each block is an MCU, and those that only complete the others' are left out (T.81,
 * A.2.2). */
static spk_status put_alone(restoring *s, uint32_t y, spk_buf *out, spk_error *err)
{
    const spk_coef_header *h = &s->r->header;
    const spk_coef_component *k = &h->component[s->coder.scan.component[0]];
    const int16_t *first = s->r->coef + 64 * s->begin[s->coder.scan.component[0]];
    uint32_t rows = k->high - y * k->v < k->v ? k->high - y * k->v : k->v;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t x = 0; x < k->wide; x++) {
            const int16_t *block = first + 64 * ((size_t)i * h->mcus_x * k->h + x);
            bool good = true;
            SPK_TRY(begin_mcu(s, out, &good, err));
            SPK_TRY(end_mcu(s, out, good && s->coder.block(&s->coder, 0, block), err));
        }
    return SPK_OK;
}

static void read_row(restoring *s)
{
    spk_coef_reader *r = s->r;
    spk_coef_run run;
    for (uint32_t c = 0; c < r->header.components; c++) {
        spk_coef_row(r, c, 0, r->header.mcus_x, r->dc);
        while (spk_coef_next(r, &run))
            for (uint32_t i = 0; i < run.n; i++) {
                int16_t *out = r->coef + 64 * (s->begin[c] + run.blocks[i]);
                const int16_t *in = run.coef ? run.coef + spk_coef_at(i) : NULL;
                if (!in)
                    memset(out, 0, 64 * sizeof *out);
                for (size_t y = 0; y < 8 && in; y++)
                    memcpy(out + 8 * y, in + 16 * y, 8 * sizeof *out);
                out[0] = r->dc[run.blocks[i]];
            }
    }
}

/* Codes the scan at which the walk is, or counts its symbols. */
static spk_status put_scan(restoring *s, bool count, spk_buf *out, spk_error *err)
{
    const spk_coef_header *h = &s->r->header;
    bool good = true;
    spk_coef_coder_begin(&s->coder, &s->walk, count ? s->counts : NULL);
    s->to_go = s->walk.interval;
    s->next_restart = 0;
    SPK_TRY(spk_coef_begin(s->r, true, err));
    for (uint32_t y = 0; y < h->mcus_y; y++) {
        read_row(s);
        if (s->coder.scan.components > 1)
            SPK_TRY(put_together(s, out, err));
        else
            SPK_TRY(put_alone(s, y, out, err));
    }
    if (!count) {
        SPK_TRY(spk_buf_reserve(out, SPK_COEF_BLOCK_BYTES, err));
        s->coder.out.p = out->data + out->len;
    }
    good = spk_coef_coder_end(&s->coder, s->r->padding);
    return end_mcu(s, out, good, err);
}

/* Codes of the tables that the scan uses, made here if they are open. */
static spk_status make_codes(restoring *s, spk_error *err)
{
    spk_coef_walk *w = &s->walk;
    spk_coef_huffman *used[6];
    spk_coef_code *codes[6];
    const uint32_t *counts[6];
    uint32_t n = 0, open = 0;
    for (uint32_t i = 0; i < w->scan.components; i++) {
        uint32_t dc = w->scan.dc[i], ac = w->scan.ac[i];
        if (w->scan.from == 0 && w->scan.high == 0) {
            used[n] = &w->dc[dc];
            counts[n] = s->counts[dc];
            codes[n++] = s->coder.dc[dc];
        }
        if (w->scan.to > 0) {
            used[n] = &w->ac[ac];
            counts[n] = s->counts[4 + ac];
            codes[n++] = s->coder.ac[ac];
        }
    }
    for (uint32_t i = 0; i < n && s->r->header.version > 1; i++)
        open += spk_coef_huffman_is_open(used[i]);
    if (open > 0) {
        memset(s->counts, 0, sizeof s->counts);
        SPK_TRY(put_scan(s, true, NULL, err));
    }
    for (uint32_t i = 0; i < n; i++) {
        if (open > 0 && spk_coef_huffman_is_open(used[i]))
            spk_coef_huffman_best(used[i], counts[i]);
        if (!spk_coef_codes_make(codes[i], used[i]))
            return spk_error_set(err, SPK_E_FORMAT, "Huffman codes that cannot be");
    }
    return SPK_OK;
}

static spk_status put_piece(restoring *s, size_t from, spk_buf *out, spk_error *err)
{
    const uint8_t *p = s->walk.p + from;
    size_t n = s->walk.at - from;
    if (s->r->header.version > 1)
        return spk_coef_header_fill(&s->walk, p, n, out, err);
    return spk_buf_append(out, p, n, err);
}

static spk_status put_scans(restoring *s, spk_buf *out, spk_error *err)
{
    const spk_buf *header = &s->r->jpeg_header;
    if (!spk_coef_walk_begin(&s->walk, header->data, header->len))
        return spk_error_set(err, SPK_E_INVALID, "no header"); /* it was parsed before */
    for (size_t from = 0; from < header->len; from = s->walk.at) {
        if (!spk_coef_walk_next(&s->walk))
            return spk_error_set(err, SPK_E_INVALID, "no header");
        SPK_TRY(make_codes(s, err));
        SPK_TRY(put_piece(s, from, out, err));
        SPK_TRY(put_scan(s, false, out, err));
    }
    return SPK_OK;
}

spk_status spk_coef_restore(spk_coef_reader *r, spk_buf *out, spk_error *err)
{
    const spk_coef_header *h = &r->header;
    restoring s;
    size_t blocks = 0;
    memset(&s, 0, sizeof s);
    s.r = r;
    for (uint32_t c = 0; c < h->components; c++) {
        s.begin[c] = blocks;
        blocks += (size_t)h->mcus_x * h->component[c].h * h->component[c].v;
    }
    SPK_TRY(spk_grow(&r->coef, &r->coef_cap, blocks * 64, sizeof *r->coef, err));
    SPK_TRY(spk_grow(&r->dc, &r->dc_cap, (size_t)h->mcus_x * 4 + SPK_COEF_DC_ROOM, sizeof *r->dc, err));
    SPK_TRY(put_scans(&s, out, err));
    return r->tail_n > 0 ? spk_buf_append(out, r->tail, r->tail_n, err) : SPK_OK;
}
