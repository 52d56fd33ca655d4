/* Batches to an NVIDIA GPU. The CUDA runtime is found and loaded when a loader is opened with pin_memory
 * (SHARDPACK_CUDART, what the process has loaded already, libcudart.so.13, .12, .11.0); nothing here needs its headers:
 * streams are cudaStream_t, and NULL is the default stream. A stream must be one of the calling thread's current
 * device.
 *
 * The slots that workers write into are page-locked once, so copies to the device start from there, without a copy on
 * the host. They are asynchronous: the slot of a batch goes back to the workers when the event that was recorded behind
 * them has passed, which spk_loader_next looks at. */
#ifndef SHARDPACK_GPU_H
#define SHARDPACK_GPU_H

#include <shardpack/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Queues copies of columns of fixed shape to device memory on a stream; device_pointers[i] takes columns[i], whose size
 * spk_batch_column tells. The batch may be released at any time after it. After an error some of the copies may be
 * queued. INVALID (a column, pin_memory is off), UNSUPPORTED (no CUDA runtime), DEVICE, STATE. */
SPK_API SPK_CHECK spk_status spk_batch_upload(spk_batch *batch, const size_t *columns, size_t count,
                                              void *const *device_pointers, void *stream, spk_error *err);
/* The batch's memory is not used again before everything that is queued on the stream by now has passed. For copies
 * that the caller queues by itself; for one stream after another, if need be. After DEVICE the memory is not used again
 * at all until the loader is closed. */
SPK_API SPK_CHECK spk_status spk_batch_guard(spk_batch *batch, void *stream, spk_error *err);
/* spk_batch_guard, then spk_batch_release. The batch is gone, also after an error. */
SPK_API SPK_CHECK spk_status spk_batch_release_after(spk_batch *batch, void *stream, spk_error *err);

/* Uploads batches ahead of their use, into device memory of its own. Confined, and to be closed before its loader. */
typedef struct spk_uploader spk_uploader;

/* Zero is the default of every member but size. */
typedef struct spk_uploader_options {
    size_t size;           /* sizeof(spk_uploader_options) */
    uint32_t buffers;      /* batches in device memory: 1 to 64; 0: 2 */
    const size_t *columns; /* numbers of columns of fixed shape; NULL: all of them */
    size_t column_count;
} spk_uploader_options;

/* A batch on the device. */
typedef struct spk_upload {
    const spk_view *columns; /* as of spk_batch_column; data is device memory */
    size_t column_count;
    uint64_t rows, valid_rows, number, position; /* as of the batch */
} spk_upload;

/* Allocates device memory on the current device and a stream for the copies. The loader is borrowed until close. */
SPK_API SPK_CHECK spk_status spk_uploader_open(spk_uploader **out, spk_loader *loader,
                                               const spk_uploader_options *options, spk_error *err);
/* The next batch of the loader, for work that is queued on `stream` from now on: the stream waits for the copy, not the
 * caller. It stays as it is for all that is queued on that stream up to the next call, which may name another one.
 * Meanwhile the copies of the following ones are under way, as far as they are ready. SPK_END and errors as of
 * spk_loader_next. */
SPK_API SPK_CHECK spk_status spk_uploader_next(spk_uploader *uploader, spk_upload *out, void *stream, spk_error *err);
/* As spk_loader_state_save, after the last batch that spk_uploader_next returned: the loader itself is ahead of it.
 * What was fetched ahead is dropped when the loader is moved (set_epoch, state_restore, skip, which counts from where
 * the loader stands). */
SPK_API SPK_CHECK spk_status spk_uploader_state_save(const spk_uploader *uploader, char **out, spk_error *err);
/* Waits for what is queued, and frees. NULL is fine. */
SPK_API void spk_uploader_close(spk_uploader *uploader);

#ifdef __cplusplus
}
#endif

#endif
