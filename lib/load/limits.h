/* May this process take that much more memory? Looks at the memory limits up the cgroup tree (v1 and v2, man
 * cgroups(7)) and at MemAvailable, before anything is allocated, so that a shortage is an error with numbers and not a
 * kill. */
#ifndef SPK_LOAD_LIMITS_H
#define SPK_LOAD_LIMITS_H

#include <shardpack/error.h>
#include <stdbool.h>

/* What is going to be used. */
typedef struct spk_memory_need {
    uint64_t catalog;    /* shared, besides the slots */
    uint64_t slots;      /* how many */
    uint64_t slot_bytes; /* of each, with what its arena is expected to hold */
    uint64_t workers;
    uint64_t worker_bytes; /* private memory of each */
} spk_memory_need;

uint64_t spk_memory_total(const spk_memory_need *need);
/* LIMIT, with all numbers, if the need does not fit. proc and cgroups are the folders to look in; NULL: /proc and
 * /sys/fs/cgroup. What cannot be read sets no limit. */
SPK_CHECK spk_status spk_memory_check(const spk_memory_need *need, const char *proc, const char *cgroups,
                                      spk_error *err);

/* How many shards a process may keep open: a quarter of its RLIMIT_NOFILE, 2 to 256. */
uint32_t spk_open_shards_max(void);

#endif
