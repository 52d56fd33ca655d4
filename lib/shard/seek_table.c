/* The seek table of the zstd seekable format, with checksums: encode, and parse with every bound checked first. Pure.
 */
#include "shard/seek_table.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "shard/format.h"

#define FLAGS_CHECKSUM 0x80u
#define ENTRY_BYTES 12u

spk_status spk_seek_table_encode(spk_buf *out, const spk_seek_entry *entries, size_t n, spk_error *err)
{
    if (n > SPK_FRAMES_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "seek table of %zu entries: at most %u are allowed", n, SPK_FRAMES_MAX);
    SPK_TRY(spk_buf_reserve(out, (size_t)spk_seek_table_bytes(n), err));
    SPK_TRY(spk_buf_u32(out, SPK_SEEK_FRAME_MAGIC, err));
    SPK_TRY(spk_buf_u32(out, (uint32_t)(spk_seek_table_bytes(n) - SPK_SKIP_HEADER), err));
    for (size_t i = 0; i < n; i++) {
        SPK_TRY(spk_buf_u32(out, entries[i].bytes, err));
        SPK_TRY(spk_buf_u32(out, entries[i].content, err));
        SPK_TRY(spk_buf_u32(out, entries[i].checksum, err));
    }
    SPK_TRY(spk_buf_u32(out, (uint32_t)n, err));
    const uint8_t flags = FLAGS_CHECKSUM;
    SPK_TRY(spk_buf_append(out, &flags, 1, err));
    return spk_buf_u32(out, SPK_SEEK_MAGIC, err);
}

spk_status spk_seek_footer_parse(const uint8_t footer[9], uint64_t file_bytes, uint64_t *entries, spk_error *err)
{
    uint32_t n = spk_le32_load(footer);
    uint8_t flags = footer[4];
    uint32_t magic = spk_le32_load(footer + 5);
    if (magic == 0)
        return spk_error_set(err, SPK_E_FORMAT,
                             "the file ends with zeros instead of a seek table: padded, or not written to its end");
    if (magic != SPK_SEEK_MAGIC)
        return spk_error_set(err, SPK_E_FORMAT, "no seek table at the end: truncated, or not a shardpack shard");
    if ((flags & 0x7F) != 0)
        return spk_error_set(err, SPK_E_FORMAT, "seek table: reserved bits are set (descriptor 0x%02x)", flags);
    if (!(flags & FLAGS_CHECKSUM))
        return spk_error_set(err, SPK_E_FORMAT, "seek table: has no checksums, not a shardpack shard");
    if (n > SPK_FRAMES_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "seek table: %u entries, at most %u are allowed", n, SPK_FRAMES_MAX);
    if (spk_seek_table_bytes(n) > file_bytes)
        return spk_error_set(err, SPK_E_FORMAT, "seek table: %u entries need %llu bytes, the file has %llu", n,
                             (unsigned long long)spk_seek_table_bytes(n), (unsigned long long)file_bytes);
    *entries = n;
    return SPK_OK;
}

/* The sizes must fill the file up to the table; more is a lie or a cut, less means that something stands in front. */
static spk_status check_sum(uint64_t frames, uint64_t table, uint64_t file, spk_error *err)
{
    uint64_t total = 0;
    if (!spk_add_u64(frames, table, &total) || total > file)
        return spk_error_set(err, SPK_E_FORMAT,
                             "seek table: frames of %llu bytes and the table of %llu do not fit the file of %llu bytes",
                             (unsigned long long)frames, (unsigned long long)table, (unsigned long long)file);
    if (total < file)
        return spk_error_set(err, SPK_E_FORMAT,
                             "seek table: accounts for %llu of the file's %llu bytes: %llu stand in front of them (two "
                             "shards concatenated?)",
                             (unsigned long long)total, (unsigned long long)file, (unsigned long long)(file - total));
    return SPK_OK;
}

spk_status spk_seek_table_parse(const uint8_t *p, size_t bytes, uint64_t file_bytes, spk_seek_entry **out, size_t *n,
                                spk_error *err)
{
    *out = NULL;
    *n = 0;
    uint64_t count = 0, sum = 0;
    if (bytes < SPK_SKIP_HEADER + SPK_SEEK_FOOTER)
        return spk_error_set(err, SPK_E_FORMAT, "seek table: %zu bytes are too few", bytes);
    SPK_TRY(spk_seek_footer_parse(p + bytes - SPK_SEEK_FOOTER, file_bytes, &count, err));
    if (spk_seek_table_bytes(count) != bytes)
        return spk_error_set(err, SPK_E_FORMAT, "seek table: %llu entries do not fill its %zu bytes",
                             (unsigned long long)count, bytes);
    if (spk_le32_load(p) != SPK_SEEK_FRAME_MAGIC)
        return spk_error_set(err, SPK_E_FORMAT, "seek table: does not begin where its %llu entries would end it",
                             (unsigned long long)count);
    if (spk_le32_load(p + 4) != bytes - SPK_SKIP_HEADER)
        return spk_error_set(err, SPK_E_FORMAT, "seek table: header says %u bytes, footer %zu", spk_le32_load(p + 4),
                             bytes - SPK_SKIP_HEADER);
    const uint8_t *e = p + SPK_SKIP_HEADER;
    for (uint64_t i = 0; i < count; i++)
        sum += spk_le32_load(e + ENTRY_BYTES * i); /* at most 2^27 terms below 2^32 */
    SPK_TRY(check_sum(sum, bytes, file_bytes, err));
    if (count == 0)
        return SPK_OK;
    spk_seek_entry *entries = malloc((size_t)count * sizeof *entries);
    if (!entries)
        return spk_error_nomem(err, (size_t)count * sizeof *entries);
    for (uint64_t i = 0; i < count; i++, e += ENTRY_BYTES)
        entries[i] = (spk_seek_entry){spk_le32_load(e), spk_le32_load(e + 4), spk_le32_load(e + 8)};
    *out = entries;
    *n = (size_t)count;
    return SPK_OK;
}
