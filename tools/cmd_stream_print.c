/* The lines of shardpack stream: a table for people that is also easy to cut and compare, or JSON. */
#include <inttypes.h>
#include <string.h>

#include "cli.h"
#include "cmd_stream.h"
#include "out.h"

#define HEX "%016" PRIx64

/* A column that has a digest of its own in the output: all but the keys, which are printed themselves. */
static int is_shown(const spk_column *c)
{
    return c->kind != SPK_COLUMN_KEY;
}

static int ended(void)
{
    return cli_stdout_failed() ? CLI_FAILED : CLI_OK;
}

int stream_print_head(const stream *s)
{
    int lacks = 0; /* blanks up to where the next column stands: a line ends without any */
    if (s->values->json)
        return CLI_OK;
    printf("%5s %7s %10s %7s %7s", "epoch", "batch", "position", "rows", "valid");
    for (size_t i = 0; i < s->setup.count; i++)
        if (is_shown(&s->setup.columns[i])) {
            const char *name = loader_column_name(&s->setup.columns[i]);
            printf("  %*s%s", lacks, "", name);
            lacks = strlen(name) < 16 ? 16 - (int)strlen(name) : 0;
        }
    putchar('\n');
    return ended();
}

/* Key of row i, NUL-terminated in buf (keys have at most 72 bytes). */
static const char *key_of(const spk_view *keys, uint64_t i, char *buf, size_t size)
{
    size_t n = (size_t)keys->offsets[2 * i + 1];
    n = n < size ? n : size - 1;
    memcpy(buf, (const char *)keys->data + keys->offsets[2 * i], n);
    buf[n] = 0;
    return buf;
}

/* Views of the keys and of the mask; 0 if there are no keys. */
static int row_views(const stream *s, const spk_batch *batch, spk_view *keys, spk_view *valid)
{
    int found = 0;
    memset(keys, 0, sizeof *keys);
    memset(valid, 0, sizeof *valid);
    for (size_t i = 0; i < s->setup.count; i++) {
        spk_column_kind kind = s->setup.columns[i].kind;
        if (kind == SPK_COLUMN_KEY && spk_batch_column(batch, i, keys, NULL) == SPK_OK)
            found++;
        if (kind == SPK_COLUMN_VALID && spk_batch_column(batch, i, valid, NULL) == SPK_OK)
            found++;
    }
    return found == 2;
}

static void print_rows(const stream *s, const spk_batch *batch)
{
    spk_view keys, valid;
    char key[128];
    if (!row_views(s, batch, &keys, &valid))
        return;
    const unsigned char *mask = valid.data;
    for (uint64_t i = 0; i < spk_batch_rows(batch); i++) {
        printf("%13s %10" PRIu64 " %15s  " HEX "  ", "row", spk_batch_position(batch) + i, mask[i] ? "" : "not valid",
               s->digests.row[i]);
        out_name(stdout, key_of(&keys, i, key, sizeof key));
        putchar('\n');
    }
}

static void set_hex(json_t *o, const char *key, uint64_t value)
{
    char text[20];
    snprintf(text, sizeof text, HEX, value);
    json_object_set_new(o, key, json_string(text));
}

static json_t *json_rows(const stream *s, const spk_batch *batch)
{
    spk_view keys, valid;
    char key[128];
    json_t *list = json_array();
    if (!row_views(s, batch, &keys, &valid))
        return list;
    const unsigned char *mask = valid.data;
    for (uint64_t i = 0; i < spk_batch_rows(batch); i++) {
        json_t *row = json_object();
        out_json_text(row, "key", key_of(&keys, i, key, sizeof key));
        json_object_set_new(row, "valid", json_boolean(mask[i]));
        set_hex(row, "digest", s->digests.row[i]);
        json_array_append_new(list, row);
    }
    return list;
}

static int print_json(const stream *s, const spk_batch *batch)
{
    json_t *o = json_object(), *columns = json_object();
    out_json_count(o, "epoch", s->epoch);
    out_json_count(o, "batch", spk_batch_number(batch));
    out_json_count(o, "position", spk_batch_position(batch));
    out_json_count(o, "rows", spk_batch_rows(batch));
    out_json_count(o, "valid", spk_batch_valid_rows(batch));
    for (size_t i = 0; i < s->setup.count; i++)
        if (is_shown(&s->setup.columns[i]))
            set_hex(columns, loader_column_name(&s->setup.columns[i]), s->digests.column[i]);
    json_object_set_new(o, "columns", columns);
    if (s->values->keys)
        json_object_set_new(o, "samples", json_rows(s, batch));
    return out_json_line(o);
}

