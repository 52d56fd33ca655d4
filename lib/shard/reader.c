/* Samples in stored order over a run of shards, one frame in memory at a time: one read, one decompression into a
 * buffer that is used again, and samples that point into it. Confined. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "coef/coef.h"
#include "shard/format.h"
#include "shard/shard_impl.h"

struct spk_reader {
    spk_reader_shards shards;
    spk_frame_reader *decoder;
    const spk_shard *shard; /* borrowed; NULL: to be asked for */
    uint64_t shard_number;
    uint64_t within; /* next sample in the shard */
    uint64_t base;   /* number of the shard's first sample */
    int held;        /* buffer holds frame `frame` of the shard */
    uint64_t frame;
    spk_buf scratch;
    uint8_t *buffer;
    size_t buffer_cap;
    spk_field *fields;
    size_t fields_cap;
    spk_coef_reader *coef; /* made for the first field stored so */
    spk_buf restored;      /* the fields of the sample that are not stored as they are, one after another */
    bool stored;           /* nothing is restored */
    spk_sample sample;
};

spk_status spk_reader_new(spk_reader **out, const spk_reader_shards *shards, uint64_t first, spk_error *err)
{
    *out = NULL;
    spk_reader *r = calloc(1, sizeof *r);
    if (!r)
        return spk_error_nomem(err, sizeof *r);
    r->shards = *shards;
    spk_status st = spk_frame_reader_new(&r->decoder, err);
    if (st == SPK_OK)
        st = spk_reader_seek(r, first, err);
    if (st < 0) {
        r->shards.close = NULL; /* the context stays the caller's */
        spk_reader_close(r);
        return st;
    }
    *out = r;
    return SPK_OK;
}

void spk_reader_close(spk_reader *reader)
{
    if (!reader)
        return;
    if (reader->shards.close)
        reader->shards.close(reader->shards.ctx);
    spk_frame_reader_free(reader->decoder);
    spk_buf_free(&reader->scratch);
    spk_coef_reader_free(reader->coef);
    spk_buf_free(&reader->restored);
    free(reader->buffer);
    free(reader->fields);
    free(reader);
}

spk_status spk_reader_seek(spk_reader *reader, uint64_t number, spk_error *err)
{
    uint64_t shard = 0, within = 0;
    SPK_TRY(reader->shards.locate(reader->shards.ctx, number, &shard, &within, err));
    if (shard != reader->shard_number) {
        reader->shard = NULL;
        reader->held = 0;
    }
    reader->shard_number = shard;
    reader->within = within;
    return SPK_OK;
}

void spk_reader_set_stored(spk_reader *reader, int stored)
{
    reader->stored = stored != 0;
}

static void go_to_next_shard(spk_reader *r)
{
    r->shard = NULL;
    r->held = 0;
    r->shard_number++;
    r->within = 0;
}

/* What trying again cannot change. */
static bool is_content(spk_status st)
{
    return st == SPK_E_FORMAT || st == SPK_E_CHECKSUM || st == SPK_E_LIMIT || st == SPK_E_UNSUPPORTED;
}

/* Makes r->shard the shard that holds the next sample. */
static spk_status find_shard(spk_reader *r, spk_error *err)
{
    for (;;) {
        if (!r->shard) {
            r->held = 0;
            spk_status st = r->shards.get(r->shards.ctx, r->shard_number, &r->shard, err);
            if (is_content(st))
                go_to_next_shard(r);
            if (st != SPK_OK) {
                r->shard = NULL;
                return st;
            }
            r->base = r->shards.first_of(r->shards.ctx, r->shard_number);
        }
        if (r->within < r->shard->index->samples_n)
            return SPK_OK;
        go_to_next_shard(r);
    }
}

static spk_status make_buffer(spk_reader *r, size_t want, spk_error *err)
{
    if (want <= r->buffer_cap)
        return SPK_OK;
    free(r->buffer); /* its content is of no more use, so nothing is copied */
    r->buffer_cap = 0;
    r->buffer = malloc(want);
    if (!r->buffer)
        return spk_error_nomem(err, want);
    r->buffer_cap = want;
    return SPK_OK;
}

/* Makes the buffer hold the frame of the next sample. */
static spk_status hold_frame(spk_reader *r, spk_error *err)
{
    const uint32_t *first = r->shard->index->frame_first;
    if (r->held && first[r->frame] <= r->within && r->within < first[r->frame + 1])
        return SPK_OK;
    uint64_t f = spk_shard_frame_of(r->shard, r->within);
    r->held = 0;
    spk_status st = make_buffer(r, r->shard->entries[f].content, err);
    if (st < 0) {
        spk_error_prefix(err, "%s: frame %llu", r->shard->name, (unsigned long long)f);
        return st;
    }
    st = spk_shard_read_frame(r->shard, r->decoder, f, 0, &r->scratch, r->buffer, err);
    if (is_content(st))
        r->within = first[f + 1];
    if (st < 0)
        return st;
    r->frame = f;
    r->held = 1;
    return SPK_OK;
}

