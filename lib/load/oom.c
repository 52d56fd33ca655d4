/* oom_kill in memory.events (v2) or memory.oom_control (v1) of the cgroup, and in /proc/vmstat. */
#include "load/oom.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cgroup.h"

static uint64_t machine_kills(const char *proc)
{
    char path[512];
    uint64_t kills = 0;
    snprintf(path, sizeof path, "%s/vmstat", proc ? proc : "/proc");
    if (!spk_file_number(path, "oom_kill ", &kills))
        kills = 0;
    return kills;
}

void spk_oom_read(spk_oom *out, const char *proc, const char *cgroups)
{
    spk_cgroup c;
    out->cgroup = 0;
    out->machine = machine_kills(proc);
    if (spk_cgroup_find(&c, "memory", proc, cgroups) &&
        !spk_cgroup_number(&c, c.v2 ? "memory.events" : "memory.oom_control", "oom_kill", &out->cgroup))
        out->cgroup = 0;
}

bool spk_oom_rose(spk_oom *seen, const char *proc, const char *cgroups, char *text, size_t cap)
{
    spk_oom now, before = *seen;
    spk_cgroup c;
    spk_oom_read(&now, proc, cgroups);
    *seen = now;
    if (now.cgroup > before.cgroup && spk_cgroup_find(&c, "memory", proc, cgroups)) {
        uint64_t limit = 0;
        char bound[64] = "";
        if (spk_cgroup_number(&c, c.v2 ? "memory.max" : "memory.limit_in_bytes", "", &limit) && limit < UINT64_C(1)
                                                                                                            << 60)
            snprintf(bound, sizeof bound, ", limit %.1f MB", (double)limit / 1e6);
        snprintf(text, cap, "for lack of memory: oom_kill of cgroup %s%s rose from %" PRIu64 " to %" PRIu64 "%s",
                 c.mount, c.path, before.cgroup, now.cgroup, bound);
        return true;
    }
    if (now.machine > before.machine) {
        snprintf(text, cap, "for lack of memory: oom_kill of the machine rose from %" PRIu64 " to %" PRIu64,
                 before.machine, now.machine);
        return true;
    }
    return false;
}
