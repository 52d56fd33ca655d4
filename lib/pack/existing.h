/* What the target holds already. */
#ifndef SPK_PACK_EXISTING_H
#define SPK_PACK_EXISTING_H

#include "pack/plan.h"
#include "pack/target.h"

/* What spk_existing_check compares with. */
typedef struct spk_existing_want {
    const spk_input *in;
    const char *src; /* for messages */
    const spk_pack_plan_digest *digest;
    bool force;
} spk_existing_want;

/* *up_to_date: every dataset of the target is there, was packed by the same plan from files and folders that were not
 * written to since, and no shard is missing; result then has its totals. EXISTS if one of them holds something else, or
 * a shard that is damaged and would be in the way. With `force` nothing is up to date, and only such a shard is an
 * error. */
SPK_CHECK spk_status spk_existing_check(spk_target *t, const spk_existing_want *want, bool *up_to_date,
                                        spk_pack_result *result, spk_error *err);

/* EXISTS if a manifest's name is taken by something that is no file, which no new manifest could replace. *any: a
 * dataset has one. */
SPK_CHECK spk_status spk_existing_manifests(spk_target *t, bool *any, spk_error *err);

#endif
