/* Orders of whole plans for tests: the shards as text, and E by position. Used by tests/order too, so without Check. */
#ifndef PLAN_FIXTURE_H
#define PLAN_FIXTURE_H

#include "plan/lane.h"
#include "plan/plan.h"

#include <stdint.h>
#include <stdlib.h>

/* "7,0,3*5" (samples per shard; times*samples) as the catalog's first_sample; NULL if the text is anything else. */
static inline uint64_t *plan_shards(const char *text, uint64_t *shards)
{
    uint64_t *first = calloc(1, sizeof *first), n = 0;
    for (const char *at = text; first;) {
        char *end = NULL;
        unsigned long long times = 1, samples = strtoull(at, &end, 10);
        if (*end == '*') {
            times = samples;
            samples = strtoull(end + 1, &end, 10);
        }
        uint64_t *more = end > at && times < 1u << 24 ? realloc(first, (size_t)(n + times + 1) * sizeof *first) : NULL;
        if (!more || (*end != ',' && *end != '\0')) {
            free(more ? more : first);
            return NULL;
        }
        first = more;
        for (; times > 0; times--, n++)
            first[n + 1] = first[n] + samples;
        if (*end == '\0')
            break;
        at = end + 1;
    }
    *shards = n;
    return first;
}

/* Delivery numbers (sample * echo + repeat) of `count` positions from `from` on. */
static inline spk_status plan_order(const spk_plan *p, uint64_t from, uint64_t count, uint64_t *out, spk_error *err)
{
    uint64_t e = p->spec.echo;
    spk_lane **open = calloc((size_t)p->lanes + 1, sizeof *open);
    spk_status status = open ? SPK_OK : SPK_E_NOMEM;

    for (uint64_t i = 0; status == SPK_OK && i < count; i++) {
        if (!p->spec.shuffle) {
            out[i] = from + i;
            continue;
        }
        uint64_t lane = 0, output = 0;
        spk_lane_step step;
        spk_plan_locate(p, from + i, &lane, &output);
        if (!open[lane]) {
            open[lane] = calloc(1, sizeof **open);
            status = open[lane] ? spk_lane_enter(open[lane], p, lane, output, err) : SPK_E_NOMEM;
        }
        if (status == SPK_OK)
            status = spk_lane_next(open[lane], &step);
        if (status == SPK_OK)
            out[i] = step.sample * e + step.repeat;
    }
    for (uint64_t l = 0; open && l < p->lanes; l++)
        if (open[l]) {
            spk_lane_leave(open[l]);
            free(open[l]);
        }
    free(open);
    return status;
}

#endif
