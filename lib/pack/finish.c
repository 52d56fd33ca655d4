/* From finished shards in the work folder to a dataset. */
#include "pack/finish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "dataset/dataset.h"
#include "dataset/publish.h"
#include "dataset/table.h"
#include "pack/describe.h"
#include "pack/report.h"
#include "pack/resume.h"

/* A dataset on its way out. */
typedef struct finishing {
    spk_build *b;
    spk_target *t;
    const spk_pack_plan_digest *digest;
    size_t split;
    spk_manifest m;
} finishing;

static bool has_file(const spk_build *b, uint32_t shard)
{
    return b->done[shard].info.samples > 0;
}

/* Totals and fingerprint from the shards. */
static spk_status add_up(finishing *f, spk_error *err)
{
    const spk_pack_plan_split *split = &f->b->plan->splits[f->split];
    spk_manifest *m = &f->m;
    uint8_t digest[32];
    spk_sha256 *h = NULL;
    SPK_TRY(spk_sha256_new(&h, err));
    spk_sha256_init(h);
    for (uint32_t i = split->first_shard; i < split->first_shard + split->shards; i++) {
        const spk_shard_info *s = &f->b->done[i].info;
        if (!has_file(f->b, i))
            continue;
        spk_sha256_update(h, s->tail_sha256, sizeof s->tail_sha256);
        m->shards++;
        m->samples += s->samples;
        m->frames += s->frames;
        m->bytes += s->bytes;
        m->tar_bytes += s->tar_bytes;
    }
    spk_sha256_final(h, digest);
    spk_sha256_free(h);
    spk_hex(m->fingerprint, digest, sizeof digest);
    m->payload_bytes = f->b->splits[f->split].payload;
    m->images = f->b->splits[f->split].images;
    m->shuffled = !f->b->plan->o->no_shuffle;
    const spk_dataset *source = f->b->plan->in->dataset;
    if (source) { /* what was seen then, in the order of then */
        m->images = source->manifest.images;
        m->shuffled = source->manifest.shuffled;
    }
    return SPK_OK;
}

/* Moves the split's shards and writes its table. */
static spk_status put_shards(finishing *f, spk_error *err)
{
    const spk_build *b = f->b;
    const spk_pack_plan_split *split = &b->plan->splits[f->split];
    const spk_target_folder *folder = spk_target_dataset(f->t, f->split);
    char final[SPK_FINAL_NAME_MAX], from[sizeof SPK_WORK_FOLDER + SPK_WORK_NAME_MAX], work[SPK_WORK_NAME_MAX];
    char table_name[64];
    uint64_t number = 0;
    spk_buf table = {0};
    spk_status status = spk_table_begin(&table, err);

    for (uint32_t i = split->first_shard; i < split->first_shard + split->shards && status == SPK_OK; i++) {
        const spk_shard_info *s = &b->done[i].info;
        if (!has_file(b, i))
            continue;
        status = spk_final_name(final, b->plan->o, f->split, f->m.fingerprint, number++, err);
        if (status == SPK_OK && !b->done[i].published) {
            spk_work_name(work, i, "done");
            snprintf(from, sizeof from, "%s/%s", SPK_WORK_FOLDER, work);
            status = spk_publish_move(f->t->top.fd, f->t->top.name, from, final, err);
        }
        const char *slash = strrchr(final, '/');
        spk_table_row row = {.path = slash ? slash + 1 : final,
                             .samples = s->samples,
                             .frames = s->frames,
                             .bytes = s->bytes,
                             .tar_bytes = s->tar_bytes,
                             .index_offset = s->index_offset};
        memcpy(row.tail_sha256, s->tail_sha256, 32);
        if (status == SPK_OK)
            status = spk_table_add(&table, &row, err);
    }
    if (status == SPK_OK && fsync(folder->fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        status = spk_error_sys(err, errno, "%s", folder->name);
    if (status == SPK_OK)
        status = spk_table_file_name(table_name, sizeof table_name, f->m.fingerprint, err);
    if (status == SPK_OK)
        status = spk_publish_file(folder->fd, folder->name, table_name, table.data, table.len, err);
    if (status == SPK_OK)
        status = spk_sha256_once(table.data, table.len, f->m.table_sha256, err);
    if (status == SPK_OK) {
        f->m.table_bytes = table.len;
        f->m.table_name = strdup(table_name);
        if (!f->m.table_name)
            status = spk_error_nomem(err, sizeof table_name);
    }
    spk_buf_free(&table);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const spk_manifest_field *)a)->name, ((const spk_manifest_field *)b)->name);
}

