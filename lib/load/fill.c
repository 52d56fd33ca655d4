/* Columns of a row. A content error of one column makes the whole row a substituted one, so that a row never mixes what
 * is there with what is not. */
#include "load/fill.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"

#define NO_LABEL (-100)
#define ARENA_ROUND 16u /* values of different workers share no more than the ends of a cache line */

static uint8_t *cell(const spk_fill *f, const spk_load_column *c, uint64_t row)
{
    return f->slot + c->offset + row * c->row_bytes;
}

static void set_state(const spk_fill *f, uint64_t row, uint8_t state)
{
    f->slot[f->spec->rows_offset + row] = state;
    f->counters->padded += state == SPK_ROW_PADDED;
    f->counters->substituted += state == SPK_ROW_SUBSTITUTED;
}

static void put_i64(uint8_t *out, int64_t v)
{
    memcpy(out, &v, sizeof v);
}

static void put_record(uint8_t *out, uint64_t offset, uint64_t length)
{
    const uint64_t record[2] = {offset, length};
    memcpy(out, record, sizeof record);
}

/* LIMIT if the slot's arena is full: *fatal tells it from a content error. */
static spk_status put_value(spk_fill *f, uint8_t *out, const void *data, size_t n, bool *fatal, spk_error *err)
{
    if (n == 0) {
        put_record(out, SPK_ARENA_FIRST, 0);
        return SPK_OK;
    }
    uint64_t room = ((uint64_t)n + ARENA_ROUND - 1) / ARENA_ROUND * ARENA_ROUND;
    uint64_t at = atomic_fetch_add_explicit(&f->control->arena_used, room, memory_order_relaxed);
    if (at > f->spec->arena_bytes || room > f->spec->arena_bytes - at) {
        *fatal = true;
        return spk_error_set(err, SPK_E_LIMIT,
                             "the values of a batch of %u rows need more than %llu bytes (%zu more behind %llu): use a "
                             "smaller batch",
                             f->spec->batch_size, (unsigned long long)f->spec->arena_bytes, n, (unsigned long long)at);
    }
    memcpy(f->arena + at, data, n);
    put_record(out, at, n);
    return SPK_OK;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool spk_label_parse(const uint8_t *p, size_t n, int64_t *out)
{
    bool negative = false;
    int64_t value = 0;
    while (n > 0 && is_space(p[n - 1]))
        n--;
    while (n > 0 && is_space(*p))
        p++, n--;
    if (n > 0 && (*p == '-' || *p == '+')) {
        negative = *p == '-';
        p++, n--;
    }
    if (n == 0)
        return false;
    for (; n > 0; p++, n--) {
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *p - '0', &value)) /* downwards: INT64_MIN has no positive twin */
            return false;
    }
    if (!negative && value == INT64_MIN)
        return false;
    *out = negative ? value : -value;
    return true;
}

static spk_status put_label(const spk_item_field *from, bool pad, uint8_t *out, spk_error *err)
{
    int64_t label = NO_LABEL;
    if (from->data && !spk_label_parse(from->data, from->size, &label)) {
        int shown = from->size < 40 ? (int)from->size : 40;
        return spk_error_set(err, SPK_E_FORMAT, "%s: \"%.*s\" is no label", from->name, shown,
                             (const char *)from->data);
    }
    put_i64(out, pad ? NO_LABEL : label);
    return SPK_OK;
}

static spk_status put_image(spk_fill *f, uint32_t column, const spk_item_field *from, const spk_draw_key *key,
                            uint8_t *out, spk_error *err)
{
    if (!from->data)
        return spk_error_set(err, SPK_E_FORMAT, "has no %s%s", *from->name ? "field " : "image", from->name);
    spk_status status = spk_fill_image(f->images, column, key, from->data, from->size, out, err);
    f->counters->images_decoded++;
    if (status < 0)
        spk_error_prefix(err, "%s", from->name);
    return status;
}

static spk_status put_file(spk_fill *f, const spk_item_field *from, uint8_t *out, bool *fatal, spk_error *err)
{
    const uint8_t *data = from->data;
    size_t size = from->size;
    if (!data) {
        put_record(out, 0, 0);
        return SPK_OK;
    }
    spk_status status = from->stored ? spk_fill_restore(f->images, from->data, from->size, &data, &size, err) : SPK_OK;
    if (status < 0) {
        spk_error_prefix(err, "%s", from->name);
        return status;
    }
    return put_value(f, out, data, size, fatal, err);
}

