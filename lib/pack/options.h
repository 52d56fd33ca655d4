/* Options of a pack with every default filled in and every bound checked. Pure; strings stay borrowed. */
#ifndef SPK_PACK_OPTIONS_H
#define SPK_PACK_OPTIONS_H

#include <shardpack/pack.h>

#include "base/error.h"

#define SPK_DEFAULT_SHARD_SIZE (256ull << 20)
#define SPK_DEFAULT_FRAME_SIZE (1ull << 20)
#define SPK_DEFAULT_FRAME_SAMPLES 64ull
#define SPK_DEFAULT_MAX_PIXELS 178956970ull
#define SPK_LEVEL_MIN (-100)
#define SPK_LEVEL_MAX 22
#define SPK_JOBS_MAX 1024
#define SPK_SPLITS_MAX 64u
#define SPK_PREFIX_MAX 64u

/* Copies `given` (NULL: all defaults; a caller's smaller struct: the rest zero) to out. What has no effect (the seed
 * without a shuffle, frame limits with a single frame, the image options without a check) becomes zero or its default,
 * so that it takes no part in comparisons. INVALID with the bound that is broken. */
SPK_CHECK spk_status spk_pack_options_settle(spk_pack_options *out, const spk_pack_options *given, spk_error *err);

/* Prefix of the shard names of split i (or of the only dataset): at most SPK_PREFIX_MAX bytes and a NUL. */
void spk_pack_prefix(const spk_pack_options *o, size_t split, char out[SPK_PREFIX_MAX + 1]);

#endif
