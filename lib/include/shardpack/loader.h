/* The loader: streams a dataset as batches, in an exact order that any number of workers and ranks reproduces.
 * Order: format-spec/epoch-order.md. */
#ifndef SHARDPACK_LOADER_H
#define SHARDPACK_LOADER_H

#include <shardpack/dataset.h>
#include <shardpack/error.h>
#include <shardpack/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Delivers batches of one rank. Thread-safety: confined. After fork, only the process that made it may use it. */
typedef struct spk_loader spk_loader;
/* A batch on loan from the loader. Its memory stays as it is until spk_batch_release. */
typedef struct spk_batch spk_batch;

typedef enum spk_tail {
    SPK_TAIL_DEFAULT = 0, /* keep for one rank, pad for several */
    SPK_TAIL_DROP = 1,    /* only whole global batches */
    SPK_TAIL_PAD = 2,     /* the last batch is filled up with repeated samples: valid 0, label -100 */
    SPK_TAIL_KEEP = 3     /* the last batch is short; one rank only */
} spk_tail;

typedef enum spk_on_error {
    SPK_ON_ERROR_FAIL = 0,
    SPK_ON_ERROR_SUBSTITUTE = 1 /* content errors: zero pixels, empty bytes, label -100, valid 0, true index and key */
} spk_on_error;

typedef enum spk_column_kind {
    SPK_COLUMN_IMAGE = 1, /* fixed shape, decoded and transformed */
    SPK_COLUMN_LABEL =
        2, /* int64, from an ASCII decimal field ("cls"); -100 where a sample has none or the row is not valid */
    SPK_COLUMN_INDEX = 3,   /* int64, number of the sample in the dataset */
    SPK_COLUMN_VALID = 4,   /* uint8, 1 for a sample, 0 for a padded or substituted row */
    SPK_COLUMN_KEY = 5,     /* variable-size bytes: the key */
    SPK_COLUMN_BYTES = 6,   /* variable-size bytes: a field as it was packed */
    SPK_COLUMN_STORED = 7,  /* variable-size bytes: a field as the shard holds it: JPEG perhaps in a stored form, which
                             * image.h decodes and makes files of */
    SPK_COLUMN_ORIGINAL = 8 /* int64: bytes of the file, where a value of STORED is such a form; -1 where it is the
                             * field as it was packed, or there is none */
} spk_column_kind;

typedef enum spk_dtype { SPK_UINT8 = 0, SPK_FLOAT16 = 1, SPK_FLOAT32 = 2, SPK_INT64 = 3 } spk_dtype;
typedef enum spk_layout { SPK_NHWC = 0, SPK_NCHW = 1 } spk_layout;
typedef enum spk_interpolation { SPK_BILINEAR = 0, SPK_BICUBIC = 1, SPK_NEAREST = 2 } spk_interpolation;
typedef enum spk_transform {
    SPK_RANDOM_RESIZED_CROP = 0, /* to height x width, like torchvision's */
    SPK_RESIZE_CENTER_CROP = 1,  /* shorter side to `resize`, then the centre height x width */
    SPK_RESIZE_EXACT = 2         /* the whole image to height x width, whatever its shape */
} spk_transform;

/* Page-locked slots, from which a GPU copies at full speed and beside its work: gpu.h. */
typedef enum spk_pin {
    SPK_PIN_OFF = 0,
    SPK_PIN_ON = 1,  /* an error if it cannot be */
    SPK_PIN_AUTO = 2 /* if it cannot be: one note, and pageable memory */
} spk_pin;

/* Zero is the default of every member but size. */
typedef struct spk_image_options {
    size_t size; /* sizeof(spk_image_options) */
    spk_transform transform;
    uint32_t height, width; /* of the output; 0: 224 */
    uint32_t resize;        /* RESIZE_CENTER_CROP; 0: 256 */
    double scale[2];        /* RANDOM_RESIZED_CROP: share of the area; 0, 0: 0.08 to 1 */
    double ratio[2];        /* width / height; 0, 0: 3/4 to 4/3 */
    double hflip;           /* probability of a left-right mirror */
    double vflip;
    spk_interpolation interpolation;
    spk_dtype dtype; /* UINT8, FLOAT16, FLOAT32 */
    spk_layout layout;
    int normalize; /* nonzero: (x / 255 - mean) / std; else floats are x / 255, and mean and std must not be given */
    float mean[3], std[3];
    uint32_t channels;    /* 3 (default) or 1: luma as Pillow's "L"; with SPK_NEAREST a palette PNG (a mask of classes)
                           * gives its indices instead, as Pillow's "P". Gray PNGs of 1, 2 or 4 bits are spread over
                           * 0 to 255, those of 16 bits cut to the upper 8 */
    int exif_orientation; /* nonzero: turn by the EXIF tag first */
    int fast;             /* nonzero: DCT-scaled decode where the crop is at least twice the target */
    int paired;           /* nonzero: take crop and flips of the first image column; use with SPK_NEAREST for masks */
    uint64_t max_pixels;  /* 0: 178,956,970 */
} spk_image_options;

