/* Streaming: each input row goes through the horizontal pass into a ring of 8-bit rows while it is in cache; an output
 * row leaves as soon as the last row of its window has come. */
#include "image/resample.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"

struct spk_resampler {
    spk_resample_job job;
    spk_weights h, v;
    bool scale_h, scale_v;
    spk_horizontal_fn horizontal;
    spk_vertical_fn vertical;
    uint8_t *ring;        /* ring_rows rows of row_bytes */
    const uint8_t **rows; /* window of one output row */
    uint8_t *line;        /* one output row */
    size_t cap_ring, cap_rows, cap_line;
    size_t row_bytes;
    uint32_t ring_rows, in_y, out_y;
};

spk_status spk_resampler_new(spk_resampler **out, spk_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return spk_error_nomem(err, sizeof **out);
    (*out)->horizontal = spk_horizontal_best();
    (*out)->vertical = spk_vertical_best();
    return SPK_OK;
}

void spk_resampler_free(spk_resampler *r)
{
    if (!r)
        return;
    spk_weights_free(&r->h);
    spk_weights_free(&r->v);
    free(r->ring);
    free(r->rows);
    free(r->line);
    free(r);
}

#define RING_MAX ((size_t)1 << 30)

static spk_status make_ring(spk_resampler *r, uint32_t rows, spk_error *err)
{
    size_t pixels = (size_t)r->job.x.count * r->job.channels;
    r->ring_rows = rows;
    r->row_bytes = (pixels + SPK_ROW_PAD + 31) & ~(size_t)31;
    if (r->row_bytes > RING_MAX / rows)
        return spk_error_set(err, SPK_E_LIMIT, "resampling needs %u rows of %zu bytes: more than %zu bytes together",
                             rows, r->row_bytes, RING_MAX);
    SPK_TRY(spk_grow(&r->ring, &r->cap_ring, r->row_bytes * rows, 1, err));
    SPK_TRY(spk_grow(&r->rows, &r->cap_rows, rows, sizeof *r->rows, err));
    return spk_grow(&r->line, &r->cap_line, r->row_bytes, 1, err);
}

spk_status spk_resampler_begin(spk_resampler *r, const spk_resample_job *job, spk_error *err)
{
    SPK_TRY(spk_axis_check(&job->x, err));
    SPK_TRY(spk_axis_check(&job->y, err));
    if (job->channels - 1 >= 4 || job->filter > SPK_FILTER_BICUBIC)
        return spk_error_set(err, SPK_E_INVALID, "cannot resample %u channels with filter %d", job->channels,
                             (int)job->filter);
    r->job = *job;
    r->in_y = r->out_y = 0;
    r->scale_h = !spk_axis_is_copy(&job->x);
    r->scale_v = !spk_axis_is_copy(&job->y);
    if (r->scale_h) {
        SPK_TRY(spk_weights_make(&r->h, &job->x, job->filter, err));
        SPK_TRY(spk_weights_split(&r->h, job->channels, err));
    }
    if (r->scale_v)
        SPK_TRY(spk_weights_make(&r->v, &job->y, job->filter, err));
    return make_ring(r, r->scale_v ? r->v.stride : 1, err);
}

static void copy_row(uint8_t *out, const uint8_t *in, uint32_t width, uint32_t channels, bool flip)
{
    if (!flip) {
        memcpy(out, in, (size_t)width * channels);
        return;
    }
    for (uint32_t x = 0; x < width; x++)
        for (uint32_t c = 0; c < channels; c++)
            out[(size_t)(width - 1 - x) * channels + c] = in[(size_t)x * channels + c];
}

void spk_resampler_row(spk_resampler *r, const uint8_t *row)
{
    const spk_resample_job *j = &r->job;
    uint32_t y = r->in_y++;
    uint8_t *slot = r->ring + (size_t)(y % r->ring_rows) * r->row_bytes;

    if (r->scale_h)
        r->horizontal(slot, row, &r->h, j->channels, j->flip);
    else
        copy_row(slot, row, j->x.count, j->channels, j->flip);
    if (!r->scale_v) {
        j->emit(j->ctx, y, slot);
        return;
    }
    while (r->out_y < j->y.count && r->v.first[r->out_y] + r->v.count[r->out_y] <= y + 1) {
        uint32_t i = r->out_y++, n = r->v.count[i];
        for (uint32_t k = 0; k < n; k++)
            r->rows[k] = r->ring + (size_t)((r->v.first[i] + k) % r->ring_rows) * r->row_bytes;
        r->vertical(r->line, r->rows, r->v.weight + (size_t)i * r->v.stride, n, (size_t)j->x.count * j->channels);
        j->emit(j->ctx, i, r->line);
    }
}
