/* The shard table: a table that parses is, byte for byte, the one that its rows write. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static spk_status add(void *ctx, const spk_table_row *row, spk_error *err)
{
    return spk_table_add(ctx, row, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spk_buf out = {0};
    spk_error err;

    spk_error_clear(&err);
    if (spk_table_begin(&out, &err) != SPK_OK)
        abort();
    if (spk_table_parse((const char *)data, size, add, &out, &err) == SPK_OK) {
        if (out.len != size || memcmp(out.data, data, size) != 0)
            abort();
    } else if (err.code >= 0 || !err.text[0] || strchr(err.text, '\n')) {
        abort();
    }
    spk_buf_free(&out);
    return 0;
}
