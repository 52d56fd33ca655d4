/* Reading the header's segments (ITU-T T.81, annexes B and G.1). Each length is checked against what is left. */
#include "coef/header.h"

#include <string.h>

#define SCANS_MAX 100u
#define BLOCKS_MAX (1u << 22) /* of an image in several scans: each of them is a pass over all */
#define LOW_MAX 13u           /* T.81, table B.3 */

static uint32_t big16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t parts(uint32_t n, uint32_t size)
{
    return n / size + (n % size != 0);
}

static bool read_frame(spk_coef_walk *w, const uint8_t *p, size_t n)
{
    spk_coef_header *h = &w->header;
    if (h->components > 0 || n < 6 || p[0] != 8 || (p[5] != 1 && p[5] != 3) || n != 6 + 3u * p[5])
        return false;
    h->height = big16(p + 1);
    h->width = big16(p + 3);
    h->components = p[5];
    for (uint32_t c = 0; c < h->components; c++) {
        const uint8_t *at = p + 6 + (size_t)3 * c;
        spk_coef_component *k = &h->component[c];
        w->ids[c] = at[0];
        k->h = at[1] >> 4;
        k->v = at[1] & 15;
        bool known = c == 0 ? k->h >= 1 && k->h <= 2 && k->v >= 1 && k->v <= 2 : k->h == 1 && k->v == 1;
        if (!known)
            return false;
    }
    if (h->components == 1)
        h->component[0].h = h->component[0].v = 1;
    uint32_t most_h = h->component[0].h, most_v = h->component[0].v;
    h->mcus_x = parts(h->width, 8 * most_h);
    h->mcus_y = parts(h->height, 8 * most_v);
    for (uint32_t c = 0; c < h->components; c++) {
        h->component[c].wide = parts(h->width * h->component[c].h, 8 * most_h);
        h->component[c].high = parts(h->height * h->component[c].v, 8 * most_v);
    }
    return h->width > 0 && h->height > 0;
}

static bool read_tables(spk_coef_walk *w, const uint8_t *p, size_t n)
{
    while (n > 0) {
        if (n < 17 || p[0] >> 4 > 1 || (p[0] & 15) > 3)
            return false;
        spk_coef_huffman *t = p[0] >> 4 ? &w->ac[p[0] & 15] : &w->dc[p[0] & 15];
        size_t sum = 0;
        memset(t, 0, sizeof *t);
        for (size_t i = 1; i <= 16; i++)
            sum += t->bits[i] = p[i];
        if (sum > 256 || sum > n - 17)
            return false;
        memcpy(t->values, p + 17, sum);
        t->there = true;
        p += 17 + sum;
        n -= 17 + sum;
    }
    return true;
}

/* A scan as the kind of its image allows it. */
static bool is_good(const spk_coef_walk *w)
{
    const spk_coef_scan *s = &w->scan;
    if (!w->progressive)
        return s->from == 0 && s->to == 63 && s->high == 0 && s->low == 0;
    bool band = s->from == 0 ? s->to == 0 : s->from <= s->to && s->to <= 63 && s->components == 1;
    return band && s->low <= LOW_MAX && (s->high == 0 || s->high == s->low + 1);
}

static bool read_scan(spk_coef_walk *w, const uint8_t *p, size_t n)
{
    spk_coef_scan *s = &w->scan;
    if (w->header.components == 0 || n < 1 || p[0] < 1 || p[0] > w->header.components || n != 4 + 2 * (size_t)p[0])
        return false;
    *s = (spk_coef_scan){.components = p[0]};
    const uint8_t *rest = p + 1 + 2 * (size_t)p[0];
    s->from = rest[0];
    s->to = rest[1];
    s->high = rest[2] >> 4;
    s->low = rest[2] & 15;
    bool good = is_good(w);
    for (uint32_t i = 0, c = 0; i < s->components && good; i++, c++) {
        const uint8_t *at = p + 1 + (size_t)2 * i;
        while (c < w->header.components && w->ids[c] != at[0])
            c++;
        s->component[i] = c;
        s->dc[i] = at[1] >> 4;
        s->ac[i] = at[1] & 15;
        good = c < w->header.components && s->dc[i] <= 3 && s->ac[i] <= 3;
        if (good && s->from == 0 && s->high == 0)
            good = w->dc[s->dc[i]].there;
        if (good && s->to > 0)
            good = w->ac[s->ac[i]].there;
    }
    return good;
}

