/* Reading samples. Frames are read whole, checked and decompressed once for each pass of a feed; the fields that some
 * column needs are then found by the index. */
#include "load/item.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/coef.h"
#include "load/fill_image.h"
#include "shard/format.h"

#define FRAME_SLACK ((size_t)64 << 10)
#define BLOCK_SLACK ((size_t)2 << 10)
#define BLOCK_ROUND ((size_t)512)

void spk_needs_of(spk_needs *out, const spk_load_spec *spec)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < spec->columns_n; i++) {
        const spk_load_column *c = &spec->columns[i];
        out->of_column[i] = SPK_NO_NEED;
        if (c->kind == SPK_COLUMN_INDEX || c->kind == SPK_COLUMN_VALID || c->kind == SPK_COLUMN_KEY)
            continue;
        uint32_t n = 0;
        while (n < out->n && strcmp(out->names[n], c->field) != 0)
            n++;
        out->of_column[i] = n;
        if (n == out->n)
            out->names[out->n++] = c->field;
    }
}

void spk_item_clear(spk_item *item)
{
    free(item->block);
    free(item->bad);
    *item = (spk_item){.fields = item->fields};
}

void spk_frame_hold_clear(spk_frame_hold *hold)
{
    free(hold->tar);
    free(hold->bad);
    memset(hold, 0, sizeof *hold);
}

spk_status spk_block_fit(uint8_t **block, size_t *cap, size_t n, size_t slack, spk_error *err)
{
    size_t want = (n + BLOCK_ROUND - 1) / BLOCK_ROUND * BLOCK_ROUND; /* n is at most about 1 GiB */
    if (n <= *cap && *cap <= want + want / 8 + slack)
        return SPK_OK;
    free(*block);
    *cap = 0;
    *block = malloc(want);
    if (!*block)
        return spk_error_nomem(err, want);
    *cap = want;
    return SPK_OK;
}

void spk_activity_set(spk_activity *a, const char *one, const char *two, const char *three)
{
    const char *parts[3] = {one, two, three};
    size_t at = 0, cap = sizeof a->text - 1; /* the last byte stays 0 */
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(parts[i]);
        n = n < cap - at ? n : cap - at;
        memcpy(a->text + at, parts[i], n);
        at += n;
    }
    a->text[at] = '\0';
    atomic_fetch_add_explicit(&a->steps, 1, memory_order_relaxed);
}

static bool is_content(spk_status status)
{
    return status == SPK_E_FORMAT || status == SPK_E_CHECKSUM;
}

/* A frame that is damaged is one thing, a file that cannot be read any more another. */
static bool still_readable(const spk_shard *shard, uint64_t f)
{
    uint64_t offset = 0;
    uint32_t bytes = 0, content = 0;
    uint8_t last = 0;
    spk_shard_frame_range(shard, f, &offset, &bytes, &content);
    if (spk_source_is_remote(spk_shard_source(shard)))
        return true; /* damage of a remote frame is told when no mirror has it right */
    return spk_source_pread(spk_shard_source(shard), &last, 1, offset + bytes - 1, NULL) == SPK_OK;
}

static spk_status read_frame(spk_item_reader *r, spk_frame_hold *h, const spk_shard *shard, uint64_t number, uint64_t f,
                             spk_error *err)
{
    uint64_t offset = 0;
    uint32_t bytes = 0, content = 0;
    char what[40];
    spk_error local;
    spk_error_clear(&local);
    snprintf(what, sizeof what, ": reading frame %llu", (unsigned long long)f);
    spk_activity_set(r->activity, spk_shard_name(shard), what, "");
    h->held = false;
    spk_shard_frame_range(shard, f, &offset, &bytes, &content);
    SPK_TRY(spk_block_fit(&h->tar, &h->cap, content, FRAME_SLACK, err));
    spk_status status = spk_shard_read_frame(shard, r->decoder, f, 0, &r->scratch, h->tar, &local);
    r->counters->frames_read++;
    r->counters->bytes_read += bytes;
    free(h->bad);
    h->bad = NULL;
    if (is_content(status) && still_readable(shard, f)) {
        h->bad = malloc(sizeof *h->bad);
        if (!h->bad)
            return spk_error_nomem(err, sizeof *h->bad);
        *h->bad = local;
    } else if (status < 0) {
        if (err)
            *err = local;
        return status;
    }
    const spk_index *x = spk_shard_index(shard);
    h->tar_offset = x->members[x->samples[x->frame_first[f]].first].offset - SPK_TAR_BLOCK;
    h->shard = number;
    h->frame = f;
    h->held = true;
    return SPK_OK;
}

