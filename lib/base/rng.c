/* Philox4x32-10 with the constants of the paper; checked in the tests against its published known answers. */
#include "base/rng.h"

static void mulhilo(uint32_t a, uint32_t b, uint32_t *hi, uint32_t *lo)
{
    uint64_t p = (uint64_t)a * b;
    *hi = (uint32_t)(p >> 32);
    *lo = (uint32_t)p;
}

void spk_philox(const uint32_t ctr[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = ctr[0], c1 = ctr[1], c2 = ctr[2], c3 = ctr[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint32_t hi0, lo0, hi1, lo1;
        mulhilo(0xD2511F53u, c0, &hi0, &lo0);
        mulhilo(0xCD9E8D57u, c2, &hi1, &lo1);
        c0 = hi1 ^ c1 ^ k0;
        c1 = lo1;
        c2 = hi0 ^ c3 ^ k1;
        c3 = lo0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t spk_rng_u64(spk_rng *r)
{
    uint64_t block = r->next >> 1;
    uint32_t ctr[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)r->stream, (uint32_t)(r->stream >> 32)};
    uint32_t key[2] = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)}, out[4];
    spk_philox(ctr, key, out);
    unsigned half = (unsigned)(r->next & 1) * 2;
    r->next++;
    return (uint64_t)out[half] | (uint64_t)out[half + 1] << 32;
}

uint64_t spk_rng_below(spk_rng *r, uint64_t bound)
{
    uint64_t reject = (0 - bound) % bound; /* 2^64 mod bound */
    uint64_t v;
    do
        v = spk_rng_u64(r);
    while (v < reject);
    return v % bound;
}
