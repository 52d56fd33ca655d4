/* A byte source: positional reads from something of a known size. Everything that reads shards or manifests does so
 * through this type; retry, mirrors, caches and statistics are wrappers of the same type.
 * Thread-safety: shareable (positional reads, no cursor). */
#ifndef SPK_IO_SOURCE_H
#define SPK_IO_SOURCE_H

#include "base/error.h"

typedef struct spk_source spk_source;

struct spk_source_ops {
    /* Reads exactly n bytes at off, which lie inside the size. */
    spk_status (*pread)(spk_source *s, void *out, size_t n, uint64_t off, spk_error *err);
    uint64_t (*size)(const spk_source *s);
    /* For messages: path or URL. Lives as long as the source. */
    const char *(*name)(const spk_source *s);
    void (*close)(spk_source *s);
};

struct spk_source {
    const struct spk_source_ops *ops;
};

/* Opens a local path or a "file://" URL (percent-decoded). Other schemes: UNSUPPORTED. Only regular files. */
SPK_CHECK spk_status spk_source_open(spk_source **out, const char *url, spk_error *err);
/* A source over borrowed memory, for tests and fuzzers. name is copied. */
SPK_CHECK spk_status spk_source_memory(spk_source **out, const void *data, size_t n, const char *name, spk_error *err);

/* Reads exactly n bytes. A range beyond the size is FORMAT ("ends at byte S, need N bytes at O"); text has no prefix.
 */
SPK_CHECK spk_status spk_source_pread(spk_source *s, void *out, size_t n, uint64_t off, spk_error *err);
uint64_t spk_source_size(const spk_source *s);
const char *spk_source_name(const spk_source *s);
void spk_source_close(spk_source *s); /* NULL is fine */

#endif
