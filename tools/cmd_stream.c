/* shardpack stream: what a trainer would get, batch by batch, as digests. */
#include "cmd_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "out.h"
#include "place.h"
#include "target.h"

#define STATE_MAX 65536 /* bytes; the library refuses more */
#define AT(member) .offset = offsetof(stream_values, member)

static const opt options[] = {
#include "loader_rows.h"
    {.name = "workers",
     .kind = OPT_U64,
     .letter = 'w',
     .arg = "N",
     AT(workers),
     .def = "the CPU quota",
     .max = 1024,
     .help = "Worker processes; 0: decode in this one. Does not change the output."},
    {.name = "epochs",
     .kind = OPT_U64,
     .letter = 'e',
     .arg = "N",
     AT(epochs),
     .def = "1",
     .min = 1,
     .help = "Epochs to run; one that is resumed counts as one."},
    {.name = "batches", .kind = OPT_U64, .arg = "N", AT(batches), .min = 1, .help = "Stop after N batches."},

    REMOTE_ROWS(stream_values),

    {.help = "State"},
    {.name = "state",
     .kind = OPT_STRING,
     .arg = "FILE",
     AT(state),
     .complete = COMPLETE_FILE,
     .help = "Write the state to FILE at the end, also after an interruption. It replaces the file in one step."},
    {.name = "save-state-at",
     .kind = OPT_U64,
     .arg = "N",
     AT(save_state_at),
     .min = 1,
     .help = "Write it after N batches instead, and go on."},
    {.name = "resume",
     .kind = OPT_STRING,
     .arg = "FILE",
     AT(resume),
     .complete = COMPLETE_FILE,
     .help = "Continue from the state in FILE. Workers, ranks and batch size may differ from those that wrote it."},

    {.help = "Output"},
    {.name = "keys",
     .kind = OPT_FLAG,
     .letter = 'k',
     AT(keys),
     .help = "Also a line per row: its position, a digest of its columns, its key."},
    {.name = "json", .kind = OPT_FLAG, AT(json), .help = "One JSON object per batch, and one per epoch."},
    {.name = "verbose",
     .kind = OPT_FLAG,
     .letter = 'v',
     AT(verbose),
     .help = "Tell on standard error what the loader needs and did, its hints, and of a dataset by URL the figures of "
             "each mirror and of the cache; with --json these are the last line of the output."},
    {0},
};

static const opt_conflict conflicts[] = {{"resume", "epoch"}, {0}};

static const operand operands[] = {
    {.name = "DATASET", .help = "Folder or manifest of a dataset, or a URL of either.", .complete = COMPLETE_FILE},
    {0},
};

static const example examples[] = {
    {"shardpack stream photos.shards", "One epoch, as a trainer would get it."},
    {"shardpack stream -w 4 photos.shards | sha256sum", "The sum is the same for any number of workers."},
    {"shardpack stream --batches 10 --state s.json photos.shards",
     "Stop after ten batches. With --resume s.json it goes on with the eleventh."},
    {"shardpack stream --image none --fields jpg --keys photos.shards", "Files as they are, without decoding."},
    {0},
};

static int save_state(const stream *s)
{
    spk_error err;
    char *text = NULL;
    spk_error_clear(&err);
    if (spk_loader_state_save(s->loader, &text, &err) < 0)
        return cli_fail(&err, NULL);
    size_t n = strlen(text);
    text[n] = '\n'; /* in the place of the terminator */
    int rc = place_file(s->values->state, text, n + 1, 1);
    spk_free(text);
    return rc;
}

static int restore_state(stream *s)
{
    char text[STATE_MAX + 2];
    const char *path = s->values->resume;
    spk_error err;
    spk_error_clear(&err);
    FILE *f = fopen(path, "rbe");
    if (!f)
        return cli_error("%s: %s", path, strerror(errno));
    size_t n = fread(text, 1, sizeof text - 1, f);
    int failed = ferror(f), reason = errno;
    fclose(f);
    if (failed)
        return cli_error("%s: %s", path, strerror(reason));
    text[n] = 0;
    if (spk_loader_state_restore(s->loader, text, &err) < 0)
        return cli_error("%s: %s", path, err.text);
    return CLI_OK;
}

static int take_batch(stream *s, spk_batch *batch)
{
    if (digest_batch(&s->digests, batch, &s->setup))
        return cli_no_memory();
    digest_sum_add(s->sum, &s->digests);
    s->batches++;
    s->printed++;
    s->rows += spk_batch_rows(batch);
    s->valid += spk_batch_valid_rows(batch);
    int rc = stream_print_batch(s, batch);
    if (rc == CLI_OK && s->values->save_state_at && s->printed == s->values->save_state_at)
        rc = save_state(s);
    return rc;
}

