/* Limits that the process's cgroup sets, v1 and v2 (man cgroups(7)). What cannot be read sets none. No state. */
#ifndef SPK_BASE_CGROUP_H
#define SPK_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Folder of the process's cgroup for one controller: the hierarchy's mount and the path below it ("" or "/a/b"). */
typedef struct spk_cgroup {
    char mount[512];
    char path[1024];
    bool v2;
} spk_cgroup;

/* controller: "memory", "cpu". proc and cgroups are the folders to look in; NULL: /proc and /sys/fs/cgroup. False if
 * there is none. */
bool spk_cgroup_find(spk_cgroup *out, const char *controller, const char *proc, const char *cgroups);
/* The first line of a file, without its end; false if unread. */
bool spk_cgroup_line(const spk_cgroup *c, const char *file, char *out, size_t cap);
/* The number behind `key` in a file of "key number" lines (an empty key: the file is one number); false if unread. */
bool spk_cgroup_number(const spk_cgroup *c, const char *file, const char *key, uint64_t *out);
/* Up one level; false at the root. */
bool spk_cgroup_up(spk_cgroup *c);

/* The smallest CPU quota from the cgroup up to the root, in processors; 0 if there is none. Folders as above. */
double spk_cgroup_cpus(const char *proc, const char *cgroups);

/* The number behind `key` at the beginning of a line of a file such as /proc/meminfo; false if there is none. */
bool spk_file_number(const char *path, const char *key, uint64_t *out);

#endif
