/* Putting a dataset's files in place so that readers see the old dataset or the new one. */
#ifndef SPK_DATASET_PUBLISH_H
#define SPK_DATASET_PUBLISH_H

#include <shardpack/error.h>

#include "dataset/manifest.h"
#include "dataset/table.h"

#define SPK_WORK_FOLDER ".shardpack"    /* in the dataset's folder, while a packer works */
#define SPK_WORK_LOCK ".shardpack/lock" /* flock(2): held while a packer or prune works */

/* Takes the lock of folder dirfd without waiting: BUSY if another process has it. Makes SPK_WORK_FOLDER if missing.
 * The lock goes with close(*lock_fd) or the process. */
SPK_CHECK spk_status spk_work_lock(int dirfd, const char *folder, int *lock_fd, spk_error *err);

/* Writes data to dirfd/name: temporary name, fsync, rename, fsync of the folder. Replaces name. */
SPK_CHECK spk_status spk_publish_file(int dirfd, const char *folder, const char *name, const void *data, size_t n,
                                      spk_error *err);
/* Moves a finished, fsynced file to its final name without ever overwriting: if `to` exists with the same bytes, `from`
 * is removed instead, otherwise EXISTS. */
SPK_CHECK spk_status spk_publish_move(int dirfd, const char *folder, const char *from, const char *to, spk_error *err);

/* Shard file name: PREFIX-XXXXXXXX-NNNNNN.tar.zst, X = first 8 of the fingerprint's 64 hex digits. */
SPK_CHECK spk_status spk_shard_file_name(char *out, size_t cap, const char *prefix, const char *fingerprint,
                                         uint64_t number, spk_error *err);
/* Shard table: shards-XXXXXXXX.tsv. */
SPK_CHECK spk_status spk_table_file_name(char *out, size_t cap, const char *fingerprint, spk_error *err);

#endif
