/* The manifest's "pack" object: versions and options in effect, nothing about the machine, its paths or the time. */
#ifndef SPK_PACK_DESCRIBE_H
#define SPK_PACK_DESCRIBE_H

#include <jansson.h>

#include "pack/options.h"
#include "pack/plan.h"
#include "pack/tally.h"

/* *out is malloc'ed JSON text, the caller's. split: number of the split, ignored if the options name none. */
SPK_CHECK spk_status spk_describe(char **out, const spk_pack_options *o, const spk_pack_plan_digest *digest,
                                  size_t split, const spk_tally *total, spk_error *err);

/* The object of a dataset that is repacked: that of the source (NULL: it has none), with what is different now. */
SPK_CHECK spk_status spk_describe_again(char **out, const char *source, const spk_pack_options *o,
                                        const spk_pack_plan_digest *digest, spk_error *err);
/* What an object says that repacking must keep; the rest of *o stays. */
void spk_describe_settings(const char *source, spk_pack_options *o, char prefix[SPK_PREFIX_MAX + 1]);

/* Private to describe*.c. Nonzero if memory is short. */
int spk_describe_jpeg(json_t *o, const spk_pack_options *opt);
uint64_t spk_describe_number(const json_t *o, const char *key);

/* What an existing manifest's object says about its plan; false if it is none of ours. */
typedef struct spk_described {
    char plan[65];
    uint64_t files, bad, skipped_samples;
} spk_described;
bool spk_describe_read(const char *text, spk_described *out);

#endif
