/* The order of an epoch, written a second time from format-spec/epoch-order.md alone, in the plainest way: whole lists,
 * every buffer run from its first step. Also the rows that a rank must get from it. Nothing here is taken from lib/. */
#ifndef LOAD_MODEL_H
#define LOAD_MODEL_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Section 2, and what cuts an epoch into batches (sections 9, 10). */
typedef struct model_inputs {
    const uint64_t *sizes; /* samples of each shard */
    size_t shards;
    uint64_t seed, global_batch, chunk, groups, buffer, echo;
    uint32_t epoch;
    bool shuffle;
} model_inputs;

/* place[x] is the sample at position x; lane[x] the lane that delivers it. */
typedef struct model_order {
    model_inputs in;
    uint64_t samples, total, *place;
    uint64_t chunks, lanes;
} model_order;

static inline uint64_t model_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Section 3. */
static inline uint64_t model_below(const model_inputs *in, uint32_t domain, uint32_t lane, uint64_t step, uint64_t b)
{
    uint32_t c[4] = {(uint32_t)step, (uint32_t)(step >> 32), lane, in->epoch + (domain << 30)};
    uint32_t k0 = (uint32_t)in->seed, k1 = (uint32_t)(in->seed >> 32);
    for (int i = 0; i < 10; i++) {
        uint64_t p = UINT64_C(0xD2511F53) * c[0], r = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t n0 = (uint32_t)(r >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p >> 32) ^ c[3] ^ k1;
        c[0] = n0;
        c[1] = (uint32_t)r;
        c[2] = n2;
        c[3] = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    unsigned __int128 word = c[0] + ((uint64_t)c[1] << 32);
    return (uint64_t)((word * b) >> 64);
}

/* Section 4: Q. */
static inline uint64_t *model_sequence(const model_order *m)
{
    const model_inputs *in = &m->in;
    uint64_t aim = (m->samples + 16 * m->lanes - 1) / (16 * m->lanes), n = 0, first = 0, at = 0;
    uint64_t least = model_least(4, m->samples / 256 > 1 ? m->samples / 256 : 1);
    aim = aim > least ? aim : least;
    uint64_t(*spans)[2] = calloc(m->samples + 1, sizeof *spans), *q = calloc(m->samples + 1, sizeof *q);
    for (size_t s = 0; s < in->shards; first += in->sizes[s++]) {
        uint64_t size = in->sizes[s], parts = (size + aim / 2) / aim;
        parts = parts > 0 ? parts : 1;
        for (uint64_t i = 0; size > 0 && i < parts; i++, n++) {
            spans[n][0] = first + size * i / parts;
            spans[n][1] = first + size * (i + 1) / parts;
        }
    }
    for (uint64_t i = n; i >= 2; i--) {
        uint64_t r = model_below(in, 1, 0, i - 1, i), t[2] = {spans[r][0], spans[r][1]};
        memcpy(spans[r], spans[i - 1], sizeof t);
        memcpy(spans[i - 1], t, sizeof t);
    }
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t y = spans[i][0]; y < spans[i][1]; y++)
            q[at++] = y;
    free(spans);
    ck_assert_uint_eq(at, m->samples);
    return q;
}

/* Section 5: positions below T that lane l supplies, by asking each of them. */
static inline uint64_t model_lane_of(const model_order *m, uint64_t x)
{
    uint64_t g = x / m->in.global_batch, r = x % m->in.global_batch;
    return g % m->in.groups * m->chunks + r / m->in.chunk;
}

/* Section 6: n inputs of a lane, reordered; out gets their numbers. */
static inline void model_buffer(const model_inputs *in, uint64_t lane, uint64_t n, uint64_t *out)
{
    uint64_t *slot = calloc(model_least(in->buffer, n) + 1, sizeof *slot), fill = 0, taken = 0;
    uint64_t k0 = in->buffer / 8 > 1 ? in->buffer / 8 : 1;
    while (fill < k0 && fill < n)
        slot[fill++] = taken++;
    for (uint64_t t = 0; t < n; t++) {
        uint64_t i = model_below(in, 0, (uint32_t)lane, t, fill);
        out[t] = slot[i];
        if (taken < n) {
            slot[i] = taken++;
            if (fill < in->buffer && taken < n)
                slot[fill++] = taken++;
        } else {
            slot[i] = slot[--fill];
        }
    }
    free(slot);
}

/* Outputs of lane l, whose places are [a, z). */
static inline void model_lane(const model_order *m, const uint64_t *q, uint64_t l, uint64_t a, uint64_t z,
                              uint64_t *out)
{
    uint64_t e = m->in.echo, up = (a + e - 1) / e, head = model_least(up * e - a, z - a);
    uint64_t n = z / e > up ? z / e - up : 0, at = 0;
    uint64_t *order = calloc(n + 1, sizeof *order);
    for (; at < head; at++)
        out[at] = q[(a + at) / e];
    model_buffer(&m->in, l, n, order);
    for (uint64_t t = 0; t < n; t++)
        for (uint64_t r = 0; r < e; r++)
            out[at++] = q[up + order[t]];
    for (; at < z - a; at++)
        out[at] = q[(a + at) / e];
    free(order);
}

static inline void model_new(model_order *m, const model_inputs *in)
{
    memset(m, 0, sizeof *m);
    m->in = *in;
    for (size_t s = 0; s < in->shards; s++)
        m->samples += in->sizes[s];
    m->total = m->samples * in->echo;
    m->chunks = (in->global_batch + in->chunk - 1) / in->chunk;
    m->lanes = in->groups * m->chunks;
    m->place = calloc(m->total + 1, sizeof *m->place);
    if (!in->shuffle) {
        for (uint64_t x = 0; x < m->total; x++)
            m->place[x] = x / in->echo;
        return;
    }
    uint64_t *q = model_sequence(m), *out = calloc(m->total + 1, sizeof *out), a = 0;
    for (uint64_t l = 0; l < m->lanes; l++) {
        uint64_t n = 0, o = 0;
        for (uint64_t x = 0; x < m->total; x++)
            n += model_lane_of(m, x) == l;
        model_lane(m, q, l, a, a + n, out);
        for (uint64_t x = 0; x < m->total; x++)
            if (model_lane_of(m, x) == l)
                m->place[x] = out[o++];
        a += n;
    }
    ck_assert_uint_eq(a, m->total);
    free(q);
    free(out);
}

static inline void model_free(model_order *m)
{
    free(m->place);
    memset(m, 0, sizeof *m);
}

/* Sample in the row at position x when an epoch ends at T; -1: none. Section 10. */
static inline int64_t model_row(const model_order *m, uint64_t x, uint64_t end)
{
    if (x < end)
        return (int64_t)m->place[x];
    if (!m->in.shuffle)
        return (int64_t)m->place[end - 1];
    for (uint64_t y = end; y-- > 0;)
        if (model_lane_of(m, y) == model_lane_of(m, x))
            return (int64_t)m->place[y];
    return -1;
}

#endif
