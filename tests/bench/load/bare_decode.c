/* The ceiling of the loader: the same images, the same crops, decoded and resized by the same code in a bare loop.
 *
 *     bare_decode DATASET [threads=2] [type=uint8|float32] [layout=nhwc|nchw] [seed=0] [rows=0|1] [engine=own|libjpeg]
 *
 * All JPEG and PNG fields are read into memory first, untimed. Then the threads take them one after the other, and
 * crop as epoch 0 of a loader with that seed would, resize to 224, flip half, and convert into a buffer that they write
 * again and again. No order, no batches, no processes. With rows=1 only the samples numbered on stdin, a number per
 * line. engine=libjpeg: JPEG is decoded by libjpeg-turbo. Prints {"images": N, "bytes": N, "seconds": S, "cpu": S}. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shardpack.h>

#include "bench_options.h"
#include "image/decoder.h"
#include "image/render.h"

#define THREADS_MAX 256

enum { THREADS, TYPE, LAYOUT, SEED, ROWS, ENGINE };

struct image {
    unsigned char *data;
    size_t size;
    uint64_t number;
};

struct work {
    struct image *images; /* read-only while threads run */
    size_t count, capacity;
    spk_image_params params;
    spk_jpeg_engine engine;
    uint64_t seed;
    atomic_size_t next; /* shared: the first image nobody has taken */
};

/* One per thread; read by main after the thread has ended. */
struct result {
    struct work *work;
    uint64_t images, bytes;
    double cpu;
    spk_error err; /* the first one; its code is 0 without */
};

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *decode_images(void *arg)
{
    struct result *result = arg;
    struct work *work = result->work;
    spk_renderer *renderer = NULL;
    void *out = NULL;
    double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    spk_status status = spk_renderer_new(&renderer, &work->params, &result->err);
    if (status)
        goto out;
    spk_decoder_use(spk_renderer_decoder(renderer), work->engine);
    out = aligned_alloc(64, (spk_pixel_bytes(&work->params.format) + 63) / 64 * 64);
    if (!out) {
        snprintf(result->err.text, sizeof result->err.text, "out of memory");
        status = SPK_E_NOMEM;
        goto out;
    }
    size_t i;
    while (!status && (i = atomic_fetch_add(&work->next, 1)) < work->count) {
        const struct image *image = &work->images[i];
        spk_draw_key key = {.seed = work->seed, .index = image->number};
        status = spk_renderer_run(renderer, image->data, image->size, &key, NULL, out, NULL, &result->err);
        result->images++;
        result->bytes += image->size;
    }
out:
    result->err.code = status;
    result->cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    free(out);
    spk_renderer_free(renderer);
    return NULL;
}

static int add_image(struct work *work, const spk_field *field, uint64_t number)
{
    if (work->count == work->capacity) {
        size_t capacity = work->capacity ? 2 * work->capacity : 1024;
        struct image *images = realloc(work->images, capacity * sizeof *images);
        if (!images)
            return -1;
        work->images = images;
        work->capacity = capacity;
    }
    unsigned char *data = malloc(field->size + 1);
    if (!data)
        return -1;
    memcpy(data, field->data, field->size);
    struct image *image = &work->images[work->count++];
    image->data = data;
    image->size = field->size;
    image->number = number;
    return 0;
}

/* One byte per sample, 1: wanted. */
static int read_rows(unsigned char *wanted, uint64_t samples)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        uint64_t row = strtoull(line, NULL, 10);
        if (row >= samples) {
            fprintf(stderr, "bare_decode: sample %" PRIu64 " of %" PRIu64 "\n", row, samples);
            return -1;
        }
        wanted[row] = 1;
    }
    return 0;
}

static spk_status load(struct work *work, spk_reader *reader, const unsigned char *wanted, spk_error *err)
{
    const spk_sample *sample = NULL;
    spk_status status;
    for (uint64_t number = 0; (status = spk_reader_next(reader, &sample, err)) == SPK_OK; number++) {
        if (!wanted[number])
            continue;
        for (size_t i = 0; i < sample->field_count; i++) {
            const spk_field *field = &sample->fields[i];
            if (strcmp(field->name, "jpg") != 0 && strcmp(field->name, "png") != 0)
                continue;
            if (add_image(work, field, number)) {
                snprintf(err->text, sizeof err->text, "out of memory");
                return SPK_E_NOMEM;
            }
        }
    }
    return status == SPK_END ? SPK_OK : status;
}

