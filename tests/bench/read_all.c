/* Reads all samples of a dataset in stored order, as a consumer without a decoder would: looks at the size and the
 * first byte of every field.
 *
 *     read_all DATASET
 *
 * Prints {"samples": N, "fields": N, "bytes": N, "first_bytes": N, "seconds": S}; bytes are those of the fields,
 * seconds those from opening the dataset to closing it. Exit status 1 with the error's text on stderr if anything
 * fails. */
#include <shardpack.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct totals {
    uint64_t samples, fields, bytes, first_bytes;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static spk_status read_all(spk_reader *reader, struct totals *totals, spk_error *err)
{
    const spk_sample *sample = NULL;
    spk_status status;
    while ((status = spk_reader_next(reader, &sample, err)) == SPK_OK) {
        totals->samples++;
        totals->fields += sample->field_count;
        for (size_t i = 0; i < sample->field_count; i++) {
            const spk_field *field = &sample->fields[i];
            totals->bytes += field->size;
            if (field->size > 0)
                totals->first_bytes += *(const unsigned char *)field->data;
        }
    }
    return status == SPK_END ? SPK_OK : status;
}

static spk_status read_dataset(const char *path, struct totals *totals, spk_error *err)
{
    spk_dataset *dataset = NULL;
    spk_reader *reader = NULL;
    spk_status status = spk_dataset_open(&dataset, path, NULL, err);
    if (status)
        goto out;
    status = spk_reader_open(&reader, dataset, 0, err);
    if (status)
        goto out;
    status = read_all(reader, totals, err);
    if (status)
        goto out;
    spk_dataset_stat stat;
    spk_dataset_get_stat(dataset, &stat);
    if (stat.samples != totals->samples) {
        snprintf(err->text, sizeof err->text, "%" PRIu64 " samples read, %" PRIu64 " in the manifest", totals->samples,
                 stat.samples);
        status = SPK_E_FORMAT;
    }
out:
    spk_reader_close(reader);
    spk_dataset_close(dataset);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: read_all DATASET\n");
        return 2;
    }
    struct totals totals = {0};
    spk_error err;
    spk_error_clear(&err);
    double start = now();
    if (read_dataset(argv[1], &totals, &err)) {
        fprintf(stderr, "read_all: %s\n", err.text);
        return 1;
    }
    printf("{\"samples\": %" PRIu64 ", \"fields\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"first_bytes\": %" PRIu64
           ", \"seconds\": %.6f}\n",
           totals.samples, totals.fields, totals.bytes, totals.first_bytes, now() - start);
    return 0;
}
