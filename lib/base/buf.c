/* Byte buffer and cursor. No state; each buffer belongs to one thread. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

spk_status spk_grow(void *items, size_t *cap, size_t want, size_t size, spk_error *err)
{
    if (want <= *cap)
        return SPK_OK;
    size_t next = *cap < 16 ? 16 : *cap, bytes = 0;
    while (next < want)
        if (__builtin_add_overflow(next, next / 2, &next))
            return spk_error_nomem(err, want);
    if (!spk_mul_size(next, size, &bytes))
        return spk_error_nomem(err, want);
    void *old = NULL;
    memcpy(&old, items, sizeof old);
    void *fresh = realloc(old, bytes);
    if (!fresh)
        return spk_error_nomem(err, bytes);
    memcpy(items, &fresh, sizeof fresh);
    *cap = next;
    return SPK_OK;
}

void spk_buf_free(spk_buf *b)
{
    free(b->data);
    memset(b, 0, sizeof *b);
}

spk_status spk_buf_reserve(spk_buf *b, size_t more, spk_error *err)
{
    size_t want = 0;
    if (__builtin_add_overflow(b->len, more, &want))
        return spk_error_nomem(err, more);
    return spk_grow(&b->data, &b->cap, want, 1, err);
}

spk_status spk_buf_append(spk_buf *b, const void *p, size_t n, spk_error *err)
{
    SPK_TRY(spk_buf_reserve(b, n, err));
    if (n > 0)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    return SPK_OK;
}

spk_status spk_buf_u32(spk_buf *b, uint32_t v, spk_error *err)
{
    uint8_t raw[4];
    spk_le32_store(raw, v);
    return spk_buf_append(b, raw, sizeof raw, err);
}

spk_status spk_buf_u64(spk_buf *b, uint64_t v, spk_error *err)
{
    uint8_t raw[8];
    spk_le64_store(raw, v);
    return spk_buf_append(b, raw, sizeof raw, err);
}

spk_status spk_buf_varint(spk_buf *b, uint64_t v, spk_error *err)
{
    uint8_t raw[10];
    size_t n = 0;
    do {
        raw[n] = (uint8_t)((v & 0x7F) | (v > 0x7F ? 0x80 : 0));
        v >>= 7;
        n++;
    } while (v > 0);
    return spk_buf_append(b, raw, n, err);
}

spk_status spk_buf_printf(spk_buf *b, spk_error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return spk_error_set(err, SPK_E_INVALID, "bad format");
    SPK_TRY(spk_buf_reserve(b, (size_t)n + 1, err));
    va_start(ap, fmt);
    vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return SPK_OK;
}

spk_status spk_buf_terminate(spk_buf *b, spk_error *err)
{
    SPK_TRY(spk_buf_reserve(b, 1, err));
    b->data[b->len] = 0;
    return SPK_OK;
}

bool spk_cursor_varint(spk_cursor *c, uint64_t *out)
{
    uint64_t v = 0;
    const uint8_t *p = c->p;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (p == c->end)
            return false;
        uint8_t byte = *p++;
        if (shift == 63 && byte > 1)
            return false;
        v |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            if (byte == 0 && shift > 0)
                return false;
            c->p = p;
            *out = v;
            return true;
        }
    }
    return false;
}

bool spk_cursor_bytes(spk_cursor *c, uint64_t n, const uint8_t **out)
{
    if (n > spk_cursor_left(c))
        return false;
    *out = c->p;
    c->p += n;
    return true;
}
