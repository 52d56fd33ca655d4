/* Keys across the shards of a dataset: none twice, also when case is folded (within a shard its index is refused for
 * that). Equal hashes only name candidates; their real keys are
 * read again, shard by shard, and compared. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dataset/verify.h"

typedef struct candidate {
    uint64_t number;
    char *key;
} candidate;

typedef struct candidates {
    candidate *items;
    size_t n, cap;
} candidates;

static int by_number(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_key(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    int order = x->key && y->key ? spk_key_compare_folded(x->key, y->key) : (y->key != NULL) - (x->key != NULL);
    return order ? order : by_number(a, b);
}

static spk_status collect(const spk_keytab *keys, candidates *out, spk_error *err)
{
    for (size_t i = 0; i < keys->n; i++) {
        uint64_t hash = keys->items[i].hash;
        if (!(i > 0 && keys->items[i - 1].hash == hash) && !(i + 1 < keys->n && keys->items[i + 1].hash == hash))
            continue;
        SPK_TRY(spk_grow(&out->items, &out->cap, out->n + 1, sizeof *out->items, err));
        out->items[out->n++] = (candidate){keys->items[i].number, NULL};
    }
    return SPK_OK;
}

/* Shard of a sample, and the number of that shard's first sample. */
static uint64_t shard_of(const spk_dataset *d, uint64_t number, uint64_t *first)
{
    size_t i = spk_catalog_find(&d->catalog, number);
    *first = d->catalog.rows[i].first_sample;
    return i;
}

/* Reads the keys of all candidates, which are sorted by number. A shard that cannot be opened has been reported when it
 * was read; its candidates stay without a key. */
static spk_status read_keys(const spk_dataset *d, candidates *c, spk_error *err)
{
    spk_shard *shard = NULL;
    uint64_t open = UINT64_MAX, first = 0;
    spk_status status = SPK_OK;
    for (size_t i = 0; i < c->n && status == SPK_OK; i++) {
        uint64_t number = shard_of(d, c->items[i].number, &first);
        if (number != open) {
            spk_shard_close(shard);
            shard = NULL;
            open = number;
            if (spk_dataset_open_shard(d, number, &shard, NULL) < 0)
                shard = NULL;
        }
        const char *key = shard ? spk_shard_key(shard, c->items[i].number - first) : NULL;
        if (key && !(c->items[i].key = strdup(key)))
            status = spk_error_nomem(err, strlen(key) + 1);
    }
    spk_shard_close(shard);
    return status;
}

static void describe(const spk_dataset *d, const candidate *c, char *out, size_t cap)
{
    uint64_t first = 0, shard = shard_of(d, c->number, &first);
    const char *path = spk_catalog_path(&d->catalog, (size_t)shard);
    snprintf(out, cap, "%.300s (sample %" PRIu64 ")", path, c->number - first);
}

static void tell(const spk_dataset *d, const candidate *a, const candidate *b, const spk_problem_sink *sink)
{
    char where_a[400], where_b[400];
    spk_error problem;
    spk_error_clear(&problem);
    describe(d, a, where_a, sizeof where_a);
    describe(d, b, where_b, sizeof where_b);
    if (strcmp(a->key, b->key) == 0)
        spk_error_set(&problem, SPK_E_FORMAT, "key \"%s\" is there twice: in %s and in %s", a->key, where_a, where_b);
    else
        spk_error_set(&problem, SPK_E_FORMAT, "keys \"%s\" in %s and \"%s\" in %s differ in case only", a->key, where_a,
                      b->key, where_b);
    spk_error_prefix(&problem, "%s", d->folder);
    sink->on_problem(sink->ctx, &problem);
}

spk_status spk_verify_keys(const spk_dataset *d, spk_keytab *keys, const spk_problem_sink *sink, spk_error *err)
{
    candidates c = {0};
    spk_keytab_sort(keys);
    spk_status status = collect(keys, &c, err);
    if (status == SPK_OK && c.n > 0) {
        qsort(c.items, c.n, sizeof *c.items, by_number);
        status = read_keys(d, &c, err);
    }
    if (status == SPK_OK && c.n > 0) {
        qsort(c.items, c.n, sizeof *c.items, by_key);
        for (size_t i = 1, head = 0; i < c.n && c.items[i].key; i++) {
            if (spk_key_compare_folded(c.items[head].key, c.items[i].key) == 0)
                tell(d, &c.items[head], &c.items[i], sink);
            else
                head = i;
        }
    }
    for (size_t i = 0; i < c.n; i++)
        free(c.items[i].key);
    free(c.items);
    return status;
}
