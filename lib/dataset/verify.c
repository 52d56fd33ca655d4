/* spk_verify: the manifest against the table when it is loaded, then every shard, then what only all shards together
 * can tell. Everything is reported from the calling thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/options.h"
#include "dataset/verify.h"

#define JOBS_MAX 1024

typedef struct check {
    spk_verify_options options;
    spk_verify_result *result;
    spk_verify_target target;
    spk_keytab keys; /* folded hashes, numbers in the dataset */
    uint64_t shards_counted;
    uint64_t payload_bytes;
    uint64_t *field_samples;
    spk_verify_stored *stored;
} check;

static void on_problem(void *ctx, const spk_error *problem)
{
    check *c = ctx;
    c->result->problems++;
    if (c->options.on_problem)
        c->options.on_problem(c->options.user, problem);
}

static spk_status on_tick(void *ctx, spk_error *err)
{
    check *c = ctx;
    c->result->bytes = atomic_load(&c->target.bytes_done);
    if (c->options.on_progress && c->options.on_progress(c->options.user, c->result->bytes, c->target.bytes))
        return spk_error_set(err, SPK_E_CANCELLED, "verify cancelled after %" PRIu64 " of %" PRIu64 " shards",
                             c->result->shards, c->target.shards);
    return SPK_OK;
}

static spk_status on_shard(void *ctx, uint64_t i, spk_verify_shard *shard, spk_error *err)
{
    check *c = ctx;
    uint64_t first = c->target.dataset ? c->target.dataset->catalog.rows[i].first_sample : 0;
    for (size_t p = 0; p < shard->problems_n; p++) {
        spk_error problem;
        spk_error_clear(&problem);
        spk_error_set(&problem, shard->problems[p].code, "%s", shard->problems[p].text);
        problem.sys_errno = shard->problems[p].sys_errno;
        problem.offset = shard->problems[p].offset;
        on_problem(c, &problem);
    }
    /* A shard that is not what the table says has been reported; numbers in it have no place in the dataset. */
    for (size_t k = 0; shard->counted && k < shard->keys.n; k++)
        SPK_TRY(spk_keytab_add(&c->keys, shard->keys.items[k].hash, first + shard->keys.items[k].number, err));
    c->result->shards++;
    c->result->samples += shard->samples;
    if (shard->counted) {
        c->shards_counted++;
        c->payload_bytes += shard->payload_bytes;
        for (size_t f = 0; f < c->target.fields_n; f++)
            c->field_samples[f] += shard->field_samples[f];
        for (size_t k = 0; k < c->target.stored_n; k++) {
            c->stored[k].samples += shard->stored[k].samples;
            c->stored[k].bytes += shard->stored[k].bytes;
            c->stored[k].original += shard->stored[k].original;
        }
    }
    return SPK_OK;
}

static void tell_total(check *c, const char *name, uint64_t want, uint64_t have)
{
    spk_error problem;
    if (want == have)
        return;
    spk_error_clear(&problem);
    spk_error_set(&problem, SPK_E_FORMAT, "%s: %s is %" PRIu64 ", the shards have %" PRIu64,
                  c->target.dataset->manifest_path, name, want, have);
    on_problem(c, &problem);
}

static void compare_stored(check *c, size_t f)
{
    const spk_manifest_field *field = c->target.fields[f];
    char name[160];
    for (size_t i = 0; i < field->stored_n; i++) {
        const spk_manifest_stored *want = &field->stored[i];
        const spk_verify_stored *have = &c->stored[c->target.stored[f] + i];
        snprintf(name, sizeof name, "field \"%s\" as %s: samples", field->name, want->encoding);
        tell_total(c, name, want->samples, have->samples);
        snprintf(name, sizeof name, "field \"%s\" as %s: bytes", field->name, want->encoding);
        tell_total(c, name, want->bytes, have->bytes);
        snprintf(name, sizeof name, "field \"%s\" as %s: original_bytes", field->name, want->encoding);
        tell_total(c, name, want->original, have->original);
    }
}

/* Sums over the shards' indexes against the manifest; without all of them there is nothing to compare. */
static void compare_totals(check *c)
{
    char name[64];
    if (!c->target.dataset || c->shards_counted != c->target.shards)
        return;
    tell_total(c, "payload_bytes", c->target.dataset->manifest.payload_bytes, c->payload_bytes);
    for (size_t f = 0; f < c->target.fields_n; f++) {
        snprintf(name, sizeof name, "field \"%s\": samples", c->target.fields[f]->name);
        tell_total(c, name, c->target.fields[f]->samples, c->field_samples[f]);
        compare_stored(c, f);
    }
}

