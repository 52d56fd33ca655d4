/* Private to scan.c and scan_folder.c: walkers that read folders side by side. */
#ifndef SPK_PACK_SCAN_WALK_H
#define SPK_PACK_SCAN_WALK_H

#include <pthread.h>

#include "pack/scan.h"

/* A folder still to be read; on the stack it lies behind its path. */
typedef struct spk_walk_folder {
    uint32_t len;   /* of the path, without a NUL */
    uint32_t depth; /* 0: the source itself */
    uint32_t junk;  /* below __MACOSX */
} spk_walk_folder;

typedef struct spk_walk {
    spk_scan *s; /* its input and classes are guarded by the lock while walkers run */
    pthread_mutex_t lock;
    pthread_cond_t more;  /* there is a folder to read, or nothing more will come */
    pthread_cond_t ended; /* a walker ended */
    bool alone;           /* one walker, in the caller's thread */
    /* guarded by lock */
    spk_buf stack;
    unsigned busy, running;
    bool stop;
    spk_status status;
    spk_error error;
} spk_walk;

typedef struct spk_folder_id {
    uint64_t dev, ino;
} spk_folder_id;

/* Confined to its thread. */
typedef struct spk_walker {
    spk_walk *walk;
    pthread_t thread;
    spk_folder_id *above; /* the folders that lead to the current one, by depth; kept when links are followed, alone */
    size_t above_cap;
    char path[SPK_SCAN_PATH_MAX + 1];
    size_t folder_n; /* bytes of the current folder's path in it, with its '/' */
    spk_walk_folder now;
    bool empty; /* nothing of use in the current folder so far */
    /* found since the last delivery */
    spk_buf files;   /* struct stat, size_t and the path, one behind the other */
    spk_buf folders; /* as on the stack */
    unsigned found;
    uint64_t junk, other_skipped, excluded, excluded_folders, empty_folders;
} spk_walker;

/* Reads w->now, whose path is in w->path, and delivers what is in it. */
SPK_CHECK spk_status spk_walk_folder_read(spk_walker *w, spk_error *err);
/* Notes the current folder's times, as spk_scan_around does. */
SPK_CHECK spk_status spk_walk_around(spk_walker *w, const struct stat *st, spk_error *err);
/* Hands over what was found. CANCELLED, with no text, if the walk stops. */
SPK_CHECK spk_status spk_walk_deliver(spk_walker *w, spk_error *err);

#endif
