/* Reading shards: open one .tar.zst shard, list its samples from the index, iterate and fetch them.
 *
 * Format: format-spec/shard.md. Everything read is checked: the tail when the shard is opened, each frame's checksum
 * when it is decompressed (and its SHA-256 before that, with verify_full), each tar header against the index. */
#ifndef SHARDPACK_SHARD_H
#define SHARDPACK_SHARD_H

#include <shardpack/error.h>
#include <shardpack/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open shard with its index in memory.
 * Thread-safety: read-shareable (functions taking a const spk_shard may run concurrently). */
typedef struct spk_shard spk_shard;

/* A position in a shard or dataset, with the frame that holds it.
 * Thread-safety: confined (one thread at a time; different readers are independent). */
typedef struct spk_reader spk_reader;

typedef struct spk_shard_options {
    size_t size;     /* sizeof(spk_shard_options) */
    int verify_full; /* nonzero: check every frame's SHA-256 digest before decompressing it */
    int reserved;
    /* The rest is for a shard by URL, and as in spk_dataset_options. */
    double deadline;
    int plain_credentials;
    int reserved2;
    int (*on_wait)(void *user);
    void *user;
} spk_shard_options;

/* What the shard's index says of itself. */
typedef struct spk_shard_stat {
    uint64_t samples;
    uint64_t frames;       /* data frames */
    uint64_t bytes;        /* of the file */
    uint64_t tar_bytes;    /* of the decompressed tar */
    uint64_t index_offset; /* byte position of the index frame: end of the last data frame */
} spk_shard_stat;

/* One member of a sample, as listed by the index. Pointers are borrowed from the shard and live as long as it. */
typedef struct spk_member {
    const char *field;    /* logical name, NUL-terminated, such as "jpg" */
    const char *encoding; /* "identity", or the name of a stored encoding */
    const char *path;     /* original path relative to the source, NUL-terminated bytes; NULL if the packer made the
                             member itself (a label) */
    uint64_t offset;      /* of the member's data in the decompressed tar, bytes */
    uint64_t size;        /* of the data, bytes */
    uint64_t original;    /* of the field as readers give it, bytes: size unless it is stored in an encoding */
} spk_member;

/* A field of a sample that was read. data is borrowed: valid until the next call on the reader. */
typedef struct spk_field {
    const char *name;
    const char *encoding; /* how the shard holds it: "identity", or the name of a stored encoding */
    const char *path;
    const void *data;  /* the field as it was packed; after spk_reader_set_stored the bytes that the shard holds */
    size_t size;       /* of data, bytes */
    uint64_t original; /* of the field as it was packed, bytes */
} spk_field;

/* A sample that was read; everything is borrowed from the reader, valid until its next call. */
typedef struct spk_sample {
    const char *key;
    uint64_t number; /* in the reader's order: in the dataset, or in the shard if the reader is on one shard */
    uint64_t shard;  /* shard number in the dataset, 0 if the reader is on one shard */
    uint64_t frame;  /* frame in the shard */
    size_t field_count;
    const spk_field *fields; /* in the order of the tar, which is by field name */
} spk_sample;

/* Opens the shard at a local path or a URL (file://, http://, https://, s3://) and reads its tail; no data frame is
 * read. Errors: NOT_FOUND, IO, FORMAT, CHECKSUM, UNSUPPORTED, LIMIT, NOMEM, and of URLs INVALID, PERMISSION, NETWORK.
 * On error *out is NULL. Close with spk_shard_close. */
SPK_API SPK_CHECK spk_status spk_shard_open(spk_shard **out, const char *path, const spk_shard_options *options,
                                            spk_error *err);
SPK_API void spk_shard_close(spk_shard *shard);

SPK_API void spk_shard_get_stat(const spk_shard *shard, spk_shard_stat *out);

/* Key of sample number i (< samples); NULL if out of range. */
SPK_API const char *spk_shard_key(const spk_shard *shard, uint64_t i);
/* Data frame that holds sample i. */
SPK_API uint64_t spk_shard_frame_of(const spk_shard *shard, uint64_t i);
/* Number of members of sample i; 0 if out of range. */
SPK_API size_t spk_shard_member_count(const spk_shard *shard, uint64_t i);
/* Member m of sample i. INVALID if out of range. */
SPK_API SPK_CHECK spk_status spk_shard_get_member(const spk_shard *shard, uint64_t i, size_t m, spk_member *out,
                                                  spk_error *err);
/* Number of the sample with this key. NOT_FOUND if there is none. Linear in the number of samples. */
SPK_API SPK_CHECK spk_status spk_shard_find(const spk_shard *shard, const char *key, uint64_t *out, spk_error *err);

/* A reader on one shard, positioned before sample `first` (0 to samples). The shard is borrowed and must outlive it. */
SPK_API SPK_CHECK spk_status spk_reader_open_shard(spk_reader **out, const spk_shard *shard, uint64_t first,
                                                   spk_error *err);
/* The next sample in stored order; SPK_END after the last one. After a FORMAT, CHECKSUM, LIMIT or UNSUPPORTED error the
 * next call goes on behind the sample, frame or shard that failed; any other error may come again. */
SPK_API SPK_CHECK spk_status spk_reader_next(spk_reader *reader, const spk_sample **out, spk_error *err);
/* With stored not 0, the samples that follow come with the bytes that the shard holds: nothing is made anew that is
 * stored in an encoding. image.h decodes JPEG so (two to three times as fast as the files) and makes the files of it.
 * An encoding that this version does not know is UNSUPPORTED as ever. */
SPK_API void spk_reader_set_stored(spk_reader *reader, int stored);
/* Moves to before sample `number`; the next spk_reader_next reads it. A frame already held is not read again. */
SPK_API SPK_CHECK spk_status spk_reader_seek(spk_reader *reader, uint64_t number, spk_error *err);
SPK_API void spk_reader_close(spk_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
