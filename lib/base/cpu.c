/* The affinity mask and the clock. */
#define _GNU_SOURCE
#include "base/cpu.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/cgroup.h"

uint64_t spk_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int spk_cpu_quota(void)
{
    long n = 0;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    else
        n = sysconf(_SC_NPROCESSORS_ONLN);
    double quota = spk_cgroup_cpus(NULL, NULL);
    if (quota > 0 && quota < (double)n)
        n = (long)(quota + 0.999);
    return n < 1 ? 1 : n > 1024 ? 1024 : (int)n;
}