static int compare_fields(const void *a, const void *b)
{
    return strcmp((*(spk_manifest_field *const *)a)->name, (*(spk_manifest_field *const *)b)->name);
}

static spk_status prepare_dataset(check *c, const char *path, spk_error *err)
{
    spk_problem_sink sink = {on_problem, c};
    spk_verify_target *t = &c->target;
    SPK_TRY(spk_dataset_load(&t->dataset, path, c->options.dataset, &sink, err));
    spk_manifest *m = &t->dataset->manifest;
    t->shards = t->dataset->catalog.n;
    t->bytes = t->dataset->catalog.bytes;
    t->fields = calloc(m->fields_n + 1, sizeof(spk_manifest_field *));
    c->field_samples = calloc(m->fields_n + 1, sizeof *c->field_samples);
    if (!t->fields || !c->field_samples)
        return spk_error_nomem(err, m->fields_n * sizeof *c->field_samples);
    t->fields_n = m->fields_n;
    for (size_t i = 0; i < m->fields_n; i++)
        t->fields[i] = &m->fields[i];
    qsort(t->fields, t->fields_n, sizeof(spk_manifest_field *), compare_fields);
    t->stored = calloc(m->fields_n + 1, sizeof *t->stored);
    for (size_t i = 0; t->stored && i < t->fields_n; i++) {
        t->stored[i] = t->stored_n;
        t->stored_n += t->fields[i]->stored_n;
    }
    c->stored = calloc(t->stored_n + 1, sizeof *c->stored);
    return t->stored && c->stored ? SPK_OK : spk_error_nomem(err, t->stored_n * sizeof *c->stored);
}

static spk_status prepare_shard(check *c, const char *path, spk_error *err)
{
    spk_source *source = NULL;
    spk_dataset_options o = {0};
    SPK_TRY(spk_options_copy(&o, sizeof o, c->options.dataset, err));
    if (o.mirror_count > 0)
        return spk_error_set(err, SPK_E_INVALID, "%s: mirrors are for a dataset that is opened by URL", path);
    c->target.shard_options = (spk_source_options){o.deadline, o.plain_credentials, o.on_wait, o.user};
    SPK_TRY(spk_source_open_with(&source, path, &c->target.shard_options, err));
    c->target.shard_path = path;
    c->target.shard_options.on_wait = spk_verify_stopped; /* from now on by threads */
    c->target.shard_options.user = &c->target;
    c->target.shards = 1;
    c->target.bytes = spk_source_size(source);
    spk_source_close(source);
    return SPK_OK;
}

static spk_status run(check *c, const char *path, spk_error *err)
{
    spk_problem_sink sink = {on_problem, c};
    spk_verify_hooks hooks = {on_shard, on_tick, c};
    int jobs = c->options.jobs > 0 ? c->options.jobs : spk_cpu_quota();
    SPK_TRY(spk_path_is_shard(path) ? prepare_shard(c, path, err) : prepare_dataset(c, path, err));
    SPK_TRY(on_tick(c, err));
    const spk_dataset *d = c->target.dataset;
    if (d && d->net) /* from now on threads wait, which are not to call what the caller gave */
        spk_net_on_wait(d->net, spk_verify_stopped, &c->target);
    SPK_TRY(spk_verify_run(&c->target, jobs < JOBS_MAX ? jobs : JOBS_MAX, &hooks, err));
    if (d && d->net)
        spk_net_on_wait(d->net, NULL, NULL);
    if (d)
        SPK_TRY(spk_verify_keys(d, &c->keys, &sink, err));
    compare_totals(c);
    return on_tick(c, err);
}

spk_status spk_verify(const char *path, const spk_verify_options *options, spk_verify_result *result, spk_error *err)
{
    spk_verify_result unused = {0};
    check c = {.result = result ? result : &unused};
    memset(c.result, 0, sizeof *c.result);
    SPK_TRY(spk_options_copy(&c.options, sizeof c.options, options, err));
    if (c.options.jobs < 0)
        return spk_error_set(err, SPK_E_INVALID, "jobs is %d", c.options.jobs);
    atomic_init(&c.target.bytes_done, 0);
    atomic_init(&c.target.stop, false);
    spk_status status = run(&c, path, err);
    spk_dataset_close(c.target.dataset);
    spk_keytab_free(&c.keys);
    free(c.target.fields);
    free(c.field_samples);
    free(c.target.stored);
    free(c.stored);
    return status;
}
