/* Datasets: a manifest, its shard table, and the shards they name. Format: format-spec/dataset.md. */
#ifndef SHARDPACK_DATASET_H
#define SHARDPACK_DATASET_H

#include <shardpack/error.h>
#include <shardpack/shard.h>
#include <shardpack/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open dataset: manifest and catalog in memory, shards opened on demand.
 * Thread-safety: read-shareable (functions taking a const spk_dataset may run concurrently). */
typedef struct spk_dataset spk_dataset;

typedef struct spk_dataset_options {
    size_t size;     /* sizeof(spk_dataset_options) */
    int verify_full; /* passed on to every shard that is opened */
    int reserved;
    /* The rest is for datasets opened by URL. */
    const char *const *mirrors; /* base URLs (http, https, s3) that hold the same files, beside those in the manifest */
    size_t mirror_count;
    double deadline;       /* seconds that one read may take, with all retries; 0: SHARDPACK_DEADLINE, or 60 */
    const char *cache_dir; /* keep what was read there; NULL: SHARDPACK_CACHE_DIR, or no cache; "": no cache */
    uint64_t cache_limit;  /* bytes; 0: SHARDPACK_CACHE_LIMIT, or 90 % of what is free */
    int plain_credentials; /* nonzero: credentials may be sent over http://; SHARDPACK_PLAIN_CREDENTIALS=1 does the same
                            */
    int reserved2;
    /* Called while a call waits for a server, some ten times a second, from the thread that made the call. Nonzero ends
     * the wait: CANCELLED. It must not use the dataset. May be NULL. */
    int (*on_wait)(void *user);
    void *user;
} spk_dataset_options;

typedef struct spk_dataset_stat {
    uint64_t samples;
    uint64_t shards;
    uint64_t frames;
    uint64_t bytes;         /* of all shard files */
    uint64_t tar_bytes;     /* decompressed */
    uint64_t payload_bytes; /* of the source files stored */
    int shuffled;           /* nonzero: samples were shuffled when packed */
    int reserved;
} spk_dataset_stat;

/* A row of the shard table. path is borrowed from the dataset. */
typedef struct spk_shard_row {
    const char *path;      /* relative to the manifest */
    uint64_t first_sample; /* number of the shard's first sample in the dataset */
    uint64_t samples;
    uint64_t frames;
    uint64_t bytes;
    uint64_t tar_bytes;
    uint64_t index_offset;
    uint8_t tail_sha256[32]; /* of its index and seek table, which hold digests of all the rest */
} spk_shard_row;

typedef struct spk_field_stat {
    const char *name; /* borrowed from the dataset */
    const char *kind; /* "image", "label", "text", "json" or "bytes" */
    uint64_t samples; /* how many samples have it */
} spk_field_stat;

/* Opens a dataset by its folder, its manifest's path, or a URL of either: file://, http://, https://, s3://. Reads
 * manifest and table only. Errors: NOT_FOUND, IO, FORMAT, CHECKSUM, UNSUPPORTED, LIMIT, NOMEM, and of URLs INVALID,
 * PERMISSION, NETWORK. On error *out is NULL. */
SPK_API SPK_CHECK spk_status spk_dataset_open(spk_dataset **out, const char *path, const spk_dataset_options *options,
                                              spk_error *err);
SPK_API void spk_dataset_close(spk_dataset *dataset);

SPK_API void spk_dataset_get_stat(const spk_dataset *dataset, spk_dataset_stat *out);
/* 64 hex digits that identify the content: see format-spec/dataset.md. */
SPK_API const char *spk_dataset_fingerprint(const spk_dataset *dataset);
/* Folder of the manifest, without a trailing slash. */
SPK_API const char *spk_dataset_folder(const spk_dataset *dataset);
/* The manifest as read, NUL-terminated JSON text, for what has no accessor here. */
SPK_API const char *spk_dataset_manifest(const spk_dataset *dataset);

SPK_API size_t spk_dataset_class_count(const spk_dataset *dataset);
/* Name of class i (= label i): UTF-8, bytes that are not UTF-8 percent-escaped; NULL if out of range. */
SPK_API const char *spk_dataset_class_name(const spk_dataset *dataset, size_t i);
SPK_API size_t spk_dataset_field_count(const spk_dataset *dataset);
SPK_API SPK_CHECK spk_status spk_dataset_get_field(const spk_dataset *dataset, size_t i, spk_field_stat *out,
                                                   spk_error *err);

/* Row i of the shard table (i < shards). INVALID if out of range. */
SPK_API SPK_CHECK spk_status spk_dataset_get_shard(const spk_dataset *dataset, uint64_t i, spk_shard_row *out,
                                                   spk_error *err);
/* Opens shard i and checks size, tail digest and counts against the table. Close with spk_shard_close. */
SPK_API SPK_CHECK spk_status spk_dataset_open_shard(const spk_dataset *dataset, uint64_t i, spk_shard **out,
                                                    spk_error *err);
/* Shard and number within it of sample `number` of the dataset; O(log shards). */
SPK_API SPK_CHECK spk_status spk_dataset_locate(const spk_dataset *dataset, uint64_t number, uint64_t *shard,
                                                uint64_t *within, spk_error *err);
/* Number of the sample with this key. The first call reads every shard's index and keeps 16 bytes per sample.
 * Not const: exclusive access. */
SPK_API SPK_CHECK spk_status spk_dataset_find(spk_dataset *dataset, const char *key, uint64_t *out, spk_error *err);

