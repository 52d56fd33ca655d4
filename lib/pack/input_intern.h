/* A set of strings that lie elsewhere, known by number: 4 bytes a slot. Confined. */
#ifndef SPK_PACK_INPUT_INTERN_H
#define SPK_PACK_INPUT_INTERN_H

#include <shardpack/error.h>
#include <stdbool.h>

#define SPK_INTERN_NONE UINT32_MAX

/* Set str, ctx and fold; the rest starts as zero. Free with spk_intern_free. */
typedef struct spk_intern {
    const char *(*str)(const void *ctx, uint32_t id); /* the string of a number that was put */
    const void *ctx;
    bool fold; /* ASCII case does not count; strings under 128 bytes only */
    uint32_t *slots;
    size_t cap; /* 0 or a power of two */
    size_t used;
} spk_intern;

/* Makes room for n strings in all. */
SPK_CHECK spk_status spk_intern_reserve(spk_intern *t, size_t n, spk_error *err);
/* The number of an equal string, or SPK_INTERN_NONE. */
uint32_t spk_intern_find(const spk_intern *t, const char *s);
/* If an equal string is there: *out = its number; else puts s as `id` (whose string must be in place already) and *out
 * = id. */
SPK_CHECK spk_status spk_intern_put(spk_intern *t, const char *s, uint32_t id, uint32_t *out, spk_error *err);
void spk_intern_free(spk_intern *t);

#endif
