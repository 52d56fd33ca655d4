/* The reader over a whole dataset: shard/'s reader, given one shard after the other. One shard is open at a time. */
#include <stdlib.h>

#include "base/error.h"
#include "dataset/dataset.h"

typedef struct run {
    const spk_dataset *dataset;
    spk_shard *shard;
    uint64_t number; /* of the open shard */
} run;

static spk_status get(void *ctx, uint64_t n, const spk_shard **out, spk_error *err)
{
    run *r = ctx;
    *out = NULL;
    if (n >= r->dataset->catalog.n)
        return SPK_END;
    if (!r->shard || r->number != n) {
        spk_shard_close(r->shard);
        r->shard = NULL;
        SPK_TRY(spk_dataset_open_shard(r->dataset, n, &r->shard, err));
        r->number = n;
    }
    *out = r->shard;
    return SPK_OK;
}

static spk_status locate(void *ctx, uint64_t number, uint64_t *shard, uint64_t *within, spk_error *err)
{
    const run *r = ctx;
    const spk_catalog *c = &r->dataset->catalog;
    if (number == c->samples) { /* behind the last sample */
        *shard = c->n;
        *within = 0;
        return SPK_OK;
    }
    return spk_dataset_locate(r->dataset, number, shard, within, err);
}

static uint64_t first_of(void *ctx, uint64_t shard)
{
    const run *r = ctx;
    const spk_catalog *c = &r->dataset->catalog;
    return shard < c->n ? c->rows[shard].first_sample : c->samples;
}

static void close_run(void *ctx)
{
    run *r = ctx;
    spk_shard_close(r->shard);
    free(r);
}

spk_status spk_reader_open(spk_reader **out, const spk_dataset *dataset, uint64_t first, spk_error *err)
{
    *out = NULL;
    run *r = calloc(1, sizeof *r);
    if (!r)
        return spk_error_nomem(err, sizeof *r);
    r->dataset = dataset;
    spk_reader_shards shards = {get, locate, first_of, close_run, r};
    spk_status status = spk_reader_new(out, &shards, first, err);
    if (status < 0)
        close_run(r);
    return status;
}
