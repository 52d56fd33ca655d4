/* Source over borrowed memory, for tests and fuzzers. */
#include "io/source.h"

#include <stdlib.h>
#include <string.h>

struct source_mem {
    spk_source base;
    const unsigned char *data;
    size_t size;
    char name[];
};

static spk_status mem_pread(spk_source *s, void *out, size_t n, uint64_t off, spk_error *err)
{
    (void)err;
    memcpy(out, ((struct source_mem *)s)->data + off, n);
    return SPK_OK;
}

static uint64_t mem_size(const spk_source *s)
{
    return ((const struct source_mem *)s)->size;
}

static const char *mem_name(const spk_source *s)
{
    return ((const struct source_mem *)s)->name;
}

static void mem_close(spk_source *s)
{
    free(s);
}

static const struct spk_source_ops mem_ops = {
    .pread = mem_pread, .size = mem_size, .name = mem_name, .close = mem_close};

spk_status spk_source_memory(spk_source **out, const void *data, size_t n, const char *name, spk_error *err)
{
    *out = NULL;
    size_t len = strlen(name) + 1;
    struct source_mem *m = malloc(sizeof *m + len);
    if (!m)
        return spk_error_nomem(err, sizeof *m + len);
    m->base.ops = &mem_ops;
    m->data = data;
    m->size = n;
    memcpy(m->name, name, len);
    *out = &m->base;
    return SPK_OK;
}
