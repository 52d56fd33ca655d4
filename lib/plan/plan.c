/* Spans, lanes and positions of one epoch. Sketch of the whole: format-spec/epoch-order.md. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

static spk_status check_spec(spk_plan_spec *s, uint64_t samples, spk_error *err)
{
    if (s->chunk == 0)
        s->chunk = SPK_PLAN_CHUNK;
    if (s->buffer == 0)
        s->buffer = SPK_PLAN_BUFFER;
    if (s->span == 0)
        s->span = SPK_PLAN_SPAN;
    if (s->echo == 0)
        s->echo = 1;
    if (s->global_batch < 1 || s->global_batch > SPK_PLAN_BATCH_MAX)
        return spk_error_set(err, SPK_E_INVALID, "global batch of %llu: must be 1 to %u",
                             (unsigned long long)s->global_batch, SPK_PLAN_BATCH_MAX);
    if (s->buffer > SPK_PLAN_BUFFER_MAX)
        return spk_error_set(err, SPK_E_INVALID, "lane buffer of %u: must be 1 to %u", s->buffer, SPK_PLAN_BUFFER_MAX);
    if (s->echo > SPK_PLAN_ECHO_MAX || samples > UINT64_MAX / 2 / s->echo)
        return spk_error_set(err, SPK_E_INVALID, "echo of %u: must be 1 to %u", s->echo, SPK_PLAN_ECHO_MAX);
    if (s->epoch > SPK_PLAN_EPOCH_MAX)
        return spk_error_set(err, SPK_E_INVALID, "epoch %u: must be at most %u", s->epoch, SPK_PLAN_EPOCH_MAX);
    uint64_t chunks = (s->global_batch + s->chunk - 1) / s->chunk;
    if (s->groups == 0) {
        uint64_t m = (SPK_PLAN_LANES + chunks / 2) / chunks;
        s->groups = m < 1 ? 1 : (uint32_t)m;
    }
    if (s->groups > SPK_PLAN_LANES_MAX / chunks)
        return spk_error_set(err, SPK_E_INVALID, "%u lane groups of %llu chunks: at most %u lanes", s->groups,
                             (unsigned long long)chunks, SPK_PLAN_LANES_MAX);
    return SPK_OK;
}

uint64_t spk_plan_chunk_size(const spk_plan *p, uint64_t j)
{
    uint64_t left = p->spec.global_batch - j * p->spec.chunk;
    return left < p->spec.chunk ? left : p->spec.chunk;
}

uint64_t spk_plan_lane_size(const spk_plan *p, uint64_t lane)
{
    return p->lane_start[lane + 1] - p->lane_start[lane];
}

/* Outputs that lane (a, j) owes: chunk j of the whole global batches a, a + m, ... and its part of the last short one.
 */
static uint64_t lane_size(const spk_plan *p, uint64_t a, uint64_t j)
{
    uint64_t full = p->total / p->spec.global_batch, rest = p->total % p->spec.global_batch;
    uint64_t m = p->spec.groups, c = spk_plan_chunk_size(p, j), before = j * p->spec.chunk;
    uint64_t size = (full > a ? (full - a + m - 1) / m : 0) * c;
    if (full % m == a && rest > before)
        size += rest - before < c ? rest - before : c;
    return size;
}

static spk_status make_lanes(spk_plan *p, spk_error *err)
{
    p->lanes = p->spec.groups * p->chunks;
    p->lane_start = malloc((size_t)(p->lanes + 1) * sizeof *p->lane_start);
    if (!p->lane_start)
        return spk_error_nomem(err, (size_t)(p->lanes + 1) * sizeof *p->lane_start);
    uint64_t at = 0, lane = 0;
    for (uint64_t a = 0; a < p->spec.groups; a++)
        for (uint64_t j = 0; j < p->chunks; j++, lane++) {
            p->lane_start[lane] = at;
            at += lane_size(p, a, j);
        }
    p->lane_start[lane] = at;
    return SPK_OK;
}

/* Spans of a shard of `count` samples: count / target, rounded to the nearest, at least one; none if it is empty. */
static uint64_t span_parts(uint64_t count, uint64_t target)
{
    if (count == 0)
        return 0;
    uint64_t parts = (count + target / 2) / target;
    return parts < 1 ? 1 : parts;
}

/* Aimed length of a span: that of 16 spans a lane, but at least spec.span samples, as long as that leaves 256 spans. */
static uint64_t span_target(const spk_plan_spec *spec, uint64_t samples, uint64_t lanes)
{
    uint64_t share = (samples + 16 * lanes - 1) / (16 * lanes), least = samples / 256;
    least = least < 1 ? 1 : least > spec->span ? spec->span : least;
    return share > least ? share : least;
}