/* A segment that is not SOS. DQT must come before the first scan. */
static bool read_segment(spk_coef_walk *w, uint32_t marker, const uint8_t *p, size_t n)
{
    switch (marker) {
    case 0xC0:
    case 0xC1:
    case 0xC2:
        w->progressive = marker == 0xC2;
        return read_frame(w, p, n);
    case 0xC4:
        return read_tables(w, p, n);
    case 0xDB:
        return !w->scans;
    case 0xDD:
        if (n == 2)
            w->interval = big16(p);
        return n == 2;
    default:
        return marker == 0xFE || (marker >= 0xE0 && marker <= 0xEF);
    }
}

bool spk_coef_walk_begin(spk_coef_walk *w, const uint8_t *p, size_t n)
{
    memset(w, 0, sizeof *w);
    w->p = p;
    w->n = n;
    w->at = 2;
    return n >= 2 && p[0] == 0xFF && p[1] == 0xD8;
}

bool spk_coef_walk_next(spk_coef_walk *w)
{
    while (w->n - w->at >= 4 && w->p[w->at] == 0xFF) {
        const uint8_t *p = w->p + w->at;
        uint32_t marker = p[1], length = big16(p + 2);
        if (length < 2 || length > w->n - w->at - 2)
            return false;
        w->at += 2 + (size_t)length;
        if (marker == 0xDA) {
            bool good = read_scan(w, p + 4, length - 2);
            w->scans = true;
            return good;
        }
        if (!read_segment(w, marker, p + 4, length - 2))
            return false;
    }
    return false;
}

bool spk_coef_header_parse(spk_coef_header *h, const uint8_t *p, size_t n)
{
    spk_coef_walk w;
    if (!spk_coef_walk_begin(&w, p, n) || !spk_coef_walk_next(&w) || w.progressive ||
        w.scan.components != w.header.components)
        return false;
    *h = w.header;
    h->version = 1;
    h->bytes = w.at;
    return true;
}

void spk_coef_progress_begin(spk_coef_progress *p)
{
    memset(p, -1, sizeof *p);
}

bool spk_coef_progress_add(spk_coef_progress *p, const spk_coef_scan *s)
{
    for (uint32_t i = 0; i < s->components; i++) {
        int8_t *low = p->low[s->component[i]];
        if (s->from > 0 && low[0] < 0)
            return false;
        for (uint32_t k = s->from; k <= s->to; k++) {
            if (s->high == 0 ? low[k] >= 0 : low[k] != (int8_t)s->high)
                return false;
            low[k] = (int8_t)s->low;
        }
    }
    return true;
}

bool spk_coef_progress_is_done(const spk_coef_progress *p, uint32_t components)
{
    for (uint32_t c = 0; c < components; c++)
        for (uint32_t k = 0; k < 64; k++)
            if (p->low[c][k] != 0)
                return false;
    return true;
}

bool spk_coef_header_parse_scans(spk_coef_header *h, const uint8_t *p, size_t n)
{
    spk_coef_walk w;
    spk_coef_progress now;
    uint32_t scans = 0;
    uint64_t blocks = 0;
    spk_coef_progress_begin(&now);
    if (!spk_coef_walk_begin(&w, p, n))
        return false;
    while (w.at < n)
        if (++scans > SCANS_MAX || !spk_coef_walk_next(&w) || !spk_coef_progress_add(&now, &w.scan))
            return false;
    *h = w.header;
    h->version = 2;
    h->bytes = n;
    for (uint32_t c = 0; c < h->components; c++)
        blocks += (uint64_t)h->mcus_x * h->mcus_y * h->component[c].h * h->component[c].v;
    return h->components > 0 && blocks <= BLOCKS_MAX && spk_coef_progress_is_done(&now, h->components);
}

/* Length of the entropy-coded bytes at p: up to a marker other than RST. */
static size_t coded(const uint8_t *p, size_t n)
{
    size_t at = 0;
    while (at + 1 < n) {
        const uint8_t *found = memchr(p + at, 0xFF, n - at - 1);
        if (!found)
            return n;
        at = (size_t)(found - p);
        if (p[at + 1] != 0 && (p[at + 1] < 0xD0 || p[at + 1] > 0xD7))
            return at;
        at += 2;
    }
    return n;
}

spk_status spk_coef_header_collect(const uint8_t *file, size_t n, spk_buf *out, size_t *tail, spk_error *err)
{
    size_t from = 0;
    *tail = 0;
    for (size_t at = 2; at <= n && n - at >= 4 && file[at] == 0xFF;) {
        uint32_t marker = file[at + 1];
        at += 2 + (size_t)big16(file + at + 2);
        if (marker != 0xDA)
            continue;
        if (at > n)
            return SPK_OK;
        SPK_TRY(spk_buf_append(out, file + from, at - from, err));
        from = at += coded(file + at, n - at);
        if (n - at >= 2 && file[at + 1] == 0xD9) {
            *tail = n - at;
            return SPK_OK;
        }
    }
    return SPK_OK;
}
