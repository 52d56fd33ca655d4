/* Feeds a GPU: batches go up on a stream of their own, one ahead of the work.
 *
 *   gpu_upload DATASET [BATCH_SIZE [EPOCHS]]
 *
 * Needs no CUDA to be compiled. `train` stands for what queues the kernels of a step on `stream`; with the CUDA toolkit
 * it would be a cudaStream_t, here it is the default stream. */
#include <shardpack.h>
#include <stdio.h>
#include <stdlib.h>

static void note(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "note: %s\n", text);
}

/* images: uint8 [rows, 224, 224, 3] in device memory; labels: int64 [rows]. */
static void train(const spk_view *images, const spk_view *labels, void *stream)
{
    (void)images;
    (void)labels;
    (void)stream;
}

static spk_status run(spk_loader *loader, unsigned epochs, spk_error *err)
{
    void *stream = NULL;
    spk_uploader *uploader = NULL;
    spk_upload batch;
    uint64_t rows = 0;
    spk_status status = spk_uploader_open(&uploader, loader, NULL, err);
    for (unsigned epoch = 0; status == SPK_OK && epoch < epochs; epoch++) {
        while ((status = spk_uploader_next(uploader, &batch, stream, err)) == SPK_OK) {
            train(&batch.columns[0], &batch.columns[1], stream);
            rows += batch.valid_rows;
        }
        if (status == SPK_END)
            status = SPK_OK;
    }
    if (status == SPK_OK)
        printf("%llu images\n", (unsigned long long)rows);
    spk_uploader_close(uploader);
    return status;
}

int main(int argc, char **argv)
{
    spk_loader_options options = {.size = sizeof options, .shuffle = 1, .pin_memory = SPK_PIN_ON, .on_note = note};
    spk_dataset *dataset = NULL;
    spk_loader *loader = NULL;
    spk_loader_stats stats;
    spk_error err;
    if (argc < 2 || argc > 4 || argv[1][0] == '-') {
        fprintf(stderr, "usage: gpu_upload DATASET [BATCH_SIZE [EPOCHS]]\n");
        return 2;
    }
    options.batch_size = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 64;
    unsigned epochs = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
    spk_error_clear(&err);
    spk_status status = spk_dataset_open(&dataset, argv[1], NULL, &err);
    if (status == SPK_OK)
        status = spk_loader_open(&loader, dataset, &options, &err);
    if (status == SPK_OK)
        status = run(loader, epochs, &err);
    if (status == SPK_OK) {
        spk_loader_get_stats(loader, &stats);
        printf("%llu copies to the device, %.1f MB; page-locking took %.3f s\n", (unsigned long long)stats.uploads,
               (double)stats.upload_bytes / 1e6, (double)stats.pin_ns / 1e9);
    } else {
        fprintf(stderr, "gpu_upload: %s\n", err.text);
    }
    spk_loader_close(loader);
    spk_dataset_close(dataset);
    return status == SPK_OK ? 0 : 1;
}