static int load_dataset(struct work *work, const char *path, int rows)
{
    spk_dataset *dataset = NULL;
    spk_reader *reader = NULL;
    unsigned char *wanted = NULL;
    spk_dataset_stat stat;
    spk_error err;
    spk_error_clear(&err);
    spk_status status = spk_dataset_open(&dataset, path, NULL, &err);
    if (status)
        goto out;
    spk_dataset_get_stat(dataset, &stat);
    wanted = malloc(stat.samples + 1);
    status = SPK_E_NOMEM;
    if (!wanted)
        goto out;
    memset(wanted, !rows, stat.samples + 1);
    status = SPK_E_INVALID;
    if (rows && read_rows(wanted, stat.samples))
        goto out;
    status = spk_reader_open(&reader, dataset, 0, &err);
    if (!status)
        status = load(work, reader, wanted, &err);
out:
    if (status)
        fprintf(stderr, "bare_decode: %s\n", err.text);
    free(wanted);
    spk_reader_close(reader);
    spk_dataset_close(dataset);
    return status != SPK_OK;
}

/* Decodes everything, sums up and prints; returns the exit status. */
static int decode_all(struct work *work, size_t threads)
{
    static struct result results[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    struct result sum = {0};
    double start = seconds(CLOCK_MONOTONIC);
    size_t started = 0;
    int failed = 0;
    for (; started < threads; started++) {
        results[started].work = work;
        if (pthread_create(&ids[started], NULL, decode_images, &results[started]))
            break;
    }
    for (size_t i = 0; i < started; i++) {
        pthread_join(ids[i], NULL);
        sum.images += results[i].images;
        sum.bytes += results[i].bytes;
        sum.cpu += results[i].cpu;
        if (results[i].err.code) {
            fprintf(stderr, "bare_decode: %s\n", results[i].err.text);
            failed = 1;
        }
    }
    double took = seconds(CLOCK_MONOTONIC) - start;
    if (started < threads) {
        fprintf(stderr, "bare_decode: cannot start threads\n");
        failed = 1;
    }
    if (!failed)
        printf("{\"images\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"seconds\": %.6f, \"cpu\": %.6f}\n", sum.images,
               sum.bytes, took, sum.cpu);
    return failed;
}

int main(int argc, char **argv)
{
    struct bench_option o[] = {{"threads", NULL, 2},
                               {"type", "uint8|float32", 0},
                               {"layout", "nhwc|nchw", 0},
                               {"seed", NULL, 0},
                               {"rows", NULL, 0},
                               {"engine", "own|libjpeg", 0},
                               {NULL, NULL, 0}};
    if (argc < 2 || bench_parse(o, argc - 2, argv + 2) || o[THREADS].value < 1 || o[THREADS].value > THREADS_MAX) {
        fprintf(stderr, "usage: bare_decode DATASET [NAME=VALUE ...]\n");
        return 2;
    }
    struct work work = {
        .seed = o[SEED].value,
        .engine = o[ENGINE].value ? SPK_JPEG_LIBJPEG : SPK_JPEG_OWN,
        .params = {.crop = SPK_CROP_RANDOM,
                   .scale = {0.08, 1},
                   .ratio = {3.0 / 4, 4.0 / 3},
                   .hflip = 0.5,
                   .filter = SPK_FILTER_BILINEAR,
                   .format = {.type = o[TYPE].value ? SPK_PIXEL_FLOAT32 : SPK_PIXEL_UINT8,
                              .order = o[LAYOUT].value ? SPK_PIXEL_NCHW : SPK_PIXEL_NHWC,
                              .width = 224,
                              .height = 224,
                              .channels = 3,
                              .normalize = o[TYPE].value != 0,
                              .mean = {0.485F, 0.456F, 0.406F},
                              .std = {0.229F, 0.224F, 0.225F}}},
    };
    int status = load_dataset(&work, argv[1], o[ROWS].value != 0) || decode_all(&work, o[THREADS].value);
    for (size_t i = 0; i < work.count; i++)
        free(work.images[i].data);
    free(work.images);
    return status;
}