/* The sample's share of a damaged frame: the frame's error, told of the sample. */
static spk_status set_bad(spk_item *item, const spk_frame_hold *h, const char *shard, const char *key, spk_error *err)
{
    item->bad = malloc(sizeof *item->bad);
    if (!item->bad)
        return spk_error_nomem(err, sizeof *item->bad);
    *item->bad = *h->bad;
    size_t n = strlen(shard);
    const char *text = h->bad->text;
    if (strncmp(text, shard, n) == 0 && text[n] == ':' && text[n + 1] == ' ')
        text += n + 2;
    memmove(item->bad->text, item->bad->text + (text - h->bad->text), strlen(text) + 1);
    spk_error_prefix(item->bad, "%s: sample \"%s\"", shard, key);
    return SPK_OK;
}

/* Rank of a field among those that an image column without a field takes: the lowest wins. */
static size_t image_rank(const char *name)
{
    size_t i = 0;
    while (spk_image_fields[i] && strcmp(spk_image_fields[i], name) != 0)
        i++;
    return i;
}

static spk_status take_member(const spk_needs *needs, const spk_shard *shard, const spk_frame_hold *h,
                              const spk_index_member *m, spk_item *item, spk_error *err)
{
    const spk_index_field *field = &spk_shard_index(shard)->fields[m->field];
    for (uint32_t n = 0; n < needs->n; n++) {
        spk_item_field *to = &item->fields[n];
        bool any_image = needs->names[n][0] == '\0';
        const char *name = needs->names[n];
        if (any_image) {
            size_t rank = image_rank(field->name);
            name = spk_image_fields[rank];
            if (!name || (to->data && image_rank(to->name) < rank))
                continue;
        } else if (strcmp(name, field->name) != 0) {
            continue;
        }
        bool stored = spk_coef_is(field->encoding);
        if (!stored && strcmp(field->encoding, SPK_IDENTITY) != 0)
            return spk_error_set(err, SPK_E_UNSUPPORTED,
                                 "%s: sample \"%s\": %s: encoding \"%s\" is unknown to this version",
                                 spk_shard_name(shard), item->key, name, field->encoding);
        *to = (spk_item_field){h->tar + (m->offset - h->tar_offset), (size_t)m->size, name, stored, m->original};
    }
    return SPK_OK;
}

/* Moves what is borrowed into the item's block: the key, since its shard may be closed before the item is let go of
 * (what looks ahead opens others), and the fields if asked for. */
static spk_status own(const spk_needs *needs, spk_item *item, bool fields, spk_error *err)
{
    size_t total = item->key_len + 1;
    for (uint32_t n = 0; fields && n < needs->n; n++)
        total += item->fields[n].data ? item->fields[n].size : 0;
    SPK_TRY(spk_block_fit(&item->block, &item->cap, total, BLOCK_SLACK, err));
    uint8_t *p = item->block;
    memcpy(p, item->key, item->key_len + 1);
    item->key = (const char *)p;
    p += item->key_len + 1;
    for (uint32_t n = 0; fields && n < needs->n; n++) {
        spk_item_field *f = &item->fields[n];
        if (!f->data)
            continue;
        memcpy(p, f->data, f->size);
        f->data = p;
        p += f->size;
    }
    return SPK_OK;
}

spk_status spk_item_read(spk_item_reader *r, spk_frame_hold *hold, uint64_t number, bool copy, spk_item *item,
                         spk_error *err)
{
    uint64_t s = 0, within = 0;
    const spk_shard *shard = NULL;
    item->held = false;
    free(item->bad);
    item->bad = NULL;
    spk_shard_cache_locate(r->cache, number, &s, &within);
    SPK_TRY(spk_shard_cache_get(r->cache, s, &shard, err));
    const spk_index *x = spk_shard_index(shard);
    if (!hold->held || hold->shard != s || within < x->frame_first[hold->frame] ||
        within >= x->frame_first[hold->frame + 1])
        SPK_TRY(read_frame(r, hold, shard, s, spk_shard_frame_of(shard, within), err));

    const spk_index_sample *sample = &x->samples[within];
    item->sample = number;
    item->index = spk_shard_cache_index(r->cache, s, within);
    item->key = x->strings + sample->key;
    item->key_len = sample->key_len;
    for (uint32_t n = 0; n < r->needs.n; n++)
        item->fields[n] = (spk_item_field){.name = r->needs.names[n]};
    if (hold->bad)
        SPK_TRY(set_bad(item, hold, spk_shard_name(shard), item->key, err));
    for (uint32_t i = 0; !hold->bad && i < sample->members; i++)
        SPK_TRY(take_member(&r->needs, shard, hold, &x->members[sample->first + i], item, err));
    SPK_TRY(own(&r->needs, item, copy, err));
    item->held = true;
    return SPK_OK;
}
