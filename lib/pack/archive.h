/* A tar archive as a source: which members it has and where in the file their bytes lie, so that they can be read in
 * any order. Members that are tars themselves ("n01440764.tar" in ImageNet's archive) stand for folders, at any depth
 * up to
 * 8. Found with libarchive; nothing is unpacked. Confined while listing, shareable afterwards.
 */
#ifndef SPK_PACK_ARCHIVE_H
#define SPK_PACK_ARCHIVE_H

#include <shardpack/error.h>
#include <stdbool.h>

#include "base/buf.h"

typedef enum spk_archive_kind {
    SPK_ARCHIVE_FILE,
    SPK_ARCHIVE_FOLDER, /* also for an inner tar */
    SPK_ARCHIVE_SYMLINK,
    SPK_ARCHIVE_SPECIAL /* device, FIFO */
} spk_archive_kind;

/* A hard link is a FILE with the place of the member that it points to. */
typedef struct spk_archive_member {
    uint64_t path; /* offset in archive->paths, NUL-terminated, relative, plain; empty if it is no FILE and has none */
    uint64_t offset; /* of its data in the file */
    uint64_t size;
    uint32_t path_n;
    spk_archive_kind kind;
} spk_archive_member;

/* The archive, or an inner one. */
typedef struct spk_archive_part {
    uint64_t offset, size; /* in the file */
    uint64_t name;         /* offset in archive->names: the inner tar's path, ".tar" included */
    uint32_t name_n;       /* 0: the archive itself; without ".tar" it is the path of the folder */
    uint32_t parent;
    uint32_t depth;
} spk_archive_part;

typedef struct spk_archive {
    int fd; /* borrowed */
    uint64_t size;
    int64_t stamp;                 /* larger of mtime and ctime, ns */
    spk_buf paths;                 /* spk_archive_forget frees this */
    spk_archive_member *members;   /* and this */
    size_t members_n, members_cap; /* in the order of the archive, inner archives behind */
    spk_buf names;                 /* of the parts */
    spk_archive_part *parts;       /* parents before children */
    size_t parts_n, parts_cap;
} spk_archive;

/* Now and then with the members found so far; nonzero cancels. */
typedef int (*spk_archive_tick)(void *ctx, uint64_t members);

/* Lists the archive open at fd. tick may be NULL. Errors begin with "src: ", for an inner archive "src: inner.tar: ".
 * INVALID: not a tar; UNSUPPORTED: compressed, or a member that only unpacking could make sense of (sparse file);
 * FORMAT: damaged, truncated, data behind its end, a path that leaves the folder, a hard link to nothing; LIMIT. */
SPK_CHECK spk_status spk_archive_list(spk_archive **out, int fd, const char *src, int64_t stamp, spk_archive_tick tick,
                                      void *ctx, spk_error *err);
/* Frees the members; what spk_archive_prefix and readers need stays. */
void spk_archive_forget(spk_archive *a);
void spk_archive_free(spk_archive *a);

/* Puts "SRC: inner.tar: member" in front of the error, for the member whose data lies at that offset. */
void spk_archive_prefix(const spk_archive *a, const char *src, const char *path, uint64_t offset, spk_error *err);

/* Private to archive*.c. The same for a part itself: "SRC: inner.tar"; inner names are without the folders that their
 * parents stand for. */
void spk_archive_prefix_part(const spk_archive *a, const char *src, uint32_t part, spk_error *err);
/* The name of the compression that a file's first bytes tell, NULL if none. */
const char *spk_archive_compression(const uint8_t *p, size_t n);

#endif
