/* The loader's page-locked slots: made when it opens, and given back to the workers as the device has read them. */
#include <time.h>

#include "base/cpu.h"
#include "base/error.h"
#include "load/loader_parts.h"

#define ON_WAIT_NS ((uint64_t)100000000)

static spk_status pin(spk_loader *l, const spk_loader_options *o, spk_error *err)
{
    const spk_memory *m = &l->core->memory;
    const spk_shm_head *head = spk_memory_head(m);
    SPK_TRY(spk_pins_new(&l->core->pins, o->has_device ? &o->device : NULL, err));
    return spk_pins_lock(l->core->pins, m->base + head->slots_at, head->slots * head->slot_stride, err);
}

spk_status spk_loader_pin(spk_loader *l, const spk_loader_options *o, spk_error *err)
{
    spk_error why;
    if ((unsigned)o->pin_memory > SPK_PIN_AUTO)
        return spk_error_set(err, SPK_E_INVALID, "pin_memory of %d: must be 0 (off), 1 (on) or 2 (auto)",
                             (int)o->pin_memory);
    if (o->has_device && o->device < 0)
        return spk_error_set(err, SPK_E_INVALID, "device of %d: must be at least 0", o->device);
    if (!o->has_device && o->device != 0)
        return spk_error_set(err, SPK_E_INVALID, "device of %d: has_device is not set", o->device);
    if (o->pin_memory == SPK_PIN_OFF && o->has_device)
        return spk_error_set(err, SPK_E_INVALID, "device of %d: needs pin_memory", o->device);
    if (o->pin_memory == SPK_PIN_OFF)
        return SPK_OK;
    spk_error_clear(&why);
    uint64_t start = spk_now_ns();
    spk_status status = pin(l, o, &why);
    l->stats.pin_ns = spk_now_ns() - start;
    l->stats.pinned = status == SPK_OK;
    if (status == SPK_OK)
        return SPK_OK;
    spk_error_prefix(&why, "pin_memory");
    if (o->pin_memory == SPK_PIN_ON) {
        if (err)
            *err = why;
        return status;
    }
    spk_loader_note(l, "%s: batches lie in pageable memory", why.text);
    return SPK_OK;
}

void spk_loader_settle_uploads(spk_loader *l)
{
    spk_pins *p = l->core->pins;
    if (l->owner != getpid())
        return;
    spk_batch **at = &p->waiting;
    while (*at) {
        spk_batch *b = *at;
        if (b->stuck || !spk_pins_passed(p, &b->events)) {
            at = &b->later;
            continue;
        }
        *at = b->later;
        p->waiting_n--;
        spk_batch_finish(b);
    }
    p->last = at;
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = SPK_PINS_POLL_NS}, NULL);
}

void spk_loader_drain_uploads(spk_loader *l)
{
    spk_pins *p = l->core->pins;
    bool mine = l->owner == getpid();
    while (mine && spk_loader_uploads(l) && p->failed.code == SPK_OK) {
        spk_loader_settle_uploads(l);
        if (spk_loader_uploads(l))
            pause_briefly();
    }
    while (p && p->waiting) {
        spk_batch *b = p->waiting;
        p->waiting = b->later;
        spk_batch_finish(b);
    }
    if (p) {
        p->last = &p->waiting;
        p->waiting_n = 0;
    }
}

/* The caller is so far ahead of the device that all slots are on their way: waiting costs it nothing, private copies
 * would. */
spk_status spk_loader_wait_uploads(spk_loader *l, spk_error *err)
{
    spk_pins *p = l->core->pins;
    if (!p || !p->waiting)
        return SPK_OK;
    spk_loader_settle_uploads(l);
    uint64_t start = spk_now_ns(), now = start, told = start;
    while (p->failed.code == SPK_OK && spk_loader_is_short(l) && spk_loader_uploads(l)) {
        pause_briefly();
        spk_loader_settle_uploads(l);
        now = spk_now_ns();
        if (!l->on_wait || now - told < ON_WAIT_NS)
            continue;
        told = now;
        if (l->on_wait(l->user) != 0)
            return spk_error_set(err, SPK_E_CANCELLED, "cancelled while waiting for copies to the device");
    }
    l->stats.upload_wait_ns += now - start;
    if (p->failed.code == SPK_OK)
        return SPK_OK;
    *err = p->failed;
    return spk_loader_fail(l, err);
}
