/* Writing manifest.json: format-spec/dataset.md section 3. Keys keep the order in which they are added, so the same
 * struct gives the same bytes. */
#include "dataset/manifest.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "dataset/table.h"

/* Shortest digits that give back a share such as 0.9; 17 would print 0.90000000000000002. */
#define REAL_DIGITS 15

static spk_status no_json(spk_error *err)
{
    return spk_error_set(err, SPK_E_NOMEM, "out of memory for the manifest");
}

/* Takes value, which may be NULL after a failed allocation. */
static spk_status put(json_t *object, const char *key, json_t *value, spk_error *err)
{
    return json_object_set_new(object, key, value) == 0 ? SPK_OK : no_json(err);
}

static spk_status put_text(json_t *object, const char *key, const char *text, spk_error *err)
{
    if (!text || !spk_utf8_valid(text, strlen(text)))
        return spk_error_set(err, SPK_E_INVALID, "manifest: \"%s\" is %s", key, text ? "not UTF-8" : "not set");
    return put(object, key, json_string(text), err);
}

static spk_status put_number(json_t *object, const char *key, uint64_t v, spk_error *err)
{
    if (v > SPK_NUMBER_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "manifest: \"%s\" is above 2^53", key);
    return put(object, key, json_integer((json_int_t)v), err);
}

/* Adds an empty object or array (taken) under key and hands it back borrowed. */
static spk_status put_container(json_t *object, const char *key, json_t *value, json_t **out, spk_error *err)
{
    *out = value;
    return put(object, key, value, err);
}

static spk_status put_totals(json_t *root, const spk_manifest *m, spk_error *err)
{
    SPK_TRY(put_text(root, "format", "shardpack", err));
    SPK_TRY(put_text(root, "version", "1.0", err));
    SPK_TRY(put_text(root, "fingerprint", m->fingerprint, err));
    SPK_TRY(put_number(root, "samples", m->samples, err));
    SPK_TRY(put_number(root, "shards", m->shards, err));
    SPK_TRY(put_number(root, "frames", m->frames, err));
    SPK_TRY(put_number(root, "bytes", m->bytes, err));
    SPK_TRY(put_number(root, "tar_bytes", m->tar_bytes, err));
    return put_number(root, "payload_bytes", m->payload_bytes, err);
}

static spk_status put_table(json_t *root, const spk_manifest *m, spk_error *err)
{
    json_t *table = NULL;
    char hex[SPK_SHA256_HEX];
    spk_hex(hex, m->table_sha256, sizeof m->table_sha256);
    SPK_TRY(put_container(root, "table", json_object(), &table, err));
    SPK_TRY(put_text(table, "file", m->table_name, err));
    SPK_TRY(put_number(table, "bytes", m->table_bytes, err));
    SPK_TRY(put_text(table, "sha256", hex, err));
    return put_text(root, "order", m->shuffled ? "shuffled" : "stored", err);
}

static spk_status put_stored(json_t *field, const spk_manifest_field *f, spk_error *err)
{
    json_t *list = NULL;
    if (f->stored_n == 0)
        return SPK_OK;
    SPK_TRY(put_container(field, "stored", json_array(), &list, err));
    for (size_t i = 0; i < f->stored_n; i++) {
        json_t *one = json_object();
        if (json_array_append_new(list, one) != 0)
            return no_json(err);
        SPK_TRY(put_text(one, "encoding", f->stored[i].encoding, err));
        SPK_TRY(put_number(one, "samples", f->stored[i].samples, err));
        SPK_TRY(put_number(one, "bytes", f->stored[i].bytes, err));
        SPK_TRY(put_number(one, "original_bytes", f->stored[i].original, err));
    }
    return SPK_OK;
}

static spk_status put_fields(json_t *root, const spk_manifest *m, spk_error *err)
{
    json_t *fields = NULL;
    SPK_TRY(put_container(root, "fields", json_array(), &fields, err));
    for (size_t i = 0; i < m->fields_n; i++) {
        json_t *field = json_object();
        if (json_array_append_new(fields, field) != 0)
            return no_json(err);
        SPK_TRY(put_text(field, "name", m->fields[i].name, err));
        SPK_TRY(put_text(field, "kind", m->fields[i].kind, err));
        SPK_TRY(put_number(field, "samples", m->fields[i].samples, err));
        SPK_TRY(put_stored(field, &m->fields[i], err));
    }
    return SPK_OK;
}

