/* Was a worker that died by SIGKILL killed for lack of memory? Told from counters that the kernel keeps. */
#ifndef SPK_LOAD_OOM_H
#define SPK_LOAD_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kills so far: of the process's memory cgroup, and of the whole machine (0 if unread). */
typedef struct spk_oom {
    uint64_t cgroup, machine;
} spk_oom;

/* Folders as in limits.h. */
void spk_oom_read(spk_oom *out, const char *proc, const char *cgroups);
/* If a counter rose since *seen, says so in text and returns true; *seen is brought up to date. */
bool spk_oom_rose(spk_oom *seen, const char *proc, const char *cgroups, char *text, size_t cap);

#endif
