/* Three-way radix quicksort. Recursion goes into the smaller parts only, so its depth is at most log2 of the number of
 * records whatever the input; pivots are drawn, so that no arrangement of names is slow.
 */
#include "pack/group_sort.h"

#include <stdbool.h>
#include <string.h>

#define SMALL 12

typedef struct part {
    size_t from, n, depth;
} part;

static char *at(const spk_sort *s, size_t i)
{
    return (char *)s->base + i * s->size;
}

static uint64_t cached(const spk_sort *s, size_t i)
{
    uint64_t v = 0;
    memcpy(&v, at(s, i) + s->cache, sizeof v);
    return v;
}

static void load(const spk_sort *s, const part *p)
{
    for (size_t i = p->from; i < p->from + p->n; i++) {
        uint64_t v = s->piece(s->ctx, at(s, i), p->depth);
        memcpy(at(s, i) + s->cache, &v, sizeof v);
    }
}

/* Compiles to a few registers where n is a constant. */
static inline void swap_bytes(char *x, char *y, size_t n)
{
    uint64_t t[8];
    memcpy(t, x, n);
    memmove(x, y, n);
    memcpy(y, t, n);
}

static void swap(const spk_sort *s, size_t i, size_t j)
{
    if (s->size == 40)
        swap_bytes(at(s, i), at(s, j), 40);
    else if (s->size == 32)
        swap_bytes(at(s, i), at(s, j), 32);
    else
        swap_bytes(at(s, i), at(s, j), s->size);
}

static bool ended(uint64_t piece)
{
    return (piece & 0xFF) == 0;
}

static bool less(const spk_sort *s, size_t i, size_t j, size_t depth)
{
    uint64_t a = cached(s, i), b = cached(s, j);
    while (a == b && !ended(a)) {
        depth += 8;
        a = s->piece(s->ctx, at(s, i), depth);
        b = s->piece(s->ctx, at(s, j), depth);
    }
    return a < b;
}

static void insertion(const spk_sort *s, const part *p)
{
    for (size_t i = p->from + 1; i < p->from + p->n; i++)
        for (size_t j = i; j > p->from && less(s, j, j - 1, p->depth); j--)
            swap(s, j, j - 1);
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
    if (a > b) {
        uint64_t t = a;
        a = b;
        b = t;
    }
    return c < a ? a : c > b ? b : c;
}

static uint64_t draw(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Splits p by its pivot into parts[0] below, parts[1] equal, parts[2] above. */
static void split(const spk_sort *s, const part *p, uint64_t *state, part parts[3])
{
    uint64_t pick[3];
    for (int i = 0; i < 3; i++)
        pick[i] = cached(s, p->from + draw(state) % p->n);
    uint64_t pivot = median(pick[0], pick[1], pick[2]);
    size_t below = p->from, above = p->from + p->n;
    for (size_t i = below; i < above;) {
        uint64_t v = cached(s, i);
        if (v < pivot)
            swap(s, below++, i++);
        else if (v > pivot)
            swap(s, i, --above);
        else
            i++;
    }
    parts[0] = (part){p->from, below - p->from, p->depth};
    parts[1] = (part){below, above - below, p->depth + 8};
    parts[2] = (part){above, p->from + p->n - above, p->depth};
    if (ended(pivot))
        parts[1].n = 0;
    else
        load(s, &parts[1]);
}

static void sort(const spk_sort *s, part p, uint64_t *state)
{
    while (p.n > SMALL) {
        part parts[3];
        split(s, &p, state, parts);
        int largest = parts[1].n > parts[0].n ? 1 : 0;
        if (parts[2].n > parts[largest].n)
            largest = 2;
        for (int i = 0; i < 3; i++)
            if (i != largest)
                sort(s, parts[i], state);
        p = parts[largest];
    }
    insertion(s, &p);
}

void spk_group_sort(const spk_sort *s, size_t n)
{
    uint64_t state = n;
    part all = {0, n, 0};
    load(s, &all);
    sort(s, all, &state);
}
