/* Seek tables: the input is a table, in a file that it fits or (first byte odd) of a length that the input says. What
 * is accepted must encode to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "shard/format.h"
#include "shard/seek_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 9)
        return 0;
    uint64_t file = spk_le64_load(data + 1);
    const uint8_t *table = data + 9;
    size_t bytes = n - 9, count = 0;
    if (data[0] % 2 == 0) {
        file = bytes;
        for (size_t i = 8; i + 12 + SPK_SEEK_FOOTER <= bytes; i += 12)
            file += spk_le32_load(table + i);
    }
    spk_seek_entry *entries = NULL;
    spk_error err;
    uint64_t footer = 0;
    if (bytes >= SPK_SEEK_FOOTER &&
        spk_seek_footer_parse(table + bytes - SPK_SEEK_FOOTER, file, &footer, &err) == SPK_OK &&
        spk_seek_table_bytes(footer) > file)
        abort();
    if (spk_seek_table_parse(table, bytes, file, &entries, &count, &err) != SPK_OK)
        return 0;
    spk_buf again = {0};
    if (spk_seek_table_encode(&again, entries, count, &err) != SPK_OK || again.len != bytes ||
        memcmp(again.data, table, bytes) != 0)
        abort();
    spk_buf_free(&again);
    free(entries);
    return 0;
}
