/* One object in the cache: lease, pieces, claims. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/hash.h"
#include "io/cache_impl.h"

#define UNITS_MAX ((uint64_t)1 << 28)
#define TOUCH_NS UINT64_C(10000000000)
#define OFF_NS UINT64_C(30000000000) /* after an error of the disk */

struct spk_cache_entry {
    spk_cache *cache;
    int map, data;
    bool writable;
    bool foreign; /* another user's: its pieces are checked again */
    uint64_t size, units;
    uint64_t touched_ns;
};

/* An entry that is new, or that was left before its head was written. The lease is held alone. */
static bool make_map(spk_cache *c, int map, uint64_t size, uint64_t units)
{
    spk_map_head h = {.size = size, .units = units, .used_ns = spk_cache_now()};
    uint64_t bytes = sizeof h + units, room = (bytes + SPK_CACHE_BLOCK - 1) / SPK_CACHE_BLOCK * SPK_CACHE_BLOCK;
    if (!spk_cache_reserve(c, -1, room)) {
        c->refused = EDQUOT; /* all below the limit is in use */
        return false;
    }
    h.charged = room;
    memcpy(h.magic, spk_cache_magic, sizeof h.magic);
    int cause = ftruncate(map, 0) == 0 ? posix_fallocate(map, 0, (off_t)bytes) : errno;
    if (cause == 0 && pwrite(map, &h, sizeof h, 0) == (ssize_t)sizeof h)
        return true;
    c->refused = cause ? cause : errno;
    spk_cache_refund(c, -1, room);
    return false;
}

