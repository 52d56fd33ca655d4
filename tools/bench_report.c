/* What the passes of shardpack bench say: the table, the verdict in words, JSON. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "cli.h"
#include "out.h"

#define KNEE 0.95      /* of the best rate */
#define STARVED 0.05   /* share of time waited from which data is the bottleneck */
#define FEW_BATCHES 20 /* fewer give no steady figures */

typedef struct line {
    char a[48], b[48], c[48], d[48], e[48];
} line;

/* Without workers the trainer itself decodes: that is for comparison, nothing to recommend. */
static double eligible_rate(const bench *b, size_t i)
{
    return b->passes[i].workers > 0 || b->count == 1 ? b->passes[i].rows_s : -1;
}

static size_t fastest(const bench *b)
{
    size_t best = 0;
    for (size_t i = 1; i < b->count; i++)
        if (eligible_rate(b, i) > eligible_rate(b, best))
            best = i;
    return best;
}

size_t bench_knee(const bench *b)
{
    size_t best = fastest(b), knee = best;
    for (size_t i = 0; i < b->count; i++)
        if (eligible_rate(b, i) >= KNEE * b->passes[best].rows_s && b->passes[i].workers < b->passes[knee].workers)
            knee = i;
    return knee;
}

double bench_batch_cost(const bench *b)
{
    const bench_pass *p = &b->passes[0];
    for (size_t i = 1; i < b->count; i++)
        if (p->workers == 0 || (b->passes[i].workers && b->passes[i].workers < p->workers))
            p = &b->passes[i];
    return p->busy;
}

uint64_t bench_sufficient(const bench *b)
{
    return (uint64_t)ceil(bench_batch_cost(b) / (b->values->step_ms / 1000));
}

int bench_is_starved(const bench_pass *p)
{
    return p->waited > STARVED;
}

void bench_print_head(const bench *b, const spk_loader_estimate *e)
{
    line t;
    out_name(stdout, b->path);
    printf(": %s; per epoch %s of %s",
           out_plural(t.a, sizeof t.a, b->stat.samples, b->images ? "image" : "sample", NULL),
           out_plural(t.b, sizeof t.b, e->batches, "batch", "batches"),
           out_count(t.c, sizeof t.c, b->values->loader.batch_size));
    printf(", %s", out_plural(t.a, sizeof t.a, b->values->epochs, "epoch", NULL));
    if (b->values->step_ms > 0)
        printf(", a step of %g ms per batch", b->values->step_ms);
    printf("\n%s; %s shared", out_plural(t.a, sizeof t.a, b->quota, "CPU", NULL),
           out_size(t.b, sizeof t.b, e->shared_bytes));
    if (e->lanes)
        printf("; %s in shuffle buffers, about %s", out_plural(t.a, sizeof t.a, e->shuffle_samples, "sample", NULL),
               out_size(t.b, sizeof t.b, e->shuffle_bytes));
    printf("\n\nworkers  first batch  %s/s      output/s        read/s  epoch gap  %s     memory (estimate)%s\n",
           b->images ? " images" : "samples", "ready", b->values->step_ms > 0 ? "  waited  bottleneck" : "");
    fflush(stdout);
}

static void print_memory(const bench_pass *p)
{
    line t;
    if (p->workers == 0)
        printf("  %21s", "-");
    else
        printf("  %10s %10s", p->memory ? out_size(t.a, sizeof t.a, p->memory) : "?",
               out_size(t.b, sizeof t.b, p->estimate.worker_bytes));
}

static void print_remote(const char *text)
{
    printf("         ");
    out_name(stdout, text);
    putchar('\n');
}

void bench_print_pass(const bench *b, const bench_pass *p)
{
    line t;
    printf("%7u  %11s  %9s  %10s/s  %10s/s", p->workers, out_time(t.a, sizeof t.a, p->first),
           out_count(t.b, sizeof t.b, (uint64_t)(p->rows_s + 0.5)), out_size(t.c, sizeof t.c, (uint64_t)p->output_s),
           out_size(t.d, sizeof t.d, (uint64_t)p->read_s));
    printf("  %9s", p->gap < 0 ? "-" : out_time(t.a, sizeof t.a, p->gap));
    if (p->ready < 0)
        printf("  %5s", "-");
    else
        printf("  %3.1f/%llu", p->ready, (unsigned long long)b->ahead);
    print_memory(p);
    if (b->values->step_ms > 0)
        printf("  %4.0f %%  %s", 100 * p->waited, bench_is_starved(p) ? "data" : "trainer");
    putchar('\n');
    remote_report_print(&p->remote, print_remote);
    fflush(stdout);
}

static void print_knee(const bench *b)
{
    line t;
    const bench_pass *best = &b->passes[fastest(b)], *p = &b->passes[bench_knee(b)];
    if (b->count < 2)
        return;
    printf("knee: %s", out_plural(t.a, sizeof t.a, p->workers, "worker", NULL));
    if (p == best)
        printf(", the fastest\n");
    else
        printf(" (%.0f %% of the fastest, %s)\n", 100 * p->rows_s / best->rows_s,
               out_plural(t.b, sizeof t.b, best->workers, "worker", NULL));
}

