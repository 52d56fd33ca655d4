/* Private to coef/: the levels of a list on their way into streams. */
#ifndef SPK_COEF_LEVELS_H
#define SPK_COEF_LEVELS_H

#include "base/buf.h"
#include "coef/layout.h"
#include "coef/pack.h"

typedef struct spk_coef_levels {
    int16_t *v;
    size_t n, cap;
    size_t escapes; /* how many the way does not hold */
    uint32_t way;   /* SPK_COEF_BYTES, or nibbles and so many lower bits */
} spk_coef_levels;

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

/* Picks the cheapest way. */
void spk_coef_levels_choose(spk_coef_levels *l, const spk_coef_packer *p);
/* The streams of the levels and of their lower bits. */
SPK_CHECK spk_status spk_coef_levels_put(spk_coef_levels *l, spk_buf *levels, spk_buf *low, spk_error *err);

/* Without zero in the middle. */
static inline int32_t spk_coef_folded(int32_t level)
{
    return level > 0 ? level - 1 : level;
}

/* Whether a way holds a folded level. */
static inline bool spk_coef_fits(int32_t u, uint32_t way)
{
    if (way == SPK_COEF_BYTES)
        return u >= -127 && u <= 126;
    int32_t q = u >> way;
    return q >= -7 && q <= 7 && u <= 126;
}

#endif
