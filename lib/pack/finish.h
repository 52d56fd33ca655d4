/* Publishing: finished shards get their final names, then tables, report and manifests are written, manifests last.
 * Every step may be repeated after a kill. */
#ifndef SPK_PACK_FINISH_H
#define SPK_PACK_FINISH_H

#include "pack/build.h"
#include "pack/target.h"

/* Before anything is built: whether a manifest can hold that many classes and fields, with names of that length. */
SPK_CHECK spk_status spk_finish_foresee(const spk_pack_plan *plan, const spk_pack_plan_digest *digest, spk_error *err);
/* started_ns: CLOCK_REALTIME when the scan began; becomes the manifests' time stamp, so that a source file written to
 * while packing is newer than they are. Fills result's totals and fingerprint. */
SPK_CHECK spk_status spk_finish(spk_build *b, spk_target *t, const spk_pack_plan_digest *digest, int64_t started_ns,
                                spk_pack_result *result, spk_error *err);

#endif
