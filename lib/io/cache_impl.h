/* Private to the cache: its files.
 *
 *   FOLDER/shardpack-cache-1/account           bytes in use; locked while they change
 *   FOLDER/shardpack-cache-1/DIGEST.map        header, then one byte per piece: 1 is there
 *   FOLDER/shardpack-cache-1/DIGEST.data       the object, with holes
 *
 * Locks are those of open file descriptions, so they end with their process, however it ends. On a map: the lease byte,
 * shared by everyone who has the entry open, exclusive for whoever removes it; and one byte per piece for its claim. A
 * piece is there when its byte is written, which is after its data; what a crash of the machine tears shows when the
 * piece is decoded, and is dropped then. */
#ifndef SPK_IO_CACHE_IMPL_H
#define SPK_IO_CACHE_IMPL_H

#include <stdbool.h>
#include <sys/types.h>

#include "io/cache.h"

#define SPK_CACHE_FOLDER "shardpack-cache-1"
#define SPK_CACHE_BLOCK 4096u
#define SPK_CACHE_LEASE ((off_t)1 << 40)
#define SPK_CACHE_CLAIMS (((off_t)1 << 40) + 1)
#define SPK_CACHE_NAME 72 /* digest, ".data", NUL */

typedef struct spk_map_head {
    char magic[8];
    uint64_t size, units;
    uint64_t charged; /* bytes that the account counts for this entry; changes under the account's lock */
    uint64_t used_ns; /* CLOCK_REALTIME of its last use */
    uint64_t reserved[3];
} spk_map_head;

struct spk_cache {
    int folder;  /* of the files */
    int account; /* -1: not writable: what is there is used, nothing is stored */
    int refused; /* why the last file could not be opened for writing, or made */
    uint64_t limit;
    uint64_t off_until; /* after an error of the disk: nothing is stored before */
    spk_net_shared *counts;
};

/* Lock and unlock a byte; false if somebody else has it (wait: only errors). type: F_RDLCK, F_WRLCK, F_UNLCK. */
bool spk_cache_lock(int fd, short type, off_t byte, bool wait);
uint64_t spk_cache_now(void);
/* Counts bytes before they are written, removing old entries if they do not fit. False: they cannot be had. map: the
 * entry that they are for. */
bool spk_cache_reserve(spk_cache *c, int map, uint64_t bytes);
void spk_cache_refund(spk_cache *c, int map, uint64_t bytes);
/* Removes the entries used longest ago until `bytes` are free below the limit; the account is locked. Returns what the
 * account counts then. */
uint64_t spk_cache_evict(spk_cache *c, uint64_t bytes);
/* Sets what the account counts; it is locked, and unlocked by this. */
void spk_cache_recount(spk_cache *c, uint64_t used);
bool spk_cache_is_map(const char *name);
bool spk_cache_head_good(const spk_map_head *h);
extern const char spk_cache_magic[8];

#endif
