/* Private to coef/: the levels of a list on their way into streams. */
#ifndef SPK_COEF_LEVELS_H
#define SPK_COEF_LEVELS_H

#include "base/buf.h"
#include "coef/layout.h"
#include "coef/pack.h"

typedef struct spk_coef_levels {
    int16_t *v;
    size_t n, cap;
    uint32_t way;     /* SPK_COEF_BYTES, or nibbles and so many lower bits */
    uint32_t *beyond; /* numbers of those that the way does not hold: the escapes */
    size_t escapes, cap_beyond;
} spk_coef_levels;

void spk_coef_levels_free(spk_coef_levels *l);
SPK_CHECK spk_status spk_coef_levels_reserve(spk_coef_levels *l, size_t more, spk_error *err);

/* Adds those of the n that are not zero; there is room. */
static inline void spk_coef_levels_add(spk_coef_levels *l, const int16_t *v, uint32_t n)
{
    int16_t *at = l->v + l->n; /* no branch: it would be a coin's toss */
    for (uint32_t i = 0; i < n; i++) {
        *at = v[i];
        at += v[i] != 0;
    }
    l->n = (size_t)(at - l->v);
}

/* Picks the cheapest way; that the decoder has a byte more to read, or two nibbles, is worth `byte` 1/4096 bits. */
void spk_coef_levels_choose(spk_coef_levels *l, const spk_coef_packer *p, uint32_t byte);
/* The streams of the levels and of their lower bits; and which are escapes. */
SPK_CHECK spk_status spk_coef_levels_put(spk_coef_levels *l, spk_buf *levels, spk_buf *low, spk_error *err);

#endif
