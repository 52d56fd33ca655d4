/* What the target holds already. */
#ifndef SPK_PACK_EXISTING_H
#define SPK_PACK_EXISTING_H

#include "pack/plan.h"
#include "pack/target.h"

/* *up_to_date: every dataset of the target is there, was packed by the same plan from files that were not written to
 * since, and no shard is missing; result then has its totals. EXISTS if one of them holds something else. */
SPK_CHECK spk_status spk_existing_check(spk_target *t, const spk_input *in, const spk_pack_plan_digest *digest,
                                        bool *up_to_date, spk_pack_result *result, spk_error *err);

#endif
