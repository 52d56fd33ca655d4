/* Memory limits: memory.max, memory.current (v2), memory.limit_in_bytes, memory.usage_in_bytes (v1), memory.stat for
 * the page cache in them, which gives way; /proc/meminfo for the machine. No state. */
#include "load/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/cgroup.h"
#include "base/error.h"

#define OPEN_SHARDS_MAX 256u
#define UNLIMITED (UINT64_C(1) << 60) /* v1 writes 2^63 less a page for "no limit" */

uint64_t spk_memory_total(const spk_memory_need *need)
{
    return need->catalog + need->slots * need->slot_bytes + need->workers * need->worker_bytes;
}

/* Limit and use of one cgroup; false if it sets none. */
static bool folder_limit(const spk_cgroup *c, uint64_t *limit, uint64_t *used, uint64_t *cache)
{
    static const char *const keys[2][2] = {{"total_inactive_file", "total_active_file"},
                                           {"inactive_file", "active_file"}};
    uint64_t part = 0;
    if (!spk_cgroup_number(c, c->v2 ? "memory.max" : "memory.limit_in_bytes", "", limit) || *limit >= UNLIMITED)
        return false;
    if (!spk_cgroup_number(c, c->v2 ? "memory.current" : "memory.usage_in_bytes", "", used))
        *used = 0;
    *cache = 0;
    for (int i = 0; i < 2; i++)
        if (spk_cgroup_number(c, "memory.stat", keys[c->v2][i], &part))
            *cache += part;
    if (*cache > *used)
        *cache = *used;
    return true;
}

static const char *megabytes(char text[32], uint64_t bytes)
{
    snprintf(text, 32, "%.1f MB", (double)bytes / 1e6);
    return text;
}

/* "needs 12.0 MB of memory (3 slots of 3.0 MB, catalog 1.0 MB, 2 workers of 1.0 MB)" */
static void describe_need(const spk_memory_need *need, char *text, size_t cap)
{
    char total[32], slot[32], catalog[32], worker[32];
    snprintf(text, cap, "needs %s of memory (%" PRIu64 " slots of %s, catalog %s, %" PRIu64 " workers of %s)",
             megabytes(total, spk_memory_total(need)), need->slots, megabytes(slot, need->slot_bytes),
             megabytes(catalog, need->catalog), need->workers, megabytes(worker, need->worker_bytes));
}

#define ADVICE "choose a smaller batch_size, prefetch or lane_buffer, or fewer workers"

static spk_status check_cgroups(const spk_memory_need *need, const char *proc, const char *cgroups, spk_error *err)
{
    spk_cgroup c;
    char what[256], have[32], max[32], use[32], soft[32];
    uint64_t total = spk_memory_total(need);
    if (!spk_cgroup_find(&c, "memory", proc, cgroups))
        return SPK_OK;
    do {
        uint64_t limit = 0, used = 0, cache = 0;
        if (!folder_limit(&c, &limit, &used, &cache))
            continue;
        uint64_t held = used - cache, left = limit > held ? limit - held : 0;
        if (total <= left)
            continue;
        describe_need(need, what, sizeof what);
        return spk_error_set(
            err, SPK_E_LIMIT,
            "%s, but the cgroup %s%s has %s left (its limit is %s, %s are in use, %s of that for cached "
            "files); " ADVICE,
            what, c.mount, c.path, megabytes(have, left), megabytes(max, limit), megabytes(use, used),
            megabytes(soft, cache));
    } while (spk_cgroup_up(&c));
    return SPK_OK;
}

spk_status spk_memory_check(const spk_memory_need *need, const char *proc, const char *cgroups, spk_error *err)
{
    char path[512], what[256], have[32], swap[32];
    uint64_t available = 0, swap_free = 0, total = spk_memory_total(need);
    SPK_TRY(check_cgroups(need, proc, cgroups, err));
    snprintf(path, sizeof path, "%s/meminfo", proc ? proc : "/proc");
    if (!spk_file_number(path, "MemAvailable:", &available))
        return SPK_OK;
    if (!spk_file_number(path, "SwapFree:", &swap_free))
        swap_free = 0;
    available *= 1024;
    swap_free *= 1024;
    if (total <= available + swap_free)
        return SPK_OK;
    describe_need(need, what, sizeof what);
    return spk_error_set(err, SPK_E_LIMIT, "%s, but the machine has %s available and %s of free swap; " ADVICE, what,
                         megabytes(have, available), megabytes(swap, swap_free));
}

uint32_t spk_open_shards_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= OPEN_SHARDS_MAX)
        return OPEN_SHARDS_MAX;
    return limit.rlim_cur / 4 < 2 ? 2 : (uint32_t)(limit.rlim_cur / 4);
}