typedef struct spk_column {
    spk_column_kind kind;
    int optional;            /* BYTES, STORED, ORIGINAL: a sample without the field gives an empty value (-1) instead of
                              * an error */
    const char *field;       /* IMAGE: NULL is the first of jpg, png that the sample has; LABEL: NULL is "cls" */
    spk_image_options image; /* IMAGE */
} spk_column;

/* Zero is the default of every member but size and batch_size. Everything is copied. */
typedef struct spk_loader_options {
    size_t size;               /* sizeof(spk_loader_options) */
    uint32_t batch_size;       /* rows per rank, 1 to 1,048,576 */
    uint32_t rank, world_size; /* world_size 0: 1 */
    /* Nonzero: workers is given. Else there are as many as the CPU quota has processors (for each of local_world_size
     * ranks), but no more than share the order's lanes evenly. */
    int has_workers;
    int workers;       /* processes; 0: decode in the caller */
    uint32_t prefetch; /* batches prepared ahead; 0: 4 */
    int shuffle;
    uint64_t seed;
    uint32_t epoch;                                 /* first epoch */
    uint32_t chunk, lane_groups, lane_buffer, echo; /* 0: defaults of the plan */
    uint64_t limit;                                 /* only the first `limit` samples of each epoch; 0: all */
    spk_tail tail;
    spk_on_error on_error;
    uint64_t max_errors; /* only with SUBSTITUTE: fail at the first one beyond; 0: no limit */
    double timeout;      /* seconds without progress of a worker; 0: 120; negative: none */
    const spk_column
        *columns; /* NULL: image (224 random resized crop if shuffle, else resize 256 and centre crop), label */
    size_t column_count;
    int verify_full;
    int error_on_hold;          /* batches held beyond the slots: 0: those to come are private copies; else LIMIT */
    const char *worker_program; /* NULL: SHARDPACK_WORKER, or beside the library */
    void (*on_note)(void *user, const char *text); /* warnings, one line; may be NULL */
    void *user;
    /* Called while a call waits for workers (without any: for a server), some ten times a second and as soon as a
     * signal was handled. Nonzero ends the wait: CANCELLED, and spk_loader_next can be called again. It must not use
     * the loader or its dataset. May be NULL. */
    int (*on_wait)(void *user);
    spk_pin pin_memory;
    /* Nonzero: `device` becomes the calling thread's CUDA device first, as by cudaSetDevice; else it is the one that is
     * current. No other device is touched. */
    int has_device;
    int device;
    /* Only these samples of the dataset, by index (SPK_COLUMN_INDEX): ascending, each once. Order, length and epochs
     * are those of a dataset that has no others; a sample's crops are the same as in the whole. NULL: all. Frames
     * without any of them are not read. */
    const uint64_t *indices;
    size_t index_count;
    uint32_t local_world_size; /* ranks on this machine, which share its processors where workers are not given; 0: 1 */
    int reserved;
} spk_loader_options;

/* How much a loader will need, before it is made. */
typedef struct spk_loader_estimate {
    uint64_t shared_bytes;    /* catalog and slots */
    uint64_t worker_bytes;    /* private memory of each worker */
    uint64_t shuffle_samples; /* samples held in shuffle buffers by this rank */
    uint64_t shuffle_bytes;
    uint64_t lanes;   /* of this rank */
    uint64_t batches; /* per epoch */
    uint32_t workers;
    uint32_t slots;
} spk_loader_estimate;

typedef struct spk_loader_stats {
    uint64_t batches, samples, padded, substituted;
    uint64_t wait_ns;        /* time the caller spent waiting in next */
    uint64_t worker_busy_ns; /* sum over workers */
    uint64_t bytes_read;     /* compressed bytes of frames */
    uint64_t frames_read;
    uint64_t images_decoded;
    uint64_t ready_sum;    /* batches ready at each next, summed: occupancy = ready_sum / batches */
    uint64_t restarts;     /* workers replaced */
    uint64_t copies;       /* batches handed out as private copies */
    uint64_t shared_lanes; /* lanes that this rank reads beside another rank */
    /* Of a dataset by URL, all mirrors together; 0 for a folder. */
    uint64_t mirrors, net_requests, net_bytes, net_retries, net_failovers, net_hedges;
    uint64_t cache_hits, cache_hit_bytes; /* frames, tails and tables that came from the cache */
    uint64_t cache_misses;                /* those that did not, though there is one */
    uint64_t pinned;                      /* 1: the slots are page-locked */
    uint64_t pin_ns;                      /* time that page-locking them took */
    uint64_t uploads, upload_bytes;       /* columns copied to a device, and their bytes */
    uint64_t upload_wait_ns;              /* time spent in next because all slots waited for a device */
} spk_loader_stats;

