/* Encoding the shard index: the fixed part, and the sample list in one zstd frame. Confined. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "shard/frame.h"
#include "shard/index_part.h"
#include "shard/tar.h"

#define LIST_LEVEL 9

struct spk_index_writer {
    spk_fields fields;
    spk_buf frames; /* per frame: u32 samples, 16 bytes digest */
    spk_buf list;   /* samples, without the field table that stands before them */
    uint64_t frames_n;
    uint64_t samples_n;
};

spk_status spk_index_writer_new(spk_index_writer **out, spk_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? SPK_OK : spk_error_nomem(err, sizeof **out);
}

void spk_index_writer_free(spk_index_writer *w)
{
    if (!w)
        return;
    spk_fields_free(&w->fields);
    spk_buf_free(&w->frames);
    spk_buf_free(&w->list);
    free(w);
}

static spk_status put_text(spk_buf *b, const char *text, spk_error *err)
{
    size_t n = strlen(text);
    SPK_TRY(spk_buf_varint(b, n, err));
    return spk_buf_append(b, text, n, err);
}

static spk_status put_sample(spk_index_writer *w, const spk_index_part *part, size_t i, spk_error *err)
{
    const spk_part_sample *s = &part->samples[i];
    const char *text = (const char *)part->text.data;
    SPK_TRY(put_text(&w->list, text + s->key, err));
    SPK_TRY(spk_buf_varint(&w->list, s->members, err));
    for (size_t j = s->first; j < s->first + s->members; j++) {
        const spk_part_member *m = &part->members[j];
        const spk_index_field *f = &part->fields.items[m->field];
        uint32_t number = 0;
        SPK_TRY(spk_fields_number(&w->fields, f->name, f->encoding, &number, err));
        SPK_TRY(spk_buf_varint(&w->list, number, err));
        SPK_TRY(spk_buf_varint(&w->list, m->size, err));
        if (strcmp(f->encoding, SPK_IDENTITY) != 0)
            SPK_TRY(spk_buf_varint(&w->list, m->original, err));
        if (m->origin != SPK_ORIGIN_PATH) {
            SPK_TRY(spk_buf_varint(&w->list, m->origin, err));
            continue;
        }
        size_t n = strlen(text + m->path);
        SPK_TRY(spk_buf_varint(&w->list, n + 1, err));
        SPK_TRY(spk_buf_append(&w->list, text + m->path, n, err));
    }
    return SPK_OK;
}

spk_status spk_index_writer_add(spk_index_writer *w, const spk_index_part *part, const uint8_t digest[16],
                                spk_error *err)
{
    if (part->samples_n == 0)
        return spk_error_set(err, SPK_E_INVALID, "a frame without samples");
    if (part->samples[part->samples_n - 1].members == 0)
        return spk_error_set(err, SPK_E_INVALID, "a sample without members");
    if (part->samples_n > SPK_SAMPLES_MAX - w->samples_n)
        return spk_error_set(err, SPK_E_LIMIT, "a shard holds at most %u samples", SPK_SAMPLES_MAX);
    for (size_t i = 0; i < part->samples_n; i++)
        SPK_TRY(put_sample(w, part, i, err));
    SPK_TRY(spk_buf_u32(&w->frames, (uint32_t)part->samples_n, err));
    SPK_TRY(spk_buf_append(&w->frames, digest, SPK_FRAME_DIGEST, err));
    w->frames_n++;
    w->samples_n += part->samples_n;
    return SPK_OK;
}

static spk_status to_buf(void *ctx, const void *p, size_t n, spk_error *err)
{
    return spk_buf_append(ctx, p, n, err);
}

/* The field table and the samples as one zstd frame behind what is in out. */
static spk_status compress_list(spk_index_writer *w, uint64_t *content, spk_buf *out, spk_error *err)
{
    spk_buf table = {0};
    spk_frame_writer *z = NULL;
    spk_frame_info info = {0};
    spk_status st = spk_frame_writer_new(&z, err);
    if (st == SPK_OK)
        st = spk_buf_varint(&table, w->fields.n, err);
    for (size_t i = 0; st == SPK_OK && i < w->fields.n; i++) {
        st = put_text(&table, w->fields.items[i].name, err);
        if (st == SPK_OK)
            st = put_text(&table, w->fields.items[i].encoding, err);
    }
    *content = (uint64_t)table.len + w->list.len;
    if (st == SPK_OK && *content > SPK_INDEX_LIST_MAX)
        st = spk_error_set(err, SPK_E_LIMIT, "sample list of %llu bytes: at most %u are allowed; use smaller shards",
                           (unsigned long long)*content, SPK_INDEX_LIST_MAX);
    if (st == SPK_OK)
        st = spk_frame_begin(z, LIST_LEVEL, *content, to_buf, out, err);
    if (st == SPK_OK)
        st = spk_frame_write(z, table.data, table.len, err);
    if (st == SPK_OK)
        st = spk_frame_write(z, w->list.data, w->list.len, err);
    if (st == SPK_OK)
        st = spk_frame_end(z, &info, err);
    spk_frame_writer_free(z);
    spk_buf_free(&table);
    return st;
}

spk_status spk_index_writer_finish(spk_index_writer *w, uint64_t tar_bytes, spk_buf *out, spk_error *err)
{
    if (w->frames_n == 0)
        return spk_error_set(err, SPK_E_INVALID, "a shard without samples");
    size_t start = out->len;
    SPK_TRY(spk_buf_u32(out, SPK_INDEX_FRAME_MAGIC, err));
    SPK_TRY(spk_buf_u32(out, 0, err)); /* size, below */
    SPK_TRY(spk_buf_append(out, SPK_INDEX_MAGIC, 8, err));
    SPK_TRY(spk_buf_u32(out, SPK_INDEX_VERSION, err));
    SPK_TRY(spk_buf_u32(out, 0, err)); /* flags */
    SPK_TRY(spk_buf_u32(out, (uint32_t)w->frames_n, err));
    SPK_TRY(spk_buf_u32(out, (uint32_t)w->samples_n, err));
    SPK_TRY(spk_buf_u64(out, tar_bytes, err));
    SPK_TRY(spk_buf_u64(out, 0, err)); /* sizes of the list, below */
    SPK_TRY(spk_buf_u64(out, 0, err)); /* digest, below */
    SPK_TRY(spk_buf_u64(out, 0, err));
    SPK_TRY(spk_buf_append(out, w->frames.data, w->frames.len, err));
    size_t list = out->len;
    uint64_t content = 0;
    SPK_TRY(compress_list(w, &content, out, err));
    uint64_t size = out->len - start - SPK_SKIP_HEADER;
    if (size > UINT32_MAX - SPK_SKIP_HEADER)
        return spk_error_set(err, SPK_E_LIMIT, "shard index of %llu bytes does not fit; use smaller shards",
                             (unsigned long long)size);
    uint8_t *fixed = out->data + start + SPK_SKIP_HEADER, digest[SPK_SHA256_BYTES];
    spk_le32_store(out->data + start + 4, (uint32_t)size);
    spk_le32_store(fixed + 32, (uint32_t)(out->len - list));
    spk_le32_store(fixed + 36, (uint32_t)content);
    SPK_TRY(spk_sha256_once(fixed + SPK_INDEX_FIXED, (size_t)size - SPK_INDEX_FIXED, digest, err));
    memcpy(fixed + SPK_INDEX_DIGEST, digest, SPK_INDEX_DIGEST_BYTES);
    return SPK_OK;
}
