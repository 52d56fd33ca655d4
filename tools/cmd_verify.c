/* shardpack verify: reads every byte and lists all problems. */
#include <shardpack/dataset.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "out.h"
#include "progress.h"
#include "remote.h"
#include "target.h"

typedef struct verify_values {
    uint64_t jobs;
    int json;
    int quiet;
    remote_values remote;
} verify_values;

static const opt options[] = {
    {.name = "jobs",
     .kind = OPT_U64,
     .letter = 'j',
     .arg = "N",
     .offset = offsetof(verify_values, jobs),
     .def = "the CPU quota",
     .min = 1,
     .max = 1024,
     .help = "Threads."},
    {.name = "json",
     .kind = OPT_FLAG,
     .offset = offsetof(verify_values, json),
     .help = "Print JSON: one line per problem, then one with the totals."},
    {.name = "quiet",
     .kind = OPT_FLAG,
     .letter = 'q',
     .offset = offsetof(verify_values, quiet),
     .help = "No progress, and no summary if all is well."},
    REMOTE_ROWS(verify_values),
    {0},
};

static const operand operands[] = {
    {.name = "DATASET",
     .help = "Folder or manifest of a dataset, or one shard file; or a URL of these.",
     .complete = COMPLETE_FILE},
    {0},
};

static const example examples[] = {
    {"shardpack verify photos.shards", "Check a dataset after copying it."},
    {"shardpack verify -q photos.shards && rm -r photos", "Delete the source only if the shards are sound."},
    {0},
};

typedef struct state {
    const verify_values *values;
    progress progress;
} state;

static void on_problem(void *user, const spk_error *problem)
{
    state *s = user;
    if (!s->values->json) {
        char text[4 * SPK_ERROR_TEXT];
        printf("%s\n", out_escape(text, sizeof text, problem->text));
        return;
    }
    json_t *o = json_object();
    out_json_text(o, "problem", problem->text);
    out_json_text(o, "code", spk_status_name(problem->code));
    json_object_set_new(o, "offset", problem->offset < 0 ? json_null() : json_integer(problem->offset));
    (void)out_json_line(o); /* a failed write shows when standard output is closed */
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    state *s = user;
    progress_show(&s->progress, &(progress_now){.what = "verifying", .bytes = done, .bytes_total = total});
    return cli_interrupted() || cli_stdout_failed();
}

static int print_totals(const verify_values *v, const spk_verify_result *r, double seconds)
{
    char a[48], b[48], c[48], d[48], e[48];
    if (v->json) {
        json_t *o = json_object();
        json_object_set_new(o, "ok", json_boolean(r->problems == 0));
        out_json_count(o, "problems", r->problems);
        out_json_count(o, "shards", r->shards);
        out_json_count(o, "samples", r->samples);
        out_json_count(o, "bytes", r->bytes);
        json_object_set_new(o, "seconds", json_real(seconds));
        return out_json_line(o);
    }
    if (r->problems)
        printf("%s found in %s, %s\n", out_plural(a, sizeof a, r->problems, "problem", NULL),
               out_plural(b, sizeof b, r->shards, "shard", NULL), out_size(c, sizeof c, r->bytes));
    else if (!v->quiet)
        printf("all is well: %s in %s, %s, checked in %s (%s/s)\n", out_plural(a, sizeof a, r->samples, "sample", NULL),
               out_plural(b, sizeof b, r->shards, "shard", NULL), out_size(c, sizeof c, r->bytes),
               out_time(d, sizeof d, seconds),
               out_size(e, sizeof e, (uint64_t)((double)r->bytes / (seconds > 0.001 ? seconds : 0.001))));
    return CLI_OK;
}

static int run(const opts *o)
{
    const verify_values *v = o->values;
    state s = {.values = v};
    const spk_dataset_options dataset = remote_options(&v->remote);
    spk_verify_options options_ = {.size = sizeof options_,
                                   .jobs = (int)v->jobs,
                                   .on_problem = on_problem,
                                   .on_progress = on_progress,
                                   .user = &s,
                                   .dataset = &dataset};
    spk_verify_result result;
    spk_error err;
    memset(&result, 0, sizeof result);
    spk_error_clear(&err);
    cli_catch_signals();
    progress_start(&s.progress, v->quiet);
    double started = out_now();
    spk_status st = spk_verify(o->operands[0], &options_, &result, &err);
    progress_end(&s.progress);
    if (st < 0)
        return cli_fail(&err, NULL);
    int rc = print_totals(v, &result, out_now() - started);
    return result.problems ? CLI_FAILED : rc;
}

const command cmd_verify = {
    .name = "verify",
    .summary = "check every byte of a dataset or shard",
    .synopsis = "[OPTION]... DATASET",
    .description =
        "Reads everything and compares: sizes and SHA-256 of the shards, checksums of all frames, each tar header with "
        "the index, padding and end marker, counts, that no key occurs twice, and the manifest with the shards. Files "
        "that "
        "are stored in another form, as by \"pack --jpeg=fast\", are made anew. Every "
        "problem is printed on a line of its own, outermost object first.",
    .options = options,
    .operands = operands,
    .min_operands = 1,
    .max_operands = 1,
    .examples = examples,
    .failure = "if a problem was found, or the check could not be done.",
    .values_size = sizeof(verify_values),
    .run = run,
};
