/* What an archive and its parts are called, and letting go of it. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "pack/archive.h"

const char *spk_archive_compression(const uint8_t *p, size_t n)
{
    static const struct {
        const char *name;
        uint8_t n, magic[6];
    } kinds[] = {
        {"gzip", 3, {0x1f, 0x8b, 8}},           {"xz", 6, {0xfd, '7', 'z', 'X', 'Z', 0}},
        {"zstd", 4, {0x28, 0xb5, 0x2f, 0xfd}},  {"bzip2", 3, {'B', 'Z', 'h'}},
        {"lz4", 4, {0x04, 0x22, 0x4d, 0x18}},   {"zip", 4, {'P', 'K', 3, 4}},
        {"zip", 4, {'P', 'K', 5, 6}},           {"7z", 6, {'7', 'z', 0xbc, 0xaf, 0x27, 0x1c}},
        {"RAR", 5, {'R', 'a', 'r', '!', 0x1a}},
    };
    for (size_t i = 0; i < SPK_ARRAY_SIZE(kinds); i++)
        if (n >= kinds[i].n && memcmp(p, kinds[i].magic, kinds[i].n) == 0)
            return kinds[i].name;
    return NULL;
}

void spk_archive_prefix_part(const spk_archive *a, const char *src, uint32_t i, spk_error *err)
{
    for (; a->parts[i].name_n > 0; i = a->parts[i].parent) {
        const spk_archive_part *parent = &a->parts[a->parts[i].parent];
        const char *name = (const char *)a->names.data + a->parts[i].name;
        spk_error_prefix(err, "%s", name + (parent->name_n ? parent->name_n - 4 + 1 : 0));
    }
    spk_error_prefix(err, "%s", src);
}

void spk_archive_forget(spk_archive *a)
{
    spk_buf_free(&a->paths);
    free(a->members);
    a->members = NULL;
    a->members_n = a->members_cap = 0;
}

void spk_archive_free(spk_archive *a)
{
    if (!a)
        return;
    spk_archive_forget(a);
    spk_buf_free(&a->names);
    free(a->parts);
    free(a);
}

void spk_archive_prefix(const spk_archive *a, const char *src, const char *path, uint64_t offset, spk_error *err)
{
    size_t i = a->parts_n - 1; /* children come last: the first hit is the innermost */
    while (i > 0 && (offset < a->parts[i].offset || offset - a->parts[i].offset >= a->parts[i].size))
        i--;
    size_t skip = a->parts[i].name_n ? a->parts[i].name_n - 4 + 1 : 0;
    spk_error_prefix(err, "%s", path + (skip < strlen(path) ? skip : 0));
    spk_archive_prefix_part(a, src, (uint32_t)i, err);
}
