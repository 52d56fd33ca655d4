/* The cache on local disk: pieces of objects that are named by their SHA-256, for all processes of a machine. What is
 * in it has been checked; whoever finds it damaged drops it. A cache that cannot be used is as good as none: nothing
 * here fails a read. Thread-safety: guarded by the net's lock. */
#ifndef SPK_IO_CACHE_H
#define SPK_IO_CACHE_H

#include <stdbool.h>

#include "base/error.h"
#include "io/net_stat.h"

typedef struct spk_cache spk_cache;
typedef struct spk_cache_entry spk_cache_entry;

/* Makes the folder if it is missing. limit 0: 90 % of what is free now and what the cache has. Errors: a folder that
 * cannot be used (PERMISSION, IO), or that holds something else (INVALID). */
SPK_CHECK spk_status spk_cache_open(spk_cache **out, const char *folder, uint64_t limit, spk_net_shared *counts,
                                    spk_error *err);
void spk_cache_close(spk_cache *c);

typedef struct spk_cache_look_result {
    uint64_t entries, bytes, in_use;
} spk_cache_look_result;
/* What is in a cache; clear: after removing what nobody has open. NOT_FOUND if there is none. */
SPK_CHECK spk_status spk_cache_look(const char *folder, bool clear, spk_cache_look_result *out, spk_error *err);

/* The place of an object of `size` bytes in `units` pieces; kept from removal until it is closed. NULL if it cannot be
 * had, or (*busy) not at this moment: another process is making or removing it. */
spk_cache_entry *spk_cache_entry_open(spk_cache *c, const uint8_t digest[32], uint64_t size, uint64_t units,
                                      bool *busy);
/* Gives up one that stays busy. */
void spk_cache_note_busy(spk_cache *c);
void spk_cache_entry_close(spk_cache_entry *e);
bool spk_cache_has(spk_cache_entry *e, uint64_t unit);
/* True if another user made it: what is read is to be checked again. */
bool spk_cache_is_foreign(const spk_cache_entry *e);
/* Reads a piece that is there. False: it is not, after all. */
bool spk_cache_read(spk_cache_entry *e, uint64_t unit, uint64_t off, void *out, size_t n);
typedef enum spk_claim { SPK_CLAIM_MINE = 0, SPK_CLAIM_OTHERS = 1, SPK_CLAIM_OFF = 2, SPK_CLAIM_THERE = 3 } spk_claim;
/* Who fetches a piece that was not there: the caller (until store or unclaim, or its death), another process, anybody,
 * because nothing can be stored, or nobody, because it has come since. */
spk_claim spk_cache_claim(spk_cache_entry *e, uint64_t unit);
void spk_cache_unclaim(spk_cache_entry *e, uint64_t unit);
/* Stores a checked piece and ends its claim. */
void spk_cache_store(spk_cache_entry *e, uint64_t unit, uint64_t off, const void *data, size_t n);
/* A piece turned out to be damaged. */
void spk_cache_drop(spk_cache_entry *e, uint64_t unit);

#endif
