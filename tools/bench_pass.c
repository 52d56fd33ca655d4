/* One pass of shardpack bench: whole epochs with one number of workers. The trainer does nothing but ask for the next
 * batch, and sleep if it is to play one. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "cli.h"
#include "out.h"
#include "progress.h"

#define LOOKS 8 /* at the memory of the workers, per epoch */

typedef struct pass {
    const bench *bench;
    spk_dataset *dataset;
    loader_setup setup;
    spk_loader *loader;
    progress progress;
    char what[32];
    double opened, first, last; /* times: of opening, of the first and the latest batch */
    spk_loader_stats at_first;
    double gaps; /* sum */
    uint64_t gap_count, batches, rows, output, per_epoch, memory;
    int epoch_ended;
} pass;

static uint64_t bytes_of(const spk_batch *batch, size_t columns)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < columns; i++) {
        spk_view v;
        if (spk_batch_column(batch, i, &v, NULL) < 0)
            continue;
        sum += v.bytes;
        for (uint64_t r = 0; v.offsets && r < v.shape[0]; r++)
            sum += v.offsets[2 * r + 1];
    }
    return sum;
}

static void step(const bench_values *v)
{
    double seconds = v->step_ms / 1000;
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (v->step_ms > 0 && nanosleep(&t, &t) != 0 && !cli_interrupted())
        ;
}

static void show(pass *p)
{
    uint64_t epochs = p->bench->values->epochs;
    progress_show(
        &p->progress,
        &(progress_now){.what = p->what, .units = "batches", .done = p->batches, .total = p->per_epoch * epochs});
    if (p->setup.options.workers > 0 && (p->batches % (p->per_epoch / LOOKS + 1) == 0 || p->epoch_ended)) {
        uint64_t bytes = bench_worker_memory();
        p->memory = bytes > p->memory ? bytes : p->memory;
    }
}

static void take(pass *p, const spk_batch *batch)
{
    double now = out_now();
    p->batches++;
    if (p->batches == 1) {
        p->first = now;
        spk_loader_get_stats(p->loader, &p->at_first);
    } else {
        p->rows += spk_batch_rows(batch);
        p->output += bytes_of(batch, p->setup.count);
        if (p->epoch_ended) {
            p->gaps += now - p->last;
            p->gap_count++;
        }
    }
    p->epoch_ended = 0;
    p->last = now;
}

static int run_epochs(pass *p)
{
    spk_batch *batch = NULL;
    spk_error err;
    spk_status st = SPK_OK;
    spk_error_clear(&err);
    for (uint64_t e = 0; e < p->bench->values->epochs && st >= 0 && !cli_interrupted(); e++) {
        while (!cli_interrupted() && (st = spk_loader_next(p->loader, &batch, &err)) == SPK_OK) {
            take(p, batch);
            show(p);
            step(p->bench->values);
            spk_batch_release(batch);
        }
        p->epoch_ended = 1;
        show(p);
    }
    progress_end(&p->progress);
    if (cli_interrupted())
        return cli_say_interrupted(NULL);
    return st < 0 ? cli_fail(&err, NULL) : CLI_OK;
}

static void sum_up(const pass *p, bench_pass *out)
{
    spk_loader_stats s;
    spk_loader_get_stats(p->loader, &s);
    uint64_t intervals = p->batches - 1, padded = s.padded - p->at_first.padded;
    double time = p->last - p->first;
    out->first = p->first - p->opened;
    out->batches = intervals;
    out->rows = p->rows - padded;
    out->memory = p->memory;
    remote_report_take(&out->remote, p->loader);
    out->restarts = s.restarts;
    out->substituted = s.substituted;
    out->ready = p->setup.options.workers > 0 ? (double)s.ready_sum / (double)s.batches : -1;
    out->busy = (double)s.worker_busy_ns / 1e9 / (double)s.batches;
    out->gap = p->gap_count ? p->gaps / (double)p->gap_count : -1;
    if (intervals == 0 || time <= 0)
        return;
    out->batch = time / (double)intervals;
    out->rows_s = (double)out->rows / time;
    out->output_s = (double)p->output / time;
    out->read_s = (double)(s.bytes_read - p->at_first.bytes_read) / time;
    out->waited = (double)(s.wait_ns - p->at_first.wait_ns) / 1e9 / time;
}

static int open_pass(pass *p, uint32_t workers, bench_pass *out)
{
    spk_error err;
    spk_dataset_options options = remote_options(&p->bench->values->remote);
    spk_error_clear(&err);
    p->opened = out_now();
    if (spk_dataset_open(&p->dataset, p->bench->path, &options, &err) < 0)
        return cli_fail(&err, NULL);
    int rc = loader_make(&p->setup, p->bench->opts, p->dataset, 0);
    if (rc != CLI_OK)
        return rc;
    p->setup.options.has_workers = 1;
    p->setup.options.workers = (int)workers;
    if (!p->bench->values->verbose)
        p->setup.options.on_note = NULL;
    if (spk_loader_estimate_memory(p->dataset, &p->setup.options, &out->estimate, &err) < 0 ||
        spk_loader_open(&p->loader, p->dataset, &p->setup.options, &err) < 0)
        return cli_fail(&err, NULL);
    p->per_epoch = spk_loader_length(p->loader);
    return CLI_OK;
}

int bench_measure(const bench *b, uint32_t workers, bench_pass *out)
{
    pass p = {.bench = b};
    memset(out, 0, sizeof *out);
    out->workers = workers;
    out_plural(p.what, sizeof p.what, workers, "worker", NULL);
    int rc = open_pass(&p, workers, out);
    progress_start(&p.progress, b->values->json || !isatty(STDERR_FILENO));
    if (rc == CLI_OK)
        rc = run_epochs(&p);
    if (rc == CLI_OK && p.batches == 0)
        rc = cli_error("%s: an epoch has no batch", b->path);
    if (rc == CLI_OK)
        sum_up(&p, out);
    spk_loader_close(p.loader);
    loader_free(&p.setup);
    spk_dataset_close(p.dataset);
    return rc;
}
