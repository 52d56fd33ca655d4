/* Private to mirror*.c: a destination, and the checked bytes of a shard on their way to it. */
#ifndef SPK_DATASET_MIRROR_H
#define SPK_DATASET_MIRROR_H

#include <stdatomic.h>

#include "dataset/dataset.h"
#include "io/put.h"

/* A shard's bytes, frame after frame, each checked by its SHA-256; then its tail. */
typedef struct spk_feed {
    const spk_dataset *dataset;
    uint64_t number;
    spk_shard *shard;
    spk_shard_expect expect;
    uint64_t frame;
    spk_buf piece;
} spk_feed;
SPK_CHECK spk_status spk_feed_open(spk_feed *f, const spk_dataset *d, uint64_t number, spk_error *err);
/* For spk_put_body: ctx is the feed. */
SPK_CHECK spk_status spk_feed_next(void *ctx, const uint8_t **p, size_t *n, spk_error *err);
SPK_CHECK spk_status spk_feed_rewind(void *ctx, spk_error *err);
void spk_feed_close(spk_feed *f);

typedef struct spk_dest {
    const char *name; /* as given */
    char *folder;     /* the same without the form of a file URL */
    int dirfd, lock;  /* of a folder; -1: not one */
    spk_net *net;     /* of a URL */
    char *shown;
} spk_dest;

/* ---- mirror_folder.c, mirror_net.c: the same for both kinds ---- */

/* Whether shard `number` is there and right; there and wrong is EXISTS. */
SPK_CHECK spk_status spk_folder_look(spk_dest *t, const spk_dataset *d, uint64_t number, bool *there, spk_error *err);
SPK_CHECK spk_status spk_net_look(spk_dest *t, spk_put *put, const spk_dataset *d, uint64_t number, bool *there,
                                  spk_error *err);
SPK_CHECK spk_status spk_folder_send(spk_dest *t, spk_feed *feed, int (*cancel)(void *, uint64_t), void *user,
                                     spk_error *err);
SPK_CHECK spk_status spk_net_send(spk_dest *t, spk_put *put, spk_feed *feed, spk_error *err);
/* Table (never overwritten if it differs) and manifest (replaced). */
SPK_CHECK spk_status spk_folder_publish(spk_dest *t, const spk_dataset *d, const spk_buf *table, spk_error *err);
SPK_CHECK spk_status spk_net_publish(spk_dest *t, spk_put *put, const spk_dataset *d, const spk_buf *table,
                                     spk_error *err);
SPK_CHECK spk_status spk_net_prune(spk_dest *t, spk_put *put, const spk_dataset *d, spk_mirror_result *result,
                                   spk_error *err);

/* All of a source against what the table says; *good is false if anything is wrong. */
SPK_CHECK spk_status spk_mirror_check(spk_source *source, const spk_shard_expect *expect, bool *good, spk_error *err);

#endif
