/* Opening a blob. No stream says how long it is: each length follows from what the streams before it hold, and together
 * they must fill the content. So the loops that read them afterwards need no bounds. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/blob.h"

#define CONTENT_FREE (64u << 10)
#define CONTENT_TIMES 64u

spk_status spk_coef_reader_new(spk_coef_reader **out, spk_error *err)
{
    spk_coef_reader *r = aligned_alloc(_Alignof(spk_coef_reader), sizeof *r);
    if (!r)
        return spk_error_nomem(err, sizeof *r);
    memset(r, 0, sizeof *r);
    spk_coef_tables_make(&r->tables);
    spk_status status = spk_coef_packer_new(&r->packer, err);
    if (status < 0) {
        spk_coef_reader_free(r);
        return status;
    }
    *out = r;
    return SPK_OK;
}

void spk_coef_reader_free(spk_coef_reader *r)
{
    if (!r)
        return;
    spk_buf_free(&r->content);
    spk_buf_free(&r->jpeg_header);
    spk_buf_free(&r->levels);
    spk_coef_packer_free(r->packer);
    free(r->lists);
    free(r->dc);
    free(r->coef);
    free(r);
}

const spk_coef_header *spk_coef_get_header(const spk_coef_reader *r)
{
    return &r->header;
}

spk_coef_rest spk_coef_get_rest(const spk_coef_reader *r)
{
    return (spk_coef_rest){r->jpeg_header.data, r->jpeg_header.len, r->tail, r->tail_n, r->padding};
}

static spk_status take(spk_cursor *c, uint64_t n, const uint8_t **out, const char *what, spk_error *err)
{
    if (!spk_cursor_bytes(c, n, out))
        return spk_error_set(err, SPK_E_FORMAT, "%s: %llu bytes, only %zu are left", what, (unsigned long long)n,
                             spk_cursor_left(c));
    return SPK_OK;
}

static spk_status read_head(spk_coef_reader *r, spk_cursor *c, spk_error *err)
{
    const uint8_t *p = NULL;
    uint64_t n = 0;
    SPK_TRY(take(c, 2, &p, "version", err));
    uint32_t version = p[0];
    if (version < 1 || version > 2)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "version %u is unknown", p[0]);
    if (p[1] > 1)
        return spk_error_set(err, SPK_E_FORMAT, "padding %u", p[1]);
    r->padding = p[1];
    if (!spk_cursor_varint(c, &n))
        return spk_error_set(err, SPK_E_FORMAT, "no size of the header");
    SPK_TRY(take(c, n, &p, "header", err));
    r->jpeg_header.len = 0;
    SPK_TRY(spk_coef_header_restore(p, (size_t)n, version, &r->jpeg_header, err));
    const spk_buf *long_form = &r->jpeg_header;
    bool known = version == 1 ? spk_coef_header_parse(&r->header, long_form->data, long_form->len) &&
                                    r->header.bytes == long_form->len
                              : spk_coef_header_parse_scans(&r->header, long_form->data, long_form->len);
    if (!known)
        return spk_error_set(err, SPK_E_FORMAT,
                             "header of %zu bytes is not that of a JPEG that can be stored in version %u",
                             long_form->len, version);
    if (!spk_cursor_varint(c, &n))
        return spk_error_set(err, SPK_E_FORMAT, "no size of the tail");
    r->tail_n = (size_t)n;
    return take(c, n, &r->tail, "tail", err);
}

/* Blocks of each class; the classes of a component's row of MCUs are bytes of their own. */
static spk_status count_classes(const spk_coef_header *h, uint32_t kind, const uint8_t *p, size_t counts[16],
                                spk_error *err)
{
    const uint8_t *at = p;
    size_t unused = 0;
    for (uint32_t y = 0; y < h->mcus_y; y++)
        for (uint32_t c = kind; c < (kind == 0 ? 1 : h->components); c++) {
            size_t n = (size_t)h->mcus_x * h->component[c].h * h->component[c].v;
            at += (n + 1) / 2;
            if (n % 2 && at[-1] >> 4 != 0)
                return spk_error_set(err, SPK_E_FORMAT, "class of a block that does not exist");
            unused += n % 2;
        }
    spk_coef_tally(p, (size_t)(at - p), counts);
    counts[0] -= unused;
    for (size_t i = SPK_COEF_CLASSES; i < 16; i++)
        if (counts[i] > 0)
            return spk_error_set(err, SPK_E_FORMAT, "a block of class %zu", i);
    return SPK_OK;
}

/* All bits that are set anywhere. */
static uint8_t any_of(const uint8_t *p, size_t n)
{
    uint64_t any = 0, v = 0;
    for (; n >= sizeof v; n -= sizeof v, p += sizeof v) {
        memcpy(&v, p, sizeof v);
        any |= v;
    }
    v = 0;
    memcpy(&v, p, n);
    any |= v;
    any |= any >> 32;
    any |= any >> 16;
    return (uint8_t)(any | any >> 8);
}