int stream_print_batch(const stream *s, const spk_batch *batch)
{
    int lacks = 0; /* blanks up to where the name of the next column stands */
    if (s->values->json)
        return print_json(s, batch);
    printf("%5" PRIu32 " %7" PRIu64 " %10" PRIu64 " %7" PRIu64 " %7" PRIu64, s->epoch, spk_batch_number(batch),
           spk_batch_position(batch), spk_batch_rows(batch), spk_batch_valid_rows(batch));
    for (size_t i = 0; i < s->setup.count; i++)
        if (is_shown(&s->setup.columns[i])) {
            size_t name = strlen(loader_column_name(&s->setup.columns[i]));
            printf("  %*s" HEX, lacks, "", s->digests.column[i]);
            lacks = name > 16 ? (int)name - 16 : 0;
        }
    putchar('\n');
    if (s->values->keys)
        print_rows(s, batch);
    return ended();
}

int stream_print_epoch(const stream *s)
{
    char a[48], b[48], c[32];
    if (s->values->json) {
        json_t *o = json_object();
        out_json_count(o, "epoch_end", s->epoch);
        out_json_count(o, "batches", s->batches);
        out_json_count(o, "rows", s->rows);
        out_json_count(o, "valid", s->valid);
        set_hex(o, "digest", digest_sum_value(s->sum));
        return out_json_line(o);
    }
    printf("end of epoch %" PRIu32 ": %s, %s", s->epoch, out_plural(a, sizeof a, s->batches, "batch", "batches"),
           out_plural(b, sizeof b, s->rows, "row", NULL));
    if (s->valid != s->rows)
        printf(" (%s valid)", out_count(c, sizeof c, s->valid));
    printf(", digest " HEX "\n", digest_sum_value(s->sum));
    return ended();
}

void stream_note_estimate(const spk_loader_estimate *e)
{
    char a[48], b[48], c[48], d[48];
    cli_note("%s, %s; %s of shared memory, about %s more in %s", out_plural(a, sizeof a, e->workers, "worker", NULL),
             out_plural(b, sizeof b, e->slots, "slot", NULL), out_size(c, sizeof c, e->shared_bytes),
             out_size(d, sizeof d, e->worker_bytes), e->workers ? "each worker" : "this process");
    if (e->lanes)
        cli_note("%s: about %s, %s in shuffle buffers", out_plural(a, sizeof a, e->lanes, "lane", NULL),
                 out_plural(b, sizeof b, e->shuffle_samples, "sample", NULL), out_size(c, sizeof c, e->shuffle_bytes));
}

static void note(const char *text)
{
    cli_note("%s", text);
}

/* Not without --verbose: the lines of an epoch are the same for a folder and a URL, and in each run. */
static void tell_mirrors(const stream *s)
{
    remote_report report;
    remote_report_take(&report, s->loader);
    if (s->values->json && report.count > 0) {
        json_t *o = json_object();
        remote_report_json(&report, o);
        (void)out_json_line(o);
    } else {
        remote_report_print(&report, note);
    }
    remote_report_free(&report);
}

void stream_note_stats(const stream *s)
{
    spk_loader_stats t;
    char a[48], b[48], c[48], d[48], e[48];
    spk_loader_get_stats(s->loader, &t);
    if (t.substituted)
        cli_note("%s could not be used and became zeros", out_plural(a, sizeof a, t.substituted, "sample", NULL));
    if (t.restarts)
        cli_note("%s ended early and %s replaced", out_plural(a, sizeof a, t.restarts, "worker", NULL),
                 t.restarts == 1 ? "was" : "were");
    if (s->values->verbose)
        cli_note("read %s (%s), decoded %s; waited %s, workers were busy for %s", out_size(a, sizeof a, t.bytes_read),
                 out_plural(b, sizeof b, t.frames_read, "frame", NULL),
                 out_plural(c, sizeof c, t.images_decoded, "image", NULL),
                 out_time(d, sizeof d, (double)t.wait_ns / 1e9), out_time(e, sizeof e, (double)t.worker_busy_ns / 1e9));
    if (s->values->verbose)
        tell_mirrors(s);
}
