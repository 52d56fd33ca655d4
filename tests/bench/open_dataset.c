/* Opens a dataset and closes it again; no shard is touched.
 *
 *     open_dataset DATASET
 *
 * Prints {"shards": N, "samples": N, "seconds": S}: how long opening took. Exit status 1 with the error's text on
 * stderr if it fails. */
#include <shardpack.h>

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: open_dataset DATASET\n");
        return 2;
    }
    spk_dataset *dataset = NULL;
    spk_error err;
    spk_error_clear(&err);
    double start = now();
    spk_status status = spk_dataset_open(&dataset, argv[1], NULL, &err);
    double opened = now() - start;
    if (status) {
        fprintf(stderr, "open_dataset: %s\n", err.text);
        return 1;
    }
    spk_dataset_stat stat;
    spk_dataset_get_stat(dataset, &stat);
    printf("{\"shards\": %" PRIu64 ", \"samples\": %" PRIu64 ", \"seconds\": %.6f}\n", stat.shards, stat.samples,
           opened);
    spk_dataset_close(dataset);
    return 0;
}
