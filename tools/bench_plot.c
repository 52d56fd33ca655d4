/* The chart of shardpack bench: rate over workers, what one worker times n would give, and what the trainer takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cli.h"
#include "out.h"
#include "place.h"
#include "svg.h"

typedef struct points {
    double x[BENCH_PASSES_MAX], y[BENCH_PASSES_MAX];
    double ideal[BENCH_PASSES_MAX], step[BENCH_PASSES_MAX];
    double most;
} points;

static int by_workers(const void *a, const void *b)
{
    const bench_pass *const *p = a, *const *q = b;
    return (*p)->workers < (*q)->workers ? -1 : (*p)->workers > (*q)->workers;
}

/* Points in order of workers. The ideal line begins at 0: n times what the fewest workers did each. */
static void collect(const bench *b, points *p)
{
    const bench_pass *order[BENCH_PASSES_MAX] = {NULL};
    double one = 0;
    for (size_t i = 0; i < b->count; i++)
        order[i] = &b->passes[i];
    qsort(order, b->count, sizeof *order, by_workers);
    for (size_t i = 0; i < b->count; i++) {
        p->x[i] = order[i]->workers;
        p->y[i] = order[i]->rows_s;
        if (one <= 0 && order[i]->workers)
            one = order[i]->rows_s / order[i]->workers;
        p->most = p->y[i] > p->most ? p->y[i] : p->most;
        if (b->values->step_ms > 0)
            p->step[i] = (double)b->values->loader.batch_size * 1000 / b->values->step_ms;
    }
    for (size_t i = 0; i < b->count; i++)
        p->ideal[i] = one * p->x[i];
}

/* The end of a long path; bytes that are no text are escaped. */
static void dataset_name(const char *path, char *out, size_t size)
{
    char safe[512];
    out_escape(safe, sizeof safe, path);
    size_t n = strlen(safe);
    const char *end = n > 60 ? safe + n - 57 : safe;
    while ((*end & 0xc0) == 0x80) /* not in the middle of a character */
        end++;
    snprintf(out, size, "%s%.60s", n > 60 ? "..." : "", end);
}

int bench_plot(const bench *b)
{
    points p;
    char title[96], subtitle[192], mark[64], takes[64], name[64], t[4][48];
    svg_line lines[3];
    size_t n = 0, length = 0, knee = bench_knee(b);
    memset(&p, 0, sizeof p);
    collect(b, &p);
    lines[n++] = (svg_line){.name = "measured", .colour = "#2186eb", .x = p.x, .y = p.y, .count = b->count};
    lines[n++] = (svg_line){.name = "1 worker x n",
                            .colour = "#9aa5b1",
                            .x = p.x,
                            .y = p.ideal,
                            .count = b->count,
                            .dashed = 1,
                            .leaving = 1};
    snprintf(takes, sizeof takes, "trainer: %s/s", out_count(t[0], sizeof t[0], (uint64_t)p.step[0]));
    if (b->values->step_ms > 0)
        lines[n++] =
            (svg_line){.name = takes, .colour = "#e66a19", .x = p.x, .y = p.step, .count = b->count, .dashed = 1};
    dataset_name(b->path, name, sizeof name);
    snprintf(title, sizeof title, "shardpack bench %s", name);
    snprintf(subtitle, sizeof subtitle, "%s, batches of %s, %s; %s",
             out_plural(t[0], sizeof t[0], b->stat.samples, b->images ? "image" : "sample", NULL),
             out_count(t[1], sizeof t[1], b->values->loader.batch_size),
             out_plural(t[2], sizeof t[2], b->values->epochs, "epoch", NULL),
             out_plural(t[3], sizeof t[3], b->quota, "CPU", NULL));
    snprintf(mark, sizeof mark, "knee: %s", out_plural(t[0], sizeof t[0], b->passes[knee].workers, "worker", NULL));
    svg_chart c = {.title = title,
                   .subtitle = subtitle,
                   .x_label = "worker processes",
                   .y_label = b->images ? "images per second" : "samples per second",
                   .lines = lines,
                   .count = n,
                   .ticks = p.x,
                   .tick_count = b->count,
                   .mark = b->count > 1 ? mark : NULL,
                   .mark_x = b->passes[knee].workers,
                   .mark_y = b->passes[knee].rows_s};
    char *text = svg_draw(&c, &length);
    int rc = text ? place_file(b->values->plot, text, length, 1) : cli_no_memory();
    free(text);
    return rc;
}
