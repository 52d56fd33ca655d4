/* Counter-based random numbers: Philox4x32-10.
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. Pure functions. */
#ifndef SPK_BASE_RNG_H
#define SPK_BASE_RNG_H

#include <stdint.h>

/* The block of counter ctr under key: four 32-bit words. */
void spk_philox(const uint32_t ctr[4], const uint32_t key[2], uint32_t out[4]);

/* A stream of 64-bit words: key = seed; counter = (block, stream). Two words per block, low half first. */
typedef struct spk_rng {
    uint64_t seed;
    uint64_t stream;
    uint64_t next; /* index of the next 64-bit word */
} spk_rng;

uint64_t spk_rng_u64(spk_rng *r);
/* Uniform in [0, bound), bound > 0, without bias: words below 2^64 mod bound are rejected. */
uint64_t spk_rng_below(spk_rng *r, uint64_t bound);

#endif
