/* Reading a source file while packing: it must still be what the scan saw. Errors name SRC/path (archives: SRC:
 * member): CHANGED if the file vanished, is no regular file any more, has another size, or was written to since; else
 * what the system says. */
#ifndef SPK_PACK_READ_H
#define SPK_PACK_READ_H

#include <stdbool.h>

#include "pack/input.h"

typedef struct spk_reading {
    int src_fd;                 /* borrowed */
    const char *src;            /* for messages */
    bool follow;                /* symbolic links */
    const spk_archive *archive; /* src is this archive: files are pieces of it. NULL: a folder */
} spk_reading;

/* Reads the whole file into out, which has room for its scanned size and one more byte. */
SPK_CHECK spk_status spk_read_whole(const spk_reading *r, const char *path, const spk_input_file *file, uint8_t *out,
                                    spk_error *err);

/* Reads the file piece by piece through chunk (chunk_n bytes) and hands the pieces to sink. */
SPK_CHECK spk_status spk_read_pieces(const spk_reading *r, const char *path, const spk_input_file *file, uint8_t *chunk,
                                     size_t chunk_n,
                                     spk_status (*sink)(void *ctx, const void *p, size_t n, spk_error *err), void *ctx,
                                     spk_error *err);

#endif