static void permute_spans(spk_plan *p)
{
    for (uint64_t i = p->spans_n; i > 1; i--) {
        uint64_t k = spk_draw_below(p->spec.seed, p->spec.epoch, SPK_DRAW_SPANS, 0, i - 1, i);
        spk_span t = p->spans[i - 1];
        p->spans[i - 1] = p->spans[k];
        p->spans[k] = t;
    }
    uint64_t at = 0;
    for (uint64_t i = 0; i < p->spans_n; i++) { /* until here start held the span's length */
        uint64_t length = p->spans[i].start;
        p->spans[i].start = at;
        at += length;
    }
    p->spans[p->spans_n].start = at;
}

static spk_status make_spans(spk_plan *p, const uint64_t *first, uint64_t shards, spk_error *err)
{
    uint64_t target = span_target(&p->spec, p->samples, p->lanes), n = 0;

    for (uint64_t s = 0; s < shards; s++)
        n += span_parts(first[s + 1] - first[s], target);
    if (n >= SIZE_MAX / sizeof *p->spans)
        return spk_error_nomem(err, SIZE_MAX);
    p->spans = malloc((size_t)(n + 1) * sizeof *p->spans);
    if (!p->spans)
        return spk_error_nomem(err, (size_t)(n + 1) * sizeof *p->spans);
    for (uint64_t s = 0; s < shards; s++) {
        uint64_t count = first[s + 1] - first[s], parts = span_parts(count, target);
        for (uint64_t i = 0; i < parts; i++) {
            /* count * i / parts without overflow */
            uint64_t from = count / parts * i + count % parts * i / parts;
            uint64_t to = count / parts * (i + 1) + count % parts * (i + 1) / parts;
            p->spans[p->spans_n++] = (spk_span){.first = first[s] + from, .start = to - from};
        }
    }
    p->spans[n] = (spk_span){.first = p->samples, .start = 0};
    permute_spans(p);
    return SPK_OK;
}

spk_status spk_plan_new(spk_plan **out, const uint64_t *first_sample, uint64_t shards, const spk_plan_spec *spec,
                        spk_error *err)
{
    spk_status status = SPK_OK;
    *out = NULL;
    spk_plan *p = calloc(1, sizeof *p);
    if (!p)
        return spk_error_nomem(err, sizeof *p);
    p->spec = *spec;
    p->samples = shards > 0 ? first_sample[shards] : 0;
    status = check_spec(&p->spec, p->samples, err);
    if (status < 0)
        goto out;
    p->total = p->samples * p->spec.echo;
    p->chunks = (p->spec.global_batch + p->spec.chunk - 1) / p->spec.chunk;
    if (p->spec.shuffle) {
        status = make_lanes(p, err);
        if (status == SPK_OK)
            status = make_spans(p, first_sample, shards, err);
    }
out:
    if (status < 0)
        spk_plan_free(p);
    else
        *out = p;
    return status;
}

/* A shard has its share of samples / target spans, and at most one more. */
uint64_t spk_plan_bytes(const spk_plan_spec *spec, uint64_t samples, uint64_t shards)
{
    uint64_t lanes = spec->groups * ((spec->global_batch + spec->chunk - 1) / spec->chunk);
    if (!spec->shuffle)
        return 0;
    uint64_t spans = shards + samples / span_target(spec, samples, lanes);
    return lanes * sizeof(uint64_t) + (spans < samples ? spans : samples) * sizeof(spk_span);
}

void spk_plan_free(spk_plan *p)
{
    if (!p)
        return;
    free(p->lane_start);
    free(p->spans);
    free(p);
}

void spk_plan_locate(const spk_plan *p, uint64_t x, uint64_t *lane, uint64_t *output)
{
    uint64_t g = x / p->spec.global_batch, offset = x % p->spec.global_batch;
    uint64_t j = offset / p->spec.chunk, i = offset % p->spec.chunk, m = p->spec.groups;
    *lane = g % m * p->chunks + j;
    *output = g / m * spk_plan_chunk_size(p, j) + i;
}

uint64_t spk_plan_sequence(const spk_plan *p, uint64_t q, uint64_t *hint)
{
    uint64_t s = *hint < p->spans_n ? *hint : 0;
    if (!(p->spans[s].start <= q && q < p->spans[s + 1].start)) {
        if (q >= p->spans[s + 1].start && s + 2 <= p->spans_n && q < p->spans[s + 2].start) {
            s++;
        } else {
            uint64_t lo = 0, hi = p->spans_n; /* spans[lo].start <= q < spans[hi].start */
            while (hi - lo > 1) {
                uint64_t mid = lo + (hi - lo) / 2;
                if (p->spans[mid].start <= q)
                    lo = mid;
                else
                    hi = mid;
            }
            s = lo;
        }
        *hint = s;
    }
    return p->spans[s].first + (q - p->spans[s].start);
}
