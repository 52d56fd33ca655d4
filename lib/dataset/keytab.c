/* The key table. Sorting is an in-place radix sort (American flag sort: McIlroy, Bostic, McIlroy, "Engineering Radix
 * Sort", Computing Systems 6(1), 1993): hashes are uniform, and a merge sort would need the memory twice. */
#include "dataset/keytab.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/buf.h"

#define FEW 32 /* entries for which insertion sort is faster */

static unsigned char fold(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

uint64_t spk_key_hash(const char *key, size_t len)
{
    return XXH64(key, len, 0);
}

uint64_t spk_key_hash_folded(const char *key, size_t len)
{
    unsigned char folded[256]; /* keys have at most 72 bytes; of longer text the rest only counts by its length */
    size_t n = 0;
    for (; n < len && n < sizeof folded; n++)
        folded[n] = fold(key[n]);
    return XXH64(folded, n, len);
}

int spk_key_compare_folded(const char *a, const char *b)
{
    while (*a && fold(*a) == fold(*b)) {
        a++;
        b++;
    }
    return (int)fold(*a) - (int)fold(*b);
}

spk_status spk_keytab_add(spk_keytab *t, uint64_t hash, uint64_t number, spk_error *err)
{
    SPK_TRY(spk_grow(&t->items, &t->cap, t->n + 1, sizeof *t->items, err));
    t->items[t->n++] = (spk_keytab_entry){hash, number};
    return SPK_OK;
}

static void insertion_sort(spk_keytab_entry *e, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        spk_keytab_entry moving = e[i];
        size_t j = i;
        for (; j > 0 && e[j - 1].hash > moving.hash; j--)
            e[j] = e[j - 1];
        e[j] = moving;
    }
}

static void sort_by_byte(spk_keytab_entry *e, size_t n, unsigned shift)
{
    size_t next[256], end[256], count[256] = {0};
    if (n <= FEW) {
        insertion_sort(e, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        count[e[i].hash >> shift & 255]++;
    for (size_t b = 0, at = 0; b < 256; b++) {
        next[b] = at;
        at += count[b];
        end[b] = at;
    }
    for (size_t b = 0; b < 256; b++)
        while (next[b] < end[b]) {
            size_t home = e[next[b]].hash >> shift & 255;
            spk_keytab_entry moving = e[next[b]];
            e[next[b]] = e[next[home]];
            e[next[home]++] = moving;
        }
    for (size_t b = 0; b < 256 && shift > 0; b++)
        sort_by_byte(e + end[b] - count[b], count[b], shift - 8);
}

void spk_keytab_sort(spk_keytab *t)
{
    sort_by_byte(t->items, t->n, 56);
}

const spk_keytab_entry *spk_keytab_find(const spk_keytab *t, uint64_t hash, size_t *n)
{
    size_t low = 0, high = t->n; /* entries before low are smaller, from high on not */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->items[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    *n = 0;
    while (low + *n < t->n && t->items[low + *n].hash == hash)
        ++*n;
    return t->items + low;
}

void spk_keytab_free(spk_keytab *t)
{
    free(t->items);
    memset(t, 0, sizeof *t);
}
