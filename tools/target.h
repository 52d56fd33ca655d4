/* What most commands work on: a dataset (folder, manifest or URL) or one shard file, under one face. */
#ifndef TOOLS_TARGET_H
#define TOOLS_TARGET_H

#include <shardpack/dataset.h>
#include <shardpack/shard.h>

#include "remote.h"

typedef struct target {
    const char *path;
    spk_dataset *dataset; /* NULL: one shard */
    spk_shard *shard;     /* NULL: a dataset */
    uint64_t samples, shards, frames, bytes, tar_bytes;
} target;

/* Both report what went wrong and return the exit status; t is closed by the caller in either case. */
int target_open(target *t, const char *path, const remote_values *remote);
int target_open_dataset(target *t, const char *path, const remote_values *remote);
void target_close(target *t);

/* Calls fn for each shard in order, opened; `first` is the number of its first sample. fn returns an exit status other
 * than 0 to stop. Returns that, or the status after a message. */
typedef int (*target_fn)(void *ctx, const spk_shard *shard, uint64_t number, uint64_t first);
int target_each(const target *t, target_fn fn, void *ctx);

/* A reader on the whole target, before sample `first`. */
int target_reader(const target *t, uint64_t first, spk_reader **out);
/* Path of a shard as the manifest has it; of a single shard: its file. */
const char *target_shard_path(const target *t, uint64_t number);

#endif
