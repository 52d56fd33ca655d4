/* Writing the shard table: format-spec/dataset.md section 4. Pure functions over a buffer. */
#include "dataset/table.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

spk_status spk_table_begin(spk_buf *out, spk_error *err)
{
    return spk_buf_append(out, SPK_TABLE_HEADER, strlen(SPK_TABLE_HEADER), err);
}

const char *spk_table_path_problem(const char *path, size_t len)
{
    if (len == 0)
        return "is empty";
    if (len > SPK_TABLE_PATH_MAX)
        return "is longer than 255 bytes";
    for (size_t i = 0; i < len; i++) {
        char c = path[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
              c == '/' || c == '-'))
            return "has a byte outside [A-Za-z0-9._/-]";
    }
    if (path[0] == '/')
        return "is absolute";
    for (size_t at = 0; at <= len;) {
        const char *slash = memchr(path + at, '/', len - at);
        size_t n = slash ? (size_t)(slash - path) - at : len - at;
        if (n == 0)
            return "has an empty component";
        if (path[at] == '.' && (n == 1 || (n == 2 && path[at + 1] == '.')))
            return "has a \".\" or \"..\" component";
        at += n + 1;
    }
    return NULL;
}

spk_status spk_table_add(spk_buf *out, const spk_table_row *row, spk_error *err)
{
    const char *problem = spk_table_path_problem(row->path, strlen(row->path));
    if (problem)
        return spk_error_set(err, SPK_E_INVALID, "shard path \"%s\" %s", row->path, problem);
    char tail[SPK_SHA256_HEX];
    spk_hex(tail, row->tail_sha256, sizeof row->tail_sha256);
    return spk_buf_printf(out, err, "%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\n",
                          row->path, row->samples, row->frames, row->bytes, row->tar_bytes, row->index_offset, tail);
}