static void print_evidence(const bench *b, const bench_pass *p)
{
    line t;
    printf("  %s: ", out_plural(t.a, sizeof t.a, p->workers, "worker", NULL));
    if (p->workers)
        printf("%.1f of %llu batches were ready when the trainer asked, ", p->ready, (unsigned long long)b->ahead);
    printf("it waited %.0f %% of the time: the %s\n", 100 * p->waited,
           bench_is_starved(p) ? "data is the bottleneck" : "trainer is the bottleneck");
}

static void print_step(const bench *b)
{
    line t;
    double cost = bench_batch_cost(b) * 1000, ms = b->values->step_ms;
    uint64_t enough = bench_sufficient(b);
    int contradicted = 0;
    printf("a batch costs one worker %.1f ms, a step takes %g ms: %.1f / %g = %.2f, so %s with a CPU each %s\n", cost,
           ms, cost, ms, cost / ms, out_plural(t.a, sizeof t.a, enough, "worker", NULL),
           enough == 1 ? "suffices" : "suffice");
    for (size_t i = 0; i < b->count; i++) {
        print_evidence(b, &b->passes[i]);
        contradicted |= b->passes[i].workers >= enough && bench_is_starved(&b->passes[i]);
    }
    if (enough > b->quota || contradicted)
        printf("  here they do not have a CPU each: %s for workers and trainer, and whatever else runs\n",
               out_plural(t.a, sizeof t.a, b->quota, "CPU", NULL));
}

void bench_print_verdict(const bench *b)
{
    line t;
    uint64_t restarts = 0, substituted = 0, fewest = UINT64_MAX;
    for (size_t i = 0; i < b->count; i++) {
        restarts += b->passes[i].restarts;
        substituted += b->passes[i].substituted;
        fewest = b->passes[i].batches < fewest ? b->passes[i].batches : fewest;
    }
    putchar('\n');
    if (b->values->step_ms > 0)
        print_step(b);
    else
        print_knee(b);
    fflush(stdout);
    if (fewest < FEW_BATCHES)
        cli_note("only %s after the first, too few for steady figures: raise --epochs or lower --batch-size",
                 out_plural(t.a, sizeof t.a, fewest, "batch", "batches"));
    if (restarts)
        cli_note("%s ended early and had to be replaced", out_plural(t.a, sizeof t.a, restarts, "worker", NULL));
    if (substituted)
        cli_note("%s could not be used", out_plural(t.a, sizeof t.a, substituted, "sample", NULL));
}

static json_t *json_pass(const bench *b, const bench_pass *p)
{
    json_t *o = json_object();
    const struct {
        const char *name;
        double value;
        int known;
    } reals[] = {
        {"first_batch_seconds", p->first, 1},
        {"rows_per_second", p->rows_s, 1},
        {"output_bytes_per_second", p->output_s, 1},
        {"read_bytes_per_second", p->read_s, 1},
        {"batch_seconds", p->batch, 1},
        {"epoch_gap_seconds", p->gap, p->gap >= 0},
        {"waited_share", p->waited, 1},
        {"ready_batches", p->ready, p->ready >= 0},
        {"worker_seconds_per_batch", p->busy, 1},
    };
    out_json_count(o, "workers", p->workers);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        json_object_set_new(o, reals[i].name, reals[i].known ? json_real(reals[i].value) : json_null());
    json_object_set_new(o, "worker_bytes", p->memory ? json_integer((json_int_t)p->memory) : json_null());
    out_json_count(o, "worker_bytes_estimate", p->estimate.worker_bytes);
    out_json_count(o, "shared_bytes_estimate", p->estimate.shared_bytes);
    out_json_count(o, "shuffle_samples_estimate", p->estimate.shuffle_samples);
    out_json_count(o, "batches_measured", p->batches);
    out_json_count(o, "rows_measured", p->rows);
    out_json_count(o, "restarts", p->restarts);
    out_json_count(o, "substituted", p->substituted);
    if (b->values->step_ms > 0)
        out_json_text(o, "bottleneck", bench_is_starved(p) ? "data" : "trainer");
    remote_report_json(&p->remote, o);
    return o;
}

int bench_print_json(const bench *b)
{
    json_t *o = json_object(), *passes = json_array();
    out_json_text(o, "dataset", b->path);
    out_json_count(o, "samples", b->stat.samples);
    out_json_count(o, "batch_size", b->values->loader.batch_size);
    out_json_count(o, "epochs", b->values->epochs);
    out_json_count(o, "cpu_quota", b->quota);
    out_json_count(o, "prefetch", b->ahead - 1);
    for (size_t i = 0; i < b->count; i++)
        json_array_append_new(passes, json_pass(b, &b->passes[i]));
    json_object_set_new(o, "passes", passes);
    out_json_count(o, "knee_workers", b->passes[bench_knee(b)].workers);
    if (b->values->step_ms > 0) {
        json_object_set_new(o, "step_ms", json_real(b->values->step_ms));
        out_json_count(o, "sufficient_workers", bench_sufficient(b));
    }
    return out_json(o);
}