/* One mirror of a dataset by URL. */
typedef struct spk_mirror_stats {
    const char *url; /* without user, password and query; borrowed from the dataset */
    uint64_t requests, bytes;
    uint64_t retries;   /* requests made again to this mirror */
    uint64_t failovers; /* requests that came to it after another one failed */
    uint64_t hedges;    /* second requests while a first one stalled */
    uint64_t no_connection, broken, stalled, denied, missing, throttled, server_errors, bad_replies, changed;
    uint64_t wrong_bytes;            /* replies that did not match their SHA-256 */
    double latency_p50, latency_p99; /* seconds from request to first byte; 0: none yet */
    uint32_t codes[500];             /* requests that failed by HTTP status: codes[s - 100] had status s */
} spk_mirror_stats;

/* The dataset is borrowed until close. Errors: INVALID (naming the option and its range), LIMIT (memory, with numbers),
 * WORKER, NOMEM, IO; with pinned memory UNSUPPORTED (no CUDA runtime), DEVICE. */
SPK_API SPK_CHECK spk_status spk_loader_open(spk_loader **out, const spk_dataset *dataset,
                                             const spk_loader_options *options, spk_error *err);
SPK_API SPK_CHECK spk_status spk_loader_estimate_memory(const spk_dataset *dataset, const spk_loader_options *options,
                                                        spk_loader_estimate *out, spk_error *err);
/* The next batch; SPK_END once at the end of each epoch (the next call begins the next epoch). The batch is borrowed
 * until released; it may be written to. WORKER, FORMAT, CHECKSUM, IO errors end the epoch: every later call repeats the
 * error. Workers that are killed are replaced (up to 100 times for one batch); one that crashes three times at the same
 * row, or lacks memory three times in a batch, is a WORKER error that names the sample. */
SPK_API SPK_CHECK spk_status spk_loader_next(spk_loader *loader, spk_batch **out, spk_error *err);
/* Gives a batch back; NULL is fine. Batches may be released in any order, each exactly once: the batch is gone after
 * it. What was queued on streams for it (gpu.h) is waited for before its memory is used again. */
SPK_API void spk_batch_release(spk_batch *batch);
/* Ends the loader: stops workers, frees everything but batches still held. NULL is fine. */
SPK_API void spk_loader_close(spk_loader *loader);

/* Nonzero if spk_loader_next would not wait: a batch, the end of the epoch or an error is there. */
SPK_API int spk_loader_ready(spk_loader *loader);

/* Batches per epoch of this rank, exact. */
SPK_API uint64_t spk_loader_length(const spk_loader *loader);
/* Starts `epoch` from its beginning, whatever was under way; batches held stay valid. */
SPK_API SPK_CHECK spk_status spk_loader_set_epoch(spk_loader *loader, uint32_t epoch, spk_error *err);
/* Passes over the next `count` batches of the epoch, at most to its end, without making them. What was being prepared
 * is dropped. Position and state are those behind the last one passed over. */
SPK_API SPK_CHECK spk_status spk_loader_skip(spk_loader *loader, uint64_t count, spk_error *err);
/* Epoch and number of samples of the whole epoch's order delivered by all ranks so far. */
SPK_API void spk_loader_position(const spk_loader *loader, uint32_t *epoch, uint64_t *samples);
SPK_API void spk_loader_get_stats(const spk_loader *loader, spk_loader_stats *out);
/* Mirror i (< stats.mirrors); SPK_END behind the last. */
SPK_API SPK_CHECK spk_status spk_loader_get_mirror(const spk_loader *loader, size_t i, spk_mirror_stats *out);

/* State after the last batch that next returned, as JSON text of a few hundred bytes; free with spk_free. */
SPK_API SPK_CHECK spk_status spk_loader_state_save(const spk_loader *loader, char **out, spk_error *err);
/* Continues from a state: same dataset and plan options, any workers, ranks and batch size. CHANGED names what differs.
 */
SPK_API SPK_CHECK spk_status spk_loader_state_restore(spk_loader *loader, const char *state, spk_error *err);

/* ---- batches ---- */

typedef struct spk_view {
    spk_column_kind kind;
    spk_dtype dtype;   /* of data, for fixed columns */
    uint32_t ndim;     /* fixed columns: 1 or 4 */
    uint64_t shape[4]; /* shape[0] = rows */
    const void *data;  /* fixed columns: C-contiguous. Variable columns: base of all values */
    uint64_t bytes;    /* of data, fixed columns */
    /* Variable columns: value i is data + offsets[2 i], offsets[2 i + 1] bytes long. Where that offset is 0 there is
     * none: the sample lacks the field, or the row is substituted; an empty value has another. */
    const uint64_t *offsets;
} spk_view;

/* Rows of the batch, padded ones included. */
SPK_API uint64_t spk_batch_rows(const spk_batch *batch);
/* Rows that are neither padded nor substituted. */
SPK_API uint64_t spk_batch_valid_rows(const spk_batch *batch);
/* Number of the batch in its epoch, and position of its first row in the epoch's order. */
SPK_API uint64_t spk_batch_number(const spk_batch *batch);
SPK_API uint64_t spk_batch_position(const spk_batch *batch);
/* Column i in the order of the options. Pointers live as long as the batch. */
SPK_API SPK_CHECK spk_status spk_batch_column(const spk_batch *batch, size_t i, spk_view *out, spk_error *err);

#ifdef __cplusplus
}
#endif

#endif
