/* shardpack extract: files of a dataset into a folder. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "out.h"
#include "place.h"
#include "progress.h"
#include "remote.h"
#include "target.h"

typedef struct extract_values {
    int original_names;
    opts_list keys;
    int force;
    int json;
    int quiet;
    remote_values remote;
} extract_values;

static const opt options[] = {
    {.name = "original-names",
     .kind = OPT_FLAG,
     .offset = offsetof(extract_values, original_names),
     .help =
         "Give files the paths they had when packed, instead of KEY.FIELD. What the packer made, such as labels, is "
         "left out."},
    {.name = "key",
     .kind = OPT_LIST,
     .letter = 'k',
     .arg = "GLOB",
     .offset = offsetof(extract_values, keys),
     .help = "Only samples whose key matches; * matches any characters, / included. May be repeated."},
    {.name = "force",
     .kind = OPT_FLAG,
     .letter = 'f',
     .offset = offsetof(extract_values, force),
     .help = "Overwrite files that exist."},
    {.name = "json", .kind = OPT_FLAG, .offset = offsetof(extract_values, json), .help = "Print the totals as JSON."},
    {.name = "quiet",
     .kind = OPT_FLAG,
     .letter = 'q',
     .offset = offsetof(extract_values, quiet),
     .help = "No progress and no summary."},
    REMOTE_ROWS(extract_values),
    {0},
};

static const operand operands[] = {
    {.name = "DATASET",
     .help = "Folder or manifest of a dataset, or one shard file; or a URL of these.",
     .complete = COMPLETE_FILE},
    {.name = "DIR", .help = "Folder to write to; made if it is missing.", .complete = COMPLETE_FOLDER},
    {0},
};

static const example examples[] = {
    {"shardpack extract --original-names photos.shards photos", "Get the folder back that was packed."},
    {"shardpack extract --key 'zebra/*' photos.shards zebras", "One class only."},
    {0},
};

typedef struct extraction {
    const extract_values *values;
    const target *target;
    place place;
    progress progress;
    uint64_t visited; /* samples passed, extracted or not */
    uint64_t bytes_visited;
    uint64_t samples, files, bytes, made;
    uint64_t others; /* files that are not those packed, but have their pixels */
} extraction;

static int wanted(const extract_values *v, const char *key)
{
    for (size_t i = 0; i < v->keys.count; i++)
        if (fnmatch(v->keys.items[i], key, 0) == 0)
            return 1;
    return v->keys.count == 0;
}

static int write_field(extraction *x, const char *key, const spk_field *f)
{
    char name[512];
    const char *path = f->path;
    if (x->values->original_names && !path) {
        x->made++;
        return CLI_OK;
    }
    if (!x->values->original_names) {
        snprintf(name, sizeof name, "%s.%s", key, f->name);
        path = name;
    }
    int rc = place_write(&x->place, path, f->data, f->size);
    x->files += rc == CLI_OK;
    x->bytes += rc == CLI_OK ? f->size : 0;
    x->others += rc == CLI_OK && strcmp(f->encoding, "jpeg_pixels") == 0;
    return rc;
}

static int write_sample(extraction *x, spk_reader *reader, uint64_t i)
{
    const spk_sample *sample;
    spk_error err;
    spk_error_clear(&err);
    if (spk_reader_seek(reader, i, &err) < 0 || spk_reader_next(reader, &sample, &err) < 0)
        return cli_fail(&err, NULL);
    int rc = CLI_OK;
    for (size_t k = 0; k < sample->field_count && rc == CLI_OK; k++)
        rc = write_field(x, sample->key, &sample->fields[k]);
    x->samples += rc == CLI_OK;
    return rc;
}

static void show_progress(extraction *x)
{
    if (x->progress.mode && x->visited % 16 == 0)
        progress_show(&x->progress, &(progress_now){.what = "extracting",
                                                    .units = "samples",
                                                    .done = x->visited,
                                                    .total = x->target->samples,
                                                    .bytes = x->bytes_visited,
                                                    .bytes_total = x->target->tar_bytes});
}

