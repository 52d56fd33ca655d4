/* Draws of the order plan: each a pure function of its key, so that any one can be made without those before it. */
#include "base/rng.h"
#include "plan/plan.h"

__extension__ typedef unsigned __int128 u128; /* gcc and clang, on every 64-bit target */

uint64_t spk_draw(uint64_t seed, uint32_t epoch, unsigned domain, uint32_t lane, uint64_t step)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t ctr[4] = {(uint32_t)step, (uint32_t)(step >> 32), lane, epoch | (uint32_t)domain << 30};
    uint32_t out[4];
    spk_philox(ctr, key, out);
    return (uint64_t)out[0] | (uint64_t)out[1] << 32;
}

uint64_t spk_draw_below(uint64_t seed, uint32_t epoch, unsigned domain, uint32_t lane, uint64_t step, uint64_t bound)
{
    return (uint64_t)(((u128)spk_draw(seed, epoch, domain, lane, step) * bound) >> 64);
}
