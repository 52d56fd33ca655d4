/* Parts of spk_verify: one shard at a time (verify_shard.c), threads over shards (verify_run.c), keys across shards
 * (verify_keys.c), and the order of it all (verify.c). */
#ifndef SPK_DATASET_VERIFY_H
#define SPK_DATASET_VERIFY_H

#include <stdatomic.h>

#include "dataset/dataset.h"

/* What is verified: a dataset, or one shard file (dataset is NULL). Read-only while threads run, but for the atomics.
 */
typedef struct spk_verify_target {
    spk_dataset *dataset;
    const char *shard_path;
    spk_source_options shard_options;
    uint64_t shards;
    uint64_t bytes;
    spk_manifest_field **fields; /* the manifest's, sorted by name */
    size_t fields_n;
    size_t *stored; /* by field: where its encodings begin in a list of all fields' encodings */
    size_t stored_n;
    atomic_uint_fast64_t bytes_done;
    atomic_bool stop;
} spk_verify_target;

/* A problem found, as small as it gets: there may be one per frame. */
typedef struct spk_verify_problem {
    spk_status code;
    int sys_errno;
    int64_t offset;
    char *text;
} spk_verify_problem;

/* Members of a field in one encoding. */
typedef struct spk_verify_stored {
    uint64_t samples, bytes, original;
} spk_verify_stored;

/* What came of one shard. Zero-initialise; free with spk_verify_shard_free. Confined to the thread that works on it. */
typedef struct spk_verify_shard {
    spk_status status; /* NOMEM, CANCELLED: the check could not run to its end */
    spk_error error;
    spk_verify_problem *problems;
    size_t problems_n, problems_cap;
    spk_keytab keys; /* folded hashes, numbers within the shard */
    uint64_t samples;
    bool counted;           /* the index could be read: the two below are known */
    uint64_t payload_bytes; /* of members that have an original path */
    uint64_t *field_samples;
    spk_verify_stored *stored; /* as the target's list */
} spk_verify_shard;

/* Whether threads are to end: for waits on servers. */
int spk_verify_stopped(void *target);
/* Verifies shard number i of the target. */
void spk_verify_one(spk_verify_target *t, uint64_t i, spk_verify_shard *out);
void spk_verify_shard_free(spk_verify_shard *s);
/* Hands one problem, filled in from an error record, to the list. */
SPK_CHECK spk_status spk_verify_note(spk_verify_shard *s, const spk_error *problem, spk_error *err);

/* Runs spk_verify_one over all shards with `jobs` threads. The calling thread gets the results in order through
 * on_shard, and on_tick about ten times a second; an error of either stops the run. */
typedef struct spk_verify_hooks {
    spk_status (*on_shard)(void *ctx, uint64_t i, spk_verify_shard *shard, spk_error *err);
    spk_status (*on_tick)(void *ctx, spk_error *err);
    void *ctx;
} spk_verify_hooks;
SPK_CHECK spk_status spk_verify_run(spk_verify_target *t, int jobs, const spk_verify_hooks *hooks, spk_error *err);

/* Sorts keys (folded hashes, numbers in the dataset) and reports every key that is there more than once. */
SPK_CHECK spk_status spk_verify_keys(const spk_dataset *d, spk_keytab *keys, const spk_problem_sink *sink,
                                     spk_error *err);

#endif