/* A column of a field's bytes in any form. */
static spk_status put_bytes(spk_fill *f, const spk_load_column *c, const spk_item_field *from, uint8_t *out,
                            bool *fatal, spk_error *err)
{
    if (!from->data && !c->optional)
        return spk_error_set(err, SPK_E_FORMAT, "has no field %s", from->name);
    if (c->kind == SPK_COLUMN_BYTES)
        return put_file(f, from, out, fatal, err);
    if (c->kind == SPK_COLUMN_STORED)
        return put_value(f, out, from->data, from->size, fatal, err);
    put_i64(out, from->stored ? (int64_t)from->original : -1);
    return SPK_OK;
}

static spk_status put_column(spk_fill *f, uint32_t column, uint64_t row, const spk_item *item, const spk_draw_key *key,
                             bool pad, bool *fatal, spk_error *err)
{
    const spk_load_column *c = &f->spec->columns[column];
    uint32_t need = f->needs->of_column[column];
    const spk_item_field *from = need == SPK_NO_NEED ? NULL : &item->fields[need];
    uint8_t *out = cell(f, c, row);
    switch (c->kind) {
    case SPK_COLUMN_IMAGE:
        return put_image(f, column, from, key, out, err);
    case SPK_COLUMN_LABEL:
        return put_label(from, pad, out, err);
    case SPK_COLUMN_INDEX:
        put_i64(out, (int64_t)item->index);
        return SPK_OK;
    case SPK_COLUMN_VALID:
        *out = !pad;
        return SPK_OK;
    case SPK_COLUMN_KEY:
        return put_value(f, out, item->key, item->key_len, fatal, err);
    default:
        return put_bytes(f, c, from, out, fatal, err);
    }
}

/* A row of nothing; item gives its index and key. */
static spk_status put_empty(spk_fill *f, uint64_t row, const spk_item *item, spk_error *err)
{
    bool fatal = false;
    for (uint32_t i = 0; i < f->spec->columns_n; i++) {
        const spk_load_column *c = &f->spec->columns[i];
        uint8_t *out = cell(f, c, row);
        memset(out, 0, (size_t)c->row_bytes);
        if (c->kind == SPK_COLUMN_LABEL)
            put_i64(out, NO_LABEL);
        else if (c->kind == SPK_COLUMN_INDEX)
            put_i64(out, item ? (int64_t)item->index : -1);
        else if (c->kind == SPK_COLUMN_ORIGINAL)
            put_i64(out, -1);
        else if (c->kind == SPK_COLUMN_KEY && item)
            SPK_TRY(put_value(f, out, item->key, item->key_len, &fatal, err));
    }
    return SPK_OK;
}

static bool is_content(spk_status status)
{
    return status == SPK_E_FORMAT || status == SPK_E_CHECKSUM || status == SPK_E_UNSUPPORTED || status == SPK_E_LIMIT;
}

static spk_status put_columns(spk_fill *f, uint64_t row, const spk_item *item, const spk_draw_key *key, bool pad,
                              bool *fatal, spk_error *err)
{
    for (uint32_t i = 0; i < f->spec->columns_n; i++)
        SPK_TRY(put_column(f, i, row, item, key, pad, fatal, err));
    return SPK_OK;
}

spk_status spk_fill_row(spk_fill *f, uint64_t row, const spk_item *item, const spk_draw_key *key, const char *shard,
                        bool pad, spk_error *err)
{
    bool fatal = false;
    spk_error local;
    spk_status status = SPK_OK;
    if (item->bad) {
        local = *item->bad;
        status = local.code;
    } else {
        spk_error_clear(&local);
        status = put_columns(f, row, item, key, pad, &fatal, &local);
        if (status < 0)
            spk_error_prefix(&local, "%s: sample \"%s\"", shard, item->key);
    }
    if (status == SPK_OK) {
        set_state(f, row, pad ? SPK_ROW_PADDED : SPK_ROW_OK);
        return SPK_OK;
    }
    if (fatal || !is_content(status) || f->spec->on_error != SPK_ON_ERROR_SUBSTITUTE) {
        if (err)
            *err = local;
        return status;
    }
    if (f->first_substitution->code == SPK_OK && !pad) {
        *f->first_substitution = local;
        f->substituted_row = row;
    }
    SPK_TRY(put_empty(f, row, item, err));
    set_state(f, row, pad ? SPK_ROW_PADDED : SPK_ROW_SUBSTITUTED);
    return SPK_OK;
}

void spk_fill_nothing(spk_fill *f, uint64_t row)
{
    spk_status ignored = put_empty(f, row, NULL, NULL); /* without a key nothing can fail */
    (void)ignored;
    set_state(f, row, SPK_ROW_PADDED);
}

void spk_fill_copy(spk_fill *f, uint64_t row, uint64_t from)
{
    for (uint32_t i = 0; i < f->spec->columns_n; i++) {
        const spk_load_column *c = &f->spec->columns[i];
        memcpy(cell(f, c, row), cell(f, c, from), (size_t)c->row_bytes);
    }
    set_state(f, row, SPK_ROW_PADDED);
}
