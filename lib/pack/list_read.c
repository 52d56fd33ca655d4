/* Cuts the stream into records and hands each to its format. */
#include "pack/list_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define FILL 65536u

spk_status spk_list_format_of(const char *name, spk_list_format *out, spk_error *err)
{
    const char *dot = strrchr(name, '.');
    *out = SPK_LIST_JSONL;
    if (strcmp(name, "-") == 0)
        return SPK_OK;
    if (dot && strcasecmp(dot, ".csv") == 0)
        *out = SPK_LIST_CSV;
    else if (dot && (strcasecmp(dot, ".tsv") == 0 || strcasecmp(dot, ".tab") == 0))
        *out = SPK_LIST_TSV;
    else if (!dot || (strcasecmp(dot, ".jsonl") != 0 && strcasecmp(dot, ".ndjson") != 0))
        return spk_error_set(err, SPK_E_INVALID,
                             "%s: unknown kind of list: the name must end in .csv, .tsv, .jsonl or .ndjson", name);
    return SPK_OK;
}

spk_status spk_list_new(spk_list **out, spk_list_format format, spk_list_fill fill, void *ctx, spk_error *err)
{
    spk_list *l = calloc(1, sizeof *l);
    if (!l)
        return spk_error_nomem(err, sizeof *l);
    l->format = format;
    l->fill = fill;
    l->ctx = ctx;
    l->path_column = l->label_column = SIZE_MAX;
    *out = l;
    return SPK_OK;
}

void spk_list_free(spk_list *l)
{
    if (!l)
        return;
    spk_buf_free(&l->raw);
    spk_buf_free(&l->header);
    spk_buf_free(&l->text);
    free(l->cells);
    free(l->columns);
    json_decref(l->json);
    free(l->dump);
    free(l);
}

/* Reads more behind what is there; drops what was handed out. */
static spk_status refill(spk_list *l, spk_error *err)
{
    if (l->at > 0)
        memmove(l->raw.data, l->raw.data + l->at, l->raw.len - l->at);
    l->raw.len -= l->at;
    l->at = 0;
    SPK_TRY(spk_buf_reserve(&l->raw, FILL + 1, err)); /* 1: room for a NUL behind the last record */
    ssize_t got = l->fill(l->ctx, l->raw.data + l->raw.len, FILL);
    if (got < 0)
        return spk_error_sys(err, errno, "read");
    l->ended = got == 0;
    l->raw.len += (size_t)got;
    l->bytes += (uint64_t)got;
    if (l->bytes > SPK_LIST_BYTES_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "list of more than %llu bytes", SPK_LIST_BYTES_MAX);
    return SPK_OK;
}

/* Where scanning for the end of a CSV record stands: a line feed inside quotes is data. */
typedef enum scan_state { CELL_START, PLAIN, QUOTED } scan_state;

static scan_state step(scan_state state, char c)
{
    if (state == QUOTED)
        return c == '"' ? PLAIN : QUOTED; /* a doubled quote comes back at once, below */
    if (c == ',')
        return CELL_START;
    return PLAIN;
}

/* Finds the record at l->at: its length without its line feed, and how far the next one is. SPK_END at the end. */
static spk_status find_record(spk_list *l, size_t *n, size_t *next, spk_error *err)
{
    scan_state state = CELL_START;
    bool closed = false; /* the last byte closed a quoted cell, or opens its doubled quote */
    for (size_t i = 0;; i++) {
        while (l->at + i >= l->raw.len && !l->ended)
            SPK_TRY(refill(l, err));
        bool at_end = l->at + i >= l->raw.len;
        char c = at_end ? '\n' : (char)l->raw.data[l->at + i];
        if (at_end && i == 0)
            return SPK_END;
        if (at_end && state == QUOTED)
            return spk_error_set(err, SPK_E_FORMAT, "a quoted cell has no end");
        if (c == '\n' && state != QUOTED) {
            *n = i;
            *next = at_end ? i : i + 1;
            return SPK_OK;
        }
        if (i >= SPK_LIST_ROW_MAX)
            return spk_error_set(err, SPK_E_LIMIT, "longer than the limit of %u bytes", SPK_LIST_ROW_MAX);
        if (l->format != SPK_LIST_CSV)
            continue;
        if (c == '"' && (state == CELL_START || closed)) {
            state = QUOTED;
            closed = false;
        } else {
            closed = state == QUOTED && c == '"';
            state = step(state, c);
        }
    }
}

