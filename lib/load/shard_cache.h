/* Open shards of the shared catalog, the least recently used closed first, so that open files and the memory of their
 * indexes are bounded. */
#ifndef SPK_LOAD_SHARD_CACHE_H
#define SPK_LOAD_SHARD_CACHE_H

#include "io/net.h"
#include "load/protocol.h"
#include "shard/shard.h"

typedef struct spk_shard_cache spk_shard_cache;

/* base is borrowed. net: mirrors and options of a dataset by URL, head.net_bytes of them; else NULL. At most max_open
 * (at least 1) shards are open at a time. */
SPK_CHECK spk_status spk_shard_cache_new(spk_shard_cache **out, const uint8_t *base, const char *net, uint32_t max_open,
                                         spk_error *err);
void spk_shard_cache_free(spk_shard_cache *c);
/* Changes the bound; shards beyond it are closed. */
void spk_shard_cache_resize(spk_shard_cache *c, uint32_t max_open);
/* Shard `number` of the catalog, borrowed until the next call. Errors are those of opening it. */
SPK_CHECK spk_status spk_shard_cache_get(spk_shard_cache *c, uint64_t number, const spk_shard **out, spk_error *err);
/* Shard that holds a sample, by its number in the plan (< samples), and the sample's number in it. */
void spk_shard_cache_locate(spk_shard_cache *c, uint64_t sample, uint64_t *shard, uint64_t *within);
/* Index in the dataset of sample `within` of a shard. */
uint64_t spk_shard_cache_index(const spk_shard_cache *c, uint64_t shard, uint64_t within);
/* Number in the plan of the first sample behind shard `number`. */
uint64_t spk_shard_cache_end(const spk_shard_cache *c, uint64_t number);
/* False: only some samples of the dataset are in the plan. */
bool spk_shard_cache_has_all(const spk_shard_cache *c);
/* Shards that are kept open at most. */
uint32_t spk_shard_cache_max(const spk_shard_cache *c);
/* If it is open, it counts as just used. */
void spk_shard_cache_touch(spk_shard_cache *c, uint64_t number);
/* Bytes per sample of the plan, roughly. */
double spk_shard_cache_sample_bytes(const spk_shard_cache *c);
/* Of a dataset by URL: its mirrors; NULL for a folder. */
spk_net *spk_shard_cache_net(const spk_shard_cache *c);
/* Shard `number` will be wanted: a remote one's tail is asked for. Never waits. */
void spk_shard_cache_expect(spk_shard_cache *c, uint64_t number);
/* None of the shards asked for by spk_shard_cache_expect is wanted any more. */
void spk_shard_cache_forget(spk_shard_cache *c);
/* File name of a shard, for messages; borrowed from base. */
const char *spk_shard_cache_name(const spk_shard_cache *c, uint64_t number);

#endif
