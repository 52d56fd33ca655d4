/* What it costs to start an epoch and to enter lanes in its middle, on a dataset of 1,000,000,000 samples in 100,000
 * shards: arithmetic alone, no data.
 *
 *     start_cost [SHARDS SAMPLES_PER_SHARD]
 *
 * Prints times, the plan's own bytes and how much the process has grown. Targets: 0.2 s and 50 MB for the start. */
#include "plan/lane.h"
#include "plan/plan.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define START_SECONDS 0.2
#define START_BYTES 50e6

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Bytes of this process in memory, of all kinds. */
static double resident(const char *key)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    double kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtod(line + strlen(key), NULL);
    if (f)
        fclose(f);
    return kib * 1024;
}

/* Starts an epoch; prints what that took. */
static spk_plan *start(const uint64_t *first, uint64_t shards, const spk_plan_spec *spec)
{
    spk_error err;
    spk_plan *plan = NULL;
    double before = resident("VmRSS:"), begin = now();
    if (spk_plan_new(&plan, first, shards, spec, &err) != SPK_OK) {
        fprintf(stderr, "start_cost: %s\n", err.text);
        return NULL;
    }
    double seconds = now() - begin, grown = resident("VmHWM:") - before;
    double own =
        (double)(plan->lanes + 1) * sizeof *plan->lane_start + (double)(plan->spans_n + 1) * sizeof *plan->spans;
    printf("start: %.1f ms, %.2f MB (process grew by %.2f MB): %llu samples, %llu shards, %llu spans, %llu lanes, "
           "K = %u%s\n",
           seconds * 1e3, own / 1e6, grown / 1e6, (unsigned long long)plan->samples, (unsigned long long)shards,
           (unsigned long long)plan->spans_n, (unsigned long long)plan->lanes, plan->spec.buffer,
           seconds < START_SECONDS && grown < START_BYTES && own < START_BYTES ? "" : "  MISSED: 0.2 s, 50 MB");
    return plan;
}

/* Enters every lane at `share` of its outputs and fills its slots' sample numbers. */
static int enter(const spk_plan *plan, double share)
{
    uint64_t sum = 0;
    double begin = now(), slowest = 0;
    for (uint64_t l = 0; l < plan->lanes; l++) {
        spk_error err;
        spk_lane lane;
        double one = now();
        if (spk_lane_enter(&lane, plan, l, (uint64_t)((double)spk_plan_lane_size(plan, l) * share), &err) != SPK_OK) {
            fprintf(stderr, "start_cost: %s\n", err.text);
            return -1;
        }
        for (uint64_t i = 0; i < lane.fill; i++)
            sum += spk_lane_slot_sample(&lane, i);
        spk_lane_leave(&lane);
        one = now() - one;
        slowest = one > slowest ? one : slowest;
    }
    printf("enter all %llu lanes at %.0f %%, K = %u: %.2f ms, slowest lane %.2f ms (check %llx)\n",
           (unsigned long long)plan->lanes, share * 100, plan->spec.buffer, (now() - begin) * 1e3, slowest * 1e3,
           (unsigned long long)sum);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t shards = argc == 3 ? strtoull(argv[1], NULL, 10) : 100000;
    uint64_t samples = argc == 3 ? strtoull(argv[2], NULL, 10) : 10000;
    static const uint32_t buffers[] = {64, 4096};
    static const double shares[] = {0, 0.5, 1};
    int failed = 0;

    uint64_t *first = malloc((size_t)(shards + 1) * sizeof *first);
    if (!first)
        return 1;
    for (uint64_t s = 0; s <= shards; s++)
        first[s] = s * samples;
    for (size_t b = 0; b < sizeof buffers / sizeof *buffers && !failed; b++) {
        const spk_plan_spec spec = {.seed = 1, .global_batch = 256, .buffer = buffers[b], .shuffle = true};
        spk_plan *plan = start(first, shards, &spec);
        failed = plan == NULL;
        for (size_t i = 0; i < sizeof shares / sizeof *shares && !failed; i++)
            failed = enter(plan, shares[i]) != 0;
        spk_plan_free(plan);
    }
    free(first);
    return failed;
}
