/* An open dataset as dataset/ itself sees it; the public part is <shardpack/dataset.h>. */
#ifndef SPK_DATASET_DATASET_H
#define SPK_DATASET_DATASET_H

#include <shardpack/dataset.h>

#include "dataset/catalog.h"
#include "dataset/keytab.h"
#include "dataset/manifest.h"
#include "io/net.h"
#include "shard/shard.h"

struct spk_dataset {
    char *folder;
    char *manifest_path;
    char *table_path;
    char *text; /* manifest.json as read */
    spk_manifest manifest;
    spk_catalog catalog;
    int verify_full;
    spk_net *net;      /* opened by URL; else NULL */
    spk_net_vote vote; /* of its mirrors, on the manifest */
    /* Of spk_dataset_find, under its exclusive access: keys, and the shard looked at last. */
    spk_keytab keys;
    bool have_keys;
    spk_shard *shard;
    uint64_t shard_number;
};

/* Where problems go that leave the dataset usable (totals, digests): verify reports them and reads on. */
typedef struct spk_problem_sink {
    void (*on_problem)(void *ctx, const spk_error *problem);
    void *ctx;
} spk_problem_sink;

/* spk_dataset_open; with a sink, whatever can be told as a problem does not stop it. */
SPK_CHECK spk_status spk_dataset_load(spk_dataset **out, const char *path, const spk_dataset_options *options,
                                      const spk_problem_sink *sink, spk_error *err);

/* The source of shard i and what the table says of it. */
SPK_CHECK spk_status spk_dataset_open_shard_source(const spk_dataset *d, uint64_t i, spk_source **out,
                                                   spk_shard_expect *expect, spk_error *err);

/* remote.c: manifest and table by URL. */
/* Makes d->net, d->folder and d->manifest_path, and reads and parses the manifest. attempt: as for spk_net_fetch. */
SPK_CHECK spk_status spk_dataset_connect(spk_dataset *d, const char *url, const spk_dataset_options *options,
                                         size_t attempt, spk_error *err);
/* The table as a source over memory that *text holds. */
SPK_CHECK spk_status spk_dataset_fetch_table(const spk_dataset *d, uint8_t **text, spk_source **out, spk_error *err);
/* Reads and parses a manifest from its source into d->text and d->manifest. */
SPK_CHECK spk_status spk_dataset_parse(spk_dataset *d, spk_source *source, spk_error *err);

/* prune.c: names that shardpack gives, and so may remove. */
bool spk_is_shard_name(const char *name);
bool spk_is_table_name(const char *name);
/* Shards and table of a dataset, which stay. Made once and asked often. Borrows the dataset. */
typedef struct spk_kept {
    const spk_dataset *dataset;
    const char **paths; /* sorted */
} spk_kept;
SPK_CHECK spk_status spk_kept_make(spk_kept *k, const spk_dataset *d, spk_error *err);
bool spk_kept_has(const spk_kept *k, const char *name);
void spk_kept_free(spk_kept *k);

/* Appends what spk_dataset_export gives as "sha256". */
SPK_CHECK spk_status spk_export_sha256(const spk_dataset *d, spk_buf *out, spk_error *err);

/* Path or URL of the manifest that `path` means (malloc'ed). NOT_FOUND says what was looked for. */
SPK_CHECK spk_status spk_manifest_locate(const char *path, char **out, spk_error *err);
/* True if path is to be taken as one shard: a file, or a URL of one, that is no manifest. What is not there is one if
 * it is called like one. */
bool spk_path_is_shard(const char *path);
/* folder/name, malloc'ed. */
SPK_CHECK spk_status spk_path_join(char **out, const char *folder, const char *name, spk_error *err);
/* The path as it is if it is absolute or a URL, else behind the folder that the process is in now; malloc'ed. */
SPK_CHECK spk_status spk_path_absolute(char **out, const char *path, spk_error *err);

#endif
