/* Measures the loader as a trainer meets it that does nothing with a batch. Public headers only.
 *
 *     load_bench epochs|handover|memory|breaks DATASET [NAME=VALUE ...]
 *
 * epochs    whole epochs: images/s, first batch, gap between epochs, CPU time
 * handover  waits until batches are ready, then times spk_loader_next and spk_batch_release; clock=cpu: their CPU time
 * memory    whole epochs, looking at the workers' memory on the way
 * breaks    epochs given up after three batches: most memory, descriptors and processes in both halves of them
 *
 * Names are those of `options` below. Prints one JSON object; exit status 1 with the error's text on stderr. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shardpack.h>

#include "bench_options.h"
#include "children.h"

#define WORKER "shardpack-worker"
#define EPOCHS_MAX 1000
#define CALLS_MAX 4096

enum { WORKERS, BATCH, EPOCHS, TRANSFORM, TYPE, LAYOUT, RAW, PREFETCH, LIMIT, SHUFFLE, SEED, ROWS, CLOCK };

static struct bench_option options[] = {{"workers", NULL, 2},
                                        {"batch", NULL, 256},
                                        {"epochs", NULL, 2},
                                        {"transform", "train|eval", 0},
                                        {"type", "uint8|float32", 0},
                                        {"layout", "nhwc|nchw", 0},
                                        {"raw", NULL, 0},
                                        {"prefetch", NULL, 0},
                                        {"limit", NULL, 0},
                                        {"shuffle", NULL, 1},
                                        {"seed", NULL, 0},
                                        {"rows", NULL, 0},
                                        {"clock", "wall|cpu", 0},
                                        {NULL, NULL, 0}};

struct bench {
    spk_dataset *dataset;
    spk_loader *loader;
    spk_loader_estimate estimate;
    spk_error err;
    double opened; /* when opening the dataset began */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* By the clock that was asked for. */
