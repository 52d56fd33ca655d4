/* The cache's folder and its account: how many bytes are in use, counted before they are written, by all processes
 * together. */
#define _GNU_SOURCE
#include "io/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "io/cache_impl.h"

#define ACCOUNT_MAGIC "SPKCACH1"
#define LIMIT_SPARE ((uint64_t)64 << 10) /* for what is being made and not counted yet */
#define LIMIT_LEAST ((uint64_t)1 << 20)

typedef struct account {
    char magic[8];
    uint64_t used;
} account;

bool spk_cache_lock(int fd, short type, off_t byte, bool wait)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int r = 0;
    do {
        r = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l);
    } while (r != 0 && errno == EINTR);
    return r == 0;
}

uint64_t spk_cache_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool read_account(int fd, account *a)
{
    ssize_t n = pread(fd, a, sizeof *a, 0);
    if (n == 0) { /* new */
        memset(a, 0, sizeof *a);
        memcpy(a->magic, ACCOUNT_MAGIC, sizeof a->magic);
        return true;
    }
    return n == (ssize_t)sizeof *a && memcmp(a->magic, ACCOUNT_MAGIC, sizeof a->magic) == 0;
}

static bool write_account(int fd, const account *a)
{
    return pwrite(fd, a, sizeof *a, 0) == (ssize_t)sizeof *a;
}

static void add_charge(int map, int64_t bytes)
{
    uint64_t charged = 0;
    off_t at = (off_t)offsetof(spk_map_head, charged);
    if (map < 0 || pread(map, &charged, sizeof charged, at) != (ssize_t)sizeof charged)
        return;
    charged += (uint64_t)bytes;
    ssize_t ignored = pwrite(map, &charged, sizeof charged, at);
    (void)ignored;
}

bool spk_cache_reserve(spk_cache *c, int map, uint64_t bytes)
{
    account a;
    bool good = false;
    if (c->account < 0 || bytes > c->limit || !spk_cache_lock(c->account, F_WRLCK, 0, true))
        return false;
    if (read_account(c->account, &a)) {
        if (a.used > c->limit - bytes)
            a.used = spk_cache_evict(c, bytes);
        good = a.used <= c->limit - bytes;
        a.used += good ? bytes : 0;
        good = write_account(c->account, &a) && good;
        if (good)
            add_charge(map, (int64_t)bytes);
    }
    spk_cache_lock(c->account, F_UNLCK, 0, false);
    return good;
}

void spk_cache_refund(spk_cache *c, int map, uint64_t bytes)
{
    account a;
    if (c->account < 0 || !spk_cache_lock(c->account, F_WRLCK, 0, true))
        return;
    if (read_account(c->account, &a)) {
        a.used -= bytes < a.used ? bytes : a.used;
        if (write_account(c->account, &a))
            add_charge(map, -(int64_t)bytes);
    }
    spk_cache_lock(c->account, F_UNLCK, 0, false);
}

void spk_cache_recount(spk_cache *c, uint64_t used)
{
    account a;
    if (read_account(c->account, &a)) {
        a.used = used;
        (void)write_account(c->account, &a);
    }
    spk_cache_lock(c->account, F_UNLCK, 0, false);
}

/* What the cache may take if nobody said: most of what is free, and what it has. */
static uint64_t default_limit(const spk_cache *c)
{
    struct statvfs s;
    account a = {.used = 0};
    if (fstatvfs(c->folder, &s) != 0)
        return 0;
    if (c->account >= 0 && !read_account(c->account, &a))
        a.used = 0;
    uint64_t room = (uint64_t)s.f_bavail * s.f_frsize + a.used;
    return room - room / 10;
}

static spk_status open_folder(spk_cache *c, const char *folder, spk_error *err)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, SPK_CACHE_FOLDER) >= sizeof path)
        return spk_error_set(err, SPK_E_INVALID, "cache folder: the path is too long");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return spk_error_sys(err, errno, "cache folder %s", folder);
    if (mkdir(path, 0777) != 0 && errno != EEXIST && errno != EACCES && errno != EROFS)
        return spk_error_sys(err, errno, "cache folder %s", path);
    c->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (c->folder < 0)
        return spk_error_sys(err, errno, "cache folder %s", path);
    c->account = openat(c->folder, "account", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    c->refused = c->account < 0 ? errno : 0;
    account a;
    if (c->account >= 0 && !read_account(c->account, &a))
        return spk_error_set(err, SPK_E_INVALID, "cache folder %s: its file \"account\" is not of a shardpack cache",
                             path);
    return SPK_OK;
}

spk_status spk_cache_open(spk_cache **out, const char *folder, uint64_t limit, spk_net_shared *counts, spk_error *err)
{
    *out = NULL;
    if (limit > 0 && limit < LIMIT_LEAST)
        return spk_error_set(err, SPK_E_INVALID, "cache limit of %" PRIu64 " bytes: at least %" PRIu64, limit,
                             LIMIT_LEAST);
    spk_cache *c = calloc(1, sizeof *c);
    if (!c)
        return spk_error_nomem(err, sizeof *c);
    c->folder = c->account = -1;
    c->counts = counts;
    spk_status st = open_folder(c, folder, err);
    if (st < 0) {
        spk_cache_close(c);
        return st;
    }
    c->limit = limit ? limit : default_limit(c);
    c->limit -= c->limit > LIMIT_SPARE ? LIMIT_SPARE : c->limit;
    *out = c;
    return SPK_OK;
}

void spk_cache_close(spk_cache *c)
{
    if (!c)
        return;
    if (c->account >= 0)
        close(c->account);
    if (c->folder >= 0)
        close(c->folder);
    free(c);
}
