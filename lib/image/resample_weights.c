/* Filter weights in Pillow's fixed point. All sums in double, in Pillow's order, without fused multiply-add (the build
 * sets -ffp-contract=off), so that the integers come out the same everywhere. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "image/resample.h"

#define PRECISION 22

static double triangle(double x)
{
    x = x < 0 ? -x : x;
    return x < 1 ? 1 - x : 0;
}

/* Keys' cubic with a = -0.5. */
static double cubic(double x)
{
    const double a = -0.5;
    x = x < 0 ? -x : x;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2)
        return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

spk_axis spk_axis_whole(uint32_t in, uint32_t out)
{
    return (spk_axis){in, out, 0, in, 0, out};
}

bool spk_axis_is_copy(const spk_axis *a)
{
    return a->in == a->out && a->box0 <= 0 && a->box1 >= a->in;
}

spk_status spk_axis_check(const spk_axis *a, spk_error *err)
{
    bool ok = a->in >= 1 && a->in <= SPK_AXIS_IN_MAX && a->out >= 1 && a->out <= INT32_MAX && a->box0 >= 0 &&
              a->box0 < a->box1 && a->box1 <= a->in && a->count >= 1 && a->first < a->out &&
              a->count <= a->out - a->first;
    if (!ok)
        return spk_error_set(err, SPK_E_INVALID, "cannot resample %g to %g of %u pixels to %u of %u from %u on",
                             a->box0, a->box1, a->in, a->count, a->out, a->first);
    return SPK_OK;
}

/* What all outputs of an axis share. */
typedef struct window {
    double scale, support, inverse;
} window;

static window make_window(const spk_axis *a, spk_filter filter)
{
    double scale = (a->box1 - a->box0) / a->out, fscale = scale < 1 ? 1 : scale;
    return (window){scale, (filter == SPK_FILTER_BICUBIC ? 2.0 : 1.0) * fscale, 1.0 / fscale};
}

/* Input pixels [lo, hi) of output i; returns its centre. */
static double span(const spk_axis *a, const window *v, uint32_t i, uint32_t *lo, uint32_t *hi)
{
    double centre = a->box0 + (i + 0.5) * v->scale;
    int32_t from = (int32_t)(centre - v->support + 0.5), to = (int32_t)(centre + v->support + 0.5);
    *lo = from < 0 ? 0 : (uint32_t)from;
    *hi = to > (int32_t)a->in ? a->in : (uint32_t)to;
    return centre;
}

/* Of all wanted outputs. */
static void spans(const spk_axis *a, const window *v, uint32_t *lo, uint32_t *hi)
{
    uint32_t unused;
    span(a, v, a->first, lo, &unused);
    span(a, v, a->first + a->count - 1, &unused, hi);
}

void spk_axis_needs(const spk_axis *a, spk_filter filter, uint32_t *lo, uint32_t *hi)
{
    window v = make_window(a, filter);
    if (spk_axis_is_copy(a)) {
        *lo = a->first;
        *hi = a->first + a->count;
    } else {
        spans(a, &v, lo, hi);
    }
}

static spk_status make_room(spk_weights *w, uint32_t out, uint32_t stride, spk_error *err)
{
    size_t cap = w->cap_n;
    SPK_TRY(spk_grow(&w->first, &cap, out, sizeof *w->first, err));
    SPK_TRY(spk_grow(&w->count, &w->cap_n, out, sizeof *w->count, err));
    return spk_grow(&w->weight, &w->cap_w, (size_t)out * stride, sizeof *w->weight, err);
}

static void make_output(int32_t *q, double *term, double centre, uint32_t lo, uint32_t n, const window *v,
                        spk_filter filter)
{
    double sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        double x = ((double)k + lo - centre + 0.5) * v->inverse;
        term[k] = filter == SPK_FILTER_BICUBIC ? cubic(x) : triangle(x);
        sum += term[k];
    }
    for (uint32_t k = 0; k < n; k++) {
        double t = (sum != 0 ? term[k] / sum : term[k]) * (1 << PRECISION);
        q[k] = (int32_t)(t < 0 ? t - 0.5 : t + 0.5);
    }
}

spk_status spk_weights_make(spk_weights *w, const spk_axis *a, spk_filter filter, spk_error *err)
{
    window v = make_window(a, filter);
    uint32_t taps = (uint32_t)ceil(v.support) * 2 + 1, base, end;
    double *term = NULL;

    spans(a, &v, &base, &end);
    taps = taps > end - base ? end - base : taps;
    w->stride = (taps + 7) & ~7u; /* whole vectors */
    w->in = end - base;
    w->n = a->count;
    SPK_TRY(make_room(w, a->count, w->stride, err));
    term = malloc(w->stride * sizeof *term);
    if (!term)
        return spk_error_nomem(err, w->stride * sizeof *term);
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t lo, hi;
        double centre = span(a, &v, a->first + i, &lo, &hi);
        int32_t *q = w->weight + (size_t)i * w->stride;
        make_output(q, term, centre, lo, hi - lo, &v, filter);
        memset(q + (hi - lo), 0, (w->stride - (hi - lo)) * sizeof *q);
        w->first[i] = lo - base;
        w->count[i] = hi - lo;
    }
    free(term);
    return SPK_OK;
}

void spk_weights_free(spk_weights *w)
{
    free(w->first);
    free(w->count);
    free(w->weight);
    free(w->split);
    free(w->start);
    memset(w, 0, sizeof *w);
}
