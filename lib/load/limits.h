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

/* Folder of the process's memory cgroup: the hierarchy's mount and the path below it ("" or "/a/b"). */
typedef struct spk_cgroup {
    char mount[512];
    char path[1024];
    bool v2;
} spk_cgroup;
/* False if there is none. */
bool spk_cgroup_find(spk_cgroup *out, const char *proc, const char *cgroups);
/* The number behind `key` in a file of "key number" lines (an empty key: the file is one number); false if unread. */
bool spk_cgroup_number(const spk_cgroup *c, const char *file, const char *key, uint64_t *out);
/* Up one level; false at the root. */
bool spk_cgroup_up(spk_cgroup *c);

#endif
