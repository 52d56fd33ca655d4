/* Writing one shard: frames are built anywhere (spk_frame_writer, spk_index_part) and appended here in order.
 * Confined: the caller serialises the calls on one writer. */
#ifndef SPK_SHARD_WRITER_H
#define SPK_SHARD_WRITER_H

#include <shardpack/error.h>

#include "shard/frame.h"
#include "shard/index.h"

typedef struct spk_shard_writer spk_shard_writer;

typedef struct spk_shard_info {
    uint64_t samples;
    uint64_t frames; /* data frames */
    uint64_t bytes;
    uint64_t tar_bytes;
    uint64_t index_offset;
    uint8_t tail_sha256[32]; /* of index and seek table; the digest of the whole shard */
} spk_shard_info;

/* Writes to fd from its current position, which must be the start of an empty file; fd stays the caller's. name is for
 * messages, copied. */
SPK_CHECK spk_status spk_shard_writer_new(spk_shard_writer **out, int fd, const char *name, spk_error *err);
/* Compressed bytes of the frame that comes next; usable as spk_sink_fn with the writer as ctx. */
spk_status spk_shard_writer_bytes(void *writer, const void *p, size_t n, spk_error *err);
/* The frame whose bytes were just written is complete. */
SPK_CHECK spk_status spk_shard_writer_frame(spk_shard_writer *w, const spk_frame_info *info, const spk_index_part *part,
                                            spk_error *err);
/* Appends index and seek table. The last frame must have ended with the tar end marker (the caller's duty). No fsync.
 */
SPK_CHECK spk_status spk_shard_writer_finish(spk_shard_writer *w, spk_shard_info *out, spk_error *err);
void spk_shard_writer_free(spk_shard_writer *w);

#endif
