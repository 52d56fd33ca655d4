/* Reading without shuffling: position x is sample x / echo. */
#include "load/sequence_feed.h"

void spk_sequence_feed_clear(spk_sequence_feed *f)
{
    spk_item_clear(&f->item);
    spk_frame_hold_clear(&f->frame);
}

spk_status spk_sequence_feed_at(spk_sequence_feed *f, spk_item_reader *r, const spk_plan *plan, uint64_t x,
                                const spk_item **item, uint32_t *repeat, spk_error *err)
{
    uint64_t sample = x / plan->spec.echo;
    f->item.fields = f->fields;
    if (!f->item.held || f->item.sample != sample)
        SPK_TRY(spk_item_read(r, &f->frame, sample, false, &f->item, err));
    *item = &f->item;
    *repeat = (uint32_t)(x % plan->spec.echo);
    return SPK_OK;
}