/* Makes a field's own bytes from the stored ones, behind r->restored.len. */
static spk_status restore(spk_reader *r, const uint8_t *stored, size_t n, uint64_t original, spk_error *err)
{
    size_t begin = r->restored.len;
    if (!r->coef)
        SPK_TRY(spk_coef_reader_new(&r->coef, err));
    SPK_TRY(spk_coef_open(r->coef, stored, n, err));
    SPK_TRY(spk_coef_restore(r->coef, &r->restored, err));
    if (r->restored.len - begin != original)
        return spk_error_set(err, SPK_E_FORMAT, "the file made anew has %zu bytes, the index says %llu",
                             r->restored.len - begin, (unsigned long long)original);
    return SPK_OK;
}

/* A field that is not stored as it is. If it is restored, its data is NULL until all of the sample are: r->restored may
 * move. */
static spk_status fill_encoded(spk_reader *r, const char *key, const spk_index_field *f, spk_field *out, spk_error *err)
{
    size_t begin = r->restored.len;
    if (!spk_coef_is(f->encoding))
        return spk_error_set(err, SPK_E_UNSUPPORTED,
                             "%s: sample \"%s\": field \"%s\" is stored as \"%s\", which this library cannot read",
                             r->shard->name, key, f->name, f->encoding);
    if (r->stored)
        return SPK_OK;
    spk_status st = restore(r, out->data, out->size, out->original, err);
    if (st < 0) {
        spk_error_prefix(err, "%s: sample \"%s\": field \"%s\"", r->shard->name, key, f->name);
        return st;
    }
    out->data = NULL;
    out->size = r->restored.len - begin;
    return SPK_OK;
}

static spk_status fill_sample(spk_reader *r, uint64_t i, spk_error *err)
{
    const spk_index *x = r->shard->index;
    const spk_index_sample *s = &x->samples[i];
    uint64_t tar = r->shard->tar_offsets[r->frame];
    size_t at = 0;
    r->restored.len = 0;
    SPK_TRY(spk_grow(&r->fields, &r->fields_cap, s->members, sizeof *r->fields, err));
    for (uint32_t j = 0; j < s->members; j++) {
        const spk_index_member *m = &x->members[s->first + j];
        const spk_index_field *f = &x->fields[m->field];
        r->fields[j] = (spk_field){
            f->name,         f->encoding, m->path_len > 0 ? x->strings + m->path : NULL, r->buffer + (m->offset - tar),
            (size_t)m->size, m->original};
        if (strcmp(f->encoding, SPK_IDENTITY) != 0)
            SPK_TRY(fill_encoded(r, x->strings + s->key, f, &r->fields[j], err));
    }
    for (uint32_t j = 0; j < s->members; j++)
        if (!r->fields[j].data) {
            r->fields[j].data = r->restored.data + at;
            at += r->fields[j].size;
        }
    r->sample = (spk_sample){x->strings + s->key, r->base + i, r->shard_number, r->frame, s->members, r->fields};
    return SPK_OK;
}

spk_status spk_reader_next(spk_reader *reader, const spk_sample **out, spk_error *err)
{
    *out = NULL;
    spk_status st = find_shard(reader, err);
    if (st == SPK_OK)
        st = hold_frame(reader, err);
    if (st != SPK_OK)
        return st;
    SPK_TRY(fill_sample(reader, reader->within++, err));
    *out = &reader->sample;
    return SPK_OK;
}

/* A run of one shard, which is its own context. */
static spk_status one_get(void *ctx, uint64_t n, const spk_shard **out, spk_error *err)
{
    (void)err;
    *out = ctx;
    return n == 0 ? SPK_OK : SPK_END;
}

static spk_status one_locate(void *ctx, uint64_t number, uint64_t *shard, uint64_t *within, spk_error *err)
{
    const spk_shard *s = ctx;
    if (number > s->index->samples_n)
        return spk_error_set(err, SPK_E_INVALID, "%s: no sample %llu, there are %llu", s->name,
                             (unsigned long long)number, (unsigned long long)s->index->samples_n);
    *shard = 0;
    *within = number;
    return SPK_OK;
}

static uint64_t one_first_of(void *ctx, uint64_t shard)
{
    (void)ctx;
    (void)shard;
    return 0;
}

spk_status spk_reader_open_shard(spk_reader **out, const spk_shard *shard, uint64_t first, spk_error *err)
{
    spk_reader_shards one = {one_get, one_locate, one_first_of, NULL, NULL};
    memcpy(&one.ctx, &shard, sizeof shard); /* only read through; the interface's contexts are not const */
    return spk_reader_new(out, &one, first, err);
}
