/* One shard: every byte of it through shard/, then what only the dataset knows: fields and payload. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dataset/verify.h"
#include "shard/format.h"

typedef struct job {
    spk_verify_target *target;
    spk_verify_shard *out;
} job;

spk_status spk_verify_note(spk_verify_shard *s, const spk_error *problem, spk_error *err)
{
    SPK_TRY(spk_grow(&s->problems, &s->problems_cap, s->problems_n + 1, sizeof *s->problems, err));
    char *text = strdup(problem->text);
    if (!text)
        return spk_error_nomem(err, strlen(problem->text) + 1);
    s->problems[s->problems_n++] = (spk_verify_problem){problem->code, problem->sys_errno, problem->offset, text};
    return SPK_OK;
}

static void on_problem(void *ctx, const spk_error *problem)
{
    job *j = ctx;
    if (j->out->status == SPK_OK)
        j->out->status = spk_verify_note(j->out, problem, &j->out->error);
}

static int on_bytes(void *ctx, uint64_t bytes)
{
    job *j = ctx;
    atomic_fetch_add_explicit(&j->target->bytes_done, bytes, memory_order_relaxed);
    return j->out->status != SPK_OK || atomic_load_explicit(&j->target->stop, memory_order_relaxed);
}

static spk_status on_key(void *ctx, const char *key, size_t len, uint64_t sample, spk_error *err)
{
    job *j = ctx;
    return spk_keytab_add(&j->out->keys, spk_key_hash_folded(key, len), sample, err);
}

static int compare_name(const void *name, const void *field)
{
    return strcmp(name, (*(spk_manifest_field *const *)field)->name);
}

/* Where a field of an index is counted. */
typedef struct place {
    size_t field;  /* in the target's list; SIZE_MAX: the manifest lacks it */
    size_t stored; /* in its list of encodings; SIZE_MAX: the field has none there */
} place;

static spk_status note_field(const spk_shard *shard, const spk_index_field *f, bool known, spk_verify_shard *out,
                             spk_error *err)
{
    spk_error problem;
    spk_error_clear(&problem);
    if (known)
        spk_error_set(&problem, SPK_E_FORMAT, "%s: field \"%s\" in the encoding \"%s\" is not in the manifest",
                      spk_shard_name(shard), f->name, f->encoding);
    else
        spk_error_set(&problem, SPK_E_FORMAT, "%s: field \"%s\" is not in the manifest", spk_shard_name(shard),
                      f->name);
    return spk_verify_note(out, &problem, err);
}

/* The encoding's place among those that the manifest has for the field; without any, all are stored as they are. */
static bool find_stored(const spk_verify_target *t, size_t field, const char *encoding, size_t *out)
{
    const spk_manifest_field *f = t->fields[field];
    *out = SIZE_MAX;
    for (size_t i = 0; i < f->stored_n; i++)
        if (strcmp(f->stored[i].encoding, encoding) == 0)
            *out = t->stored[field] + i;
    return f->stored_n == 0 ? strcmp(encoding, SPK_IDENTITY) == 0 : *out != SIZE_MAX;
}

/* Where each field of the index is counted; one that the manifest lacks is a problem. */
static spk_status map_fields(const spk_verify_target *t, const spk_shard *shard, place *map, spk_verify_shard *out,
                             spk_error *err)
{
    const spk_index *index = spk_shard_index(shard);
    for (size_t i = 0; i < index->fields_n; i++) {
        const char *name = index->fields[i].name;
        spk_manifest_field **at =
            t->fields_n ? bsearch(name, t->fields, t->fields_n, sizeof *t->fields, compare_name) : NULL;
        map[i] = (place){at ? (size_t)(at - t->fields) : SIZE_MAX, SIZE_MAX};
        if (!at || !find_stored(t, map[i].field, index->fields[i].encoding, &map[i].stored))
            SPK_TRY(note_field(shard, &index->fields[i], at != NULL, out, err));
    }
    return SPK_OK;
}

static spk_status count_members(const spk_verify_target *t, const spk_shard *shard, spk_verify_shard *out,
                                spk_error *err)
{
    const spk_index *index = spk_shard_index(shard);
    out->field_samples = calloc(t->fields_n + 1, sizeof *out->field_samples);
    out->stored = calloc(t->stored_n + 1, sizeof *out->stored);
    place *map = calloc(index->fields_n + 1, sizeof *map);
    spk_status status = out->field_samples && out->stored && map
                            ? map_fields(t, shard, map, out, err)
                            : spk_error_nomem(err, (t->fields_n + index->fields_n) * sizeof *map);
    for (uint64_t i = 0; status == SPK_OK && i < index->members_n; i++) {
        const spk_index_member *m = &index->members[i];
        if (map[m->field].field != SIZE_MAX)
            out->field_samples[map[m->field].field]++;
        if (map[m->field].stored != SIZE_MAX) {
            spk_verify_stored *s = &out->stored[map[m->field].stored];
            s->samples++;
            s->bytes += m->size;
            s->original += m->original;
        }
        if (m->path_len > 0)
            out->payload_bytes += m->original; /* no overflow: each is at most 2^30 */
    }
    out->counted = status == SPK_OK;
    free(map);
    return status;
}

static spk_status on_shard(void *ctx, const spk_shard *shard, spk_error *err)
{
    job *j = ctx;
    (void)err;
    if (j->out->status == SPK_OK)
        j->out->status = count_members(j->target, shard, j->out, &j->out->error);
    return SPK_OK;
}

int spk_verify_stopped(void *target)
{
    spk_verify_target *t = target;
    return atomic_load_explicit(&t->stop, memory_order_relaxed);
}

static spk_status open_source(const spk_verify_target *t, uint64_t i, spk_source **out, spk_shard_expect *expect,
                              spk_error *err)
{
    if (t->dataset)
        return spk_dataset_open_shard_source(t->dataset, i, out, expect, err);
    return spk_source_open_with(out, t->shard_path, &t->shard_options, err);
}

void spk_verify_one(spk_verify_target *t, uint64_t i, spk_verify_shard *out)
{
    job j = {t, out};
    spk_source *source = NULL;
    spk_shard_expect expect;
    spk_shard_verify_hooks hooks = {on_problem, on_bytes, t->dataset ? on_key : NULL, &j, t->dataset ? on_shard : NULL};
    spk_error error;

    spk_error_clear(&error);
    spk_error_clear(&out->error);
    spk_status status = open_source(t, i, &source, &expect, &error);
    if (status == SPK_OK)
        status = spk_shard_verify(source, t->dataset ? &expect : NULL, &hooks, &out->samples, &error);
    spk_source_close(source);
    if (out->status < 0)
        return;
    if (status == SPK_E_NOMEM || status == SPK_E_CANCELLED) {
        out->status = status;
        out->error = error;
        return;
    }
    if (status < 0)
        out->status = spk_verify_note(out, &error, &out->error);
}

void spk_verify_shard_free(spk_verify_shard *s)
{
    for (size_t i = 0; i < s->problems_n; i++)
        free(s->problems[i].text);
    free(s->problems);
    free(s->field_samples);
    free(s->stored);
    spk_keytab_free(&s->keys);
    memset(s, 0, sizeof *s);
}
