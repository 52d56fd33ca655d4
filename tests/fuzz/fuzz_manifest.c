/* manifest.json: whatever parses must encode, and the encoding must parse to the same encoding. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spk_manifest first = {0}, second = {0};
    spk_buf once = {0}, twice = {0};
    spk_error err;

    spk_error_clear(&err);
    if (spk_manifest_parse(&first, (const char *)data, size, &err) == SPK_OK) {
        must(spk_manifest_encode(&first, &once, &err) == SPK_OK);
        must(spk_manifest_parse(&second, (const char *)once.data, once.len, &err) == SPK_OK);
        must(spk_manifest_encode(&second, &twice, &err) == SPK_OK);
        must(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
    } else {
        must(err.code < 0 && err.text[0] && !strchr(err.text, '\n'));
    }
    spk_buf_free(&once);
    spk_buf_free(&twice);
    spk_manifest_free(&first);
    spk_manifest_free(&second);
    return 0;
}
