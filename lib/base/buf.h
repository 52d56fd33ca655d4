/* A growable byte buffer, a bounds-checked read cursor, and LEB128 varints. */
#ifndef SPK_BASE_BUF_H
#define SPK_BASE_BUF_H

#include <shardpack/error.h>
#include <stdbool.h>

#include "base/error.h"

/* Zero-initialise ({0}); free with spk_buf_free. data is never NULL after a successful append of n > 0. */
typedef struct spk_buf {
    uint8_t *data;
    size_t len;
    size_t cap;
} spk_buf;

void spk_buf_free(spk_buf *b);
/* Makes room for `more` bytes behind len. */
SPK_CHECK spk_status spk_buf_reserve(spk_buf *b, size_t more, spk_error *err);
SPK_CHECK spk_status spk_buf_append(spk_buf *b, const void *p, size_t n, spk_error *err);
SPK_CHECK spk_status spk_buf_u32(spk_buf *b, uint32_t v, spk_error *err);
SPK_CHECK spk_status spk_buf_u64(spk_buf *b, uint64_t v, spk_error *err);
SPK_CHECK spk_status spk_buf_varint(spk_buf *b, uint64_t v, spk_error *err);
SPK_CHECK spk_status spk_buf_printf(spk_buf *b, spk_error *err, const char *fmt, ...) SPK_PRINTF(3, 4);
/* Adds a NUL behind len without counting it. */
SPK_CHECK spk_status spk_buf_terminate(spk_buf *b, spk_error *err);

/* Reads forward in borrowed memory. */
typedef struct spk_cursor {
    const uint8_t *p;
    const uint8_t *end;
} spk_cursor;

static inline size_t spk_cursor_left(const spk_cursor *c)
{
    return (size_t)(c->end - c->p);
}
/* False, with the cursor unmoved, if the bytes are not there (or the varint is longer than 10 bytes, over 64 bits, or
 * not in its shortest form). */
SPK_CHECK bool spk_cursor_varint(spk_cursor *c, uint64_t *out);
SPK_CHECK bool spk_cursor_bytes(spk_cursor *c, uint64_t n, const uint8_t **out);

/* Overflow-checked array growth: makes *items (elements of `size` bytes) hold at least `want`, doubling *cap. */
SPK_CHECK spk_status spk_grow(void *items, size_t *cap, size_t want, size_t size, spk_error *err);

#endif
