/* An open shard as the layers above use it; the public part is <shardpack/shard.h>. */
#ifndef SPK_SHARD_SHARD_H
#define SPK_SHARD_SHARD_H

#include <shardpack/shard.h>

#include "io/source.h"
#include "shard/frame.h"
#include "shard/index.h"
#include "shard/seek_table.h"

/* What the shard table promises; checked by spk_shard_open_source when given. */
typedef struct spk_shard_expect {
    uint64_t samples;
    uint64_t frames;
    uint64_t bytes;
    uint64_t tar_bytes;
    uint64_t index_offset;
    uint8_t tail_sha256[32];
} spk_shard_expect;

/* Takes the source (closed by spk_shard_close, and on error too). With expect, the tail is one read and its digest is
 * checked before it is parsed. Messages begin with the last path component of the source's name. */
SPK_CHECK spk_status spk_shard_open_source(spk_shard **out, spk_source *source_taken, const spk_shard_expect *expect,
                                           const spk_shard_options *options, spk_error *err);

const spk_index *spk_shard_index(const spk_shard *shard);
spk_source *spk_shard_source(const spk_shard *shard);
const char *spk_shard_name(const spk_shard *shard); /* for messages */
/* Compressed range of data frame f. */
void spk_shard_frame_range(const spk_shard *shard, uint64_t f, uint64_t *offset, uint32_t *bytes, uint32_t *content);

/* Reads, checks and parses one data frame: out (content bytes, the caller's buffer) receives the tar bytes. Checks, in
 * order: the SHA-256 digest if the shard was opened with verify_full or `digest` is nonzero, the zstd checksum (also
 * against the seek table's), then every tar header, its padding and the end marker against the index. scratch is reused
 * for the compressed bytes. */
SPK_CHECK spk_status spk_shard_read_frame(const spk_shard *shard, spk_frame_reader *decoder, uint64_t f, int digest,
                                          spk_buf *scratch, uint8_t *out, spk_error *err);

/* A reader over a run of shards: asks next_shard for shard number n when it gets there (borrowed until the next ask or
 * the end), so that dataset/ can build the dataset reader on it. */
typedef struct spk_reader_shards {
    spk_status (*get)(void *ctx, uint64_t n, const spk_shard **out, spk_error *err); /* SPK_END behind the last */
    spk_status (*locate)(void *ctx, uint64_t number, uint64_t *shard, uint64_t *within, spk_error *err);
    uint64_t (*first_of)(void *ctx, uint64_t shard); /* number of the shard's first sample */
    void (*close)(void *ctx);                        /* called by spk_reader_close */
    void *ctx;
} spk_reader_shards;
/* On error nothing is closed: the context stays the caller's. locate takes 0 to the number of samples. A FORMAT or
 * CHECKSUM error of get is passed on once, then the reader goes on with the next shard; other errors are met again. */
SPK_CHECK spk_status spk_reader_new(spk_reader **out, const spk_reader_shards *shards, uint64_t first, spk_error *err);

/* Everything wrong with one shard, problem by problem; on_problem gets each. Used by spk_verify. on_bytes is called
 * with the bytes read since its last call; nonzero stops with SPK_E_CANCELLED. SPK_OK means that the run came to its
 * end, with problems or without; *samples is what the index lists, 0 if it cannot be read. Only NOMEM and CANCELLED end
 * the run; the same from on_key, whose other errors are reported as problems. The source stays the caller's. */
typedef struct spk_shard_verify_hooks {
    void (*on_problem)(void *ctx, const spk_error *problem);
    int (*on_bytes)(void *ctx, uint64_t bytes);
    /* For uniqueness across shards; may be NULL. */
    spk_status (*on_key)(void *ctx, const char *key, size_t len, uint64_t sample, spk_error *err);
    void *ctx;
    /* At the end, if the shard could be opened as `expect` says; an error ends the run. May be NULL. */
    spk_status (*on_shard)(void *ctx, const spk_shard *shard, spk_error *err);
} spk_shard_verify_hooks;
SPK_CHECK spk_status spk_shard_verify(spk_source *source, const spk_shard_expect *expect,
                                      const spk_shard_verify_hooks *hooks, uint64_t *samples, spk_error *err);

#endif