/* How often the field is there, and in which forms, if any differs from the file's. */
static spk_status put_forms(spk_manifest_field *field, const spk_tally_field *total, spk_error *err)
{
    field->samples = 0;
    for (size_t k = 0; k < SPK_FORMS; k++)
        field->samples += total->forms[k].samples;
    if (field->samples == total->forms[SPK_FORM_IDENTITY].samples)
        return SPK_OK;
    field->stored = calloc(SPK_FORMS, sizeof *field->stored);
    if (!field->stored)
        return spk_error_nomem(err, SPK_FORMS * sizeof *field->stored);
    for (size_t k = 0; k < SPK_FORMS; k++) {
        const spk_tally_form *f = &total->forms[k];
        if (f->samples == 0)
            continue;
        spk_manifest_stored *stored = &field->stored[field->stored_n++];
        *stored = (spk_manifest_stored){strdup(spk_form_name((spk_form)k)), f->samples, f->bytes, f->original};
        if (!stored->encoding)
            return spk_error_nomem(err, 64);
    }
    return SPK_OK;
}

/* All fields with no sample, and the classes, as they are in what is planned. */
static spk_status draft(spk_manifest *m, const spk_pack_plan *plan, const spk_pack_plan_digest *digest, spk_error *err)
{
    const spk_tally none = {0};
    spk_buf text = {0};
    memset(m->fingerprint, '0', sizeof m->fingerprint - 1);
    m->table_name = strdup("shards-00000000.tsv");
    m->fields = calloc(plan->fields_n, sizeof *m->fields);
    if (!m->fields || !m->table_name)
        return spk_error_nomem(err, plan->fields_n * sizeof *m->fields);
    for (; m->fields_n < plan->fields_n; m->fields_n++) {
        spk_manifest_field *field = &m->fields[m->fields_n];
        field->name = strdup(plan->fields[m->fields_n]);
        field->kind = strdup("bytes");
        if (!field->name || !field->kind)
            return spk_error_nomem(err, 64);
    }
    qsort(m->fields, m->fields_n, sizeof *m->fields, by_name);
    m->classes = plan->in->classes;
    m->classes_n = plan->in->classes_n;
    SPK_TRY(spk_describe(&m->pack, plan->o, digest, 0, &none, err));
    spk_status status = spk_manifest_encode(m, &text, err);
    spk_buf_free(&text);
    return status;
}

spk_status spk_finish_foresee(const spk_pack_plan *plan, const spk_pack_plan_digest *digest, spk_error *err)
{
    spk_manifest m = {0};
    spk_status status = draft(&m, plan, digest, err);
    m.classes = NULL; /* the input's */
    m.classes_n = 0;
    spk_manifest_free(&m);
    if (status < 0 && status != SPK_E_NOMEM)
        spk_error_prefix(err, "%zu classes and %zu fields", plan->in->classes_n, plan->in->fields_n);
    return status;
}

static spk_status put_names(spk_manifest *m, const spk_pack_plan *plan, const spk_tally *total, spk_error *err)
{
    const spk_input *in = plan->in;
    m->fields = calloc(plan->fields_n, sizeof *m->fields);
    m->classes = calloc(in->classes_n ? in->classes_n : 1, sizeof *m->classes);
    if (!m->fields || !m->classes)
        return spk_error_nomem(err, in->classes_n * sizeof *m->classes);
    for (size_t i = 0; i < plan->fields_n; i++) {
        spk_manifest_field *field = &m->fields[m->fields_n++];
        SPK_TRY(put_forms(field, &total->fields[i], err));
        if (field->samples == 0) {
            m->fields_n--;
            continue;
        }
        field->name = strdup(plan->fields[i]);
        field->kind = strdup(spk_field_kind(plan->fields[i]));
        if (!field->name || !field->kind)
            return spk_error_nomem(err, 64);
    }
    qsort(m->fields, m->fields_n, sizeof *m->fields, by_name);
    for (; m->classes_n < in->classes_n; m->classes_n++) {
        m->classes[m->classes_n] = strdup(in->classes[m->classes_n]);
        if (!m->classes[m->classes_n])
            return spk_error_nomem(err, strlen(in->classes[m->classes_n]) + 1);
    }
    return SPK_OK;
}