/* A reader over the whole dataset in stored order, before sample `first` (0 to samples). The dataset is borrowed. */
SPK_API SPK_CHECK spk_status spk_reader_open(spk_reader **out, const spk_dataset *dataset, uint64_t first,
                                             spk_error *err);

/* ---- export ---- */

/* Index text for other readers. format "wids": the shard index of wids (url, samples and bytes of each shard; urls are
 * url_prefix, a slash if it lacks one, and the shard's path; url_prefix may be NULL). format "sizes": open_clip's
 * sizes.json (samples by shard file name). format "sha256": lines for `sha256sum -c` in the dataset's folder, one per
 * shard; reads all shards and checks their digests on the way, so that damage is an error (CHECKSUM, FORMAT, IO) and
 * never gets a sum. *text is NUL-terminated, to be released with spk_free. INVALID for another format; UNSUPPORTED if
 * "sizes" cannot tell two shards apart. */
SPK_API SPK_CHECK spk_status spk_dataset_export(const spk_dataset *dataset, const char *format, const char *url_prefix,
                                                char **text, spk_error *err);
/* Releases text that the library handed out; NULL is fine. */
SPK_API void spk_free(void *text);

/* ---- verify ---- */

typedef struct spk_verify_options {
    size_t size; /* sizeof(spk_verify_options) */
    int jobs;    /* threads; 0: the CPU quota */
    int reserved;
    /* One call per problem found, in order of shards, from the calling thread; may be NULL. */
    void (*on_problem)(void *user, const spk_error *problem);
    /* Called now and then from the calling thread with the bytes done; nonzero cancels. May be NULL. */
    int (*on_progress)(void *user, uint64_t bytes_done, uint64_t bytes_total);
    void *user;
    const spk_dataset_options *dataset; /* how it is opened; may be NULL */
} spk_verify_options;

typedef struct spk_verify_result {
    uint64_t problems;
    uint64_t shards;
    uint64_t samples;
    uint64_t bytes;
} spk_verify_result;

/* Reads every byte of the dataset (or of one shard, if path is a shard file), makes every file anew that is stored in
 * an encoding, and reports all problems. Returns SPK_OK if the check ran to its end, also when it found problems; see
 * result->problems. */
SPK_API SPK_CHECK spk_status spk_verify(const char *path, const spk_verify_options *options, spk_verify_result *result,
                                        spk_error *err);

/* ---- mirror ---- */

typedef struct spk_mirror_options {
    size_t size; /* sizeof(spk_mirror_options) */
    int jobs;    /* shards sent at a time; 0: 4 */
    int dry_run; /* look, and tell what would be sent */
    int prune;   /* afterwards remove shards and tables there that the manifest does not name */
    int reserved;
    const spk_dataset_options *source; /* how the dataset is opened; may be NULL */
    /* From the calling thread about ten times a second; nonzero cancels. May be NULL. */
    int (*on_progress)(void *user, uint64_t bytes_done, uint64_t bytes_total);
    void *user;
} spk_mirror_options;

typedef struct spk_mirror_result {
    uint64_t shards;       /* of the dataset */
    uint64_t shards_there; /* of those, right already */
    uint64_t bytes_sent;   /* on dry_run: that would be */
    uint64_t pruned_files;
    uint64_t pruned_bytes;
} spk_mirror_result;

/* Copies a dataset (folder or URL) to `dest`: a folder, s3://BUCKET/PREFIX, or an http(s):// URL whose server takes
 * PUT. What is there with the right size and digests is not sent again; a shard or table that is there and differs is
 * EXISTS and never overwritten. Every frame is checked on its way, every shard again at its destination. The manifest
 * comes last, so a reader there sees the old dataset or the new one. After any interruption the same call goes on.
 * INVALID if dest is the dataset itself. */
SPK_API SPK_CHECK spk_status spk_mirror(const char *dataset, const char *dest, const spk_mirror_options *options,
                                        spk_mirror_result *result, spk_error *err);

/* ---- cache ---- */

typedef struct spk_cache_stat {
    uint64_t entries; /* shards and tables, whole or in part */
    uint64_t bytes;
    uint64_t in_use; /* entries that some process has open */
} spk_cache_stat;

/* What is in a cache folder (the cache_dir of spk_dataset_options). NOT_FOUND if there is none. */
SPK_API SPK_CHECK spk_status spk_cache_get_stat(const char *cache_dir, spk_cache_stat *out, spk_error *err);
/* Removes what is not in use; *out tells what is left. Files of others are not touched. */
SPK_API SPK_CHECK spk_status spk_cache_clear(const char *cache_dir, spk_cache_stat *out, spk_error *err);

/* ---- prune ---- */

typedef struct spk_prune_options {
    size_t size; /* sizeof(spk_prune_options) */
    int dry_run; /* report only */
    int reserved;
    /* One call per file that goes (or would go); name is relative to the folder. May be NULL. */
    void (*on_file)(void *user, const char *name, uint64_t bytes);
    void *user;
} spk_prune_options;

typedef struct spk_prune_result {
    uint64_t files;
    uint64_t bytes;
} spk_prune_result;

/* Removes from a dataset's folder the shards, shard tables and abandoned work files that its manifest does not name. A
 * folder whose sub-folders are the splits of one packing is pruned with all of them.
 * Only files with names that shardpack gives are touched. BUSY while a packer works on the folder; INVALID for a URL.
 */
SPK_API SPK_CHECK spk_status spk_prune(const char *path, const spk_prune_options *options, spk_prune_result *result,
                                       spk_error *err);

#ifdef __cplusplus
}
#endif

#endif
