/* Puts files into a folder under names that come from a shard, which are not trusted: never outside the folder, never
 * through a symbolic link, never half-written under the final name, and over nothing that exists unless asked to. */
#ifndef TOOLS_PLACE_H
#define TOOLS_PLACE_H

#include <stddef.h>
#include <stdint.h>

typedef struct place {
    const char *root; /* as the user named it */
    int root_fd;
    int force;
    int parent_fd;       /* of the file before: files come folder by folder */
    char *parent;        /* its path, NULL: none */
    uint64_t (*seen)[2]; /* hashes of the paths written, an open-addressing set */
    size_t seen_count, seen_size;
} place;

/* Opens the folder, which is made if missing (its parent must exist). Returns the exit status. */
int place_open(place *p, const char *root, int force);
void place_close(place *p);
/* Writes a file. path: relative, any bytes; refused if it is empty, absolute, or has empty, "." or ".." components, or
 * was written before by this place. Returns the exit status, after a message. */
int place_write(place *p, const char *path, const void *data, size_t n);

/* One file at a path of the user's own, complete or not at all. */
int place_file(const char *path, const void *data, size_t n, int force);

#endif
