/* The decompressed sample list of a shard index, and the uniqueness of keys; used by index_read.c. */
#ifndef SPK_SHARD_INDEX_LIST_H
#define SPK_SHARD_INDEX_LIST_H

#include "shard/index.h"

/* Least bytes of a sample in the list: length and one byte of key, number of members, and three bytes of a member. */
#define SPK_LIST_SAMPLE_MIN 6u

/* Fills fields, samples, members and strings of x, whose counts and frames stand. contents as in spk_index_parse. */
SPK_CHECK spk_status spk_index_list_parse(spk_index *x, const uint8_t *list, size_t bytes, const uint32_t *contents,
                                          spk_error *err);
/* Every key once, also when ASCII case is folded: FORMAT otherwise. */
SPK_CHECK spk_status spk_index_check_keys(const spk_index *x, spk_error *err);

#endif