static spk_status put_classes(json_t *root, const spk_manifest *m, spk_error *err)
{
    json_t *classes = NULL;
    SPK_TRY(put_container(root, "classes", json_array(), &classes, err));
    for (size_t i = 0; i < m->classes_n; i++) {
        const char *name = m->classes[i];
        if (!spk_utf8_valid(name, strlen(name)))
            return spk_error_set(err, SPK_E_INVALID, "manifest: class %zu is not UTF-8", i);
        if (json_array_append_new(classes, json_string(name)) != 0)
            return no_json(err);
    }
    return SPK_OK;
}

static spk_status put_mirrors(json_t *root, const spk_manifest *m, spk_error *err)
{
    json_t *mirrors = NULL;
    if (m->mirrors_n == 0)
        return SPK_OK;
    SPK_TRY(put_container(root, "mirrors", json_array(), &mirrors, err));
    for (size_t i = 0; i < m->mirrors_n; i++)
        if (json_array_append_new(mirrors, json_string(m->mirrors[i])) != 0)
            return no_json(err);
    return SPK_OK;
}

static spk_status put_range(json_t *images, const char *key, uint64_t min, uint64_t max, uint64_t sum, spk_error *err)
{
    json_t *range = NULL;
    SPK_TRY(put_container(images, key, json_object(), &range, err));
    SPK_TRY(put_number(range, "min", min, err));
    SPK_TRY(put_number(range, "max", max, err));
    return put_number(range, "sum", sum, err);
}

static spk_status put_images(json_t *root, const spk_image_stat *s, spk_error *err)
{
    json_t *images = NULL, *sides = NULL;
    if (s->count == 0)
        return SPK_OK;
    SPK_TRY(put_container(root, "images", json_object(), &images, err));
    SPK_TRY(put_number(images, "count", s->count, err));
    SPK_TRY(put_number(images, "jpeg", s->jpeg, err));
    SPK_TRY(put_number(images, "png", s->png, err));
    SPK_TRY(put_number(images, "other", s->other, err));
    SPK_TRY(put_range(images, "width", s->min_width, s->max_width, s->sum_width, err));
    SPK_TRY(put_range(images, "height", s->min_height, s->max_height, s->sum_height, err));
    SPK_TRY(put_container(images, "longer_side", json_array(), &sides, err));
    for (int i = 0; i < SPK_IMAGE_BUCKETS; i++)
        if (json_array_append_new(sides, json_integer((json_int_t)s->longer_side[i])) != 0)
            return no_json(err);
    return SPK_OK;
}

static spk_status put_pack(json_t *root, const char *pack, spk_error *err)
{
    json_error_t why;
    if (!pack)
        return SPK_OK;
    json_t *value = json_loads(pack, JSON_REJECT_DUPLICATES, &why);
    if (!value)
        return spk_error_set(err, SPK_E_INVALID, "manifest: \"pack\": %s", why.text);
    return put(root, "pack", value, err);
}

static int append_text(const char *text, size_t n, void *out)
{
    return spk_buf_append(out, text, n, NULL) == SPK_OK ? 0 : -1;
}

static spk_status fill(json_t *root, const spk_manifest *m, spk_error *err)
{
    SPK_TRY(put_totals(root, m, err));
    SPK_TRY(put_table(root, m, err));
    SPK_TRY(put_fields(root, m, err));
    SPK_TRY(put_classes(root, m, err));
    SPK_TRY(put_mirrors(root, m, err));
    SPK_TRY(put_images(root, &m->images, err));
    return put_pack(root, m->pack, err);
}

/* What goes out must come in again: the reader has bounds of its own, on the number of values for instance. */
static spk_status read_back(const spk_buf *out, size_t start, spk_error *err)
{
    spk_manifest again = {0};
    spk_status status = spk_manifest_parse(&again, (const char *)out->data + start, out->len - start, err);
    spk_manifest_free(&again);
    if (status < 0)
        spk_error_prefix(err, "manifest that no reader would take");
    return status;
}

spk_status spk_manifest_encode(const spk_manifest *m, spk_buf *out, spk_error *err)
{
    size_t start = out->len;
    json_t *root = json_object();
    spk_status status = root ? fill(root, m, err) : no_json(err);
    if (status == SPK_OK &&
        json_dump_callback(root, append_text, out, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_DIGITS)))
        status = no_json(err);
    if (status == SPK_OK)
        status = spk_buf_append(out, "\n", 1, err);
    if (status == SPK_OK && out->len - start > SPK_MANIFEST_MAX)
        status = spk_error_set(err, SPK_E_LIMIT, "manifest of %zu bytes is above the limit of %u", out->len - start,
                               SPK_MANIFEST_MAX);
    json_decref(root);
    return status == SPK_OK ? read_back(out, start, err) : status;
}
