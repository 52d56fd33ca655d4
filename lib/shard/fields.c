/* Table of (field, encoding) pairs. A tree may hold a new extension per file, so look-ups are hashed. Confined. */
#include "shard/fields.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "shard/format.h"

const char *spk_encoding_problem(const char *encoding, size_t len)
{
    if (len == 0)
        return "is empty";
    if (len > SPK_ENCODING_MAX)
        return "is longer than 63 bytes";
    for (size_t i = 0; i < len; i++) {
        char c = encoding[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
            return "holds a byte outside a-z 0-9 _ -";
    }
    return NULL;
}

static size_t slot_of(const spk_fields *f, const char *name, const char *encoding)
{
    uint64_t h = XXH64(name, strlen(name), XXH64(encoding, strlen(encoding), 0));
    size_t i = (size_t)h & (f->slots_n - 1);
    while (f->slots[i] != 0) {
        const spk_index_field *item = &f->items[f->slots[i] - 1];
        if (strcmp(item->name, name) == 0 && strcmp(item->encoding, encoding) == 0)
            break;
        i = (i + 1) & (f->slots_n - 1);
    }
    return i;
}

/* Keeps the slots at most half full. */
static spk_status make_room(spk_fields *f, spk_error *err)
{
    if (f->slots_n > 2 * f->n)
        return SPK_OK;
    size_t n = f->slots_n == 0 ? 32 : 2 * f->slots_n;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return spk_error_nomem(err, n * sizeof *slots);
    free(f->slots);
    f->slots = slots;
    f->slots_n = n;
    for (size_t i = 0; i < f->n; i++)
        slots[slot_of(f, f->items[i].name, f->items[i].encoding)] = (uint32_t)(i + 1);
    return SPK_OK;
}

spk_status spk_fields_number(spk_fields *f, const char *name, const char *encoding, uint32_t *out, spk_error *err)
{
    /* Most samples have the same fields in the same order, so the next number is a good guess. */
    uint32_t guess = (size_t)f->last + 1 < f->n ? f->last + 1 : 0;
    if (guess < f->n && strcmp(f->items[guess].name, name) == 0 && strcmp(f->items[guess].encoding, encoding) == 0) {
        *out = f->last = guess;
        return SPK_OK;
    }
    SPK_TRY(make_room(f, err));
    size_t slot = slot_of(f, name, encoding);
    if (f->slots[slot] == 0) {
        if (f->n >= UINT32_MAX - 1)
            return spk_error_set(err, SPK_E_LIMIT, "too many different fields");
        SPK_TRY(spk_grow(&f->items, &f->cap, f->n + 1, sizeof *f->items, err));
        spk_index_field item = {strdup(name), strdup(encoding)};
        if (!item.name || !item.encoding) {
            free(item.name);
            free(item.encoding);
            return spk_error_nomem(err, strlen(name) + strlen(encoding));
        }
        f->items[f->n++] = item;
        f->slots[slot] = (uint32_t)f->n;
    }
    *out = f->last = f->slots[slot] - 1;
    return SPK_OK;
}

void spk_fields_reset(spk_fields *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->items[i].name);
        free(f->items[i].encoding);
    }
    f->n = 0;
    if (f->slots)
        memset(f->slots, 0, f->slots_n * sizeof *f->slots);
}

void spk_fields_free(spk_fields *f)
{
    spk_fields_reset(f);
    free(f->items);
    free(f->slots);
    memset(f, 0, sizeof *f);
}
