/* One frame of a dataset at a time, whole in memory, as it is decompressed and checked by shard/. */
#include "pack/packed.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/coef.h"
#include "shard/format.h"
#include "shard/shard.h"

struct spk_packed {
    const spk_dataset *dataset;
    const char *src;
    spk_frame_reader *decoder;
    spk_coef_reader *coef;
    spk_shard *shard;
    uint64_t number; /* of the open shard */
    uint64_t first;  /* number of its first sample in the dataset */
    uint64_t frame;
    uint64_t tar; /* offset of the frame's content in the shard's tar */
    spk_buf scratch, restored;
    spk_buf content;
};

spk_status spk_packed_new(spk_packed **out, const spk_dataset *d, const char *src, spk_error *err)
{
    spk_packed *p = calloc(1, sizeof *p);
    if (!p)
        return spk_error_nomem(err, sizeof *p);
    p->dataset = d;
    p->src = src;
    spk_status status = spk_frame_reader_new(&p->decoder, err);
    if (status == SPK_OK)
        status = spk_coef_reader_new(&p->coef, err);
    if (status < 0) {
        spk_packed_free(p);
        return status;
    }
    *out = p;
    return SPK_OK;
}

void spk_packed_free(spk_packed *p)
{
    if (!p)
        return;
    spk_shard_close(p->shard);
    spk_frame_reader_free(p->decoder);
    spk_coef_reader_free(p->coef);
    spk_buf_free(&p->scratch);
    spk_buf_free(&p->restored);
    spk_buf_free(&p->content);
    free(p);
}

static spk_status open_shard(spk_packed *p, uint64_t number, spk_error *err)
{
    spk_shard_row row;
    if (p->shard && p->number == number)
        return SPK_OK;
    spk_shard_close(p->shard);
    p->shard = NULL;
    SPK_TRY(spk_dataset_get_shard(p->dataset, number, &row, err));
    SPK_TRY(spk_dataset_open_shard(p->dataset, number, &p->shard, err));
    p->number = number;
    p->first = row.first_sample;
    return SPK_OK;
}

static spk_status hold(spk_packed *p, uint64_t shard, uint64_t frame, spk_error *err)
{
    uint64_t offset = 0;
    uint32_t bytes = 0, content = 0;
    SPK_TRY(open_shard(p, shard, err));
    spk_shard_frame_range(p->shard, frame, &offset, &bytes, &content);
    if (p->content.cap < content)
        spk_buf_free(&p->content); /* nothing in it is worth a copy */
    p->content.len = 0;
    SPK_TRY(spk_buf_reserve(&p->content, content, err));
    SPK_TRY(spk_shard_read_frame(p->shard, p->decoder, frame, 1, &p->scratch, p->content.data, err));
    const spk_index *x = spk_shard_index(p->shard);
    p->frame = frame;
    p->tar = x->members[x->samples[x->frame_first[frame]].first].offset - SPK_TAR_BLOCK;
    return SPK_OK;
}

spk_status spk_packed_hold(spk_packed *p, uint64_t shard, uint64_t frame, spk_error *err)
{
    spk_status status = hold(p, shard, frame, err);
    if (status < 0)
        spk_error_prefix(err, "%s", p->src);
    return status;
}

static spk_status restore(spk_packed *p, const uint8_t *blob, const spk_index_member *m, spk_error *err)
{
    p->restored.len = 0;
    SPK_TRY(spk_coef_open(p->coef, blob, (size_t)m->size, err));
    SPK_TRY(spk_coef_restore(p->coef, &p->restored, err));
    if (p->restored.len != m->original)
        return spk_error_set(err, SPK_E_FORMAT, "the file made anew has %zu bytes, the index says %llu",
                             p->restored.len, (unsigned long long)m->original);
    return SPK_OK;
}

spk_status spk_packed_get(spk_packed *p, uint64_t number, uint32_t member, bool stored, spk_packed_field *out,
                          spk_error *err)
{
    const spk_index *x = spk_shard_index(p->shard);
    const spk_index_sample *s = &x->samples[number - p->first];
    const spk_index_member *m = &x->members[s->first + member];
    const spk_index_field *f = &x->fields[m->field];
    spk_form form = spk_form_of(f->encoding);
    *out = (spk_packed_field){p->content.data + (m->offset - p->tar), (size_t)m->size, SPK_FORM_IDENTITY};
    if (form == SPK_FORM_IDENTITY)
        return SPK_OK;
    spk_status status = restore(p, out->data, m, err); /* also what stays as it is: damage is not passed on */
    if (status < 0) {
        spk_error_prefix(err, "%s: %s: sample \"%s\": field \"%s\"", p->src, spk_shard_name(p->shard),
                         x->strings + s->key, f->name);
        return status;
    }
    if (form == SPK_FORM_PIXELS && stored)
        out->form = form;
    else
        *out = (spk_packed_field){p->restored.data, p->restored.len, SPK_FORM_IDENTITY};
    return SPK_OK;
}
