/* Parsing the shard table, line by line and without a copy of it: format-spec/dataset.md section 4. What is accepted is
 * exactly what table_write.c writes: one spelling per table. */
#include "dataset/table.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

static const char *const column_names[SPK_TABLE_COLUMNS] = {"path",      "samples",      "frames",     "bytes",
                                                            "tar_bytes", "index_offset", "tail_sha256"};

/* A column's text within the line. */
typedef struct cell {
    const char *p;
    size_t n;
} cell;

/* The value as it appears in messages: long ones are cut. */
static int shown(const cell *c)
{
    return c->n < 80 ? (int)c->n : 80;
}

static spk_status bad_cell(const cell *c, int column, const char *what, spk_error *err)
{
    return spk_error_set(err, SPK_E_FORMAT, "column \"%s\": \"%.*s\" %s", column_names[column], shown(c), c->p, what);
}

static spk_status parse_number(const cell *c, int column, uint64_t min, uint64_t max, uint64_t *out, spk_error *err)
{
    uint64_t v = 0;
    bool digits = c->n > 0 && !(c->n > 1 && c->p[0] == '0');
    for (size_t i = 0; digits && i < c->n; i++)
        digits = c->p[i] >= '0' && c->p[i] <= '9';
    if (!digits)
        return bad_cell(c, column, "is not a number", err);
    for (size_t i = 0; i < c->n && v <= max; i++)
        v = i < 17 ? v * 10 + (uint64_t)(c->p[i] - '0') : UINT64_MAX;
    if (v < min || v > max)
        return spk_error_set(err, SPK_E_FORMAT, "column \"%s\": \"%.*s\" is not from %" PRIu64 " to %" PRIu64,
                             column_names[column], shown(c), c->p, min, max);
    *out = v;
    return SPK_OK;
}

static spk_status parse_digest(const cell *c, int column, uint8_t out[32], spk_error *err)
{
    if (!spk_unhex(out, SPK_SHA256_BYTES, c->p, c->n))
        return bad_cell(c, column, "is not 64 lower-case hex digits", err);
    return SPK_OK;
}

static spk_status split_line(const char *line, size_t n, cell cells[SPK_TABLE_COLUMNS], spk_error *err)
{
    const char *end = line + n;
    int count = 0;
    for (const char *p = line;;) {
        const char *tab = memchr(p, '\t', (size_t)(end - p));
        if (count < SPK_TABLE_COLUMNS)
            cells[count] = (cell){p, (size_t)((tab ? tab : end) - p)};
        count++;
        if (!tab)
            break;
        p = tab + 1;
    }
    if (count != SPK_TABLE_COLUMNS)
        return spk_error_set(err, SPK_E_FORMAT, "%d columns, expected %d", count, SPK_TABLE_COLUMNS);
    return SPK_OK;
}

static spk_status parse_row(const char *line, size_t n, char *path, spk_table_row *row, spk_error *err)
{
    cell c[SPK_TABLE_COLUMNS];
    SPK_TRY(split_line(line, n, c, err));
    const char *problem = spk_table_path_problem(c[0].p, c[0].n);
    if (problem)
        return bad_cell(&c[0], 0, problem, err);
    memcpy(path, c[0].p, c[0].n);
    path[c[0].n] = '\0';
    row->path = path;
    SPK_TRY(parse_number(&c[1], 1, 1, UINT32_MAX, &row->samples, err));
    uint64_t frames_max = row->samples < SPK_TABLE_FRAMES_MAX ? row->samples : SPK_TABLE_FRAMES_MAX;
    SPK_TRY(parse_number(&c[2], 2, 1, frames_max, &row->frames, err));
    SPK_TRY(parse_number(&c[3], 3, 1, SPK_NUMBER_MAX, &row->bytes, err));
    SPK_TRY(parse_number(&c[4], 4, 1, SPK_NUMBER_MAX, &row->tar_bytes, err));
    SPK_TRY(parse_number(&c[5], 5, 1, row->bytes - 1, &row->index_offset, err));
    return parse_digest(&c[6], 6, row->tail_sha256, err);
}

static spk_status parse_line(spk_table_parser *p, const char *line, size_t n, spk_error *err)
{
    if (p->line == 1) {
        if (n + 1 != strlen(SPK_TABLE_HEADER) || memcmp(line, SPK_TABLE_HEADER, n) != 0)
            return spk_error_set(err, SPK_E_FORMAT, "not the header of a shard table (\"#path\", \"samples\", ...)");
        return SPK_OK;
    }
    if (p->line - 1 > SPK_TABLE_ROWS_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "more than %" PRIu64 " shards", SPK_TABLE_ROWS_MAX);
    char path[SPK_TABLE_PATH_MAX + 1];
    spk_table_row row;
    SPK_TRY(parse_row(line, n, path, &row, err));
    return p->on_row(p->ctx, &row, err);
}

spk_status spk_table_feed(spk_table_parser *p, const char *text, size_t n, size_t *used, spk_error *err)
{
    size_t at = 0;
    *used = 0;
    while (at < n) {
        const char *newline = memchr(text + at, '\n', n - at);
        if (!newline)
            break;
        size_t len = (size_t)(newline - text) - at;
        p->line++;
        spk_status status = parse_line(p, text + at, len, err);
        if (status < 0) {
            spk_error_prefix(err, "line %" PRIu64, p->line);
            return status;
        }
        at += len + 1;
        *used = at;
    }
    if (n - at > SPK_TABLE_LINE_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "line %" PRIu64 ": longer than %u bytes", p->line + 1,
                             SPK_TABLE_LINE_MAX);
    return SPK_OK;
}

spk_status spk_table_end(const spk_table_parser *p, size_t left, spk_error *err)
{
    if (left > 0)
        return spk_error_set(err, SPK_E_FORMAT, "line %" PRIu64 ": no newline at its end", p->line + 1);
    if (p->line == 0)
        return spk_error_set(err, SPK_E_FORMAT, "line 1: missing, the shard table is empty");
    return SPK_OK;
}

spk_status spk_table_parse(const char *text, size_t n, spk_table_row_fn on_row, void *ctx, spk_error *err)
{
    spk_table_parser p = {on_row, ctx, 0};
    size_t used = 0;
    SPK_TRY(spk_table_feed(&p, text, n, &used, err));
    return spk_table_end(&p, n - used, err);
}
