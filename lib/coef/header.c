/* Reading the header's segments (ITU-T T.81, annex B). Each length is checked against what is left. */
#include "coef/header.h"

#include <string.h>

static uint32_t big16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t parts(uint32_t n, uint32_t size)
{
    return n / size + (n % size != 0);
}

static bool read_frame(spk_coef_header *h, uint8_t ids[3], const uint8_t *p, size_t n)
{
    if (h->components > 0 || n < 6 || p[0] != 8 || (p[5] != 1 && p[5] != 3) || n != 6 + 3u * p[5])
        return false;
    h->height = big16(p + 1);
    h->width = big16(p + 3);
    h->components = p[5];
    for (uint32_t c = 0; c < h->components; c++) {
        const uint8_t *at = p + 6 + (size_t)3 * c;
        spk_coef_component *k = &h->component[c];
        ids[c] = at[0];
        *k = (spk_coef_component){at[1] >> 4, at[1] & 15, 0, 0};
        bool known = c == 0 ? k->h >= 1 && k->h <= 2 && k->v >= 1 && k->v <= 2 : k->h == 1 && k->v == 1;
        if (!known)
            return false;
    }
    if (h->components == 1)
        h->component[0].h = h->component[0].v = 1;
    h->mcus_x = parts(h->width, 8 * h->component[0].h);
    h->mcus_y = parts(h->height, 8 * h->component[0].v);
    return h->width > 0 && h->height > 0;
}

static bool read_tables(spk_coef_header *h, const uint8_t *p, size_t n)
{
    while (n > 0) {
        if (n < 17 || p[0] >> 4 > 1 || (p[0] & 15) > 3)
            return false;
        spk_coef_huffman *t = p[0] >> 4 ? &h->ac[p[0] & 15] : &h->dc[p[0] & 15];
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

static bool read_scan(spk_coef_header *h, const uint8_t ids[3], const uint8_t *p, size_t n)
{
    if (h->components == 0 || n != 4 + 2 * (size_t)h->components || p[0] != h->components)
        return false;
    for (uint32_t c = 0; c < h->components; c++) {
        const uint8_t *at = p + 1 + (size_t)2 * c;
        spk_coef_component *k = &h->component[c];
        k->dc = at[1] >> 4;
        k->ac = at[1] & 15;
        if (at[0] != ids[c] || k->dc > 3 || k->ac > 3 || !h->dc[k->dc].there || !h->ac[k->ac].there)
            return false;
    }
    const uint8_t *rest = p + 1 + 2 * (size_t)h->components;
    return rest[0] == 0 && rest[1] == 63 && rest[2] == 0;
}

bool spk_coef_header_parse(spk_coef_header *h, const uint8_t *p, size_t n)
{
    uint8_t ids[3] = {0};
    memset(h, 0, sizeof *h);
    if (n < 2 || p[0] != 0xFF || p[1] != 0xD8)
        return false;
    for (size_t at = 2; n - at >= 4 && p[at] == 0xFF;) {
        uint32_t marker = p[at + 1], length = big16(p + at + 2);
        if (length < 2 || length > n - at - 2)
            return false;
        const uint8_t *body = p + at + 4;
        size_t left = length - 2;
        at += 2 + (size_t)length;
        bool good = marker == 0xC0 || marker == 0xC1 || marker == 0xC4 || marker == 0xDA || marker == 0xDB ||
                    marker == 0xDD || marker == 0xFE || (marker >= 0xE0 && marker <= 0xEF);
        if (marker == 0xC0 || marker == 0xC1)
            good = read_frame(h, ids, body, left);
        else if (marker == 0xC4)
            good = read_tables(h, body, left);
        else if (marker == 0xDD && (good = left == 2))
            h->interval = big16(body);
        if (marker == 0xDA) {
            h->bytes = at;
            return read_scan(h, ids, body, left);
        }
        if (!good)
            return false;
    }
    return false;
}
