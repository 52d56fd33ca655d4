/* shardpack bench: how fast a dataset can be read here, with how many workers. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cli.h"
#include "cmd.h"
#include "out.h"
#include "target.h"

#define AT(member) .offset = offsetof(bench_values, member)

static const opt options[] = {
#include "loader_rows.h"
    {.name = "workers",
     .kind = OPT_STRING,
     .letter = 'w',
     .arg = "N,N,...",
     AT(workers),
     .def = "0, 1, 2, 4 and so on up to the CPU quota",
     .help = "Numbers of worker processes to measure; 0: decode in this one."},
    {.name = "epochs",
     .kind = OPT_U64,
     .letter = 'e',
     .arg = "N",
     AT(epochs),
     .def = "2",
     .min = 1,
     .max = 1000000,
     .help = "Whole epochs per number of workers."},
    {.name = "step-ms",
     .kind = OPT_DOUBLE,
     .arg = "T",
     AT(step_ms),
     .max = 3600000,
     .help = "Hold each batch for T milliseconds, as a trainer does that needs so long for a step, and tell who waits "
             "for whom and how many workers suffice."},

    REMOTE_ROWS(bench_values),

    {.help = "Output"},
    {.name = "json", .kind = OPT_FLAG, AT(json), .help = "Print one JSON object."},
    {.name = "plot",
     .kind = OPT_STRING,
     .arg = "FILE.svg",
     AT(plot),
     .complete = COMPLETE_FILE,
     .help = "Also draw the rate over the number of workers."},
    {.name = "verbose", .kind = OPT_FLAG, .letter = 'v', AT(verbose), .help = "Show the loader's hints."},
    {0},
};

static const operand operands[] = {
    {.name = "DATASET", .help = "Folder or manifest of a dataset, or a URL of either.", .complete = COMPLETE_FILE},
    {0},
};

static const example examples[] = {
    {"shardpack bench photos.shards", "How many images a second, and with how many workers."},
    {"shardpack bench --dtype float32 --layout nchw --hflip 0.5 photos.shards",
     "With the output that your model takes."},
    {"shardpack bench --step-ms 120 --workers 1,2,4 photos.shards", "Does a GPU with steps of 120 ms have to wait?"},
    {"shardpack bench --image none --fields jpg --plot rate.svg photos.shards", "Reading alone, with a chart."},
    {0},
};

/* 0, 1, 2, 4, ..., and the quota. */
static size_t default_sweep(uint32_t quota, uint32_t out[BENCH_PASSES_MAX])
{
    size_t n = 0;
    out[n++] = 0;
    for (uint32_t w = 1; w < quota; w *= 2)
        out[n++] = w;
    out[n++] = quota;
    return n;
}

/* "0,1,4". How many, or 0 if it is no such list. */
static size_t parse_sweep(const char *text, uint32_t out[BENCH_PASSES_MAX])
{
    size_t n = 0;
    char *end;
    for (const char *s = text; n < BENCH_PASSES_MAX; s = end + 1) {
        if (*s < '0' || *s > '9')
            return 0;
        unsigned long w = strtoul(s, &end, 10);
        if (w > 1024 || (*end && *end != ','))
            return 0;
        for (size_t i = 0; i < n; i++)
            if (out[i] == w)
                return 0;
        out[n++] = (uint32_t)w;
        if (!*end)
            return n;
    }
    return 0;
}

/* What is known without a pass: the quota, and what the loader will need at the most. */
static int look(bench *b, spk_loader_estimate *most, uint32_t sweep[BENCH_PASSES_MAX], size_t *n)
{
    target t;
    loader_setup setup = {0};
    spk_error err;
    spk_error_clear(&err);
    int rc = target_open_dataset(&t, b->path, &b->values->remote);
    if (rc == CLI_OK) {
        spk_dataset_get_stat(t.dataset, &b->stat);
        rc = loader_make(&setup, b->opts, t.dataset, 0);
        if (setup.indices)
            b->stat.samples = setup.options.index_count;
    }
    if (rc == CLI_OK) {
        b->images = setup.columns[0].kind == SPK_COLUMN_IMAGE;
        if (spk_loader_estimate_memory(t.dataset, &setup.options, most, &err) < 0)
            rc = cli_fail(&err, NULL);
    }
    if (rc == CLI_OK) {
        b->quota = most->workers;
        if (!*n)
            *n = default_sweep(b->quota, sweep);
        setup.options.has_workers = 1;
        for (size_t i = 0; i < *n; i++)
            if ((int)sweep[i] > setup.options.workers)
                setup.options.workers = (int)sweep[i];
        if (spk_loader_estimate_memory(t.dataset, &setup.options, most, &err) < 0)
            rc = cli_fail(&err, NULL);
    }
    loader_free(&setup);
    target_close(&t);
    return rc;
}

