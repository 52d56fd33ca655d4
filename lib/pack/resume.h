/* Taking over what an interrupted run finished: opens the journal and fills the build. */
#ifndef SPK_PACK_RESUME_H
#define SPK_PACK_RESUME_H

#include "pack/build.h"
#include "pack/target.h"

/* Opens b->journal in the target's work folder. Shards in it whose file is there, under its work name or already under
 * its final one, become done in b; all other work files are removed. */
SPK_CHECK spk_status spk_resume(spk_build *b, spk_target *t, const spk_pack_plan_digest *digest, spk_error *err);

/* Final name of a shard, relative to the target: "[SPLIT/]PREFIX-XXXXXXXX-NNNNNN.tar.zst"; number counts the split's
 * shards that have samples. */
#define SPK_FINAL_NAME_MAX 256
SPK_CHECK spk_status spk_final_name(char out[SPK_FINAL_NAME_MAX], const spk_pack_options *o, size_t split,
                                    const char *fingerprint, uint64_t number, spk_error *err);

#endif
