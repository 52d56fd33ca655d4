/* zstd: one frame in, one frame out. The only file pair that knows libzstd. */
#ifndef SPK_SHARD_FRAME_H
#define SPK_SHARD_FRAME_H

#include <shardpack/error.h>

/* Where compressed bytes go; called zero or more times per spk_frame_write. */
typedef spk_status (*spk_sink_fn)(void *ctx, const void *p, size_t n, spk_error *err);

/* Compresses frames one after another. Memory: about 2 MiB, independent of the frame. Confined. */
typedef struct spk_frame_writer spk_frame_writer;

SPK_CHECK spk_status spk_frame_writer_new(spk_frame_writer **out, spk_error *err);
/* Starts a frame of exactly `content` bytes: content size and checksum are recorded. level as in libzstd. */
SPK_CHECK spk_status spk_frame_begin(spk_frame_writer *w, int level, uint64_t content, spk_sink_fn sink, void *ctx,
                                     spk_error *err);
SPK_CHECK spk_status spk_frame_write(spk_frame_writer *w, const void *p, size_t n, spk_error *err);
/* Ends the frame. Gives its compressed size, the low 32 bits of XXH64 of its content (as in the frame's last 4 bytes),
 * and the first 16 bytes of the SHA-256 of its compressed bytes. */
typedef struct spk_frame_info {
    uint64_t bytes;
    uint64_t content;
    uint32_t checksum;
    uint8_t digest[16];
} spk_frame_info;
SPK_CHECK spk_status spk_frame_end(spk_frame_writer *w, spk_frame_info *out, spk_error *err);
void spk_frame_writer_free(spk_frame_writer *w);
/* Version of libzstd in use. */
const char *spk_zstd_version(void);

/* Decompresses whole frames. Confined. */
typedef struct spk_frame_reader spk_frame_reader;

SPK_CHECK spk_status spk_frame_reader_new(spk_frame_reader **out, spk_error *err);
/* Decompresses one frame of n bytes into exactly `content` bytes at out. Before anything is written: the frame's header
 * must record that content size and a checksum, its end must lie at n. FORMAT or CHECKSUM otherwise. */
SPK_CHECK spk_status spk_frame_decode(spk_frame_reader *r, const void *p, size_t n, void *out, size_t content,
                                      spk_error *err);
void spk_frame_reader_free(spk_frame_reader *r);

/* For walking a file without a table: size and content of the frame that begins at p, if its header is as above.
 * SPK_END if n bytes do not hold it whole. Nothing is decompressed. */
SPK_CHECK spk_status spk_frame_probe(const void *p, size_t n, size_t *bytes, uint64_t *content, spk_error *err);
/* Most content that a frame of that many bytes can have; more is a false claim. */
uint64_t spk_frame_content_bound(uint64_t bytes);

#endif
