/* shardpack export: files that other readers and tools expect. */
#include <shardpack/dataset.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "place.h"
#include "remote.h"
#include "target.h"

typedef struct export_values {
    const char *url_prefix;
    const char *output;
    int force;
    remote_values remote;
} export_values;

static const opt options[] = {
    {.name = "url-prefix",
     .kind = OPT_STRING,
     .arg = "PREFIX",
     .offset = offsetof(export_values, url_prefix),
     .help = "For wids: put this before each shard's name, such as https://example.org/photos/."},
    {.name = "output",
     .kind = OPT_STRING,
     .letter = 'o',
     .arg = "FILE",
     .offset = offsetof(export_values, output),
     .complete = COMPLETE_FILE,
     .help = "Write to FILE, which appears when it is complete; - is standard output.",
     .def = "-"},
    {.name = "force",
     .kind = OPT_FLAG,
     .letter = 'f',
     .offset = offsetof(export_values, force),
     .help = "Overwrite FILE if it exists."},
    REMOTE_ROWS(export_values),
    {0},
};

static const char *const formats[] = {"wids", "sizes", "sha256", NULL};

static const operand operands[] = {
    {.name = "DATASET", .help = "Folder or manifest of a dataset, or a URL of either.", .complete = COMPLETE_FILE},
    {.name = "FORMAT",
     .help = "wids: the JSON index of webdataset's indexed reader. sizes: the JSON object of shard names and sample "
             "counts that open_clip reads as sizes.json. sha256: a line per shard for sha256sum -c; reads all of "
             "every shard.",
     .values = formats},
    {0},
};

static const example examples[] = {
    {"shardpack export photos.shards sizes -o photos.shards/sizes.json", "For open_clip."},
    {"shardpack export photos.shards wids --url-prefix https://example.org/photos/", "For shards behind a web server."},
    {"shardpack export photos.shards sha256 | (cd copy && sha256sum -c)", "Compares a copy with stock tools."},
    {0},
};

static int check_format(const char *format)
{
    for (size_t i = 0; formats[i]; i++)
        if (strcmp(formats[i], format) == 0)
            return CLI_OK;
    const char *near = opts_nearest(format, formats);
    if (near)
        return cli_usage("export", "unknown format %s; did you mean %s?", format, near);
    return cli_usage("export", "unknown format %s; there are wids, sizes and sha256", format);
}

static int run(const opts *o)
{
    const export_values *v = o->values;
    target t;
    spk_error err;
    char *text = NULL;
    int rc = check_format(o->operands[1]);
    if (rc != CLI_OK)
        return rc;
    if (v->url_prefix && strcmp(o->operands[1], "wids") != 0)
        return cli_usage("export", "--url-prefix is for wids; %s has no URLs", o->operands[1]);
    rc = target_open_dataset(&t, o->operands[0], &v->remote);
    spk_error_clear(&err);
    if (rc == CLI_OK && spk_dataset_export(t.dataset, o->operands[1], v->url_prefix, &text, &err) < 0)
        rc = cli_fail(&err, NULL);
    if (rc == CLI_OK && v->output && strcmp(v->output, "-") != 0)
        rc = place_file(v->output, text, strlen(text), v->force);
    else if (rc == CLI_OK)
        fputs(text, stdout);
    spk_free(text);
    target_close(&t);
    return rc;
}

const command cmd_export = {
    .name = "export",
    .summary = "write the index file that another reader expects, or checksums",
    .synopsis = "[OPTION]... DATASET FORMAT",
    .description = "Other readers of tar shards want a list of the shards with their sample counts in a file of their "
                   "own kind. The shards themselves need no change. The checksums are for tools that know whole files "
                   "only; verify needs none. Shards that are damaged get none.",
    .options = options,
    .operands = operands,
    .min_operands = 2,
    .max_operands = 2,
    .examples = examples,
    .failure = "if the dataset could not be read or is damaged, or FILE exists or could not be written.",
    .values_size = sizeof(export_values),
    .run = run,
};
