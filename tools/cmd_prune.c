/* shardpack prune: removes what no manifest names. */
#include <shardpack/dataset.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "out.h"
#include "target.h"

typedef struct prune_values {
    int dry_run;
    int json;
    int quiet;
} prune_values;

static const opt options[] = {
    {.name = "dry-run",
     .kind = OPT_FLAG,
     .letter = 'n',
     .offset = offsetof(prune_values, dry_run),
     .help = "Only print what would be removed."},
    {.name = "json",
     .kind = OPT_FLAG,
     .offset = offsetof(prune_values, json),
     .help = "Print one JSON object with the files and totals."},
    {.name = "quiet",
     .kind = OPT_FLAG,
     .letter = 'q',
     .offset = offsetof(prune_values, quiet),
     .help = "Print nothing."},
    {0},
};

static const opt_conflict conflicts[] = {{"json", "quiet"}, {"dry-run", "quiet"}, {0}};

static const operand operands[] = {
    {.name = "DATASET",
     .help = "Folder of a dataset, or of the datasets of pack --split.",
     .complete = COMPLETE_FOLDER},
    {0},
};

static const example examples[] = {
    {"shardpack prune --dry-run photos.shards", "See which files of earlier versions are left."},
    {"shardpack prune photos.shards", "Remove them, once no reader uses the old version any more."},
    {0},
};

typedef struct state {
    const prune_values *values;
    json_t *files;
} state;

static void on_file(void *user, const char *name, uint64_t bytes)
{
    state *s = user;
    char size[32];
    if (s->files) {
        json_t *o = json_object();
        out_json_text(o, "name", name);
        out_json_count(o, "bytes", bytes);
        json_array_append_new(s->files, o);
    } else if (!s->values->quiet) {
        printf(s->values->dry_run ? "would remove " : "removed ");
        out_name(stdout, name);
        printf("  %s\n", out_size(size, sizeof size, bytes));
    }
}

static int print_totals(const state *s, const spk_prune_result *r)
{
    char count[48], size[32];
    if (s->files) {
        json_t *o = json_object();
        json_object_set_new(o, "dry_run", json_boolean(s->values->dry_run));
        out_json_count(o, "files", r->files);
        out_json_count(o, "bytes", r->bytes);
        json_object_set(o, "removed", s->files);
        return out_json(o);
    }
    if (s->values->quiet)
        return CLI_OK;
    if (r->files == 0)
        printf("nothing to remove\n");
    else
        printf("%s, %s%s\n", out_plural(count, sizeof count, r->files, "file", NULL),
               out_size(size, sizeof size, r->bytes), s->values->dry_run ? " would be removed" : " removed");
    return CLI_OK;
}

static int run(const opts *o)
{
    state s = {.values = o->values};
    spk_prune_options p = {.size = sizeof p, .dry_run = s.values->dry_run, .on_file = on_file, .user = &s};
    spk_prune_result result;
    spk_error err;
    memset(&result, 0, sizeof result);
    spk_error_clear(&err);
    s.files = s.values->json ? json_array() : NULL;
    int rc = spk_prune(o->operands[0], &p, &result, &err) < 0 ? cli_fail(&err, NULL) : print_totals(&s, &result);
    json_decref(s.files);
    return rc;
}

const command cmd_prune = {
    .name = "prune",
    .summary = "remove what earlier versions of a dataset left",
    .synopsis = "[OPTION]... DATASET",
    .description =
        "Packing anew beside a finished dataset leaves the old shards in place, because a reader may still use them. "
        "This removes them, old shard tables, and the remains of abandoned runs. Only files with names that shardpack "
        "gives are touched, and nothing while a packer works on the folder.",
    .options = options,
    .conflicts = conflicts,
    .operands = operands,
    .min_operands = 1,
    .max_operands = 1,
    .examples = examples,
    .failure = "if the folder holds no sound manifest, or a file could not be removed.",
    .values_size = sizeof(prune_values),
    .run = run,
};
