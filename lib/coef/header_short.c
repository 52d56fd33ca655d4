/* Most headers consist of the tables that T.81 gives as examples (annex K), the quantisation scaled by libjpeg's rule.
 * Short form: runs of bytes as they are (varint length, bytes) in turn with single bytes for such segments. */
#include <string.h>

#include "coef/header.h"

#define TABLES 4u            /* Huffman; then 2 for each quality from 1 to 100 */
#define OPEN (TABLES + 200u) /* Huffman tables without codes: DC 0 to 3, AC 0 to 3; from version 2 on */
#define CODES (OPEN + 8u)
#define SEGMENT_MAX 192u

static const uint8_t luma_quant[64] = {16, 11, 12,  14,  12,  10, 16, 14,  13,  14,  18,  17,  16, 19,  24,  40,
                                       26, 24, 22,  22,  24,  49, 35, 37,  29,  40,  58,  51,  61, 60,  57,  51,
                                       56, 55, 64,  72,  92,  78, 64, 68,  87,  69,  55,  56,  80, 109, 81,  87,
                                       95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99};
static const uint8_t chroma_quant[64] = {17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, 99, 99,
                                         99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
                                         99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
                                         99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99};
static const uint8_t dc_luma[28] = {0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0,  0,
                                    0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const uint8_t dc_chroma[28] = {0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0,  0,
                                      0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const uint8_t ac_luma[178] = {
    0x00, 0x02, 0x01, 0x03, 0x03, 0x02, 0x04, 0x03, 0x05, 0x05, 0x04, 0x04, 0x00, 0x00, 0x01, 0x7D, 0x01, 0x02,
    0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71, 0x14, 0x32,
    0x81, 0x91, 0xA1, 0x08, 0x23, 0x42, 0xB1, 0xC1, 0x15, 0x52, 0xD1, 0xF0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09,
    0x0A, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39,
    0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5A, 0x63,
    0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0x83, 0x84, 0x85,
    0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0xA2, 0xA3, 0xA4, 0xA5,
    0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xC2, 0xC3, 0xC4, 0xC5,
    0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xE1, 0xE2, 0xE3, 0xE4,
    0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA};
static const uint8_t ac_chroma[178] = {
    0x00, 0x02, 0x01, 0x02, 0x04, 0x04, 0x03, 0x04, 0x07, 0x05, 0x04, 0x04, 0x00, 0x01, 0x02, 0x77, 0x00, 0x01,
    0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22, 0x32, 0x81,
    0x08, 0x14, 0x42, 0x91, 0xA1, 0xB1, 0xC1, 0x09, 0x23, 0x33, 0x52, 0xF0, 0x15, 0x62, 0x72, 0xD1, 0x0A, 0x16,
    0x24, 0x34, 0xE1, 0x25, 0xF1, 0x17, 0x18, 0x19, 0x1A, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x35, 0x36, 0x37, 0x38,
    0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5A,
    0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0x82, 0x83,
    0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0xA2, 0xA3,
    0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xC2, 0xC3,
    0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xE2, 0xE3,
    0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA};

static bool is_huffman(uint32_t code)
{
    return code < TABLES || code >= OPEN;
}

/* Numbers that a version of the encoding knows. */
static uint32_t codes_of(uint32_t version)
{
    return version > 1 ? CODES : OPEN;
}

/* The segment of a number; its length. */
static size_t segment(uint32_t code, uint8_t out[SEGMENT_MAX])
{
    static const uint8_t *const tables[TABLES] = {dc_luma, ac_luma, dc_chroma, ac_chroma};
    static const uint8_t sizes[TABLES] = {sizeof dc_luma, sizeof ac_luma, sizeof dc_chroma, sizeof ac_chroma};
    static const uint8_t ids[TABLES] = {0x00, 0x10, 0x01, 0x11};
    bool huffman = is_huffman(code);
    size_t n = code < TABLES ? sizes[code] : huffman ? 16 : 64;
    out[0] = 0xFF;
    out[1] = huffman ? 0xC4 : 0xDB;
    out[2] = 0;
    out[3] = (uint8_t)(n + 3);
    if (code >= OPEN) {
        out[4] = (uint8_t)((code - OPEN) / 4 << 4 | (code - OPEN) % 4);
        memset(out + 5, 0, 16);
        return n + 5;
    }
    if (code < TABLES) {
        out[4] = ids[code];
        memcpy(out + 5, tables[code], n);
        return n + 5;
    }
    uint32_t quality = 1 + (code - TABLES) / 2, chroma = (code - TABLES) % 2;
    uint32_t percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
    out[4] = (uint8_t)chroma;
    for (size_t i = 0; i < 64; i++) {
        uint32_t v = ((chroma ? chroma_quant[i] : luma_quant[i]) * percent + 50) / 100;
        out[5 + i] = (uint8_t)(v < 1 ? 1 : v > 255 ? 255 : v);
    }
    return n + 5;
}

/* The number of the segment at p, less than `codes`; CODES without one. */
static uint32_t find(const uint8_t *p, size_t n, uint32_t codes)
{
    uint8_t out[SEGMENT_MAX];
    if (n < 5 || p[0] != 0xFF || (p[1] != 0xC4 && p[1] != 0xDB))
        return CODES;
    for (uint32_t code = 0; code < codes; code++) {
        size_t len = is_huffman(code) == (p[1] == 0xC4) ? segment(code, out) : SIZE_MAX;
        if (len <= n && memcmp(p, out, len) == 0)
            return code;
    }
    return CODES;
}

static spk_status put_run(spk_buf *out, const uint8_t *p, size_t n, spk_error *err)
{
    SPK_TRY(spk_buf_varint(out, n, err));
    return n > 0 ? spk_buf_append(out, p, n, err) : SPK_OK;
}

spk_status spk_coef_header_shorten(const uint8_t *p, size_t n, uint32_t version, spk_buf *out, spk_error *err)
{
    uint8_t text[SEGMENT_MAX];
    size_t run = 0, at = 2;
    while (n - at >= 4) {
        uint32_t code = find(p + at, n - at, codes_of(version));
        if (code == CODES) {
            at += 2 + ((size_t)p[at + 2] << 8 | p[at + 3]);
            if (at > n)
                break;
            continue;
        }
        uint8_t byte = (uint8_t)code;
        SPK_TRY(put_run(out, p + run, at - run, err));
        SPK_TRY(spk_buf_append(out, &byte, 1, err));
        at += segment(code, text);
        run = at;
    }
    return put_run(out, p + run, n - run, err);
}

spk_status spk_coef_header_restore(const uint8_t *p, size_t n, uint32_t version, spk_buf *out, spk_error *err)
{
    spk_cursor c = {p, p + n};
    uint64_t run = 0;
    uint8_t text[SEGMENT_MAX];
    const uint8_t *bytes = NULL;
    for (;;) {
        if (!spk_cursor_varint(&c, &run) || !spk_cursor_bytes(&c, run, &bytes))
            return spk_error_set(err, SPK_E_FORMAT, "header of %zu bytes: a run of bytes does not fit", n);
        if (run > 0)
            SPK_TRY(spk_buf_append(out, bytes, (size_t)run, err));
        if (c.p == c.end)
            return SPK_OK;
        uint32_t code = *c.p++;
        if (code >= codes_of(version))
            return spk_error_set(err, SPK_E_FORMAT, "header of %zu bytes: there is no table %u", n, code);
        SPK_TRY(spk_buf_append(out, text, segment(code, text), err));
        if (out->len > SPK_COEF_HEADER_MAX)
            return spk_error_set(err, SPK_E_LIMIT, "header of more than %u bytes", SPK_COEF_HEADER_MAX);
    }
}