static double mark(void)
{
    struct timespec t;
    clock_gettime(options[CLOCK].value ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void rest(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts; share 0.5 is the median. */
static double quantile(double *values, size_t n, double share)
{
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, ascending);
    return values[(size_t)(share * (double)(n - 1) + 0.5)];
}

static spk_status open_loader(struct bench *b, const char *path)
{
    spk_image_options image = {.size = sizeof image,
                               .transform = options[TRANSFORM].value ? SPK_RESIZE_CENTER_CROP : SPK_RANDOM_RESIZED_CROP,
                               .hflip = options[TRANSFORM].value ? 0 : 0.5,
                               .dtype = options[TYPE].value ? SPK_FLOAT32 : SPK_UINT8,
                               .layout = options[LAYOUT].value ? SPK_NCHW : SPK_NHWC};
    const float mean[3] = {0.485F, 0.456F, 0.406F}, std[3] = {0.229F, 0.224F, 0.225F};
    if (options[TYPE].value) {
        image.normalize = 1;
        memcpy(image.mean, mean, sizeof mean);
        memcpy(image.std, std, sizeof std);
    }
    spk_column columns[] = {
        {.kind = SPK_COLUMN_IMAGE, .image = image}, {.kind = SPK_COLUMN_LABEL}, {.kind = SPK_COLUMN_INDEX}};
    if (options[RAW].value)
        columns[0] = (spk_column){.kind = SPK_COLUMN_BYTES, .field = "jpg"};
    spk_loader_options o = {.size = sizeof o,
                            .batch_size = (uint32_t)options[BATCH].value,
                            .has_workers = 1,
                            .workers = (int)options[WORKERS].value,
                            .prefetch = (uint32_t)options[PREFETCH].value,
                            .shuffle = options[SHUFFLE].value != 0,
                            .seed = options[SEED].value,
                            .limit = options[LIMIT].value,
                            .columns = columns,
                            .column_count = sizeof columns / sizeof *columns};
    b->opened = now();
    spk_status status = spk_dataset_open(&b->dataset, path, NULL, &b->err);
    if (!status)
        status = spk_loader_open(&b->loader, b->dataset, &o, &b->err);
    return status ? status : spk_loader_estimate_memory(b->dataset, &o, &b->estimate, &b->err);
}

/* Bytes that a batch hands over: pixels, or files. */
static spk_status batch_bytes(struct bench *b, const spk_batch *batch, uint64_t *sum)
{
    spk_view v;
    spk_status status = spk_batch_column(batch, 0, &v, &b->err);
    if (status)
        return status;
    if (!v.offsets)
        *sum += v.bytes;
    for (uint64_t i = 0; v.offsets && i < spk_batch_rows(batch); i++)
        *sum += v.offsets[2 * i + 1];
    return SPK_OK;
}

static double cpu_so_far(void)
{
    static struct child children[CHILDREN_MAX];
    double sum = own_cpu();
    for (int n = children_list(WORKER, 0, children); n > 0; n--)
        sum += children[n - 1].cpu;
    return sum;
}

/* The estimate, and the end of the JSON object. */
static void print_end(const struct bench *b)
{
    spk_loader_stats s;
    spk_loader_get_stats(b->loader, &s);
    printf(", \"restarts\": %" PRIu64 ", \"bytes_read\": %" PRIu64 ", \"occupancy\": %.3f", s.restarts, s.bytes_read,
           s.batches ? (double)s.ready_sum / (double)s.batches : 0);
    printf(", \"estimate\": {\"shared\": %" PRIu64 ", \"worker\": %" PRIu64 ", \"shuffle\": %" PRIu64
           ", \"lanes\": %" PRIu64 ", \"workers\": %" PRIu32 "}}\n",
           b->estimate.shared_bytes, b->estimate.worker_bytes, b->estimate.shuffle_bytes, b->estimate.lanes,
           b->estimate.workers);
}

/* ---- epochs ---- */

struct pass {
    double first, last;         /* when the first and the last batch of the first epoch came */
    double cpu_first, cpu_last; /* CPU seconds up to then */
    double ended;               /* when the latest batch came, but for that of an epoch only begun */
    double gaps[EPOCHS_MAX];
    size_t gap_count;
    uint64_t batches, images, bytes, first_images; /* of the first epoch */
    uint64_t all_images, all_bytes;                /* of all whole epochs */
};

static spk_status print_rows(struct bench *b, const spk_batch *batch)
{
    spk_view v;
    spk_status status = spk_batch_column(batch, 2, &v, &b->err);
    if (status)
        return status;
    const int64_t *rows = v.data;
    printf(", \"first_rows\": [");
    for (uint64_t i = 0; i < v.shape[0]; i++)
        printf("%s%" PRId64, i ? ", " : "", rows[i]);
    printf("]");
    return SPK_OK;
}

/* A batch of the first epoch, at hand since `t`. */
static spk_status count_batch(struct bench *b, struct pass *p, const spk_batch *batch, double t)
{
    p->last = t;
    p->images += spk_batch_rows(batch);
    if (p->batches++ == 0) {
        p->first = t;
        p->first_images = p->images;
        p->cpu_first = cpu_so_far();
        if (options[ROWS].value) {
            spk_status status = print_rows(b, batch);
            if (status)
                return status;
        }
    }
    return batch_bytes(b, batch, &p->bytes);
}

/* One epoch; of those after the last one asked for only the first batch, which ends its gap. */
static spk_status run_epoch(struct bench *b, struct pass *p, uint64_t epoch)
{
    spk_batch *batch = NULL;
    spk_status status;
    for (uint64_t i = 0; (status = spk_loader_next(b->loader, &batch, &b->err)) == SPK_OK; i++) {
        double t = now();
        if (i == 0 && epoch > 0)
            p->gaps[p->gap_count++] = t - p->ended;
        if (epoch < options[EPOCHS].value) {
            p->ended = t;
            p->all_images += spk_batch_rows(batch);
            status = batch_bytes(b, batch, &p->all_bytes);
        }
        if (epoch == 0 && !status)
            status = count_batch(b, p, batch, t);
        spk_batch_release(batch);
        if (status || epoch == options[EPOCHS].value)
            return status;
    }
    if (epoch == 0)
        p->cpu_last = cpu_so_far();
    return status == SPK_END ? SPK_OK : status;
}

static spk_status measure_epochs(struct bench *b)
{
    static struct pass p;
    spk_status status = SPK_OK;
    for (uint64_t epoch = 0; !status && epoch <= options[EPOCHS].value; epoch++)
        status = run_epoch(b, &p, epoch);
    if (status)
        return status;
    /* Rates leave out the first batch: it is the start-up, which first_batch tells. */
    double took = p.last - p.first, whole = p.ended - p.first, others = (double)(p.images - p.first_images);
    double share = p.first_images ? (double)p.first_images / (double)p.images : 0;
    printf(", \"batches\": %" PRIu64 ", \"images\": %" PRIu64 ", \"bytes\": %" PRIu64, p.batches, p.images, p.bytes);
    printf(", \"rate\": %.3f, \"byte_rate\": %.0f", took > 0 ? others / took : 0,
           took > 0 ? (double)p.bytes * (1 - share) / took : 0);
    printf(", \"rate_all\": %.3f, \"byte_rate_all\": %.0f",
           whole > 0 ? (double)(p.all_images - p.first_images) / whole : 0,
           whole > 0 ? ((double)p.all_bytes - (double)p.bytes * share) / whole : 0);
    printf(", \"epoch\": %.6f, \"first_batch\": %.6f, \"batch\": %.6f, \"gap\": %.6f, \"cpu\": %.3f",
           p.last - b->opened, p.first - b->opened, p.batches > 1 ? took / (double)(p.batches - 1) : 0,
           quantile(p.gaps, p.gap_count, 0.5), p.cpu_last - p.cpu_first);
    return SPK_OK;
}

/* ---- handover ---- */

/* Next batch, at the end of an epoch the first one of the next. */
static spk_status next_batch(struct bench *b, spk_batch **out)
{
    spk_status status = spk_loader_next(b->loader, out, &b->err);
    return status == SPK_END ? spk_loader_next(b->loader, out, &b->err) : status;
}

/* Seconds from one batch to the next, at full speed. */
static spk_status batch_time(struct bench *b, double *out)
{
    double start = 0;
    spk_batch *batch = NULL;
    for (int i = 0; i < 9; i++) {
        spk_status status = next_batch(b, &batch);
        if (status)
            return status;
        spk_batch_release(batch);
        if (i == 0)
            start = now();
    }
    *out = (now() - start) / 8;
    return SPK_OK;
}

static spk_status measure_handover(struct bench *b)
{
    static double both[CALLS_MAX], next[CALLS_MAX];
    spk_loader_stats before, after;
    spk_batch *batch = NULL;
    size_t n = 0, calls = 0;
    double pause = 0;
    spk_status status = batch_time(b, &pause);
    if (status)
        return status;
    uint64_t wanted = options[EPOCHS].value * spk_loader_length(b->loader);
    for (; calls < wanted && calls < CALLS_MAX; calls++) {
        rest(pause * 2 + 0.001); /* the workers fill the ring meanwhile, and then rest too */
        spk_loader_get_stats(b->loader, &before);
        double t0 = mark();
        status = spk_loader_next(b->loader, &batch, &b->err);
        double t1 = mark();
        if (status == SPK_END)
            continue;
        if (status)
            return status;
        double t2 = mark();
        spk_batch_release(batch);
        double t3 = mark();
        spk_loader_get_stats(b->loader, &after);
        if (after.ready_sum == before.ready_sum)
            continue; /* it had to be waited for */
        next[n] = t1 - t0;
        both[n++] = t1 - t0 + t3 - t2;
    }
    printf(", \"calls\": %zu, \"ready\": %zu, \"next\": %.9f, \"handover\": %.9f, \"handover_p95\": %.9f, "
           "\"handover_max\": %.9f",
           calls, n, quantile(next, n, 0.5), quantile(both, n, 0.5), quantile(both, n, 0.95), quantile(both, n, 1));
    return SPK_OK;
}

/* ---- memory ---- */

static void keep_most(struct child *most)
{
    static struct child children[CHILDREN_MAX];
    for (int n = children_list(WORKER, 1, children); n > 0; n--) {
        const struct child *c = &children[n - 1];
        most->rss = c->rss > most->rss ? c->rss : most->rss;
        most->pss = c->pss > most->pss ? c->pss : most->pss;
        most->anonymous = c->anonymous > most->anonymous ? c->anonymous : most->anonymous;
    }
}

/* Of the largest worker at any look: one every fourth batch. */
static spk_status measure_memory(struct bench *b)
{
    struct child most = {0};
    uint64_t batches = options[EPOCHS].value * spk_loader_length(b->loader), trainer = 0;
    for (uint64_t i = 0; i < batches; i++) {
        spk_batch *batch = NULL;
        spk_status status = next_batch(b, &batch);
        if (status)
            return status;
        spk_batch_release(batch);
        if (i % 4 == 3 || i + 1 == batches)
            keep_most(&most);
    }
    trainer = own_anonymous();
    printf(", \"worker\": {\"anonymous\": %" PRIu64 ", \"pss\": %" PRIu64 ", \"rss\": %" PRIu64
           "}, \"trainer_anonymous\": %" PRIu64,
           most.anonymous, most.pss, most.rss, trainer);
    return SPK_OK;
}

/* ---- breaks ---- */

/* The most at any look. */
struct state {
    uint64_t anonymous; /* trainer and workers */
    int descriptors, workers;
};

static void look(struct state *most)
{
    static struct child children[CHILDREN_MAX];
    struct state now_is = {.anonymous = own_anonymous(), .descriptors = own_descriptors()};
    now_is.workers = children_list(WORKER, 1, children);
    for (int i = 0; i < now_is.workers; i++)
        now_is.anonymous += children[i].anonymous;
    most->anonymous = now_is.anonymous > most->anonymous ? now_is.anonymous : most->anonymous;
    most->descriptors = now_is.descriptors > most->descriptors ? now_is.descriptors : most->descriptors;
    most->workers = now_is.workers > most->workers ? now_is.workers : most->workers;
}

static void print_state(const char *name, const struct state *s)
{
    printf(", \"%s\": {\"anonymous\": %" PRIu64 ", \"descriptors\": %d, \"workers\": %d}", name, s->anonymous,
           s->descriptors, s->workers);
}

/* A whole epoch first, after which the shuffle buffers have their full size. */
static spk_status measure_breaks(struct bench *b)
{
    struct state halves[2] = {{0}};
    spk_batch *whole = NULL;
    for (uint64_t i = 0; i < spk_loader_length(b->loader); i++) {
        spk_status status = next_batch(b, &whole);
        if (status)
            return status;
        spk_batch_release(whole);
    }
    for (uint64_t epoch = 0; epoch < options[EPOCHS].value; epoch++) {
        spk_status status = spk_loader_set_epoch(b->loader, (uint32_t)epoch, &b->err);
        for (int i = 0; !status && i < 3; i++) {
            spk_batch *batch = NULL;
            status = next_batch(b, &batch);
            if (!status)
                spk_batch_release(batch);
        }
        if (status)
            return status;
        look(&halves[2 * epoch >= options[EPOCHS].value]);
    }
    print_state("before", &halves[0]);
    print_state("after", &halves[1]);
    return SPK_OK;
}

int main(int argc, char **argv)
{
    static spk_status (*const modes[])(struct bench *) = {measure_epochs, measure_handover, measure_memory,
                                                          measure_breaks};
    int mode = argc < 3 ? -1 : bench_choice("epochs|handover|memory|breaks", argv[1]);
    if (mode < 0 || bench_parse(options, argc - 3, argv + 3) || options[EPOCHS].value < 1 ||
        options[EPOCHS].value > EPOCHS_MAX) {
        fprintf(stderr, "usage: load_bench epochs|handover|memory|breaks DATASET [NAME=VALUE ...]\n");
        return 2;
    }
    struct bench b = {0};
    spk_error_clear(&b.err);
    spk_status status = open_loader(&b, argv[2]);
    if (!status) {
        printf("{\"mode\": \"%s\"", argv[1]);
        status = modes[mode](&b);
    }
    if (status)
        fprintf(stderr, "load_bench: %s\n", b.err.text);
    else
        print_end(&b);
    spk_loader_close(b.loader);
    spk_dataset_close(b.dataset);
    return status != SPK_OK;
}
