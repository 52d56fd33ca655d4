/* The seek table: the public "zstd seekable format" 0.1.0 with checksums (contrib/seekable_format of the zstd project),
 * as restricted by format-spec/shard.md section 6. Pure functions over memory. */
#ifndef SPK_SHARD_SEEK_TABLE_H
#define SPK_SHARD_SEEK_TABLE_H

#include <shardpack/error.h>

#include "base/buf.h"

typedef struct spk_seek_entry {
    uint32_t bytes;    /* compressed */
    uint32_t content;  /* decompressed */
    uint32_t checksum; /* low 32 bits of XXH64 of the content */
} spk_seek_entry;

/* Bytes of the whole table, skippable header included, for n entries. */
static inline uint64_t spk_seek_table_bytes(uint64_t n)
{
    return 17 + 12 * n;
}

/* Appends the table to out. */
SPK_CHECK spk_status spk_seek_table_encode(spk_buf *out, const spk_seek_entry *entries, size_t n, spk_error *err);

/* From the last 9 bytes of a file of `file_bytes` bytes: number of entries and bytes per entry. Every bound is checked
 * before anything is allocated: magic, reserved bits, checksum flag, entries <= 2^27, table <= file. */
SPK_CHECK spk_status spk_seek_footer_parse(const uint8_t footer[9], uint64_t file_bytes, uint64_t *entries,
                                           spk_error *err);
/* Parses the whole table (header to footer, spk_seek_table_bytes(n) bytes). Sizes must add up to the file. *out is
 * malloc'ed, the caller's. */
SPK_CHECK spk_status spk_seek_table_parse(const uint8_t *p, size_t bytes, uint64_t file_bytes, spk_seek_entry **out,
                                          size_t *n, spk_error *err);

#endif
