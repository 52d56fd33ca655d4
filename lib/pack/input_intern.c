/* Open addressing with linear probing over XXH64; slots hold number + 1. */
#include "pack/input_intern.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/error.h"

static uint64_t hash_of(const spk_intern *t, const char *s)
{
    char folded[128];
    size_t n = strlen(s);
    if (!t->fold)
        return XXH64(s, n, 0);
    n = n < sizeof folded ? n : sizeof folded;
    for (size_t i = 0; i < n; i++)
        folded[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] - 'A' + 'a' : s[i]);
    return XXH64(folded, n, 0);
}

static bool equal_ascii_folded(const char *a, const char *b)
{
    for (;; a++, b++) {
        char x = (char)(*a >= 'A' && *a <= 'Z' ? *a - 'A' + 'a' : *a);
        char y = (char)(*b >= 'A' && *b <= 'Z' ? *b - 'A' + 'a' : *b);
        if (x != y)
            return false;
        if (x == '\0')
            return true;
    }
}

/* The slot of an equal string, or the free one where it belongs. */
static size_t probe(const spk_intern *t, const char *s)
{
    for (size_t i = hash_of(t, s) & (t->cap - 1);; i = (i + 1) & (t->cap - 1)) {
        if (t->slots[i] == 0)
            return i;
        const char *other = t->str(t->ctx, t->slots[i] - 1);
        if (t->fold ? equal_ascii_folded(s, other) : strcmp(s, other) == 0)
            return i;
    }
}

static spk_status rehash(spk_intern *t, size_t cap, spk_error *err)
{
    uint32_t *old = t->slots;
    size_t old_cap = t->cap;
    uint32_t *fresh = calloc(cap, sizeof *fresh);
    if (!fresh)
        return spk_error_nomem(err, cap * sizeof *fresh);
    t->slots = fresh;
    t->cap = cap;
    for (size_t i = 0; i < old_cap; i++)
        if (old[i] != 0)
            t->slots[probe(t, t->str(t->ctx, old[i] - 1))] = old[i];
    free(old);
    return SPK_OK;
}

spk_status spk_intern_reserve(spk_intern *t, size_t n, spk_error *err)
{
    size_t cap = t->cap < 64 ? 64 : t->cap;
    while (cap - cap / 5 < n)
        cap *= 2;
    return cap > t->cap ? rehash(t, cap, err) : SPK_OK;
}

uint32_t spk_intern_find(const spk_intern *t, const char *s)
{
    if (t->cap == 0)
        return SPK_INTERN_NONE;
    uint32_t slot = t->slots[probe(t, s)];
    return slot ? slot - 1 : SPK_INTERN_NONE;
}

spk_status spk_intern_put(spk_intern *t, const char *s, uint32_t id, uint32_t *out, spk_error *err)
{
    SPK_TRY(spk_intern_reserve(t, t->used + 1, err));
    size_t slot = probe(t, s);
    if (t->slots[slot] == 0) {
        t->slots[slot] = id + 1;
        t->used++;
    }
    *out = t->slots[slot] - 1;
    return SPK_OK;
}

void spk_intern_free(spk_intern *t)
{
    free(t->slots);
    t->slots = NULL;
    t->cap = 0;
    t->used = 0;
}
