/* Digests of batches. */
#include "digest.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct digest_sum {
    XXH64_state_t *state;
};

static void put_u64(unsigned char out[8], uint64_t n)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(n >> (8 * i));
}

static int make_room(digests *d, size_t rows)
{
    if (rows > d->room) {
        uint64_t *grown = realloc(d->row, rows * sizeof *grown);
        if (!grown)
            return -1;
        d->row = grown;
        d->room = rows;
    }
    d->rows = rows;
    if (rows > 0)
        memset(d->row, 0, rows * sizeof *d->row);
    return 0;
}

static uint64_t digest_fixed(digests *d, const spk_view *v)
{
    size_t bytes = d->rows ? (size_t)v->bytes / d->rows : 0;
    const char *data = v->data;
    for (size_t i = 0; i < d->rows; i++)
        d->row[i] = XXH64(data + i * bytes, bytes, d->row[i]);
    return XXH64(data, (size_t)v->bytes, 0);
}

static uint64_t digest_variable(digests *d, const spk_view *v, XXH64_state_t *state)
{
    const char *data = v->data;
    XXH64_reset(state, 0);
    for (size_t i = 0; i < d->rows; i++) {
        unsigned char length[8];
        const char *value = data + v->offsets[2 * i];
        size_t n = (size_t)v->offsets[2 * i + 1];
        put_u64(length, n);
        XXH64_update(state, length, sizeof length);
        XXH64_update(state, value, n);
        if (v->kind != SPK_COLUMN_KEY)
            d->row[i] = XXH64(value, n, d->row[i]);
    }
    return XXH64_digest(state);
}

int digest_batch(digests *d, const spk_batch *batch, const loader_setup *setup)
{
    XXH64_state_t *state = XXH64_createState();
    int rc = state ? make_room(d, (size_t)spk_batch_rows(batch)) : -1;
    for (size_t i = 0; rc == 0 && i < setup->count; i++) {
        spk_view v;
        if (spk_batch_column(batch, i, &v, NULL) < 0) /* only for a column that is not there */
            continue;
        d->column[i] = v.offsets ? digest_variable(d, &v, state) : digest_fixed(d, &v);
    }
    XXH64_freeState(state);
    return rc;
}

void digest_free(digests *d)
{
    free(d->row);
    memset(d, 0, sizeof *d);
}

digest_sum *digest_sum_new(void)
{
    digest_sum *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->state = XXH64_createState();
    if (!s->state) {
        free(s);
        return NULL;
    }
    digest_sum_reset(s);
    return s;
}

void digest_sum_reset(digest_sum *s)
{
    XXH64_reset(s->state, 0);
}

void digest_sum_add(digest_sum *s, const digests *d)
{
    for (size_t i = 0; i < d->rows; i++) {
        unsigned char bytes[8];
        put_u64(bytes, d->row[i]);
        XXH64_update(s->state, bytes, sizeof bytes);
    }
}

uint64_t digest_sum_value(const digest_sum *s)
{
    return XXH64_digest(s->state);
}

void digest_sum_free(digest_sum *s)
{
    if (s)
        XXH64_freeState(s->state);
    free(s);
}
