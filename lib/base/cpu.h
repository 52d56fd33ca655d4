/* How many processors this process may use, and a monotonic clock. */
#ifndef SPK_BASE_CPU_H
#define SPK_BASE_CPU_H

#include <stdint.h>

/* The smaller of the affinity mask's size and the CPU quota of the cgroup (v2 or v1, its ancestors included), rounded
 * up; at least 1. */
int spk_cpu_quota(void);
/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t spk_now_ns(void);

#endif