/* Streams up to the masks; *levels: how many levels each list has. */
static spk_status map_blocks(spk_coef_reader *r, uint32_t kind, spk_cursor *c, size_t levels[SPK_COEF_LISTS],
                             spk_error *err)
{
    const spk_coef_header *h = &r->header;
    spk_coef_kind *k = &r->start[kind];
    uint64_t blocks = 0, lows = 0, classes = 0;
    size_t counts[16];
    const uint8_t *p = NULL;
    for (uint32_t i = kind; i < (kind == 0 ? 1 : h->components); i++) {
        uint64_t wide = (uint64_t)h->mcus_x * h->component[i].h, rows = h->component[i].v;
        blocks += wide * rows * h->mcus_y;
        lows += (wide + 3) / 4 * rows * h->mcus_y;
        classes += (wide * rows + 1) / 2 * h->mcus_y;
    }
    SPK_TRY(take(c, blocks, &p, "DC", err));
    k->dc_high = (const int8_t *)p;
    SPK_TRY(take(c, lows, &k->dc_low, "DC's lower bits", err));
    SPK_TRY(take(c, 2 * r->kernels->escapes(k->dc_high, (size_t)blocks), &k->dc_escape, "DC's escapes", err));
    SPK_TRY(take(c, classes, &k->classes, "classes", err));
    SPK_TRY(count_classes(h, kind, k->classes, counts, err));
    for (uint32_t cls = 1; cls < SPK_COEF_CLASSES; cls++) {
        spk_coef_class *of = &k->of[cls];
        SPK_TRY(take(c, (uint64_t)counts[cls] * 2 * cls, &of->mask, "masks", err));
        of->plane = counts[cls];
        if (any_of(of->mask, of->plane) & 1)
            return spk_error_set(err, SPK_E_FORMAT, "a mask that counts DC");
        for (uint32_t g = 0; g < 2 * cls; g++)
            levels[spk_coef_list(spk_coef_band(g), cls)] += r->kernels->bits(of->mask + g * of->plane, of->plane);
    }
    return SPK_OK;
}

/* Streams from the levels on. Levels of nibbles become bytes at `room`; those behind it are returned. */
static spk_status map_levels(spk_coef_reader *r, uint32_t kind, const uint8_t *ways, spk_cursor *c,
                             const size_t levels[SPK_COEF_LISTS], int8_t **room, spk_error *err)
{
    spk_coef_kind *k = &r->start[kind];
    const uint8_t *nibbles[SPK_COEF_LISTS], *low = NULL;
    size_t escapes[SPK_COEF_CLASSES] = {0};
    for (uint32_t list = 0; list < SPK_COEF_LISTS; list++)
        SPK_TRY(take(c, ways[list] == SPK_COEF_BYTES ? levels[list] : (levels[list] + 1) / 2, &nibbles[list], "levels",
                     err));
    for (uint32_t band = 0; band < SPK_COEF_BANDS; band++)
        for (uint32_t cls = band < 2 ? 1 : band; cls < SPK_COEF_CLASSES; cls++) {
            uint32_t list = spk_coef_list(band, cls);
            const int8_t *at = (const int8_t *)nibbles[list];
            if (ways[list] != SPK_COEF_BYTES) {
                SPK_TRY(take(c, (levels[list] + 7) / 8 * (uint64_t)ways[list], &low, "levels' lower bits", err));
                r->kernels->unpack(*room, nibbles[list], low, ways[list], levels[list]);
                at = *room;
                *room += levels[list] + SPK_COEF_SLACK;
            }
            k->of[cls].level[band] = at;
            escapes[cls] += r->kernels->escapes(at, levels[list]);
        }
    for (uint32_t cls = 1; cls < SPK_COEF_CLASSES; cls++)
        SPK_TRY(take(c, 2 * escapes[cls], &k->of[cls].escape, "escapes", err));
    return SPK_OK;
}

static spk_status read_streams(spk_coef_reader *r, spk_cursor *c, spk_error *err)
{
    uint32_t kinds = r->header.components > 1 ? 2 : 1;
    const uint8_t *ways = NULL;
    SPK_TRY(take(c, (uint64_t)kinds * SPK_COEF_LISTS, &ways, "ways", err));
    for (size_t i = 0; i < (size_t)kinds * SPK_COEF_LISTS; i++)
        if (ways[i] > SPK_COEF_LOWS_MAX && ways[i] != SPK_COEF_BYTES)
            return spk_error_set(err, SPK_E_FORMAT, "levels in the way %u", ways[i]);
    /* Two levels a byte at most, and room behind each list. */
    r->levels.len = 0;
    SPK_TRY(spk_buf_reserve(&r->levels, 2 * r->content.len + (size_t)kinds * SPK_COEF_LISTS * SPK_COEF_SLACK, err));
    int8_t *room = (int8_t *)r->levels.data;
    for (uint32_t kind = 0; kind < kinds; kind++) {
        size_t levels[SPK_COEF_LISTS] = {0};
        SPK_TRY(map_blocks(r, kind, c, levels, err));
        SPK_TRY(map_levels(r, kind, ways + (size_t)kind * SPK_COEF_LISTS, c, levels, &room, err));
    }
    if (spk_cursor_left(c) > 0)
        return spk_error_set(err, SPK_E_FORMAT, "%zu bytes too many", spk_cursor_left(c));
    return SPK_OK;
}

spk_status spk_coef_open(spk_coef_reader *r, const void *blob, size_t n, spk_error *err)
{
    const spk_coef_kernels *vector = spk_coef_kernels_vector();
    r->kernels = vector ? vector : &spk_coef_kernels_plain;
    SPK_TRY(spk_coef_unpack(r->packer, blob, n, CONTENT_FREE + CONTENT_TIMES * n, SPK_COEF_SLACK, &r->content, err));
    spk_cursor c = {r->content.data, r->content.data + r->content.len};
    SPK_TRY(read_head(r, &c, err));
    return read_streams(r, &c, err);
}
