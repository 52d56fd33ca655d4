/* CSV and TSV records. Cells are unquoted in place. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "pack/list_read.h"

static spk_status add_cell(spk_list *l, char *text, size_t n, spk_error *err)
{
    SPK_TRY(spk_grow(&l->cells, &l->cells_cap, l->cells_n + 1, sizeof *l->cells, err));
    l->cells[l->cells_n++] = (spk_list_cell){text, n};
    return SPK_OK;
}

/* p is behind the opening quote. *next: behind the closing one. */
static spk_status unquote(spk_list *l, char *p, const char *end, char **next, spk_error *err)
{
    char *out = p, *text = p;
    for (; p < end; p++) {
        if (*p == '"') {
            if (p + 1 == end || p[1] != '"')
                break;
            p++;
        }
        *out++ = *p;
    }
    if (p == end)
        return spk_error_set(err, SPK_E_FORMAT, "column %zu: a quoted cell has no end", l->cells_n + 1);
    *next = p + 1;
    if (*next < end && **next != ',')
        return spk_error_set(err, SPK_E_FORMAT, "column %zu: text behind a closing quote", l->cells_n + 1);
    *out = '\0';
    return add_cell(l, text, (size_t)(out - text), err);
}

static spk_status split_csv(spk_list *l, char *p, char *end, spk_error *err)
{
    for (;;) {
        char *next = NULL;
        if (p < end && *p == '"') {
            SPK_TRY(unquote(l, p + 1, end, &next, err));
        } else {
            next = memchr(p, ',', (size_t)(end - p));
            next = next ? next : end;
            if (memchr(p, '"', (size_t)(next - p)))
                return spk_error_set(err, SPK_E_FORMAT, "column %zu: a quote inside a cell that is not quoted",
                                     l->cells_n + 1);
            SPK_TRY(add_cell(l, p, (size_t)(next - p), err));
        }
        if (next == end)
            return SPK_OK;
        *next = '\0';
        p = next + 1;
    }
}

static spk_status split_tsv(spk_list *l, char *p, char *end, spk_error *err)
{
    for (;;) {
        char *next = memchr(p, '\t', (size_t)(end - p));
        next = next ? next : end;
        SPK_TRY(add_cell(l, p, (size_t)(next - p), err));
        if (next == end)
            return SPK_OK;
        *next = '\0';
        p = next + 1;
    }
}

spk_status spk_list_split(spk_list *l, char *record, size_t n, spk_error *err)
{
    l->cells_n = 0;
    if (l->format == SPK_LIST_CSV)
        return split_csv(l, record, record + n, err);
    return split_tsv(l, record, record + n, err);
}

static int compare_cells(const void *a, const void *b)
{
    const spk_list_cell *x = a, *y = b;
    return strcmp(x->text, y->text);
}

/* Sorts l->cells, whose texts the header has already copied. */
static spk_status check_columns(spk_list *l, spk_error *err)
{
    qsort(l->cells, l->cells_n, sizeof *l->cells, compare_cells);
    for (size_t i = 0; i < l->cells_n; i++) {
        if (!spk_utf8_valid(l->cells[i].text, l->cells[i].n))
            return spk_error_set(err, SPK_E_FORMAT, "column name \"%s\" is not UTF-8", l->cells[i].text);
        if (i > 0 && strcmp(l->cells[i].text, l->cells[i - 1].text) == 0)
            return spk_error_set(err, SPK_E_FORMAT, "two columns are named \"%s\"", l->cells[i].text);
    }
    return SPK_OK;
}

spk_status spk_list_header(spk_list *l, spk_error *err)
{
    l->columns = calloc(l->cells_n, sizeof *l->columns);
    if (!l->columns)
        return spk_error_nomem(err, l->cells_n * sizeof *l->columns);
    for (size_t i = 0; i < l->cells_n; i++)
        SPK_TRY(spk_buf_append(&l->header, l->cells[i].text, l->cells[i].n + 1, err));
    char *p = (char *)l->header.data;
    for (size_t i = 0; i < l->cells_n; i++) {
        l->columns[i] = (spk_list_cell){p, l->cells[i].n};
        if (strcmp(p, "path") == 0)
            l->path_column = i;
        else if (strcmp(p, "label") == 0)
            l->label_column = i;
        p += l->cells[i].n + 1;
    }
    l->columns_n = l->cells_n;
    SPK_TRY(check_columns(l, err));
    if (l->path_column == SIZE_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "the header has no column \"path\"; its first column is \"%.100s\"",
                             l->columns[0].text);
    return SPK_OK;
}

/* All columns but path and label, as an object of strings in the order of the header. */
static spk_status dump_others(spk_list *l, spk_error *err)
{
    json_t *object = json_object();
    bool ok = object != NULL;
    for (size_t i = 0; ok && i < l->cells_n; i++)
        if (i != l->path_column && i != l->label_column)
            ok = json_object_set_new_nocheck(object, l->columns[i].text,
                                             json_stringn_nocheck(l->cells[i].text, l->cells[i].n)) == 0;
    free(l->dump);
    l->dump = ok ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return l->dump ? SPK_OK : spk_error_nomem(err, SPK_LIST_ROW_MAX);
}

spk_status spk_list_cells_row(spk_list *l, spk_list_row *row, spk_error *err)
{
    if (l->cells_n != l->columns_n)
        return spk_error_set(err, SPK_E_FORMAT, "%zu columns, the header has %zu", l->cells_n, l->columns_n);
    row->path = l->cells[l->path_column].text;
    bool has_label = l->label_column != SIZE_MAX;
    if (has_label)
        SPK_TRY(spk_list_set_label(row, l->cells[l->label_column].text, l->cells[l->label_column].n, err));
    if (l->columns_n == 1u + has_label)
        return SPK_OK;
    for (size_t i = 0; i < l->cells_n; i++)
        if (i != l->path_column && i != l->label_column && !spk_utf8_valid(l->cells[i].text, l->cells[i].n))
            return spk_error_set(err, SPK_E_FORMAT, "column \"%s\": not UTF-8", l->columns[i].text);
    SPK_TRY(dump_others(l, err));
    row->json = l->dump;
    return SPK_OK;
}
