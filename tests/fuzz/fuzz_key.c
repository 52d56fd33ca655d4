/* Any bytes as a path: stem, field and key must be valid, stable and in bounds. First byte: which rules. */
#include <stdlib.h>
#include <string.h>

#include "pack/filter.h"
#include "pack/names.h"
#include "shard/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char field[SPK_FIELD_MAX + 1], key[SPK_KEY_MAX + 1], again[SPK_KEY_MAX + 1];
    if (size == 0 || size > 65536)
        return 0;
    const char *path = (const char *)data + 1;
    size_t n = size - 1, stem = spk_name_stem(path, n, data[0] & 1 ? SPK_STEM_FIRST_DOT : SPK_STEM_LAST_DOT);
    spk_key_form hashed = (data[0] & 2) ? SPK_KEY_HASHED : SPK_KEY_PLAIN;
    if (stem > n)
        abort();
    spk_name_field(path, n, stem, field);
    if (spk_field_problem(field, strlen(field)))
        abort();
    (void)spk_name_is_exact(path, n, stem, field);
    if (spk_name_key(path, stem, hashed, key, NULL) != SPK_OK ||
        spk_name_key(path, stem, hashed, again, NULL) != SPK_OK)
        abort();
    if (spk_key_problem(key, strlen(key)) || strcmp(key, again) != 0)
        abort();
    /* An unchanged key is the stem; the key of a key is itself. */
    if (!hashed && strlen(key) == stem && memcmp(key, path, stem) != 0 && !strrchr(key, '-'))
        abort();
    if (spk_name_key(key, strlen(key), SPK_KEY_PLAIN, again, NULL) != SPK_OK || strcmp(key, again) != 0)
        abort();
    size_t cut = n / 3;
    (void)spk_glob_match(path, cut, path + cut, n - cut);
    return 0;
}
