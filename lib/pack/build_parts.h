/* Private to build*.c: what a worker, an open shard and the run consist of. */
#ifndef SPK_PACK_BUILD_PARTS_H
#define SPK_PACK_BUILD_PARTS_H

#include <pthread.h>

#include "image/check.h"
#include "image/transcode_pixels.h"
#include "pack/build.h"
#include "pack/packed.h"
#include "shard/frame.h"
#include "shard/index.h"

#define SPK_NO_FRAME UINT32_MAX

/* A shard that is being built. */
typedef struct spk_open_shard {
    struct spk_open_shard *next; /* guarded by the run's lock, as all of this block */
    uint32_t number;
    uint32_t cursor;     /* in order[]: start of the frame to hand out next */
    uint32_t handed_out; /* frames */
    uint32_t last_frame; /* known after a restart, else SPK_NO_FRAME */
    uint32_t turn;       /* frame to append next */
    unsigned workers;
    /* owner: the worker whose turn it is */
    int fd;
    spk_shard_writer *writer;
    spk_tally tally;       /* of the frames appended up to the last that is not empty */
    spk_tally trail;       /* of the empty frames behind it */
    uint32_t last_stored;  /* frame that is not empty, SPK_NO_FRAME if there is none */
    uint64_t written;      /* bytes of frames */
    uint64_t flushed;      /* bytes whose writing to the disk was started */
    uint64_t seen_samples; /* counted in the progress */
    uint64_t seen_bytes;
} spk_open_shard;

typedef struct spk_run {
    spk_build *b;
    pthread_mutex_t lock;
    pthread_cond_t turns; /* a turn passed on, or stop */
    pthread_cond_t ended; /* a worker ended */
    /* guarded by lock */
    spk_open_shard *open;
    uint32_t next_shard;
    unsigned running;
    bool stop;
    spk_status status;
    spk_error error;
} spk_run;

/* A frame to build. */
typedef struct spk_task {
    spk_open_shard *shard;
    spk_pack_plan_frame frame;
    uint32_t number; /* in its shard */
    bool last;       /* ends with the end marker */
} spk_task;

/* What became of a member. */
typedef struct spk_stored_form {
    uint64_t size;
    uint64_t original; /* as readers give it back */
    spk_form form;
} spk_stored_form;

/* Confined to its thread. */
typedef struct spk_worker {
    spk_run *run;
    pthread_t thread;
    spk_frame_writer *zstd;
    spk_index_part *part;
    spk_image_checker *checker;   /* NULL: no check */
    spk_transcoder *transcoder;   /* NULL: JPEG stays as it is */
    spk_pixel_transcoder *pixels; /* NULL: so does JPEG that cannot be made anew */
    spk_packed *packed;           /* the source is a dataset; NULL: it is not */
    spk_buf stored;               /* the stored form of one file */
    spk_buf forms;                /* of the sample being read: a spk_stored_form for each member */
    spk_buf tar;                  /* the frame's content, or one file */
    spk_buf out;                  /* the compressed frame, or a piece of a file */
    spk_buf keep;                 /* a streamed frame: one byte per sample, nonzero if it is stored */
    spk_tally frame;              /* of the frame being built */
    spk_tally sample;             /* of the sample being read; no fields */
} spk_worker;

/* build_shard.c. Waits until frame `number` may be appended; CANCELLED, with no text, if the run stops. */
SPK_CHECK spk_status spk_turn_wait(spk_run *run, const spk_task *t);
/* True if it is the frame's turn already. */
bool spk_turn_came(spk_run *run, const spk_task *t);
/* The file is open and empty from here on; for the first frame of a shard. */
SPK_CHECK spk_status spk_open_shard_begin(spk_run *run, spk_open_shard *s, spk_error *err);
/* Takes in a frame whose bytes were written (info NULL: it is empty), finishes the shard after its last, and passes the
 * turn on. */
SPK_CHECK spk_status spk_turn_end(spk_worker *w, const spk_task *t, const spk_frame_info *info, spk_error *err);
void spk_open_shard_free(spk_run *run, spk_open_shard *s);

/* build_frame.c: builds and appends the task's frame. */
SPK_CHECK spk_status spk_task_run(spk_worker *w, const spk_task *t, spk_error *err);

/* build_sample.c: reads the files of a sample that are to be checked, or all of them, into w->tar as tar members (all)
 * or one after another into the same place, and checks the images. *stored tells whether the sample is to be stored; if
 * so, it is added to w->part and w->frame. */
SPK_CHECK spk_status spk_sample_read(spk_worker *w, uint32_t sample, bool all, bool *stored, spk_error *err);
/* Appends zeros up to the tar's next block. */
SPK_CHECK spk_status spk_tar_pad(spk_buf *tar, spk_error *err);

#endif
