/* What is counted per mirror, and the state that all processes of a loader share about it: plain memory with atomics,
 * private or in the loader's shared memory. All zero is the start. */
#ifndef SPK_IO_NET_STAT_H
#define SPK_IO_NET_STAT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SPK_NET_MIRRORS_MAX 16u
#define SPK_NET_BUCKETS 64u /* of latency: four for each power of two of microseconds */
#define SPK_NET_CODES 500u  /* HTTP statuses: 100 to 599 */

/* Why a request had to be made again, or elsewhere. */
typedef enum spk_net_fault {
    SPK_FAULT_NONE = 0,
    SPK_FAULT_CONNECT,  /* no connection: name, refused, TLS */
    SPK_FAULT_BROKEN,   /* reset, cut short, no HTTP */
    SPK_FAULT_STALL,    /* no progress */
    SPK_FAULT_DENIED,   /* 401, 403 */
    SPK_FAULT_MISSING,  /* 404, 410 */
    SPK_FAULT_THROTTLE, /* 429, 503 */
    SPK_FAULT_SERVER,   /* other 5xx, 408 */
    SPK_FAULT_REPLY,    /* any other reply that is not what was asked for */
    SPK_FAULT_CHANGED,  /* length or validator of the object changed */
    SPK_FAULT_DIGEST,   /* bytes that do not match their SHA-256 */
    SPK_FAULTS
} spk_net_fault;

typedef struct spk_net_counts {
    _Atomic uint64_t requests, bytes, hedges, failovers, retries;
    _Atomic uint64_t faults[SPK_FAULTS];
    _Atomic uint32_t codes[SPK_NET_CODES];     /* of those faults: replies with HTTP status 100 + i */
    _Atomic uint64_t latency[SPK_NET_BUCKETS]; /* from request to first byte */
    /* Health and limiter, of all processes together; times are CLOCK_MONOTONIC. */
    _Atomic uint64_t usual_ns, spread_ns; /* moving averages of latency and of its deviation */
    _Atomic uint64_t failing;             /* requests failed in a row */
    _Atomic uint64_t avoid_until_ns;      /* only if there is nothing better */
    _Atomic uint64_t not_before_ns;       /* the server asked for a pause */
    _Atomic uint64_t pace_ns, next_ns;    /* between two requests after throttling; time of the next */
} spk_net_counts;

/* The middle of bucket i of latency. */
double spk_net_bucket_seconds(size_t i);

typedef struct spk_net_shared {
    spk_net_counts mirrors[SPK_NET_MIRRORS_MAX];
    _Atomic uint64_t cache_hits, cache_hit_bytes, cache_misses, cache_off;
} spk_net_shared;

#endif