static spk_status put_manifest(finishing *f, int64_t started_ns, spk_error *err)
{
    const spk_pack_plan *plan = f->b->plan;
    const spk_target_folder *folder = spk_target_dataset(f->t, f->split);
    const spk_tally *total = &f->b->splits[f->split];
    spk_buf text = {0};
    SPK_TRY(put_names(&f->m, plan, total, err));
    if (plan->in->dataset)
        SPK_TRY(spk_describe_again(&f->m.pack, plan->in->dataset->manifest.pack, plan->o, f->digest, err));
    else
        SPK_TRY(spk_describe(&f->m.pack, plan->o, f->digest, f->split, total, err));
    spk_status status = spk_manifest_encode(&f->m, &text, err);
    if (status == SPK_OK)
        status = spk_publish_file(folder->fd, folder->name, SPK_MANIFEST_NAME, text.data, text.len, err);
    spk_buf_free(&text);
    if (status == SPK_OK) {
        struct timespec at[2] = {{.tv_nsec = UTIME_OMIT},
                                 {.tv_sec = started_ns / 1000000000, .tv_nsec = started_ns % 1000000000}};
        if (utimensat(folder->fd, SPK_MANIFEST_NAME, at, 0) != 0)
            return spk_error_sys(err, errno, "%s/%s", folder->name, SPK_MANIFEST_NAME);
    }
    return status;
}

static spk_status put_report(const spk_build *b, const spk_target *t, spk_error *err)
{
    spk_buf lines = {0}, text = {0};
    spk_status status = spk_report_check(t->top.fd, t->top.name, err); /* again: much time has passed */
    for (size_t i = 0; i < b->plan->splits_n && status == SPK_OK; i++)
        status = spk_buf_append(&lines, b->splits[i].bad_lines.data, b->splits[i].bad_lines.len, err);
    if (status == SPK_OK && lines.len > 0)
        status = spk_report_encode(&text, &lines, err);
    if (status == SPK_OK && lines.len > 0)
        status = spk_publish_file(t->top.fd, t->top.name, SPK_BAD_FILES_NAME, text.data, text.len, err);
    else if (status == SPK_OK && unlinkat(t->top.fd, SPK_BAD_FILES_NAME, 0) != 0 && errno != ENOENT)
        status = spk_error_sys(err, errno, "%s/%s", t->top.name, SPK_BAD_FILES_NAME);
    spk_buf_free(&lines);
    spk_buf_free(&text);
    return status;
}

static void add_result(spk_pack_result *r, const finishing *f)
{
    const spk_tally *total = &f->b->splits[f->split];
    r->samples += f->m.samples;
    r->files += total->files;
    r->shards += f->m.shards;
    r->frames += f->m.frames;
    r->bytes_in += total->payload;
    r->bytes_out += f->m.bytes;
    r->bad += total->bad;
    r->bad_skipped_samples += total->skipped_samples;
    r->jpeg_fast += total->jpeg[SPK_TRANSCODED];
    r->jpeg_other += total->jpeg[SPK_TRANSCODE_OTHER];
    r->jpeg_damaged += total->jpeg[SPK_TRANSCODE_DAMAGED];
    r->jpeg_unequal += total->jpeg[SPK_TRANSCODE_UNEQUAL];
    r->jpeg_no_gain += total->jpeg[SPK_TRANSCODE_NO_GAIN];
    r->jpeg_pixels += total->jpeg_pixels;
    if (f->split == 0)
        memcpy(r->fingerprint, f->m.fingerprint, sizeof r->fingerprint);
}

static spk_status run(finishing *all, size_t n, int64_t started_ns, spk_pack_result *result, spk_error *err)
{
    spk_build *b = all[0].b;
    for (size_t i = 0; i < n; i++) {
        SPK_TRY(add_up(&all[i], err));
        add_result(result, &all[i]);
        if (all[i].m.samples == 0)
            return spk_error_set(err, SPK_E_FORMAT, "%s: no sample is left: all %u were left out for a bad file",
                                 spk_target_dataset(all[i].t, i)->name, b->plan->splits[i].samples);
    }
    /* Before the first file moves, so that the next run knows where to look. */
    for (size_t i = 0; i < n; i++)
        SPK_TRY(spk_journal_publish(b->journal, i, all[i].m.fingerprint, err));
    for (size_t i = 0; i < n; i++)
        SPK_TRY(put_shards(&all[i], err));
    SPK_TRY(put_report(b, all[0].t, err));
    for (size_t i = 0; i < n; i++)
        SPK_TRY(put_manifest(&all[i], started_ns, err));
    return SPK_OK;
}

spk_status spk_finish(spk_build *b, spk_target *t, const spk_pack_plan_digest *digest, int64_t started_ns,
                      spk_pack_result *result, spk_error *err)
{
    size_t n = b->plan->splits_n;
    finishing *all = calloc(n, sizeof *all);
    if (!all)
        return spk_error_nomem(err, n * sizeof *all);
    for (size_t i = 0; i < n; i++) {
        all[i].b = b;
        all[i].t = t;
        all[i].digest = digest;
        all[i].split = i;
    }
    spk_status status = run(all, n, started_ns, result, err);
    for (size_t i = 0; i < n; i++)
        spk_manifest_free(&all[i].m);
    free(all);
    return status;
}
