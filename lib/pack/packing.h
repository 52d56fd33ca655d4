/* One call of spk_pack or spk_repack. */
#ifndef SPK_PACK_PACKING_H
#define SPK_PACK_PACKING_H

#include "pack/build.h"
#include "pack/target.h"

/* All that it owns. */
typedef struct spk_packing spk_packing;
struct spk_packing {
    spk_pack_options o; /* settled */
    const char *src;
    int src_fd;           /* -1: a dataset opened by URL, or not yet open */
    spk_dataset *dataset; /* the source, until the input has it; NULL: a folder or an archive */
    /* Called once the input is known; may be NULL. */
    spk_status (*scanned)(const spk_packing *p, spk_error *err);
    int64_t started_ns; /* CLOCK_REALTIME before the scan */
    spk_target target;
    spk_error unlocked; /* why the target could not be locked; code 0: it is, or need not be */
    spk_input in;
    spk_pack_plan plan;
    spk_pack_plan_digest digest;
    spk_build build;
    spk_pack_result *result;
};

/* From the source to a published dataset. Frees all that *p owns, also on errors. */
SPK_CHECK spk_status spk_packing_run(spk_packing *p, const char *dst, spk_error *err);

#endif