/* Goes past a byte order mark, before which no cell begins. */
static spk_status skip_mark(spk_list *l, spk_error *err)
{
    while (l->raw.len - l->at < 3 && !l->ended)
        SPK_TRY(refill(l, err));
    if (l->raw.len - l->at >= 3 && memcmp(l->raw.data + l->at, "\xef\xbb\xbf", 3) == 0)
        l->at += 3;
    return SPK_OK;
}

static spk_status next_record(spk_list *l, char **record, size_t *n, spk_error *err)
{
    size_t next = 0;
    if (l->row++ == 0)
        SPK_TRY(skip_mark(l, err));
    spk_status status = find_record(l, n, &next, err);
    if (status != SPK_OK)
        return status;
    *record = (char *)l->raw.data + l->at;
    l->at += next;
    if (*n > 0 && (*record)[*n - 1] == '\r')
        --*n;
    if (memchr(*record, '\0', *n))
        return spk_error_set(err, SPK_E_FORMAT, "holds a NUL byte");
    (*record)[*n] = '\0'; /* its line end, or the spare byte */
    return SPK_OK;
}

static spk_status read_row(spk_list *l, spk_list_row *row, spk_error *err)
{
    char *record = NULL;
    size_t n = 0;
    for (;;) {
        spk_status status = next_record(l, &record, &n, err);
        if (status != SPK_OK)
            return status;
        *row = (spk_list_row){.number = l->row};
        if (n == 0)
            continue;
        if (l->format == SPK_LIST_JSONL)
            return spk_list_json_row(l, record, n, row, err);
        SPK_TRY(spk_list_split(l, record, n, err));
        if (l->columns)
            return spk_list_cells_row(l, row, err);
        SPK_TRY(spk_list_header(l, err));
    }
}

spk_status spk_list_next(spk_list *l, spk_list_row *row, spk_error *err)
{
    spk_status status = read_row(l, row, err);
    if (status < 0)
        spk_error_prefix(err, "row %llu", (unsigned long long)l->row);
    return status;
}

/* What looks like a number is none of a class's name: "-1" and the like are meant to have no label, which is an empty
 * one here, and "7.0" is what becomes of 7 in a table that lacks some labels. */
spk_status spk_list_set_label(spk_list_row *row, const char *text, size_t n, spk_error *err)
{
    size_t from = n > 1 && text[0] == '-' ? 1 : 0, digits = strspn(text + from, "0123456789"), end = from + digits;
    row->label = n == 0 ? SPK_LABEL_NONE : SPK_LABEL_TEXT;
    row->label_text = text;
    if (digits > 0 && end < n && text[end] == '.' && end + 1 + strspn(text + end + 1, "0123456789") == n)
        return spk_error_set(err, SPK_E_FORMAT, "label %.40s: neither a whole number nor a name", text);
    if (n == 0 || end < n)
        return SPK_OK;
    if (from > 0)
        return spk_error_set(err, SPK_E_FORMAT,
                             "label %.40s: less than 0 (leave it empty for a sample without a label)", text);
    int64_t v = 0;
    for (size_t i = 0; i < n && v <= INT32_MAX; i++)
        v = v * 10 + (text[i] - '0');
    if (v > INT32_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "label %.40s: larger than the limit of %d", text, INT32_MAX);
    row->label = SPK_LABEL_NUMBER;
    row->label_number = (int32_t)v;
    return SPK_OK;
}
