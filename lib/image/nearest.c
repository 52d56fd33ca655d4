/* Two tables of source positions; a row is gathered once and emitted as often as its height asks. */
#include "image/nearest.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"

#define SUMMED_MAX (1u << 20) /* a window further right starts there at once; no image of Pillow's is so wide */

struct spk_nearest {
    spk_resample_job job;
    uint32_t *x, *y; /* source of each output, from the first that is needed */
    uint8_t *line;
    size_t cap_x, cap_y, cap_line;
    uint32_t in_y, out_y;
};

/* Walks along the sum and stores what the window needs, or only its ends if table is NULL. */
static void walk(const spk_axis *a, uint32_t *table, uint32_t *lo, uint32_t *hi)
{
    uint32_t skip = a->first > SUMMED_MAX ? a->first : 0;
    double scale = (a->box1 - a->box0) / a->out, at = a->box0 + scale * (skip + 0.5);
    for (uint32_t i = skip; i < a->first + a->count; i++, at += scale) {
        uint32_t source = (uint32_t)at;
        if (i < a->first)
            continue;
        source = source < a->in ? source : a->in - 1;
        if (i == a->first)
            *lo = source;
        *hi = source + 1;
        if (table)
            table[i - a->first] = source - *lo;
    }
}

void spk_nearest_needs(const spk_axis *a, uint32_t *lo, uint32_t *hi)
{
    walk(a, NULL, lo, hi);
}

spk_status spk_nearest_new(spk_nearest **out, spk_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? SPK_OK : spk_error_nomem(err, sizeof **out);
}

void spk_nearest_free(spk_nearest *r)
{
    if (!r)
        return;
    free(r->x);
    free(r->y);
    free(r->line);
    free(r);
}

spk_status spk_nearest_begin(spk_nearest *r, const spk_resample_job *job, spk_error *err)
{
    uint32_t lo, hi;
    SPK_TRY(spk_axis_check(&job->x, err));
    SPK_TRY(spk_axis_check(&job->y, err));
    if (job->channels - 1 >= 4)
        return spk_error_set(err, SPK_E_INVALID, "cannot resample %u channels", job->channels);
    r->job = *job;
    r->in_y = r->out_y = 0;
    SPK_TRY(spk_grow(&r->x, &r->cap_x, job->x.count, sizeof *r->x, err));
    SPK_TRY(spk_grow(&r->y, &r->cap_y, job->y.count, sizeof *r->y, err));
    SPK_TRY(spk_grow(&r->line, &r->cap_line, (size_t)job->x.count * job->channels, 1, err));
    walk(&job->x, r->x, &lo, &hi);
    walk(&job->y, r->y, &lo, &hi);
    return SPK_OK;
}

static void gather(const spk_nearest *r, const uint8_t *row)
{
    uint32_t n = r->job.x.count, channels = r->job.channels;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *p = row + (size_t)r->x[i] * channels;
        uint8_t *o = r->line + (size_t)(r->job.flip ? n - 1 - i : i) * channels;
        for (uint32_t c = 0; c < channels; c++)
            o[c] = p[c];
    }
}

void spk_nearest_row(spk_nearest *r, const uint8_t *row)
{
    uint32_t y = r->in_y++;
    if (r->out_y >= r->job.y.count || r->y[r->out_y] != y)
        return;
    gather(r, row);
    while (r->out_y < r->job.y.count && r->y[r->out_y] == y) {
        uint32_t i = r->out_y++;
        r->job.emit(r->job.ctx, i, r->line);
    }
}