static bool is_new(int map)
{
    spk_map_head h;
    struct stat st;
    memset(&h, 0, sizeof h);
    if (fstat(map, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    ssize_t n = pread(map, &h, sizeof h, 0);
    for (size_t i = 0; i < sizeof h.magic; i++)
        if (h.magic[i])
            return false;
    return n >= 0;
}

static bool lock_lease(const spk_cache_entry *e, short type, bool *busy)
{
    if (spk_cache_lock(e->map, type, SPK_CACHE_LEASE, false))
        return true;
    *busy = errno == EAGAIN || errno == EACCES;
    if (!*busy)
        e->cache->refused = errno;
    return false;
}

/* Takes the lease on a map that still has its name; makes its head if it has none. Whoever has the lease alone is
 * making or removing the map, or only looks whether it is in use. */
static bool take_lease(spk_cache_entry *e, bool *busy)
{
    struct stat st;
    spk_map_head h;
    if (e->writable && is_new(e->map)) {
        if (!lock_lease(e, F_WRLCK, busy))
            return false;
        if (is_new(e->map) && !make_map(e->cache, e->map, e->size, e->units))
            return false;
    }
    if (!lock_lease(e, F_RDLCK, busy))
        return false;
    if (fstat(e->map, &st) != 0 || st.st_nlink == 0) {
        *busy = true; /* it was removed */
        return false;
    }
    e->foreign = st.st_uid != geteuid();
    return pread(e->map, &h, sizeof h, 0) == (ssize_t)sizeof h && spk_cache_head_good(&h) && h.size == e->size &&
           h.units == e->units && st.st_size == (off_t)(sizeof h + e->units);
}

static int open_file(spk_cache *c, const char *digest, const char *end, bool *writable)
{
    char name[SPK_CACHE_NAME];
    snprintf(name, sizeof name, "%s.%s", digest, end);
    int flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, fd = -1;
    if (c->account >= 0)
        fd = openat(c->folder, name, O_RDWR | O_CREAT | flags, 0666);
    *writable = fd >= 0;
    if (c->account >= 0 && fd < 0)
        c->refused = errno;
    return fd >= 0 ? fd : openat(c->folder, name, O_RDONLY | flags);
}

static void close_files(spk_cache_entry *e)
{
    if (e->data >= 0)
        close(e->data);
    if (e->map >= 0)
        close(e->map);
    e->data = e->map = -1;
}

static bool open_entry(spk_cache_entry *e, const char *digest, bool *busy)
{
    bool writable = false;
    struct stat st;
    e->map = open_file(e->cache, digest, "map", &e->writable);
    if (e->map >= 0 && take_lease(e, busy)) {
        e->data = open_file(e->cache, digest, "data", &writable);
        e->writable = e->writable && writable;
        if (e->data >= 0 && fstat(e->data, &st) == 0 && S_ISREG(st.st_mode)) {
            e->foreign = e->foreign || st.st_uid != geteuid();
            return true;
        }
    }
    close_files(e);
    return false;
}

/* Something could not be stored: the loader says so, once. */
static void note_off(spk_cache *c, int cause)
{
    atomic_store_explicit(&c->counts->cache_off, (uint64_t)(cause > 0 ? cause : EIO), memory_order_relaxed);
}

void spk_cache_note_busy(spk_cache *c)
{
    note_off(c, EBUSY);
}

spk_cache_entry *spk_cache_entry_open(spk_cache *c, const uint8_t digest[32], uint64_t size, uint64_t units, bool *busy)
{
    char hex[SPK_SHA256_HEX];
    *busy = false;
    if (units > UNITS_MAX)
        return NULL;
    spk_cache_entry *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    *e = (spk_cache_entry){.cache = c, .map = -1, .data = -1, .size = size, .units = units};
    spk_hex(hex, digest, 32);
    if (!open_entry(e, hex, busy)) {
        if (!*busy)
            note_off(c, c->refused);
        free(e);
        return NULL;
    }
    return e;
}

void spk_cache_entry_close(spk_cache_entry *e)
{
    if (e)
        close_files(e);
    free(e);
}

/* So that those not used for long go first. */
static void touch(spk_cache_entry *e)
{
    uint64_t now = spk_cache_now();
    if (!e->writable || now - e->touched_ns < TOUCH_NS)
        return;
    e->touched_ns = now;
    ssize_t ignored = pwrite(e->map, &now, sizeof now, (off_t)offsetof(spk_map_head, used_ns));
    (void)ignored;
}

bool spk_cache_has(spk_cache_entry *e, uint64_t unit)
{
    uint8_t state = 0;
    return unit < e->units && pread(e->map, &state, 1, (off_t)(sizeof(spk_map_head) + unit)) == 1 && state == 1;
}

bool spk_cache_is_foreign(const spk_cache_entry *e)
{
    return e->foreign;
}

bool spk_cache_read(spk_cache_entry *e, uint64_t unit, uint64_t off, void *out, size_t n)
{
    uint8_t *p = out;
    if (!spk_cache_has(e, unit))
        return false;
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(e->data, p + done, n - done, (off_t)(off + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            spk_cache_drop(e, unit);
            return false;
        }
        done += (size_t)got;
    }
    touch(e);
    atomic_fetch_add_explicit(&e->cache->counts->cache_hits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->cache->counts->cache_hit_bytes, n, memory_order_relaxed);
    return true;
}

spk_claim spk_cache_claim(spk_cache_entry *e, uint64_t unit)
{
    if (!e->writable)
        note_off(e->cache, e->cache->refused);
    if (!e->writable || unit >= e->units || spk_now_ns() < e->cache->off_until)
        return SPK_CLAIM_OFF;
    if (spk_cache_lock(e->map, F_WRLCK, SPK_CACHE_CLAIMS + (off_t)unit, false)) {
        if (!spk_cache_has(e, unit))
            return SPK_CLAIM_MINE;
        spk_cache_unclaim(e, unit);
        return SPK_CLAIM_THERE;
    }
    return errno == EAGAIN || errno == EACCES ? SPK_CLAIM_OTHERS : SPK_CLAIM_OFF;
}

void spk_cache_unclaim(spk_cache_entry *e, uint64_t unit)
{
    spk_cache_lock(e->map, F_UNLCK, SPK_CACHE_CLAIMS + (off_t)unit, false);
}

static bool write_all(int fd, const void *data, size_t n, uint64_t off)
{
    const uint8_t *p = data;
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, p + done, n - done, (off_t)(off + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

/* Whole blocks that a piece touches: neighbours may count one twice, never not at all. */
static uint64_t blocks(uint64_t off, uint64_t n)
{
    uint64_t first = off / SPK_CACHE_BLOCK, last = (off + n + SPK_CACHE_BLOCK - 1) / SPK_CACHE_BLOCK;
    return (last - first) * SPK_CACHE_BLOCK;
}

void spk_cache_store(spk_cache_entry *e, uint64_t unit, uint64_t off, const void *data, size_t n)
{
    const uint8_t there = 1;
    spk_cache *c = e->cache;
    uint64_t bytes = blocks(off, n);
    if (!spk_cache_has(e, unit) && spk_cache_reserve(c, e->map, bytes)) {
        if (write_all(e->data, data, n, off) && pwrite(e->map, &there, 1, (off_t)(sizeof(spk_map_head) + unit)) == 1) {
            touch(e);
        } else { /* the disk is full or broken: without the cache for a while */
            int cause = errno;
            fallocate(e->data, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)n);
            spk_cache_refund(c, e->map, bytes);
            c->off_until = spk_now_ns() + OFF_NS;
            note_off(c, cause);
        }
    }
    spk_cache_unclaim(e, unit);
}

void spk_cache_drop(spk_cache_entry *e, uint64_t unit)
{
    const uint8_t gone = 0;
    if (!e->writable || unit >= e->units)
        return;
    ssize_t ignored = pwrite(e->map, &gone, 1, (off_t)(sizeof(spk_map_head) + unit));
    (void)ignored;
}