static uint64_t sample_bytes(const spk_shard *shard, uint64_t i)
{
    uint64_t bytes = 0;
    size_t n = spk_shard_member_count(shard, i);
    for (size_t k = 0; k < n; k++) {
        spk_member m;
        if (spk_shard_get_member(shard, i, k, &m, NULL) >= 0)
            bytes += 512 + (m.size + 511) / 512 * 512;
    }
    return bytes;
}

static int extract_shard(void *ctx, const spk_shard *shard, uint64_t number, uint64_t first)
{
    extraction *x = ctx;
    spk_reader *reader = NULL;
    spk_shard_stat st;
    spk_error err;
    (void)number;
    (void)first;
    spk_error_clear(&err);
    spk_shard_get_stat(shard, &st);
    if (spk_reader_open_shard(&reader, shard, 0, &err) < 0)
        return cli_fail(&err, NULL);
    int rc = CLI_OK;
    for (uint64_t i = 0; i < st.samples && rc == CLI_OK; i++) {
        if (cli_interrupted())
            rc = cli_say_interrupted("run the same command again with --force to write all files");
        else if (wanted(x->values, spk_shard_key(shard, i)))
            rc = write_sample(x, reader, i);
        x->visited++;
        x->bytes_visited += sample_bytes(shard, i);
        show_progress(x);
    }
    spk_reader_close(reader);
    return rc;
}

static int print_totals(const extraction *x)
{
    char a[48], b[48], c[48];
    if (x->values->json) {
        json_t *o = json_object();
        out_json_count(o, "samples", x->samples);
        out_json_count(o, "files", x->files);
        out_json_count(o, "bytes", x->bytes);
        out_json_count(o, "left_out", x->made);
        out_json_count(o, "not_original", x->others);
        return out_json(o);
    }
    if (x->values->quiet)
        return CLI_OK;
    printf("extracted %s of %s, %s\n", out_plural(a, sizeof a, x->files, "file", NULL),
           out_plural(b, sizeof b, x->samples, "sample", NULL), out_size(c, sizeof c, x->bytes));
    if (x->made)
        printf("left out %s that the packer made\n", out_plural(a, sizeof a, x->made, "file", NULL));
    if (x->others)
        printf("%s: not as packed, but with the same pixels (packed with --allow-unrestorable)\n",
               out_plural(a, sizeof a, x->others, "JPEG file", NULL));
    return CLI_OK;
}

/* Also a folder may be called so, but then it is seldom what was meant. */
static int is_url(const char *path)
{
    return strncmp(path, "s3://", 5) == 0 || strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0;
}

static int run(const opts *o)
{
    target t;
    extraction x = {.values = o->values, .target = &t, .place = {.root_fd = -1, .parent_fd = -1}};
    if (is_url(o->operands[1]))
        return cli_error("%s: files can be extracted into a folder only", o->operands[1]);
    int rc = target_open(&t, o->operands[0], &((const extract_values *)o->values)->remote);
    if (rc == CLI_OK)
        rc = place_open(&x.place, o->operands[1], x.values->force);
    if (rc == CLI_OK) {
        cli_catch_signals();
        progress_start(&x.progress, x.values->quiet);
        rc = target_each(&t, extract_shard, &x);
        progress_end(&x.progress);
    }
    if (rc == CLI_OK && x.samples == 0 && x.values->keys.count)
        rc = cli_error("%s: no key matches", t.path);
    if (rc == CLI_OK)
        rc = print_totals(&x);
    place_close(&x.place);
    target_close(&t);
    return rc;
}

const command cmd_extract = {
    .name = "extract",
    .summary = "write the files of a dataset or shard to a folder",
    .synopsis = "[OPTION]... DATASET DIR",
    .description =
        "Writes each file as KEY.FIELD, or with --original-names under the path it had when packed. Nothing is ever "
        "written outside of DIR or through a symbolic link below it, and no file appears under its name before it is "
        "complete. Each frame is checked before it is used.",
    .options = options,
    .operands = operands,
    .min_operands = 2,
    .max_operands = 2,
    .examples = examples,
    .failure = "if a file exists, could not be written, or the dataset is damaged; files before it stay.",
    .values_size = sizeof(extract_values),
    .run = run,
};