static int sweep_all(bench *b, const uint32_t *sweep, size_t n)
{
    int rc = CLI_OK;
    for (size_t i = 0; i < n && rc == CLI_OK; i++) {
        rc = bench_measure(b, sweep[i], &b->passes[b->count]);
        if (rc != CLI_OK)
            break;
        if (!b->values->json)
            bench_print_pass(b, &b->passes[b->count]);
        b->count++;
        if (cli_stdout_failed())
            rc = CLI_FAILED;
    }
    return rc;
}

static int bench_run(bench *b, uint32_t *sweep, size_t n)
{
    spk_loader_estimate most;
    int rc = look(b, &most, sweep, &n);
    if (rc != CLI_OK)
        return rc;
    if (!b->values->json)
        bench_print_head(b, &most);
    rc = sweep_all(b, sweep, n);
    if (rc == CLI_OK && b->values->json)
        rc = bench_print_json(b);
    else if (rc == CLI_OK)
        bench_print_verdict(b);
    if (rc == CLI_OK && b->values->plot)
        rc = bench_plot(b);
    return rc;
}

static int run(const opts *o)
{
    const bench_values *v = o->values;
    uint32_t sweep[BENCH_PASSES_MAX];
    size_t n = v->workers ? parse_sweep(v->workers, sweep) : 0;
    if (v->workers && !n)
        return cli_usage("bench",
                         "--workers %s: expected up to %d different numbers from 0 to 1024 with commas between",
                         v->workers, BENCH_PASSES_MAX);
    bench *b = calloc(1, sizeof *b);
    if (!b)
        return cli_no_memory();
    b->values = v;
    b->opts = o;
    b->path = o->operands[0];
    b->ahead = (v->loader.prefetch ? v->loader.prefetch : 4) + 1;
    cli_catch_signals();
    int rc = bench_run(b, sweep, n);
    for (size_t i = 0; i < b->count; i++)
        remote_report_free(&b->passes[i].remote);
    free(b);
    return rc;
}

static void init(void *values)
{
    bench_values *v = values;
    loader_init(&v->loader);
    v->epochs = 2;
}

const command cmd_bench = {
    .name = "bench",
    .summary = "measure how fast a dataset can be read, by number of workers",
    .synopsis = "[OPTION]... DATASET",
    .description =
        "Goes through whole epochs as a trainer would that does nothing with the batches, once for each number of "
        "worker processes, and prints a line for each number:\n\n"
        "  first batch  time from opening the dataset to the first batch\n"
        "  images/s     rows per second, from the first batch to the last; samples/s\n"
        "               without images\n"
        "  output/s     bytes per second handed to the trainer\n"
        "  read/s       compressed bytes per second read from shards\n"
        "  epoch gap    time from the last batch of an epoch to the first of the next;\n"
        "               an ordinary batch takes batch size / rate\n"
        "  ready        of the batches that are prepared ahead, how many were ready on\n"
        "               average when one was asked for: near 0, the trainer waits\n"
        "  memory       private memory of the largest worker (and the estimate)\n"
        "  waited       with --step-ms: share of the time that the trainer waited\n"
        "  bottleneck   with --step-ms: whether data or the trainer sets the pace\n\n"
        "The knee is the smallest number of workers that comes within 5 % of the best rate: more are of no use. The "
        "lines "
        "above the table tell what is held in memory. A lane is one of the shuffled streams of samples that a batch is "
        "put together from; each is read by one worker and holds --lane-buffer samples, so that more lanes mix better "
        "and take more memory.\n\n"
        "Below the line of a dataset by URL are the figures of each mirror: bytes, requests, time to the first byte "
        "(median and p99), retries, failovers, second requests while a first one stalled (hedges), what failed, why "
        "and with which HTTP status; and those of the cache.\n\n"
        "A single pass reads from the disk or from the system's cache, as it happens: the first one may be slower.",
    .options = options,
    .operands = operands,
    .min_operands = 1,
    .max_operands = 1,
    .examples = examples,
    .failure = "if something could not be read, or if a worker failed for good.",
    .values_size = sizeof(bench_values),
    .init = init,
    .run = run,
};
