/* Stops in the middle of an epoch and goes on in another loader, with another number of workers and another batch size.
 *
 * Shows spk_loader_state_save and spk_loader_state_restore. The state is a small text: a training program stores it
 * beside its weights. What comes after it is the same, sample for sample, as if nothing had happened; a state of
 * another dataset, seed or order is refused with the difference.
 *
 *   resume DATASET
 *
 * After `make demo examples`:
 *
 *   $ build/release/examples/resume build/demo/dataset
 *   2 workers, batches of 32: state after 128 samples
 *   {"format":"shardpack-state","version":1,"fingerprint":"1b689bcb...","epoch":0,"position":128, ...}
 *   1 worker, batches of 40: the other 192 samples are the same, in the same order
 */
#include <shardpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32, STOP_AFTER = 4 };

/* Keys in the order in which they came, one per line. */
typedef struct keys {
    char *text;
    size_t length, count;
} keys;

static int add_key(keys *k, const char *key, size_t n)
{
    char *grown = realloc(k->text, k->length + n + 2);
    if (!grown)
        return -1;
    k->text = grown;
    memcpy(grown + k->length, key, n);
    memcpy(grown + k->length + n, "\n", 2);
    k->length += n + 1;
    k->count++;
    return 0;
}

/* Adds the keys of the next batches: `batches` of them, or all up to the end of the epoch if it is 0. */
static spk_status read_keys(spk_loader *loader, keys *k, unsigned batches, spk_error *err)
{
    spk_batch *batch = NULL;
    spk_status status = SPK_OK;
    for (unsigned i = 0; batches == 0 || i < batches; i++) {
        spk_view view;
        status = spk_loader_next(loader, &batch, err);
        if (status != SPK_OK)
            break;
        status = spk_batch_column(batch, 0, &view, err);
        for (uint64_t row = 0; status == SPK_OK && row < view.shape[0]; row++)
            if (add_key(k, (const char *)view.data + view.offsets[2 * row], (size_t)view.offsets[2 * row + 1]))
                status = SPK_E_NOMEM;
        spk_batch_release(batch);
        if (status != SPK_OK)
            break;
    }
    return status == SPK_END ? SPK_OK : status;
}

static spk_status open_loader(spk_loader **out, const spk_dataset *dataset, int workers, uint32_t batch, spk_error *err)
{
    const spk_column columns[] = {{.kind = SPK_COLUMN_KEY},
                                  {.kind = SPK_COLUMN_IMAGE, .image = {.size = sizeof(spk_image_options)}}};
    const spk_loader_options options = {.size = sizeof options,
                                        .batch_size = batch,
                                        .has_workers = 1,
                                        .workers = workers,
                                        .shuffle = 1,
                                        .seed = 7,
                                        .columns = columns,
                                        .column_count = 2};
    return spk_loader_open(out, dataset, &options, err);
}

int main(int argc, char **argv)
{
    spk_dataset *dataset = NULL;
    spk_loader *first = NULL, *second = NULL;
    keys before = {0}, rest = {0}, resumed = {0};
    char *state = NULL;
    spk_error err;
    spk_error_clear(&err);
    if (argc != 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: resume DATASET\n");
        return 2;
    }
    spk_status status = spk_dataset_open(&dataset, argv[1], NULL, &err);
    if (status == SPK_OK)
        status = open_loader(&first, dataset, 2, BATCH, &err);
    if (status == SPK_OK)
        status = read_keys(first, &before, STOP_AFTER, &err);
    if (status == SPK_OK)
        status = spk_loader_state_save(first, &state, &err);
    if (status == SPK_OK) {
        printf("2 workers, batches of %d: state after %zu samples\n%s\n", BATCH, before.count, state);
        status = read_keys(first, &rest, 0, &err); /* what would have come */
    }
    spk_loader_close(first);

    if (status == SPK_OK)
        status = open_loader(&second, dataset, 1, BATCH + 8, &err);
    if (status == SPK_OK)
        status = spk_loader_state_restore(second, state, &err);
    if (status == SPK_OK)
        status = read_keys(second, &resumed, 0, &err);
    spk_loader_close(second);
    spk_free(state);

    int same = rest.text && resumed.text && strcmp(rest.text, resumed.text) == 0;
    if (status == SPK_OK)
        printf("1 worker, batches of %d: the other %zu samples are %s\n", BATCH + 8, resumed.count,
               same ? "the same, in the same order" : "DIFFERENT");
    else
        fprintf(stderr, "resume: %s\n", err.text[0] ? err.text : spk_status_name(status));
    free(before.text);
    free(rest.text);
    free(resumed.text);
    spk_dataset_close(dataset);
    return status != SPK_OK || !same;
}
