/* The manifest's "pack" object: versions and options in effect, nothing about the machine, its paths or the time. */
#ifndef SPK_PACK_DESCRIBE_H
#define SPK_PACK_DESCRIBE_H

#include "pack/plan.h"
#include "pack/tally.h"

/* *out is malloc'ed JSON text, the caller's. split: number of the split, ignored if the options name none. */
SPK_CHECK spk_status spk_describe(char **out, const spk_pack_options *o, const spk_pack_plan_digest *digest,
                                  size_t split, const spk_tally *total, spk_error *err);

/* What an existing manifest's object says about its plan; false if it is none of ours. */
typedef struct spk_described {
    char plan[65];
    uint64_t files, bad, skipped_samples;
} spk_described;
bool spk_describe_read(const char *text, spk_described *out);

#endif
