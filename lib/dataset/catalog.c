/* Reading the shard table into the catalog. Confined while it is read, read-shareable afterwards. */
#include "dataset/catalog.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "dataset/table.h"

#define PIECE (1u << 20)

typedef struct filler {
    spk_catalog *catalog;
    spk_sha256 *fingerprint;
    bool ascending; /* each path above the one before: none can be there twice */
} filler;

static spk_status add_up(uint64_t *sum, uint64_t v, const char *column, spk_error *err)
{
    if (!spk_add_u64(*sum, v, sum) || *sum > SPK_NUMBER_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "column \"%s\": its sum is above %" PRIu64, column, SPK_NUMBER_MAX);
    return SPK_OK;
}

static spk_status add_row(void *ctx, const spk_table_row *row, spk_error *err)
{
    filler *f = ctx;
    spk_catalog *c = f->catalog;
    SPK_TRY(spk_grow(&c->rows, &c->cap, c->n + 1, sizeof *c->rows, err));
    spk_catalog_row *out = &c->rows[c->n];
    out->path = c->paths.len;
    out->first_sample = c->samples;
    out->samples = (uint32_t)row->samples; /* the parser's bounds */
    out->frames = (uint32_t)row->frames;
    out->bytes = row->bytes;
    out->tar_bytes = row->tar_bytes;
    out->index_offset = row->index_offset;
    memcpy(out->tail_sha256, row->tail_sha256, sizeof out->tail_sha256);
    SPK_TRY(spk_buf_append(&c->paths, row->path, strlen(row->path) + 1, err));
    SPK_TRY(add_up(&c->samples, row->samples, "samples", err));
    SPK_TRY(add_up(&c->frames, row->frames, "frames", err));
    SPK_TRY(add_up(&c->bytes, row->bytes, "bytes", err));
    SPK_TRY(add_up(&c->tar_bytes, row->tar_bytes, "tar_bytes", err));
    if (c->n > 0 && f->ascending)
        f->ascending = strcmp(spk_catalog_path(c, c->n - 1), spk_catalog_path(c, c->n)) < 0;
    spk_sha256_update(f->fingerprint, row->tail_sha256, sizeof row->tail_sha256);
    c->n++;
    return SPK_OK;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static spk_status check_paths(const spk_catalog *c, spk_error *err)
{
    const char **paths = calloc(c->n + 1, sizeof *paths);
    if (!paths)
        return spk_error_nomem(err, c->n * sizeof *paths);
    for (size_t i = 0; i < c->n; i++)
        paths[i] = spk_catalog_path(c, i);
    qsort(paths, c->n, sizeof *paths, compare_paths);
    spk_status status = SPK_OK;
    for (size_t i = 1; i < c->n && status == SPK_OK; i++)
        if (strcmp(paths[i - 1], paths[i]) == 0)
            status = spk_error_set(err, SPK_E_FORMAT, "path \"%s\" is there twice", paths[i]);
    free(paths);
    return status;
}

/* Feeds the table piece by piece; after a parse error it only hashes on. Returns that error, or one of reading. */
static spk_status read_pieces(spk_source *table, spk_table_parser *parser, spk_sha256 *sum, char *piece, bool *whole,
                              spk_error *err)
{
    uint64_t size = spk_source_size(table), at = 0;
    size_t left = 0; /* bytes at the start of piece that belong to an unfinished line */
    spk_status parsed = SPK_OK;

    while (at < size) {
        size_t room = PIECE - left, want = size - at < room ? (size_t)(size - at) : room, used = 0;
        spk_status status = spk_source_pread(table, piece + left, want, at, parsed < 0 ? NULL : err);
        if (status < 0)
            return parsed < 0 ? parsed : status;
        spk_sha256_update(sum, piece + left, want);
        at += want;
        if (parsed < 0)
            continue;
        parsed = spk_table_feed(parser, piece, left + want, &used, err);
        left = parsed < 0 ? 0 : left + want - used;
        memmove(piece, piece + used, left);
    }
    *whole = true;
    return parsed < 0 ? parsed : spk_table_end(parser, left, err);
}

spk_status spk_catalog_read(spk_catalog *c, spk_source *table, uint64_t rows_expected, uint8_t digest[32], bool *whole,
                            spk_error *err)
{
    filler fill = {c, NULL, true};
    spk_table_parser parser = {add_row, &fill, 0};
    spk_sha256 *sum = NULL;
    char *piece = NULL;
    spk_status status = SPK_OK;
    uint64_t most = spk_source_size(table) / SPK_TABLE_LINE_MIN;

    *whole = false;
    if ((status = spk_sha256_new(&fill.fingerprint, err)) < 0 || (status = spk_sha256_new(&sum, err)) < 0)
        goto out;
    piece = malloc(PIECE);
    if (!piece) {
        status = spk_error_nomem(err, PIECE);
        goto out;
    }
    status = spk_grow(&c->rows, &c->cap, (size_t)(rows_expected < most ? rows_expected : most), sizeof *c->rows, err);
    if (status < 0)
        goto out;
    spk_sha256_init(fill.fingerprint);
    spk_sha256_init(sum);
    status = read_pieces(table, &parser, sum, piece, whole, err);
    spk_sha256_final(sum, digest);
    spk_sha256_final(fill.fingerprint, c->fingerprint);
    if (status == SPK_OK && !fill.ascending)
        status = check_paths(c, err);
out:
    free(piece);
    spk_sha256_free(sum);
    spk_sha256_free(fill.fingerprint);
    return status;
}

const char *spk_catalog_path(const spk_catalog *c, size_t i)
{
    return (const char *)c->paths.data + c->rows[i].path;
}

size_t spk_catalog_find(const spk_catalog *c, uint64_t number)
{
    size_t low = 0, high = c->n; /* the row is in [low, high) */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (c->rows[middle].first_sample <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void spk_catalog_free(spk_catalog *c)
{
    free(c->rows);
    spk_buf_free(&c->paths);
    memset(c, 0, sizeof *c);
}