static int is_enough(const stream *s)
{
    return cli_interrupted() || (s->values->batches && s->printed == s->values->batches);
}

/* Up to the end of the epoch, or until it is enough. */
static int run_epoch(stream *s)
{
    uint64_t position;
    spk_batch *batch = NULL;
    spk_error err;
    spk_status st = SPK_OK;
    int rc = CLI_OK;
    spk_error_clear(&err);
    spk_loader_position(s->loader, &s->epoch, &position);
    s->batches = s->rows = s->valid = 0;
    digest_sum_reset(s->sum);
    while (rc == CLI_OK && !is_enough(s) && (st = spk_loader_next(s->loader, &batch, &err)) == SPK_OK) {
        rc = take_batch(s, batch);
        spk_batch_release(batch);
    }
    if (rc == CLI_OK && st < 0 && !(st == SPK_E_CANCELLED && cli_interrupted()))
        rc = cli_fail(&err, NULL);
    if (rc == CLI_OK && st == SPK_END)
        rc = stream_print_epoch(s);
    return rc;
}

static int open_loader(stream *s, spk_dataset *dataset)
{
    const stream_values *v = s->values;
    spk_loader_estimate estimate;
    spk_error err;
    spk_error_clear(&err);
    int rc = loader_make(&s->setup, s->opts, dataset, v->keys);
    if (rc != CLI_OK)
        return rc;
    s->setup.options.has_workers = opts_given(s->opts, "workers");
    s->setup.options.workers = (int)v->workers;
    if (!v->verbose)
        s->setup.options.on_note = NULL;
    if (v->verbose && spk_loader_estimate_memory(dataset, &s->setup.options, &estimate, &err) == SPK_OK)
        stream_note_estimate(&estimate);
    if (spk_loader_open(&s->loader, dataset, &s->setup.options, &err) < 0)
        return cli_fail(&err, NULL);
    s->sum = digest_sum_new();
    if (!s->sum)
        return cli_no_memory();
    return v->resume ? restore_state(s) : CLI_OK;
}

static int run_all(stream *s)
{
    const stream_values *v = s->values;
    uint64_t epochs = v->epochs ? v->epochs : 1;
    int rc = stream_print_head(s);
    for (uint64_t e = 0; e < epochs && rc == CLI_OK && !is_enough(s); e++)
        rc = run_epoch(s);
    if (rc == CLI_OK && v->save_state_at > s->printed)
        rc = cli_error("--save-state-at %llu: there were only %llu batches", (unsigned long long)v->save_state_at,
                       (unsigned long long)s->printed);
    else if (rc == CLI_OK && v->state && !v->save_state_at)
        rc = save_state(s);
    stream_note_stats(s);
    if (rc == CLI_OK && cli_interrupted())
        rc = cli_say_interrupted(v->state && !v->save_state_at ? "the state is saved" : NULL);
    return rc;
}

static int run(const opts *o)
{
    stream s = {.values = o->values, .opts = o};
    target t;
    if (s.values->save_state_at && !s.values->state)
        return cli_usage("stream", "--save-state-at needs --state FILE");
    cli_catch_signals();
    int rc = target_open_dataset(&t, o->operands[0], &s.values->remote);
    if (rc == CLI_OK)
        rc = open_loader(&s, t.dataset);
    if (rc == CLI_OK)
        rc = run_all(&s);
    spk_loader_close(s.loader);
    loader_free(&s.setup);
    digest_free(&s.digests);
    digest_sum_free(s.sum);
    target_close(&t);
    return rc;
}

static void init(void *values)
{
    stream_values *v = values;
    loader_init(&v->loader);
}

const command cmd_stream = {
    .name = "stream",
    .summary = "print the batches that a trainer would get, as digests",
    .synopsis = "[OPTION]... DATASET",
    .description =
        "Iterates over a dataset exactly as a training program does, with the same options, and prints a line per "
        "batch: epoch, number, position of its first row in the order of the epoch, rows, how many of them are "
        "valid, and for each column a digest (XXH64) of its bytes in the order of the rows. Of values of variable "
        "size the length counts, too. The mask says which rows are valid. The last line of an epoch has a digest of "
        "the "
        "digests of all rows.\n\n"
        "The output is the same for any number of workers, and does not change when a worker is killed and replaced. "
        "Several ranks together get the rows that a single one with a batch as large as all of theirs gets.",
    .options = options,
    .conflicts = conflicts,
    .operands = operands,
    .min_operands = 1,
    .max_operands = 1,
    .examples = examples,
    .failure = "if something could not be read, or if a worker failed for good.",
    .values_size = sizeof(stream_values),
    .init = init,
    .run = run,
};
