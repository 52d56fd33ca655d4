/* The target folder of a pack, its work folder and those of its splits. Confined. */
#ifndef SPK_PACK_TARGET_H
#define SPK_PACK_TARGET_H

#include <shardpack/pack.h>
#include <stdbool.h>

#include "base/error.h"

/* A folder that becomes a dataset: the target itself, or one per split. */
typedef struct spk_target_folder {
    char *name; /* for messages */
    int fd;     /* -1: it does not exist yet */
    int lock;   /* -1: not locked */
    bool made;  /* by this run */
} spk_target_folder;

typedef struct spk_target {
    spk_target_folder top;
    int parent;                /* folder that holds the target; open while the target does not exist, else -1 */
    const char *base;          /* name in the parent; points into top.name */
    uint64_t dev, ino;         /* of the target, 0 if it does not exist yet */
    spk_target_folder *splits; /* one per split of the options; datasets[] of a run without splits is the top */
    size_t splits_n;
    int work;        /* the work folder, -1 while closed */
    char *work_name; /* for messages */
} spk_target;

/* Looks; changes nothing. t must be zeroed; freed by the caller with spk_target_free, also after errors. src_fd is -1
 * if the source lies elsewhere. INVALID if dst is the source folder or lies inside it; NOT_FOUND if its parent is
 * missing. */
SPK_CHECK spk_status spk_target_find(spk_target *t, const char *dst, int src_fd, const char *src, spk_error *err);
/* Opens those of the splits' folders that exist. */
SPK_CHECK spk_status spk_target_find_splits(spk_target *t, const spk_pack_options *o, spk_error *err);
/* Takes the top's lock, if it exists and is not yet locked. */
SPK_CHECK spk_status spk_target_lock(spk_target *t, spk_error *err);
/* Makes, opens and locks everything that is missing. */
SPK_CHECK spk_status spk_target_make(spk_target *t, const spk_pack_options *o, spk_error *err);
/* Removes the work folders with the locks, journal and files left over; with `undo` also folders made by this run if
 * they are empty. Nothing to do is fine; failures are ignored (prune finds what is left). */
void spk_target_clean(spk_target *t, bool undo);
/* Gives up the locks, and removes the work folders that hold nothing: after an error, when others stay for the next
 * run.
 */
void spk_target_unlock(spk_target *t);
void spk_target_free(spk_target *t);

/* The folder of dataset number i, and how many there are. */
static inline size_t spk_target_datasets(const spk_target *t)
{
    return t->splits_n ? t->splits_n : 1;
}
static inline spk_target_folder *spk_target_dataset(spk_target *t, size_t i)
{
    return t->splits_n ? &t->splits[i] : &t->top;
}

/* If name is "NNNNNN.part" or "NNNNNN.done" (done says which), its number; -1 if not. */
int64_t spk_target_work_file(const char *name, bool *done);
/* Calls on_name for every entry of a folder but "." and "..". */
SPK_CHECK spk_status spk_target_list(int fd, const char *name, void (*on_name)(void *ctx, const char *entry), void *ctx,
                                     spk_error *err);

#endif
