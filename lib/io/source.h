/* A byte source: positional reads from something of a known size. Everything that reads shards or manifests does so
 * through this type; retry, mirrors, caches and statistics are behind the same type.
 * Thread-safety: shareable (positional reads, no cursor). */
#ifndef SPK_IO_SOURCE_H
#define SPK_IO_SOURCE_H

#include <stdbool.h>

#include "base/error.h"

typedef struct spk_source spk_source;

/* What the bytes of a read must be. */
typedef struct spk_source_check {
    const uint8_t *digest; /* SHA-256, or its first bytes */
    size_t digest_bytes;
    uint64_t unit; /* number of the piece in the object, for a cache */
} spk_source_check;

struct spk_source_ops {
    /* Reads exactly n bytes at off, which lie inside the size. */
    spk_status (*pread)(spk_source *s, void *out, size_t n, uint64_t off, spk_error *err);
    uint64_t (*size)(const spk_source *s);
    /* For messages: path or URL. Lives as long as the source. */
    const char *(*name)(const spk_source *s);
    void (*close)(spk_source *s);
    /* The rest may be NULL. */
    spk_status (*pread_checked)(spk_source *s, void *out, size_t n, uint64_t off, const spk_source_check *check,
                                spk_error *err);
    void (*ahead)(spk_source *s, uint64_t from, uint64_t to, uint64_t until, uint64_t reader);
    void (*units)(spk_source *s, const uint64_t *offsets, const uint8_t (*digests)[16], uint64_t n);
    bool (*reject)(spk_source *s, uint64_t off, size_t n, uint64_t unit);
};

struct spk_source {
    const struct spk_source_ops *ops;
};

/* How a remote URL is read; a zero is the default. on_wait: as in net.h. */
typedef struct spk_source_options {
    double deadline;
    int plain_credentials;
    int (*on_wait)(void *user);
    void *user;
} spk_source_options;

/* Opens a local path or a "file://" URL (percent-decoded). Only regular files. A remote URL is asked
 * for its size; datasets open their objects through net.h. Other schemes: UNSUPPORTED. */
SPK_CHECK spk_status spk_source_open(spk_source **out, const char *url, spk_error *err);
SPK_CHECK spk_status spk_source_open_with(spk_source **out, const char *url, const spk_source_options *options,
                                          spk_error *err);
/* A source over borrowed memory, for tests and fuzzers. name is copied. */
SPK_CHECK spk_status spk_source_memory(spk_source **out, const void *data, size_t n, const char *name, spk_error *err);

/* Reads exactly n bytes. A range beyond the size is FORMAT ("ends at byte S, need N bytes at O"); text has no prefix.
 */
SPK_CHECK spk_status spk_source_pread(spk_source *s, void *out, size_t n, uint64_t off, spk_error *err);
/* The same for bytes whose digest is known. A remote source asks other mirrors before it gives up, and caches; another
 * one reads and compares. CHECKSUM: "SHA-256 mismatch at byte O". */
SPK_CHECK spk_status spk_source_pread_checked(spk_source *s, void *out, size_t n, uint64_t off,
                                              const spk_source_check *check, spk_error *err);
/* True if what it reads comes from strangers and is to be checked by digest before it is parsed. */
bool spk_source_is_remote(const spk_source *s);
/* A reader will go through [from, to) in order: fetching may begin, up to `until` as a start. Called again with the
 * same reader (a number that nobody else uses; 0: only once) and a larger `until`, fetching goes on up to there. Never
 * waits.
 */
void spk_source_ahead(spk_source *s, uint64_t from, uint64_t to, uint64_t until, uint64_t reader);
/* Where the pieces 0 .. n - 1 lie (piece i is offsets[i] .. offsets[i + 1]) and what they are; borrowed until close. */
void spk_source_units(spk_source *s, const uint64_t *offsets, const uint8_t (*digests)[16], uint64_t n);
/* The n bytes read at off were damaged. True if reading them again may give other ones. */
bool spk_source_reject(spk_source *s, uint64_t off, size_t n, uint64_t unit);
uint64_t spk_source_size(const spk_source *s);
const char *spk_source_name(const spk_source *s);
void spk_source_close(spk_source *s); /* NULL is fine */

#endif
