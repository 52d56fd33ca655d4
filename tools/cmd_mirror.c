/* shardpack mirror: copies a dataset to other places, manifest last. */
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "out.h"
#include "progress.h"
#include "remote.h"
#include "target.h"

typedef struct mirror_values {
    uint64_t jobs;
    int dry_run, prune, json, quiet;
    remote_values remote;
} mirror_values;

static const opt options[] = {
    {.name = "jobs",
     .kind = OPT_U64,
     .letter = 'j',
     .arg = "N",
     .offset = offsetof(mirror_values, jobs),
     .def = "4",
     .min = 1,
     .max = 64,
     .help = "Shards sent at a time."},
    {.name = "dry-run",
     .kind = OPT_FLAG,
     .letter = 'n',
     .offset = offsetof(mirror_values, dry_run),
     .help = "Only look, and say what would be sent."},
    {.name = "prune",
     .kind = OPT_FLAG,
     .offset = offsetof(mirror_values, prune),
     .help = "At the end remove shards and shard tables there that the manifest does not name."},
    {.name = "json",
     .kind = OPT_FLAG,
     .offset = offsetof(mirror_values, json),
     .help = "Print a JSON object per destination."},
    {.name = "quiet",
     .kind = OPT_FLAG,
     .letter = 'q',
     .offset = offsetof(mirror_values, quiet),
     .help = "No progress, and no summary."},
    REMOTE_ROWS(mirror_values),
    {0},
};

static const opt_conflict conflicts[] = {{"dry-run", "prune"}, {0}};

static const operand operands[] = {
    {.name = "DATASET", .help = "Folder or manifest of a dataset, or a URL of either.", .complete = COMPLETE_FILE},
    {.name = "DEST",
     .help = "A folder, s3://BUCKET/PREFIX, or an http(s):// URL whose server takes PUT.",
     .complete = COMPLETE_FOLDER},
    {0},
};

static const example examples[] = {
    {"shardpack mirror photos.shards s3://bucket/photos", "Publish a dataset, or its new version."},
    {"shardpack mirror photos.shards s3://bucket/photos https://files.example.org/photos", "In two places."},
    {"shardpack mirror s3://bucket/photos /data/photos", "Fetch it."},
    {"shardpack mirror --prune photos.shards s3://bucket/photos", "And remove the version before."},
    {0},
};

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    progress_show(user, &(progress_now){.what = "sending", .bytes = done, .bytes_total = total});
    return cli_interrupted() || cli_stdout_failed();
}

static int print_result(const mirror_values *v, const char *dest, const spk_mirror_result *r, double seconds)
{
    char a[48], b[48], c[48], d[48];
    if (v->json) {
        json_t *o = json_object();
        out_json_text(o, "destination", dest);
        json_object_set_new(o, "dry_run", json_boolean(v->dry_run));
        out_json_count(o, "shards", r->shards);
        out_json_count(o, "shards_there", r->shards_there);
        out_json_count(o, "bytes_sent", r->bytes_sent);
        out_json_count(o, "pruned_files", r->pruned_files);
        out_json_count(o, "pruned_bytes", r->pruned_bytes);
        json_object_set_new(o, "seconds", json_real(seconds));
        return out_json_line(o);
    }
    if (v->quiet)
        return CLI_OK;
    out_name(stdout, dest);
    printf(": %s%s of %s", v->dry_run ? "would send " : "sent ",
           out_plural(a, sizeof a, r->shards - r->shards_there, "shard", NULL), out_count(b, sizeof b, r->shards));
    printf(", %s", out_size(c, sizeof c, r->bytes_sent));
    if (r->shards_there)
        printf("; %s there already", out_plural(d, sizeof d, r->shards_there, "was", "were"));
    printf("\n");
    if (r->pruned_files) {
        out_name(stdout, dest);
        printf(": removed %s of older versions, %s\n", out_plural(a, sizeof a, r->pruned_files, "file", NULL),
               out_size(b, sizeof b, r->pruned_bytes));
    }
    return CLI_OK;
}

static int mirror_to(const mirror_values *v, const char *dataset, const char *dest)
{
    progress bar;
    spk_mirror_result result;
    spk_error err;
    const spk_dataset_options source = remote_options(&v->remote);
    const spk_mirror_options o = {.size = sizeof o,
                                  .jobs = (int)v->jobs,
                                  .dry_run = v->dry_run,
                                  .prune = v->prune,
                                  .source = &source,
                                  .on_progress = on_progress,
                                  .user = &bar};
    spk_error_clear(&err);
    progress_start(&bar, v->quiet);
    double started = out_now();
    spk_status st = spk_mirror(dataset, dest, &o, &result, &err);
    progress_end(&bar);
    if (st < 0)
        return cli_fail(&err, "run the same command again to go on");
    return print_result(v, dest, &result, out_now() - started);
}

static int run(const opts *o)
{
    int rc = CLI_OK;
    cli_catch_signals();
    for (size_t i = 1; i < o->operand_count && rc == CLI_OK; i++)
        rc = mirror_to(o->values, o->operands[0], o->operands[i]);
    return rc;
}

const command cmd_mirror = {
    .name = "mirror",
    .summary = "copy a dataset to a folder, S3 or a web server",
    .synopsis = "[OPTION]... DATASET DEST...",
    .description =
        "Sends the shards, then the shard table, then the manifest, so that a reader of DEST sees the old dataset or "
        "the new one. What is there and right by size and digest is not sent again; a shard or table that is there "
        "and differs is an error and never overwritten. Each frame is checked on its way and each shard again where "
        "it arrived. Interrupted at any moment, the same command goes on.\n\n"
        "For S3, endpoint, region and credentials come from the usual variables and files (AWS_ENDPOINT_URL, "
        "AWS_REGION, AWS_PROFILE, AWS_ACCESS_KEY_ID, ~/.aws).",
    .options = options,
    .conflicts = conflicts,
    .operands = operands,
    .min_operands = 2,
    .max_operands = SIZE_MAX,
    .examples = examples,
    .failure = "if something could not be read or sent, or is there and differs.",
    .values_size = sizeof(mirror_values),
    .run = run,
};
