/* Copies of a batch's columns to a device, and what keeps its memory until they have ended. */
#include "base/error.h"
#include "load/loader_parts.h"

/* The CUDA calls of this batch, if it may make any. */
static spk_status pins_of(const spk_batch *batch, spk_pins **out, spk_error *err)
{
    const spk_core *core = batch->core;
    *out = core->pins;
    if (core->owner != getpid())
        return spk_error_set(err, SPK_E_STATE, "the batch belongs to process %ld, this is process %ld",
                             (long)core->owner, (long)getpid());
    if (!core->pins && core->loader && core->loader->pin == SPK_PIN_AUTO)
        return spk_error_set(err, SPK_E_UNSUPPORTED,
                             "no CUDA runtime could be used when the loader was opened (it noted why)");
    if (!core->pins)
        return spk_error_set(err, SPK_E_INVALID, "uploads need a loader with pin_memory on or auto");
    return SPK_OK;
}

static spk_status check_columns(const spk_batch *batch, const size_t *columns, size_t count, void *const *pointers,
                                spk_error *err)
{
    spk_view view;
    for (size_t i = 0; i < count; i++) {
        SPK_TRY(spk_batch_column(batch, columns[i], &view, err));
        if (view.offsets)
            return spk_error_set(err, SPK_E_INVALID, "column %zu: must be of fixed shape to be uploaded", columns[i]);
        if (!pointers[i])
            return spk_error_set(err, SPK_E_INVALID, "column %zu: its device pointer is NULL", columns[i]);
    }
    return SPK_OK;
}

/* The event is there before the first copy is queued: then only recording it can fail. */
spk_status spk_batch_upload(spk_batch *batch, const size_t *columns, size_t count, void *const *pointers, void *stream,
                            spk_error *err)
{
    spk_pins *p = NULL;
    spk_event *event = NULL;
    spk_error why;
    SPK_TRY(pins_of(batch, &p, err));
    SPK_TRY(check_columns(batch, columns, count, pointers, err));
    SPK_TRY(spk_pins_event(p, &batch->events, stream, &event, err));
    spk_error_clear(&why);
    for (size_t i = 0; i < count && why.code == SPK_OK; i++) {
        spk_view view;
        SPK_TRY(spk_batch_column(batch, columns[i], &view, err));
        spk_cuda_status status =
            p->cuda.MemcpyAsync(pointers[i], view.data, (size_t)view.bytes, SPK_CUDA_TO_DEVICE, stream);
        if (status != SPK_CUDA_OK)
            (void)spk_cuda_fail(&p->cuda, status, &why, "column %zu: copying %llu bytes to the device", columns[i],
                                (unsigned long long)view.bytes);
        else if (batch->core->loader) {
            batch->core->loader->stats.uploads++;
            batch->core->loader->stats.upload_bytes += view.bytes;
        }
    }
    spk_status status = spk_pins_record(p, event, &batch->stuck, why.code == SPK_OK ? &why : NULL);
    if (status == SPK_OK && why.code == SPK_OK)
        return SPK_OK;
    spk_error_prefix(&why, "upload");
    if (err)
        *err = why;
    return why.code;
}

spk_status spk_batch_guard(spk_batch *batch, void *stream, spk_error *err)
{
    spk_pins *p = NULL;
    spk_event *event = NULL;
    SPK_TRY(pins_of(batch, &p, err));
    spk_status status = spk_pins_event(p, &batch->events, stream, &event, err);
    if (status == SPK_OK)
        return spk_pins_record(p, event, &batch->stuck, err);
    if (p->cuda.StreamSynchronize(stream) != SPK_CUDA_OK) {
        (void)p->cuda.GetLastError();
        batch->stuck = true;
    }
    return status;
}

spk_status spk_batch_release_after(spk_batch *batch, void *stream, spk_error *err)
{
    spk_status status = spk_batch_guard(batch, stream, err);
    spk_batch_release(batch);
    return status;
}
