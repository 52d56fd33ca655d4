/* shardpack ls: what a dataset or shard holds, from the indexes only. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "out.h"
#include "remote.h"
#include "target.h"

typedef struct ls_values {
    int long_form;
    int json;
    remote_values remote;
} ls_values;

static const opt options[] = {
    {.name = "long",
     .kind = OPT_FLAG,
     .letter = 'l',
     .offset = offsetof(ls_values, long_form),
     .help =
         "One line per file, below a line of headings: the number of the sample (#), its shard and frame, the file's "
         "size, its name and its original path (- for what the packer made). If files are stored in another form, "
         "as by \"pack --jpeg=fast\", their size in the shard stands under stored."},
    {.name = "json",
     .kind = OPT_FLAG,
     .offset = offsetof(ls_values, json),
     .help = "One JSON object per sample and line."},
    REMOTE_ROWS(ls_values),
    {0},
};

static const opt_conflict conflicts[] = {{"long", "json"}, {0}};

static const operand operands[] = {
    {.name = "DATASET",
     .help = "Folder or manifest of a dataset, or one shard file; or a URL of these.",
     .complete = COMPLETE_FILE},
    {0},
};

static const example examples[] = {
    {"shardpack ls photos.shards", "The keys of all samples."},
    {"shardpack ls -l photos.shards | grep zebra", "Where the zebras are, and how large."},
    {"shardpack ls --json photos.shards/shard-1f3a9c02-000000.tar.zst", "One shard, for a program."},
    {0},
};

typedef struct listing {
    const ls_values *values;
    const target *target;
    int number_width, shard_width, frame_width;
    int stored; /* with a column for the sizes in the shards */
} listing;

/* Columns are as wide as their headings, or as their largest number. */
static int width(const char *heading, uint64_t n)
{
    int digits = snprintf(NULL, 0, "%llu", (unsigned long long)n), least = (int)strlen(heading);
    return digits > least ? digits : least;
}

static void print_headings(const listing *l)
{
    printf("%*s %*s %*s %10s  ", l->number_width, "#", l->shard_width, "shard", l->frame_width, "frame", "size");
    if (l->stored)
        printf("%10s  ", "stored");
    puts("name  original path");
}

static void print_member(const listing *l, const char *key, const spk_member *m, const uint64_t at[3])
{
    char size[32];
    printf("%*llu %*llu %*llu %10s  ", l->number_width, (unsigned long long)at[0], l->shard_width,
           (unsigned long long)at[1], l->frame_width, (unsigned long long)at[2],
           out_size(size, sizeof size, m->original));
    if (l->stored)
        printf("%10s  ", out_size(size, sizeof size, m->size));
    printf("%s.%s  ", key, m->field);
    if (m->path)
        out_name(stdout, m->path);
    else
        putchar('-');
    putchar('\n');
}

static int print_json(const listing *l, const spk_shard *shard, uint64_t i, const uint64_t at[3])
{
    json_t *o = json_object(), *fields = json_object();
    size_t members = spk_shard_member_count(shard, i);
    out_json_count(o, "number", at[0]);
    out_json_text(o, "key", spk_shard_key(shard, i));
    out_json_count(o, "shard", at[1]);
    out_json_text(o, "shard_path", target_shard_path(l->target, at[1]));
    out_json_count(o, "frame", at[2]);
    json_object_set_new(o, "fields", fields);
    for (size_t k = 0; k < members; k++) {
        spk_member m;
        json_t *f = json_object();
        if (spk_shard_get_member(shard, i, k, &m, NULL) < 0)
            break;
        out_json_count(f, "size", m.original);
        out_json_count(f, "stored_size", m.size);
        out_json_count(f, "offset", m.offset);
        out_json_text(f, "encoding", m.encoding);
        out_json_text(f, "path", m.path);
        json_object_set_new(fields, m.field, f);
    }
    return out_json_line(o);
}

static int print_sample(const listing *l, const spk_shard *shard, uint64_t i, const uint64_t at[3])
{
    const char *key = spk_shard_key(shard, i);
    if (l->values->json)
        return print_json(l, shard, i, at);
    if (!l->values->long_form) {
        puts(key);
        return CLI_OK;
    }
    size_t members = spk_shard_member_count(shard, i);
    for (size_t k = 0; k < members; k++) {
        spk_member m;
        spk_error err;
        if (spk_shard_get_member(shard, i, k, &m, &err) < 0)
            return cli_fail(&err, NULL);
        print_member(l, key, &m, at);
    }
    return CLI_OK;
}

static int list_shard(void *ctx, const spk_shard *shard, uint64_t number, uint64_t first)
{
    const listing *l = ctx;
    spk_shard_stat st;
    int rc = CLI_OK;
    spk_shard_get_stat(shard, &st);
    for (uint64_t i = 0; i < st.samples && rc == CLI_OK; i++) {
        const uint64_t at[3] = {first + i, number, spk_shard_frame_of(shard, i)};
        rc = print_sample(l, shard, i, at);
        if (rc == CLI_OK && cli_stdout_failed())
            rc = CLI_FAILED;
    }
    return rc;
}

static int is_stored_otherwise(const spk_shard *shard)
{
    spk_shard_stat st;
    spk_member m;
    spk_shard_get_stat(shard, &st);
    for (uint64_t i = 0; i < st.samples; i++)
        for (size_t k = spk_shard_member_count(shard, i); k-- > 0;)
            if (spk_shard_get_member(shard, i, k, &m, NULL) == SPK_OK && strcmp(m.encoding, "identity") != 0)
                return 1;
    return 0;
}

/* Whether some file is in another form than it was. */
static int has_stored(const target *t)
{
    if (t->shard)
        return is_stored_otherwise(t->shard);
    json_t *manifest = json_loads(spk_dataset_manifest(t->dataset), 0, NULL), *field;
    int found = 0;
    size_t i;
    json_array_foreach(json_object_get(manifest, "fields"), i, field)
    {
        found |= json_array_size(json_object_get(field, "stored")) > 0;
    }
    json_decref(manifest);
    return found;
}

static int run(const opts *o)
{
    target t;
    int rc = target_open(&t, o->operands[0], &((const ls_values *)o->values)->remote);
    if (rc == CLI_OK) {
        /* Frames per shard are known only from each shard: the mean is a fair width. */
        listing l = {.values = o->values,
                     .target = &t,
                     .number_width = width("#", t.samples ? t.samples - 1 : 0),
                     .shard_width = width("shard", t.shards ? t.shards - 1 : 0),
                     .frame_width = width("frame", t.shards ? t.frames / t.shards : 0),
                     .stored = has_stored(&t)};
        if (l.values->long_form)
            print_headings(&l);
        rc = target_each(&t, list_shard, &l);
    }
    target_close(&t);
    return rc;
}

const command cmd_ls = {
    .name = "ls",
    .summary = "list the samples of a dataset or shard",
    .synopsis = "[OPTION]... DATASET",
    .description = "Prints the key of each sample in stored order. Only the indexes are read, no data is decompressed. "
                   "In names, control bytes and bytes that are not UTF-8 are shown as \\xNN, a backslash as \\\\.",
    .options = options,
    .conflicts = conflicts,
    .operands = operands,
    .min_operands = 1,
    .max_operands = 1,
    .examples = examples,
    .failure = "if the dataset could not be read.",
    .values_size = sizeof(ls_values),
    .run = run,
};
