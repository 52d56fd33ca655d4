/* Trains a classifier on a dataset that shardpack made: plain C, no library but this one.
 *
 * Shows the loop of a training program: open a loader, take batches until SPK_END says that the epoch is over, use the
 * views of a batch in place, give it back. The loader decodes each image in its worker processes and scales it to
 * 16 x 16 pixels, as floats around 0; the model is softmax regression on those 768 numbers.
 *
 *   train_softmax DATASET [WORKERS [EPOCHS]]
 *
 * After `make demo examples`, on two cores in a second:
 *
 *   $ build/release/examples/train_softmax build/demo/dataset 2
 *   epoch  1: loss 0.988617, accuracy  66.2 %
 *   epoch  2: loss 0.339143, accuracy  95.6 %
 *   epoch  3: loss 0.221397, accuracy  98.8 %
 *   epoch  4: loss 0.171054, accuracy  99.4 %
 *   epoch  5: loss 0.138437, accuracy  99.7 %
 *   epoch  6: loss 0.116873, accuracy 100.0 %
 *   epoch  7: loss 0.100157, accuracy 100.0 %
 *   epoch  8: loss 0.088617, accuracy 100.0 %
 *
 * The loss is the same to the last digit for any number of workers: order and pixels do not depend on them. (The
 * accuracy is that on the samples just trained on: this example has no second dataset to test with.) */
#include <math.h>
#include <shardpack.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 16, INPUTS = SIDE * SIDE * 3, BATCH = 32 };

typedef struct model {
    size_t classes;
    float *weights; /* classes x (INPUTS + 1): the last one is the bias */
    float *step;    /* of one batch, the same shape */
    double *p;      /* probability of each class */
} model;

typedef struct tally {
    double loss;
    size_t correct, count;
} tally;

/* Probabilities of the classes for one image; returns the likeliest. */
static size_t predict(const model *m, const float *x)
{
    size_t best = 0;
    double sum = 0;
    for (size_t c = 0; c < m->classes; c++) {
        const float *w = m->weights + c * (INPUTS + 1);
        m->p[c] = (double)w[INPUTS];
        for (size_t i = 0; i < INPUTS; i++)
            m->p[c] += (double)(w[i] * x[i]);
        if (m->p[c] > m->p[best])
            best = c;
    }
    double most = m->p[best];
    for (size_t c = 0; c < m->classes; c++)
        sum += m->p[c] = exp(m->p[c] - most);
    for (size_t c = 0; c < m->classes; c++)
        m->p[c] /= sum;
    return best;
}

/* Adds the gradient of one image to the step. */
static void learn(model *m, const float *x, size_t label)
{
    for (size_t c = 0; c < m->classes; c++) {
        float *g = m->step + c * (INPUTS + 1), error = (float)(m->p[c] - (c == label));
        for (size_t i = 0; i < INPUTS; i++)
            g[i] += error * x[i];
        g[INPUTS] += error;
    }
}

static void train_batch(model *m, const float *images, const int64_t *labels, uint64_t rows, float rate, tally *t)
{
    size_t n = m->classes * (INPUTS + 1), used = 0;
    for (size_t i = 0; i < n; i++)
        m->step[i] = 0;
    for (uint64_t r = 0; r < rows; r++) {
        const float *x = images + r * INPUTS;
        if (labels[r] < 0 || (size_t)labels[r] >= m->classes) /* -100: a row without a label */
            continue;
        size_t label = (size_t)labels[r], guess = predict(m, x);
        t->loss -= log(m->p[label] > 1e-30 ? m->p[label] : 1e-30);
        t->correct += guess == label;
        t->count++;
        used++;
        learn(m, x, label);
    }
    for (size_t i = 0; i < n && used > 0; i++)
        m->weights[i] -= rate * m->step[i] / (float)used;
}

static spk_status train_epoch(model *m, spk_loader *loader, float rate, tally *t, spk_error *err)
{
    spk_batch *batch = NULL;
    spk_status status = SPK_OK;
    while ((status = spk_loader_next(loader, &batch, err)) == SPK_OK) {
        spk_view images, labels;
        status = spk_batch_column(batch, 0, &images, err);
        if (status == SPK_OK)
            status = spk_batch_column(batch, 1, &labels, err);
        if (status == SPK_OK) /* the views point into the memory that the workers wrote to: nothing is copied */
            train_batch(m, images.data, labels.data, spk_batch_rows(batch), rate, t);
        spk_batch_release(batch);
        if (status != SPK_OK)
            break;
    }
    return status;
}

static spk_status open_loader(spk_loader **out, const spk_dataset *dataset, int workers, spk_error *err)
{
    const spk_column columns[] = {
        {.kind = SPK_COLUMN_IMAGE,
         .image = {.size = sizeof(spk_image_options),
                   .transform = SPK_RESIZE_EXACT,
                   .height = SIDE,
                   .width = SIDE,
                   .hflip = 0.5,
                   .dtype = SPK_FLOAT32,
                   .normalize = 1,
                   .mean = {0.45f, 0.45f, 0.45f},
                   .std = {0.25f, 0.25f, 0.25f}}},
        {.kind = SPK_COLUMN_LABEL},
    };
    const spk_loader_options options = {.size = sizeof options,
                                        .batch_size = BATCH,
                                        .has_workers = 1,
                                        .workers = workers,
                                        .shuffle = 1,
                                        .seed = 1,
                                        .columns = columns,
                                        .column_count = 2};
    return spk_loader_open(out, dataset, &options, err);
}

int main(int argc, char **argv)
{
    int workers = argc > 2 ? atoi(argv[2]) : 2, epochs = argc > 3 ? atoi(argv[3]) : 8;
    model m = {0};
    spk_dataset *dataset = NULL;
    spk_loader *loader = NULL;
    spk_error err;
    spk_error_clear(&err);
    if (argc < 2 || argc > 4 || argv[1][0] == '-') {
        fprintf(stderr, "usage: train_softmax DATASET [WORKERS [EPOCHS]]\n");
        return 2;
    }
    spk_status status = spk_dataset_open(&dataset, argv[1], NULL, &err);
    if (status == SPK_OK)
        status = open_loader(&loader, dataset, workers, &err);
    m.classes = status == SPK_OK ? spk_dataset_class_count(dataset) : 0;
    m.weights = calloc(m.classes * (INPUTS + 1) + 1, sizeof *m.weights);
    m.step = calloc(m.classes * (INPUTS + 1) + 1, sizeof *m.step);
    m.p = calloc(m.classes + 1, sizeof *m.p);
    for (int e = 0; e < epochs && status >= 0 && m.weights && m.step && m.p; e++) {
        tally t = {0};
        status = train_epoch(&m, loader, 0.02f, &t, &err);
        if (status == SPK_END && t.count > 0)
            printf("epoch %2d: loss %.6f, accuracy %5.1f %%\n", e + 1, t.loss / (double)t.count,
                   100.0 * (double)t.correct / (double)t.count);
    }
    if (status < 0)
        fprintf(stderr, "train_softmax: %s\n", err.text);
    free(m.weights);
    free(m.step);
    free(m.p);
    spk_loader_close(loader);
    spk_dataset_close(dataset);
    return status < 0;
}
