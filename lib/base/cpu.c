/* CPU quota from /proc/self/cgroup and /sys/fs/cgroup (man cgroups(7); cpu.max, cpu.cfs_quota_us). Anything unreadable
 * counts as no limit. */
#define _GNU_SOURCE
#include "base/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t spk_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int read_text(const char *path, char *out, size_t cap)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(out, 1, cap - 1, f);
    fclose(f);
    out[n] = '\0';
    return n > 0;
}

/* Quota over period of one cgroup folder, 0 if it sets none. */
static double folder_quota(const char *base, const char *path, int v2)
{
    char file[1400], text[128];
    double quota = 0, period = 0;
    if (v2) {
        snprintf(file, sizeof file, "%s%s/cpu.max", base, path);
        if (!read_text(file, text, sizeof text) || sscanf(text, "%lf %lf", &quota, &period) != 2)
            return 0;
    } else {
        snprintf(file, sizeof file, "%s%s/cpu.cfs_quota_us", base, path);
        if (!read_text(file, text, sizeof text) || sscanf(text, "%lf", &quota) != 1)
            return 0;
        snprintf(file, sizeof file, "%s%s/cpu.cfs_period_us", base, path);
        if (!read_text(file, text, sizeof text) || sscanf(text, "%lf", &period) != 1)
            return 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* The smallest quota on the way from the process's cgroup up to the root of the mount. */
static double tree_quota(const char *base, char *path, int v2)
{
    double best = 0;
    for (;;) {
        double q = folder_quota(base, path, v2);
        if (q > 0 && (best == 0 || q < best))
            best = q;
        char *slash = strrchr(path, '/');
        if (!slash)
            return best;
        *slash = '\0';
    }
}

static double cgroup_quota(void)
{
    char line[1200];
    double best = 0;
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        controllers++;
        double q = 0;
        if (*controllers == '\0')
            q = tree_quota("/sys/fs/cgroup", path, 1);
        else if (strcmp(controllers, "cpu") == 0 || strcmp(controllers, "cpu,cpuacct") == 0)
            q = tree_quota("/sys/fs/cgroup/cpu", path, 0);
        if (q > 0 && (best == 0 || q < best))
            best = q;
    }
    fclose(f);
    return best;
}

int spk_cpu_quota(void)
{
    long n = 0;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    else
        n = sysconf(_SC_NPROCESSORS_ONLN);
    double quota = cgroup_quota();
    if (quota > 0 && quota < (double)n)
        n = (long)(quota + 0.999);
    return n < 1 ? 1 : n > 1024 ? 1024 : (int)n;
}
