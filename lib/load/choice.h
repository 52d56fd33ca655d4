/* Which samples of a dataset an epoch is made of: all, or those with the given indices. The plan counts the chosen ones
 * alone, from 0 on, in stored order; shards without any are not in it. */
#ifndef SPK_LOAD_CHOICE_H
#define SPK_LOAD_CHOICE_H

#include <shardpack/dataset.h>
#include <shardpack/error.h>

typedef struct spk_choice {
    const uint64_t *indices; /* ascending, each once; borrowed. NULL: all */
    uint64_t n;
} spk_choice;

#define SPK_CHOICE_CHARS 33u /* of its name: 32 hex digits; empty: all */

/* INVALID if there is none, if they are not ascending, or one is not below `samples`. */
SPK_CHECK spk_status spk_choice_check(const spk_choice *c, uint64_t samples, spk_error *err);
/* How many of a shard's samples are chosen. *at: place in indices, 0 for the first shard, moved on. */
uint64_t spk_choice_count(const spk_choice *c, const spk_shard_row *row, uint64_t *at);
/* Takes from the figures of a dataset what is not chosen: samples, and shards and frames that hold none, frames as
 * their shards have on average; the sizes stay those of the dataset. */
SPK_CHECK spk_status spk_choice_narrow(const spk_choice *c, const spk_dataset *dataset, spk_dataset_stat *stat,
                                       spk_error *err);
/* Tells one choice from another: the first half of SHA-256 of the indices, 8 bytes each, the lowest first. */
SPK_CHECK spk_status spk_choice_name(const spk_choice *c, char out[SPK_CHOICE_CHARS], spk_error *err);

#endif
