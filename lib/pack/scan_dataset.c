/* From the indexes of a dataset's shards to samples and files, all in its order. No data is read: members that a packer
 * made, labels for instance, are files without a path. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pack/scan.h"
#include "pack/tally.h"
#include "shard/shard.h"

static const char *field_name(const void *ctx, uint32_t id)
{
    const spk_input *in = ctx;
    return in->fields[id];
}

static spk_status add_member(spk_scan *s, const spk_index *x, const spk_index_member *m, const char *key,
                             spk_error *err)
{
    spk_input *in = s->in;
    const spk_index_field *f = &x->fields[m->field];
    spk_form form = spk_form_of(f->encoding);
    uint32_t field = 0;
    uint64_t path = 0; /* the empty one */
    if (form == SPK_FORMS)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "sample \"%s\": field \"%s\": the encoding \"%s\" is unknown", key,
                             f->name, f->encoding);
    in->gone += form == SPK_FORM_PIXELS;
    SPK_TRY(spk_scan_field(s, f->name, &field, err));
    if (m->path_len > 0)
        SPK_TRY(spk_scan_text(in, x->strings + m->path, m->path_len, &path, err));
    SPK_TRY(spk_grow(&in->files, &in->files_cap, in->files_n + 1, sizeof *in->files, err));
    in->files[in->files_n++] =
        (spk_input_file){.path = path, .size = m->original, .field = field, .sample = in->samples_n};
    return SPK_OK;
}

static spk_status add_sample(spk_scan *s, const spk_index *x, const spk_index_sample *sample, spk_error *err)
{
    spk_input *in = s->in;
    const char *key = x->strings + sample->key;
    spk_input_sample out = {.first = in->files_n, .files = sample->members, .label = -1};
    SPK_TRY(spk_scan_text(in, key, sample->key_len, &out.key, err));
    for (uint32_t i = 0; i < sample->members; i++)
        SPK_TRY(add_member(s, x, &x->members[sample->first + i], key, err));
    in->samples[in->samples_n++] = out;
    return SPK_OK;
}

static spk_status add_shard(spk_scan *s, const spk_shard *shard, spk_error *err)
{
    const spk_index *x = spk_shard_index(shard);
    spk_input *in = s->in;
    size_t all = in->samples_n + (size_t)x->samples_n;
    SPK_TRY(spk_grow(&in->samples, &in->samples_cap, all, sizeof *in->samples, err));
    SPK_TRY(spk_grow(&in->cuts, &in->cuts_cap, all, sizeof *in->cuts, err));
    memset(in->cuts + in->samples_n, 0, (size_t)x->samples_n);
    for (uint64_t f = 0; f < x->frames; f++) {
        in->cuts[in->samples_n] = (uint8_t)(SPK_CUT_FRAME | (f == 0 ? SPK_CUT_SHARD : 0));
        for (uint64_t i = x->frame_first[f]; i < x->frame_first[f + 1]; i++) {
            spk_status status = add_sample(s, x, &x->samples[i], err);
            if (status < 0) {
                spk_error_prefix(err, "%s", spk_shard_name(shard));
                return status;
            }
        }
    }
    return SPK_OK;
}

static spk_status take_classes(spk_input *in, const spk_dataset *d, spk_error *err)
{
    size_t n = spk_dataset_class_count(d);
    in->classes = calloc(n + 1, sizeof *in->classes);
    if (!in->classes)
        return spk_error_nomem(err, n * sizeof *in->classes);
    for (; in->classes_n < n; in->classes_n++) {
        in->classes[in->classes_n] = strdup(spk_dataset_class_name(d, in->classes_n));
        if (!in->classes[in->classes_n])
            return spk_error_nomem(err, strlen(spk_dataset_class_name(d, in->classes_n)) + 1);
    }
    return SPK_OK;
}

static spk_status scan(spk_scan *s, spk_error *err)
{
    spk_input *in = s->in;
    const spk_dataset *d = in->dataset;
    spk_dataset_stat stat;
    uint64_t empty = 0;
    spk_dataset_get_stat(d, &stat);
    if (stat.samples == 0)
        return spk_error_set(err, SPK_E_INVALID, "no samples");
    if (stat.samples > SPK_SCAN_SAMPLES_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "more than %u samples", SPK_SCAN_SAMPLES_MAX);
    SPK_TRY(spk_scan_text(in, "", 0, &empty, err));
    SPK_TRY(take_classes(in, d, err));
    for (uint64_t i = 0; i < stat.shards; i++) {
        spk_shard *shard = NULL;
        if (s->hooks && s->hooks->on_files && s->hooks->on_files(s->hooks->ctx, in->files_n))
            return spk_error_set(err, SPK_E_CANCELLED, "cancelled after %zu files", in->files_n);
        SPK_TRY(spk_dataset_open_shard(d, i, &shard, err)); /* has as many samples as the table says */
        spk_status status = add_shard(s, shard, err);
        spk_shard_close(shard);
        SPK_TRY(status);
    }
    return SPK_OK;
}

spk_status spk_input_scan_dataset(spk_input *in, spk_dataset *taken, const char *src, const spk_input_hooks *hooks,
                                  spk_error *err)
{
    *in = (spk_input){.dataset = taken};
    spk_scan s = {.in = in, .src = src, .src_fd = -1, .hooks = hooks, .fields = {.str = field_name, .ctx = in}};
    spk_status status = scan(&s, err);
    spk_intern_free(&s.fields);
    if (status == SPK_OK)
        return SPK_OK;
    if (status != SPK_E_CANCELLED)
        spk_error_prefix(err, "%s", src);
    spk_input_free(in);
    return status;
}
