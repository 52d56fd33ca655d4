/* Building the planned shards in the work folder with worker threads: NNNNNN.part grows, becomes NNNNNN.done when it is
 * complete and durable, then gets its line in the journal. N is the shard's number in the plan.
 *
 * The unit of work is a frame. The frames of a shard are handed out in order and appended in order, so a worker may
 * wait for its turn but never for a worker that waits for it. Which worker builds what never shows in the bytes. */
#ifndef SPK_PACK_BUILD_H
#define SPK_PACK_BUILD_H

#include <stdatomic.h>

#include "pack/journal.h"
#include "pack/plan.h"
#include "pack/read.h"
#include "pack/tally.h"
#include "shard/writer.h"

#define SPK_WORK_NAME_MAX 32 /* "NNNNNN.part" */

typedef struct spk_build_done {
    bool done;
    bool published;      /* already at its final name */
    spk_shard_info info; /* samples 0: every sample was left out, there is no file */
} spk_build_done;

typedef struct spk_build {
    /* set by the caller, not changed by the workers */
    const spk_pack_plan *plan;
    spk_reading reading;
    int work_fd;
    const char *work_name; /* for messages */
    spk_journal *journal;
    uint64_t bytes_resumed;
    uint64_t shards_resumed;
    /* filled by earlier runs (journal) and this one; guarded by the build's lock while workers run */
    spk_build_done *done; /* one per planned shard */
    spk_tally *splits;    /* one per split: totals of its finished shards */
    /* progress */
    atomic_uint_fast64_t samples, bytes, bytes_out, bad;
} spk_build;

SPK_CHECK spk_status spk_build_init(spk_build *b, const spk_pack_plan *plan, spk_error *err);
void spk_build_free(spk_build *b);
/* Takes over a shard that is already finished; a second time is ignored. */
SPK_CHECK spk_status spk_build_resume(spk_build *b, uint32_t number, const spk_shard_info *info, const spk_tally *tally,
                                      spk_error *err);
/* Builds what is not done. On error all threads are joined, finished shards stay, unfinished files are removed. */
SPK_CHECK spk_status spk_build_run(spk_build *b, spk_error *err);

/* "NNNNNN.part" or "NNNNNN.done". */
void spk_work_name(char out[SPK_WORK_NAME_MAX], uint32_t number, const char *suffix);

#endif
