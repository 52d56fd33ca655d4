/* What goes when there is no room, what is there, and all of it away. Only files that a map with our magic names are
 * ever removed, and never those of an entry that somebody has open. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/cache_impl.h"

#define SPARE_SHARE 20u /* one part in so many is freed beyond what is needed, so that not each piece looks again */

const char spk_cache_magic[8] = {'S', 'P', 'K', 'C', 'M', 'A', 'P', '1'};

typedef struct candidate {
    char name[SPK_CACHE_NAME];
    uint64_t used_ns, bytes;
} candidate;

typedef struct candidates {
    candidate *items;
    size_t n, cap;
} candidates;

bool spk_cache_is_map(const char *name)
{
    return strlen(name) == 68 && strspn(name, "0123456789abcdef") == 64 && strcmp(name + 64, ".map") == 0;
}

bool spk_cache_head_good(const spk_map_head *h)
{
    return memcmp(h->magic, spk_cache_magic, sizeof h->magic) == 0;
}

static void data_name(char out[SPK_CACHE_NAME], const char *map)
{
    snprintf(out, SPK_CACHE_NAME, "%.64s.data", map);
}

/* Bytes that an entry takes: what was counted for it, or what it has on disk if that is more. */
static uint64_t bytes_of(int folder, int map, const char *name, const spk_map_head *h)
{
    struct stat a, b;
    char data[SPK_CACHE_NAME];
    uint64_t disk = 0;
    data_name(data, name);
    if (fstat(map, &a) == 0)
        disk += (uint64_t)a.st_blocks * 512;
    if (fstatat(folder, data, &b, AT_SYMLINK_NOFOLLOW) == 0)
        disk += (uint64_t)b.st_blocks * 512;
    return h->charged > disk ? h->charged : disk;
}

static int open_map(int folder, const char *name, spk_map_head *h)
{
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && pread(fd, h, sizeof *h, 0) == (ssize_t)sizeof *h &&
        spk_cache_head_good(h))
        return fd;
    close(fd);
    return -1;
}

static int by_use(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return (x->used_ns > y->used_ns) - (x->used_ns < y->used_ns);
}

/* All entries, the one used longest ago first. *total: bytes of all of them. */
static void list(int folder, candidates *out, uint64_t *total)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    *total = 0;
    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        spk_map_head h;
        int map = spk_cache_is_map(e->d_name) ? open_map(folder, e->d_name, &h) : -1;
        if (map < 0 || spk_grow(&out->items, &out->cap, out->n + 1, sizeof *out->items, NULL) < 0)
            continue;
        candidate *c = &out->items[out->n++];
        memcpy(c->name, e->d_name, strlen(e->d_name) + 1);
        c->used_ns = h.used_ns;
        c->bytes = bytes_of(folder, map, e->d_name, &h);
        *total += c->bytes;
        close(map);
    }
    closedir(d);
    if (out->n > 0)
        qsort(out->items, out->n, sizeof *out->items, by_use);
}

/* True if it is gone: nobody had it open. */
static bool remove_entry(int folder, const candidate *c)
{
    spk_map_head h;
    char data[SPK_CACHE_NAME];
    int map = open_map(folder, c->name, &h);
    bool gone = false;
    if (map < 0)
        return false;
    if (spk_cache_lock(map, F_WRLCK, SPK_CACHE_LEASE, false)) {
        data_name(data, c->name);
        gone = (unlinkat(folder, data, 0) == 0 || errno == ENOENT) && unlinkat(folder, c->name, 0) == 0;
    }
    close(map);
    return gone;
}

uint64_t spk_cache_evict(spk_cache *c, uint64_t bytes)
{
    candidates all = {0};
    uint64_t used = 0, total = 0, want = bytes + c->limit / SPARE_SHARE;
    want = want < c->limit ? want : bytes;
    list(c->folder, &all, &total);
    used = total + SPK_CACHE_BLOCK; /* counted anew: a process that was killed may have left too much in the account */
    for (size_t i = 0; i < all.n && used > c->limit - want; i++)
        if (remove_entry(c->folder, &all.items[i]))
            used -= all.items[i].bytes < used ? all.items[i].bytes : used;
    free(all.items);
    return used;
}

spk_status spk_cache_look(const char *folder, bool clear, spk_cache_look_result *out, spk_error *err)
{
    spk_cache *c = NULL;
    spk_net_shared counts;
    candidates all = {0};
    struct stat st;
    char path[4096];
    memset(out, 0, sizeof *out);
    memset(&counts, 0, sizeof counts);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, SPK_CACHE_FOLDER) >= sizeof path || stat(path, &st) != 0)
        return spk_error_set(err, SPK_E_NOT_FOUND, "%s: no cache is there", folder);
    SPK_TRY(spk_cache_open(&c, folder, 0, &counts, err));
    bool locked = clear && c->account >= 0 && spk_cache_lock(c->account, F_WRLCK, 0, true);
    uint64_t total = 0;
    list(c->folder, &all, &total);
    for (size_t i = 0; i < all.n; i++) {
        spk_map_head h;
        if (locked && remove_entry(c->folder, &all.items[i]))
            continue;
        int map = open_map(c->folder, all.items[i].name, &h);
        if (map < 0)
            continue;
        out->entries++;
        out->bytes += all.items[i].bytes;
        out->in_use += !spk_cache_lock(map, F_WRLCK, SPK_CACHE_LEASE, false);
        close(map);
    }
    if (locked)
        spk_cache_recount(c, out->bytes + SPK_CACHE_BLOCK);
    free(all.items);
    spk_cache_close(c);
    return SPK_OK;
}
