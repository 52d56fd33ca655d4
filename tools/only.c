/* Keys to indices, by the dataset's index of keys; the lines are kept for messages. */
#include "only.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct named {
    uint64_t index;
    size_t line;
} named;

typedef struct name_list {
    named *items;
    size_t n, room;
} name_list;

static int add(name_list *list, uint64_t index, size_t line)
{
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 1024;
        named *items = realloc(list->items, room * sizeof *items);
        if (!items)
            return cli_no_memory();
        list->items = items;
        list->room = room;
    }
    list->items[list->n++] = (named){index, line};
    return CLI_OK;
}

static int add_key(name_list *list, spk_dataset *dataset, const char *path, const char *key, size_t line)
{
    uint64_t index = 0;
    spk_error err;
    spk_error_clear(&err);
    spk_status st = spk_dataset_find(dataset, key, &index, &err);
    if (st == SPK_E_NOT_FOUND)
        return cli_error("%s: line %zu: no sample has the key \"%s\"", path, line, key);
    if (st < 0)
        return cli_fail(&err, NULL);
    return add(list, index, line);
}

static int read_keys(name_list *list, spk_dataset *dataset, const char *path, FILE *f)
{
    char *text = NULL;
    size_t room = 0, line = 0;
    ssize_t n = 0;
    int rc = CLI_OK;
    while (rc == CLI_OK && (n = getline(&text, &room, f)) >= 0) {
        line++;
        if (n > 0 && text[n - 1] == '\n')
            text[--n] = '\0';
        if (strlen(text) != (size_t)n)
            rc = cli_error("%s: line %zu: has a zero byte", path, line);
        else
            rc = add_key(list, dataset, path, text, line);
    }
    if (rc == CLI_OK && ferror(f))
        rc = cli_error("%s: %s", path, strerror(errno));
    if (rc == CLI_OK && list->n == 0)
        rc = cli_error("%s: names no sample", path);
    free(text);
    return rc;
}

static int compare(const void *a, const void *b)
{
    const named *x = a, *y = b;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int make_indices(const name_list *list, const char *path, uint64_t **out)
{
    uint64_t *indices = malloc(list->n * sizeof *indices);
    if (!indices)
        return cli_no_memory();
    for (size_t i = 0; i < list->n; i++) {
        indices[i] = list->items[i].index;
        if (i > 0 && indices[i] == indices[i - 1]) {
            free(indices);
            return cli_error("%s: line %zu: the same key as in line %zu", path, list->items[i].line,
                             list->items[i - 1].line);
        }
    }
    *out = indices;
    return CLI_OK;
}

int only_read(const char *path, spk_dataset *dataset, uint64_t **out, size_t *n)
{
    name_list list = {NULL, 0, 0};
    *out = NULL;
    *n = 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return cli_error("%s: %s", path, strerror(errno));
    int rc = read_keys(&list, dataset, path, f);
    fclose(f);
    if (rc == CLI_OK) {
        qsort(list.items, list.n, sizeof *list.items, compare);
        rc = make_indices(&list, path, out);
        *n = list.n;
    }
    free(list.items);
    return rc;
}
