/* No cache yet: nothing is ever there, anybody fetches. */
#include "io/cache.h"

spk_status spk_cache_open(spk_cache **out, const char *folder, uint64_t limit, spk_net_shared *counts, spk_error *err)
{
    (void)limit, (void)counts;
    *out = NULL;
    return spk_error_set(err, SPK_E_UNSUPPORTED, "%s: a cache is not supported", folder);
}

void spk_cache_close(spk_cache *c)
{
    (void)c;
}

spk_cache_entry *spk_cache_entry_open(spk_cache *c, const uint8_t digest[32], uint64_t size, uint64_t units)
{
    (void)c, (void)digest, (void)size, (void)units;
    return NULL;
}

void spk_cache_entry_close(spk_cache_entry *e)
{
    (void)e;
}

bool spk_cache_has(spk_cache_entry *e, uint64_t unit)
{
    (void)e, (void)unit;
    return false;
}

bool spk_cache_read(spk_cache_entry *e, uint64_t unit, uint64_t off, void *out, size_t n)
{
    (void)e, (void)unit, (void)off, (void)out, (void)n;
    return false;
}

spk_claim spk_cache_claim(spk_cache_entry *e, uint64_t unit)
{
    (void)e, (void)unit;
    return SPK_CLAIM_OFF;
}

void spk_cache_unclaim(spk_cache_entry *e, uint64_t unit)
{
    (void)e, (void)unit;
}

void spk_cache_store(spk_cache_entry *e, uint64_t unit, uint64_t off, const void *data, size_t n)
{
    (void)e, (void)unit, (void)off, (void)data, (void)n;
}

void spk_cache_drop(spk_cache_entry *e, uint64_t unit)
{
    (void)e, (void)unit;
}
