/* Are the keys of a shard all different, also when ASCII case is folded? Sorted hashes find the candidates, and only
 * keys with equal hashes are compared, themselves sorted: keys made to collide cost n log n, not n squared. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "shard/format.h"
#include "shard/index_list.h"

#define RUNS 4096u
#define RUN_SHIFT 52

typedef struct hashed {
    uint64_t hash;
    const char *key;
} hashed;

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int compare_folded(const char *a, const char *b)
{
    while (*a && fold(*a) == fold(*b)) {
        a++;
        b++;
    }
    return fold(*a) - fold(*b);
}

static int by_hash(const void *a, const void *b)
{
    const hashed *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return compare_folded(x->key, y->key);
}

static uint64_t hash_of(const spk_index *x, uint64_t i)
{
    const spk_index_sample *s = &x->samples[i];
    char folded[SPK_KEY_MAX];
    for (uint32_t j = 0; j < s->key_len; j++)
        folded[j] = fold(x->strings[s->key + j]);
    return XXH64(folded, s->key_len, 0);
}

static bool ascending(const spk_index *x)
{
    for (uint64_t i = 1; i < x->samples_n; i++)
        if (compare_folded(x->strings + x->samples[i - 1].key, x->strings + x->samples[i].key) >= 0)
            return false;
    return true;
}

/* Puts the hashed keys into `all`, in runs by the first bits of their hash: many short sorts stay in the cache where
 * one long one does not. ends[b] becomes the end of run b. */
static void fill_runs(const spk_index *x, hashed *all, size_t ends[RUNS])
{
    for (uint64_t i = 0; i < x->samples_n; i++)
        ends[hash_of(x, i) >> RUN_SHIFT]++;
    size_t start = 0;
    for (size_t b = 0; b < RUNS; b++) {
        size_t n = ends[b];
        ends[b] = start;
        start += n;
    }
    for (uint64_t i = 0; i < x->samples_n; i++) {
        uint64_t h = hash_of(x, i);
        all[ends[h >> RUN_SHIFT]++] = (hashed){h, x->strings + x->samples[i].key};
    }
}

static spk_status check_run(const hashed *run, size_t n, spk_error *err)
{
    for (size_t i = 1; i < n; i++) {
        if (by_hash(&run[i - 1], &run[i]) != 0)
            continue;
        if (strcmp(run[i - 1].key, run[i].key) == 0)
            return spk_error_set(err, SPK_E_FORMAT, "key \"%s\" is listed twice", run[i].key);
        return spk_error_set(err, SPK_E_FORMAT, "keys \"%s\" and \"%s\" differ only in case", run[i - 1].key,
                             run[i].key);
    }
    return SPK_OK;
}

spk_status spk_index_check_keys(const spk_index *x, spk_error *err)
{
    if (ascending(x))
        return SPK_OK;
    hashed *all = malloc((size_t)x->samples_n * sizeof *all);
    size_t *ends = calloc(RUNS, sizeof *ends);
    spk_status st = all && ends ? SPK_OK : spk_error_nomem(err, (size_t)x->samples_n * sizeof *all);
    if (st == SPK_OK)
        fill_runs(x, all, ends);
    for (size_t b = 0, start = 0; b < RUNS && st == SPK_OK; start = ends[b++]) {
        qsort(all + start, ends[b] - start, sizeof *all, by_hash);
        st = check_run(all + start, ends[b] - start, err);
    }
    free(all);
    free(ends);
    return st;
}
