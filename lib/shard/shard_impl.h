/* Inside of an open shard, shared by shard_open.c, shard.c, shard_frame.c and verify.c. */
#ifndef SPK_SHARD_SHARD_IMPL_H
#define SPK_SHARD_SHARD_IMPL_H

#include "shard/shard.h"

struct spk_shard {
    spk_source *source;
    int owns_source;
    int verify_full;
    const char *name; /* last path component of the source's name, borrowed from it */
    uint64_t bytes;
    uint64_t index_offset;
    size_t frames;           /* data frames */
    spk_seek_entry *entries; /* frames + 1: the index frame's is the last */
    uint64_t *offsets;       /* frames + 1: where each begins; the last is index_offset */
    uint64_t *tar_offsets;   /* frames + 1, in the tar */
    spk_index *index;
};

/* spk_shard_open_source without taking the source: the caller closes it after the shard. */
SPK_CHECK spk_status spk_shard_open_borrowed(spk_shard **out, spk_source *source, const spk_shard_expect *expect,
                                             spk_error *err);

/* The second half of spk_shard_read_frame: checks and decompresses the n compressed bytes of frame f at p. Text begins
 * with the frame. digest: NULL, or the SHA-256 of the bytes, to be compared with the index. */
SPK_CHECK spk_status spk_shard_decode_frame(const spk_shard *shard, spk_frame_reader *decoder, uint64_t f,
                                            const uint8_t *p, const uint8_t *digest, uint8_t *out, spk_error *err);

/* Last path component of a source's name. */
const char *spk_source_base_name(const spk_source *source);

/* Walks the frames of a file whose tail is of no use and describes what is there as one problem (err's text). */
SPK_CHECK spk_status spk_shard_walk(spk_source *source, const spk_shard_verify_hooks *hooks, spk_error *err);

#endif
