/* The parts of shardpack bench: options and sweep (cmd_bench.c), a pass with one number of workers (bench_pass.c), the
 * memory of workers (bench_memory.c), what it all means (bench_report.c, bench_plot.c). */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

#include "loader_opts.h"
#include "remote.h"

#define BENCH_PASSES_MAX 64

typedef struct bench_values {
    loader_values loader; /* first: loader_rows.h */
    const char *workers, *plot;
    uint64_t epochs;
    double step_ms;
    int json, verbose;
    remote_values remote;
} bench_values;

/* What a pass over all epochs with one number of workers gave. Rates are from the first batch to the last one. */
typedef struct bench_pass {
    spk_loader_estimate estimate;
    uint32_t workers;
    double first;            /* seconds from opening the dataset to the first batch */
    double rows_s;           /* rows per second, padded ones left out */
    double output_s, read_s; /* bytes per second: of the columns, of the shards */
    double batch;            /* seconds from one batch to the next, on average */
    double gap;              /* the same from the last of an epoch to the first of the next; negative: one epoch */
    double waited;           /* share of the time that the trainer waited, 0 to 1 */
    double ready;            /* batches ready when it asked for one, on average; negative: no workers */
    double busy;             /* seconds of workers' time per batch */
    uint64_t memory;         /* private bytes of the largest worker; 0: unknown */
    uint64_t batches, rows;  /* measured */
    uint64_t restarts, substituted;
    remote_report remote;
} bench_pass;

typedef struct bench {
    const bench_values *values;
    const opts *opts;
    const char *path;
    spk_dataset_stat stat;
    uint32_t quota;
    uint64_t ahead; /* batches that are prepared ahead */
    int images;     /* rows are images, decoded */
    bench_pass passes[BENCH_PASSES_MAX];
    size_t count;
} bench;

/* Measures one number of workers. Returns the exit status, after a message. */
int bench_measure(const bench *b, uint32_t workers, bench_pass *out);

/* Anonymous (private) memory of the largest child process of ours that is a worker; 0 if the system does not tell. */
uint64_t bench_worker_memory(void);

/* ---- what it means ---- */

/* The fewest workers (one at least) that give 95 % of the best rate: index of the pass. */
size_t bench_knee(const bench *b);
/* Seconds that a batch costs one worker, from the pass with the fewest workers. */
double bench_batch_cost(const bench *b);
/* Workers that keep up with --step-ms: W >= t_data / t_step. */
uint64_t bench_sufficient(const bench *b);
/* Does this pass wait for data (1), or does the data wait for the trainer (0)? */
int bench_is_starved(const bench_pass *p);

void bench_print_head(const bench *b, const spk_loader_estimate *e);
void bench_print_pass(const bench *b, const bench_pass *p);
void bench_print_verdict(const bench *b);
int bench_print_json(const bench *b);
/* Writes the chart. Returns the exit status. */
int bench_plot(const bench *b);

#endif
