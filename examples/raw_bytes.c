/* Reads all files of a dataset as they were packed, without decoding: for those who decode themselves, count, filter or
 * feed something that is no image.
 *
 * Shows columns of variable size: value i of a column is data + offsets[2 i], offsets[2 i + 1] bytes long. One epoch in
 * stored order, with a column for each field that the dataset has.
 *
 *   raw_bytes DATASET [WORKERS]
 *
 * After `make demo examples` (the time is that of your machine):
 *
 *   $ build/release/examples/raw_bytes build/demo/dataset 2
 *   cls      label       320 values          320 bytes
 *   jpg      image       320 values      6006034 bytes
 *   6006354 bytes in 0.016 s: 378 MB/s
 */
#include <inttypes.h>
#include <shardpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FIELDS_MAX = 64, BATCH = 256 };

typedef struct count {
    spk_field_stat field;
    uint64_t values, bytes;
} count;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Sums up a column of a batch. Here a program would use data + offset, which stays there until the batch is released.
 */
static void add_column(count *c, const spk_view *v)
{
    for (uint64_t row = 0; row < v->shape[0]; row++) {
        uint64_t size = v->offsets[2 * row + 1];
        c->values += v->offsets[2 * row] > 0; /* 0: an optional field that the sample lacks */
        c->bytes += size;
    }
}

static spk_status read_epoch(spk_loader *loader, count *counts, size_t n, spk_error *err)
{
    spk_batch *batch = NULL;
    spk_status status = SPK_OK;
    while ((status = spk_loader_next(loader, &batch, err)) == SPK_OK) {
        for (size_t i = 0; i < n && status == SPK_OK; i++) {
            spk_view view;
            status = spk_batch_column(batch, i, &view, err);
            if (status == SPK_OK)
                add_column(&counts[i], &view);
        }
        spk_batch_release(batch);
        if (status != SPK_OK)
            break;
    }
    return status;
}

/* A column per field of the dataset; returns how many. */
static size_t list_columns(const spk_dataset *dataset, spk_column *columns, count *counts)
{
    size_t n = 0;
    for (size_t i = 0; i < spk_dataset_field_count(dataset) && n < FIELDS_MAX; i++) {
        if (spk_dataset_get_field(dataset, i, &counts[n].field, NULL) < 0)
            continue;
        columns[n] = (spk_column){.kind = SPK_COLUMN_BYTES, .field = counts[n].field.name, .optional = 1};
        n++;
    }
    return n;
}

static void report(const count *counts, size_t n, double seconds)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        printf("%-8s %-6s %8" PRIu64 " values %12" PRIu64 " bytes\n", counts[i].field.name, counts[i].field.kind,
               counts[i].values, counts[i].bytes);
        bytes += counts[i].bytes;
    }
    printf("%" PRIu64 " bytes in %.3f s: %.0f MB/s\n", bytes, seconds, (double)bytes / seconds / 1e6);
}

int main(int argc, char **argv)
{
    static spk_column columns[FIELDS_MAX];
    static count counts[FIELDS_MAX];
    size_t n = 0;
    spk_dataset *dataset = NULL;
    spk_loader *loader = NULL;
    spk_error err;
    spk_error_clear(&err);
    if (argc < 2 || argc > 3 || argv[1][0] == '-') {
        fprintf(stderr, "usage: raw_bytes DATASET [WORKERS]\n");
        return 2;
    }
    double start = now();
    spk_status status = spk_dataset_open(&dataset, argv[1], NULL, &err);
    if (status == SPK_OK) {
        n = list_columns(dataset, columns, counts);
        const spk_loader_options options = {.size = sizeof options,
                                            .batch_size = BATCH,
                                            .has_workers = argc > 2, /* else as many as there are CPUs */
                                            .workers = argc > 2 ? atoi(argv[2]) : 0,
                                            .columns = columns,
                                            .column_count = n};
        status = spk_loader_open(&loader, dataset, &options, &err);
    }
    if (status == SPK_OK)
        status = read_epoch(loader, counts, n, &err);
    if (status == SPK_END)
        report(counts, n, now() - start);
    else
        fprintf(stderr, "raw_bytes: %s\n", err.text);
    spk_loader_close(loader);
    spk_dataset_close(dataset);
    return status != SPK_END;
}
