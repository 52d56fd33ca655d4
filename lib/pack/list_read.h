/* Private to the list reader: what its parts share. */
#ifndef SPK_PACK_LIST_READ_H
#define SPK_PACK_LIST_READ_H

#include <jansson.h>

#include "pack/list.h"

typedef struct spk_list_cell {
    char *text; /* ends with NUL, in the record */
    size_t n;
} spk_list_cell;

struct spk_list {
    spk_list_format format;
    spk_list_fill fill;
    void *ctx;
    spk_buf raw; /* from `at`: bytes not yet handed out */
    size_t at;
    uint64_t bytes, row;
    bool ended;
    spk_list_cell *cells; /* of the current record */
    size_t cells_n, cells_cap;
    spk_buf header; /* texts of the header's cells */
    spk_list_cell *columns;
    size_t columns_n;
    size_t path_column, label_column; /* SIZE_MAX: none */
    json_t *json;                     /* JSON Lines: the current object */
    char *dump;                       /* CSV, TSV: the current "json" text */
    spk_buf text;                     /* JSON Lines: the same */
};

/* A label as text: digits are a number. */
SPK_CHECK spk_status spk_list_set_label(spk_list_row *row, const char *text, size_t n, spk_error *err);

/* Splits a record in place into l->cells. */
SPK_CHECK spk_status spk_list_split(spk_list *l, char *record, size_t n, spk_error *err);
/* Keeps l->cells as the header. */
SPK_CHECK spk_status spk_list_header(spk_list *l, spk_error *err);
SPK_CHECK spk_status spk_list_cells_row(spk_list *l, spk_list_row *row, spk_error *err);
SPK_CHECK spk_status spk_list_json_row(spk_list *l, const char *record, size_t n, spk_list_row *row, spk_error *err);

#endif
