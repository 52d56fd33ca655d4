/* A list from memory. First byte: format (low two bits) and how many bytes a read gives. Every row that comes out must
 * keep its promises; a "json" text must be an object. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "pack/list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct memory {
    const uint8_t *p;
    size_t n, step;
} memory;

static ssize_t fill(void *ctx, void *buf, size_t n)
{
    memory *m = ctx;
    n = n < m->n ? n : m->n;
    n = n < m->step ? n : m->step;
    if (n > 0)
        memcpy(buf, m->p, n);
    m->p += n;
    m->n -= n;
    return (ssize_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spk_list *list = NULL;
    spk_list_row row;
    spk_error err;
    uint64_t last = 0;
    if (size == 0)
        return 0;
    memory m = {data + 1, size - 1, data[0] & 4 ? 65536 : 1u + (data[0] >> 3)};
    if (spk_list_new(&list, (spk_list_format)((data[0] & 3) % 3), fill, &m, &err) != SPK_OK)
        abort();
    while (spk_list_next(list, &row, &err) == SPK_OK) {
        if (!row.path || row.number <= last || (row.label == SPK_LABEL_TEXT && row.label_text[0] == '\0'))
            abort();
        if (row.label == SPK_LABEL_NUMBER && row.label_number < 0)
            abort();
        last = row.number;
        if (!row.json)
            continue;
        json_t *json = json_loads(row.json, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(json) || json_object_size(json) == 0)
            abort();
        json_decref(json);
    }
    spk_list_free(list);
    return 0;
}
