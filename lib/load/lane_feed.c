/* The steps of plan/lane.h on samples. A popped sample is exchanged with the spare item, so that its slot can be
 * refilled while the sample is delivered; nothing is copied but from the frame into the slot. */
#include "load/lane_feed.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct spk_lane_feed {
    spk_lane lane;
    bool entered;
    spk_item *items; /* one per slot of the buffer, and the spare one behind them */
    spk_item_field *fields;
    size_t n;
    const spk_item *current; /* of output lane.output - 1; NULL right after entering */
    uint32_t repeat;
    spk_frame_hold frame;
};

/* Passing over an output reads one sample; entering reads the frames of the whole buffer, some samples for each slot.
 */
#define PASS_OVER 4u

spk_status spk_lane_feed_new(spk_lane_feed **out, spk_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? SPK_OK : spk_error_nomem(err, sizeof **out);
}

static void free_items(spk_lane_feed *f)
{
    for (size_t i = 0; i < f->n; i++)
        spk_item_clear(&f->items[i]);
    free(f->items);
    free(f->fields);
    f->items = NULL;
    f->fields = NULL;
    f->n = 0;
}

void spk_lane_feed_free(spk_lane_feed *f)
{
    if (!f)
        return;
    spk_lane_feed_leave(f);
    free_items(f);
    spk_frame_hold_clear(&f->frame);
    free(f);
}

void spk_lane_feed_leave(spk_lane_feed *f)
{
    if (f->entered)
        spk_lane_leave(&f->lane);
    f->entered = false;
    f->current = NULL;
}

static spk_status make_items(spk_lane_feed *f, size_t slots, uint32_t needs, spk_error *err)
{
    size_t n = slots + 1;
    if (n <= f->n)
        return SPK_OK;
    free_items(f);
    f->items = calloc(n, sizeof *f->items);
    f->fields = calloc(n * (needs > 0 ? needs : 1), sizeof *f->fields);
    if (!f->items || !f->fields) {
        free_items(f);
        return spk_error_nomem(err, n * (sizeof *f->items + needs * sizeof *f->fields));
    }
    f->n = n;
    for (size_t i = 0; i < n; i++)
        f->items[i].fields = f->fields + i * needs;
    return SPK_OK;
}

static spk_status fill_buffer(spk_lane_feed *f, spk_item_reader *r, spk_error *err)
{
    SPK_TRY(spk_grow(&r->order, &r->order_cap, (size_t)f->lane.fill, sizeof *r->order, err));
    SPK_TRY(spk_lane_fill_order(&f->lane, r->order, err));
    for (uint64_t i = 0; i < f->lane.fill; i++) {
        uint64_t slot = r->order[i], sample = spk_lane_slot_sample(&f->lane, slot);
        SPK_TRY(spk_item_read(r, &f->frame, sample, true, &f->items[slot], err));
    }
    return SPK_OK;
}

static spk_status enter(spk_lane_feed *f, spk_item_reader *r, const spk_plan *plan, uint64_t lane, uint64_t output,
                        spk_error *err)
{
    spk_lane_feed_leave(f);
    SPK_TRY(spk_lane_enter(&f->lane, plan, lane, output, err));
    f->entered = true;
    uint64_t slots = f->lane.n < plan->spec.buffer ? f->lane.n : plan->spec.buffer;
    SPK_TRY(make_items(f, (size_t)slots, r->needs.n, err));
    return fill_buffer(f, r, err);
}

static void exchange(spk_item *a, spk_item *b)
{
    spk_item t = *a;
    *a = *b;
    *b = t;
}

static spk_status step(spk_lane_feed *f, spk_item_reader *r, spk_error *err)
{
    spk_lane_step s;
    spk_item *spare = &f->items[f->n - 1];
    if (spk_lane_next(&f->lane, &s) == SPK_END)
        return spk_error_set(err, SPK_E_INVALID, "lane %llu has only %llu outputs", (unsigned long long)f->lane.lane,
                             (unsigned long long)f->lane.outputs);
    f->repeat = s.repeat;
    if (s.slot == SPK_LANE_DIRECT) {
        f->current = spare;
        if (spare->held && spare->sample == s.sample)
            return SPK_OK;
        return spk_item_read(r, &f->frame, s.sample, true, spare, err);
    }
    f->current = &f->items[s.slot];
    if (!s.last)
        return SPK_OK;
    exchange(&f->items[s.slot], spare);
    f->current = spare;
    if (s.refill != SPK_NO_SAMPLE)
        SPK_TRY(spk_item_read(r, &f->frame, s.refill, true, &f->items[s.slot], err));
    else if (s.move)
        exchange(&f->items[s.slot], &f->items[s.move_from]);
    if (s.append != SPK_NO_SAMPLE)
        SPK_TRY(spk_item_read(r, &f->frame, s.append, true, &f->items[s.append_slot], err));
    return SPK_OK;
}

/* Whether the outputs up to `output` are better passed over than the lane entered anew. */
static bool is_near(const spk_lane_feed *f, uint64_t output)
{
    const spk_plan_spec *s = &f->lane.plan->spec;
    return output >= f->lane.output && (output - f->lane.output) / s->echo <= PASS_OVER * (uint64_t)s->buffer;
}

spk_status spk_lane_feed_at(spk_lane_feed *f, spk_item_reader *r, const spk_plan *plan, uint64_t lane, uint64_t output,
                            const spk_item **item, uint32_t *repeat, spk_error *err)
{
    spk_status status = SPK_OK;
    bool mine = f->entered && f->lane.plan == plan && f->lane.lane == lane;
    bool again = mine && f->current && f->lane.output == output + 1;
    if (!again && !(mine && is_near(f, output)))
        status = enter(f, r, plan, lane, output, err);
    while (status == SPK_OK && f->lane.output <= output)
        status = step(f, r, err);
    if (status < 0) {
        spk_lane_feed_leave(f);
        return status;
    }
    *item = f->current;
    *repeat = f->repeat;
    return SPK_OK;
}
