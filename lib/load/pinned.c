/* Locking, and the pool of events. */
#include "load/pinned.h"

#include <stdlib.h>
#include <time.h>

#include "base/cpu.h"

spk_status spk_pins_new(spk_pins **out, const int *device, spk_error *err)
{
    spk_pins *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p)
        return spk_error_nomem(err, sizeof *p);
    p->last = &p->waiting;
    spk_cuda_status status = SPK_CUDA_OK;
    spk_status done = spk_cuda_open(&p->cuda, err);
    if (done == SPK_OK && device) {
        status = p->cuda.SetDevice(*device);
        if (status != SPK_CUDA_OK)
            done = spk_cuda_fail(&p->cuda, status, err, "device %d", *device);
    }
    if (done == SPK_OK) {
        status = p->cuda.GetDevice(&p->device);
        if (status != SPK_CUDA_OK)
            done = spk_cuda_fail(&p->cuda, status, err, "the current device");
    }
    if (done < 0) {
        spk_cuda_close(&p->cuda);
        free(p);
        return done;
    }
    *out = p;
    return SPK_OK;
}

spk_status spk_pins_lock(spk_pins *p, uint8_t *base, uint64_t bytes, spk_error *err)
{
    SPK_TRY(spk_populate(base, bytes, (unsigned)spk_cpu_quota(), err));
    spk_cuda_status status = p->cuda.HostRegister(base, (size_t)bytes, SPK_CUDA_PORTABLE);
    if (status != SPK_CUDA_OK)
        return spk_cuda_fail(&p->cuda, status, err, "page-locking %llu bytes for the slots", (unsigned long long)bytes);
    p->base = base;
    return SPK_OK;
}

/* What a runtime says that ends with the process: there is nothing left to give back. */
static bool is_gone(spk_cuda_status status)
{
    return status == SPK_CUDA_UNLOADING || status == SPK_CUDA_NO_CONTEXT;
}

spk_status spk_pins_unlock(spk_pins *p, spk_error *err)
{
    uint8_t *base = p->base;
    p->base = NULL;
    spk_cuda_status status = base ? p->cuda.HostUnregister(base) : SPK_CUDA_OK;
    if (status == SPK_CUDA_OK || is_gone(status))
        return SPK_OK;
    return spk_cuda_fail(&p->cuda, status, err, "the slots could not be unlocked");
}

/* What a failing destroy leaves behind goes with the process, and nobody could do anything about it. */
void spk_pins_free(spk_pins *p)
{
    if (!p)
        return;
    while (p->pool) {
        spk_event *e = p->pool;
        p->pool = e->next;
        if (p->cuda.EventDestroy(e->event) != SPK_CUDA_OK)
            (void)p->cuda.GetLastError();
        free(e);
    }
    spk_cuda_close(&p->cuda);
    free(p);
}

void spk_pins_forget(spk_pins *p)
{
    while (p && p->pool) {
        spk_event *e = p->pool;
        p->pool = e->next;
        free(e);
    }
    free(p);
}

spk_status spk_pins_event(spk_pins *p, spk_event **list, spk_cuda_stream stream, spk_event **out, spk_error *err)
{
    int device = 0;
    spk_event *e = NULL;
    spk_cuda_status status = p->cuda.GetDevice(&device);
    if (status != SPK_CUDA_OK)
        return spk_cuda_fail(&p->cuda, status, err, "the current device");
    for (e = *list; e; e = e->next)
        if (e->stream == stream && e->device == device) {
            *out = e;
            return SPK_OK;
        }
    spk_event **at = &p->pool;
    while (*at && (*at)->device != device)
        at = &(*at)->next;
    if (*at) {
        e = *at;
        *at = e->next;
    } else {
        e = calloc(1, sizeof *e);
        if (!e)
            return spk_error_nomem(err, sizeof *e);
        e->device = device;
        status = p->cuda.EventCreateWithFlags(&e->event, SPK_CUDA_NO_TIMING);
        if (status != SPK_CUDA_OK) {
            free(e);
            return spk_cuda_fail(&p->cuda, status, err, "an event could not be made");
        }
    }
    e->stream = stream;
    e->next = *list;
    *list = e;
    *out = e;
    return SPK_OK;
}

spk_status spk_pins_record(spk_pins *p, spk_event *e, bool *stuck, spk_error *err)
{
    spk_cuda_status status = p->cuda.EventRecord(e->event, e->stream);
    if (status == SPK_CUDA_OK)
        return SPK_OK;
    spk_status done = spk_cuda_fail(&p->cuda, status, err, "an event could not be recorded");
    if (p->cuda.StreamSynchronize(e->stream) != SPK_CUDA_OK) {
        (void)p->cuda.GetLastError();
        *stuck = true;
    }
    return done;
}

/* An event that was never recorded, or whose record failed, has passed as far as CUDA knows. */
bool spk_pins_passed(spk_pins *p, spk_event **list)
{
    while (*list && p->failed.code == SPK_OK) {
        spk_event *e = *list;
        spk_cuda_status status = p->cuda.EventQuery(e->event);
        if (status == SPK_CUDA_NOT_READY) {
            (void)p->cuda.GetLastError();
            return false;
        }
        if (status != SPK_CUDA_OK) {
            (void)spk_cuda_fail(&p->cuda, status, &p->failed, "waiting for a copy to the device");
            return false;
        }
        *list = e->next;
        e->next = p->pool;
        p->pool = e;
    }
    return *list == NULL;
}

void spk_pins_wait(spk_pins *p, spk_event **list)
{
    while (!spk_pins_passed(p, list) && p->failed.code == SPK_OK)
        nanosleep(&(struct timespec){.tv_nsec = SPK_PINS_POLL_NS}, NULL);
    spk_pins_put(p, list);
}

void spk_pins_put(spk_pins *p, spk_event **list)
{
    while (*list) {
        spk_event *e = *list;
        *list = e->next;
        e->next = p->pool;
        p->pool = e;
    }
}
