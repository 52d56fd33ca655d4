/* Reading the manifest's fields, classes and image statistics: format-spec/dataset.md section 3. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "dataset/manifest_json.h"
#include "io/url.h"
#include "shard/fields.h"
#include "shard/tar.h"

static bool is_kind(const char *kind)
{
    static const char *const kinds[] = {"image", "label", "text", "json", "bytes"};
    for (size_t i = 0; i < SPK_ARRAY_SIZE(kinds); i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

static spk_status read_one_stored(spk_manifest_stored *s, const spk_json_at *at, spk_error *err)
{
    SPK_TRY(spk_json_copy(at, "encoding", &s->encoding, err));
    const char *problem = spk_encoding_problem(s->encoding, strlen(s->encoding));
    if (problem)
        return spk_error_set(err, SPK_E_FORMAT, "key \"%sencoding\": \"%.80s\" %s", at->where, s->encoding, problem);
    SPK_TRY(spk_json_number(at, "samples", &s->samples, err));
    SPK_TRY(spk_json_number(at, "bytes", &s->bytes, err));
    return spk_json_number(at, "original_bytes", &s->original, err);
}

/* Encodings of the field; those that are listed have all of its members. */
static spk_status read_stored(spk_manifest_field *field, const spk_json_at *at, spk_error *err)
{
    const json_t *array = NULL;
    uint64_t sum = 0;
    if (!json_object_get(at->object, "stored"))
        return SPK_OK;
    SPK_TRY(spk_json_get(at, "stored", JSON_ARRAY, &array, err));
    size_t n = json_array_size(array);
    field->stored = calloc(n + 1, sizeof *field->stored);
    if (!field->stored)
        return spk_error_nomem(err, n * sizeof *field->stored);
    for (size_t i = 0; i < n; i++) {
        char where[80];
        snprintf(where, sizeof where, "%sstored[%zu].", at->where, i);
        spk_json_at one = {json_array_get(array, i), where};
        if (!json_is_object(one.object))
            return spk_error_set(err, SPK_E_FORMAT, "key \"%sstored[%zu]\" is %s, not an object", at->where, i,
                                 spk_json_type_name(one.object));
        field->stored_n = i + 1;
        SPK_TRY(read_one_stored(&field->stored[i], &one, err));
        if (i > 0 && strcmp(field->stored[i - 1].encoding, field->stored[i].encoding) >= 0)
            return spk_error_set(err, SPK_E_FORMAT, "key \"%sstored\": encoding \"%s\" after \"%s\"", at->where,
                                 field->stored[i].encoding, field->stored[i - 1].encoding);
        sum = sum <= field->samples ? sum + field->stored[i].samples : sum; /* each at most 2^53 */
    }
    if (sum != field->samples)
        return spk_error_set(err, SPK_E_FORMAT,
                             "key \"%sstored\": samples do not add up to the %" PRIu64 " that have the field",
                             at->where, field->samples);
    return SPK_OK;
}

static spk_status read_field(spk_manifest_field *field, const spk_json_at *at, uint64_t samples, spk_error *err)
{
    const char *kind = NULL;
    SPK_TRY(spk_json_copy(at, "name", &field->name, err));
    SPK_TRY(spk_json_text(at, "kind", &kind, err));
    SPK_TRY(spk_text_copy(&field->kind, is_kind(kind) ? kind : "bytes", err)); /* a later version's kind */
    SPK_TRY(spk_json_number(at, "samples", &field->samples, err));
    SPK_TRY(read_stored(field, at, err));
    const char *problem = spk_field_problem(field->name, strlen(field->name));
    if (problem)
        return spk_error_set(err, SPK_E_FORMAT, "key \"%sname\": \"%.80s\" %s", at->where, field->name, problem);
    if (field->samples > samples)
        return spk_error_set(err, SPK_E_FORMAT, "key \"%ssamples\" is %" PRIu64 ", the dataset has %" PRIu64, at->where,
                             field->samples, samples);
    return SPK_OK;
}

spk_status spk_manifest_read_fields(spk_manifest *m, const spk_json_at *root, spk_error *err)
{
    const json_t *array = NULL;
    SPK_TRY(spk_json_get(root, "fields", JSON_ARRAY, &array, err));
    size_t n = json_array_size(array);
    m->fields = calloc(n + 1, sizeof *m->fields);
    if (!m->fields)
        return spk_error_nomem(err, n * sizeof *m->fields);
    for (size_t i = 0; i < n; i++) {
        char where[48];
        snprintf(where, sizeof where, "fields[%zu].", i);
        spk_json_at at = {json_array_get(array, i), where};
        if (!json_is_object(at.object))
            return spk_error_set(err, SPK_E_FORMAT, "key \"fields[%zu]\" is %s, not an object", i,
                                 spk_json_type_name(at.object));
        m->fields_n = i + 1;
        SPK_TRY(read_field(&m->fields[i], &at, m->samples, err));
        if (i > 0 && strcmp(m->fields[i - 1].name, m->fields[i].name) >= 0)
            return spk_error_set(err, SPK_E_FORMAT, "key \"fields\": field \"%s\" after \"%s\"", m->fields[i].name,
                                 m->fields[i - 1].name);
    }
    return SPK_OK;
}

spk_status spk_manifest_read_mirrors(spk_manifest *m, const spk_json_at *root, spk_error *err)
{
    const json_t *array = NULL;
    if (!json_object_get(root->object, "mirrors"))
        return SPK_OK;
    SPK_TRY(spk_json_get(root, "mirrors", JSON_ARRAY, &array, err));
    size_t n = json_array_size(array);
    if (n > SPK_MANIFEST_MIRRORS)
        return spk_error_set(err, SPK_E_LIMIT, "key \"mirrors\" has %zu URLs, at most %u are allowed", n,
                             SPK_MANIFEST_MIRRORS);
    m->mirrors = calloc(n + 1, sizeof *m->mirrors);
    if (!m->mirrors)
        return spk_error_nomem(err, (n + 1) * sizeof *m->mirrors);
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(array, i);
        const char *url = json_string_value(value);
        if (!url || !spk_url_is_remote(url) || spk_text_has_control(url, strlen(url)))
            return spk_error_set(err, SPK_E_FORMAT, "key \"mirrors[%zu]\" is no URL of http, https or s3", i);
        SPK_TRY(spk_text_copy(&m->mirrors[m->mirrors_n], url, err));
        m->mirrors_n++;
    }
    return SPK_OK;
}

spk_status spk_manifest_read_classes(spk_manifest *m, const spk_json_at *root, spk_error *err)
{
    const json_t *array = NULL;
    SPK_TRY(spk_json_get(root, "classes", JSON_ARRAY, &array, err));
    size_t n = json_array_size(array);
    m->classes = calloc(n + 1, sizeof *m->classes);
    if (!m->classes)
        return spk_error_nomem(err, n * sizeof *m->classes);
    for (size_t i = 0; i < n; i++) {
        const json_t *name = json_array_get(array, i);
        if (!json_is_string(name))
            return spk_error_set(err, SPK_E_FORMAT, "key \"classes[%zu]\" is %s, not a string", i,
                                 spk_json_type_name(name));
        if (spk_text_has_control(json_string_value(name), json_string_length(name)))
            return spk_error_set(err, SPK_E_FORMAT, "key \"classes[%zu]\" has a control character", i);
        SPK_TRY(spk_text_copy(&m->classes[i], json_string_value(name), err));
        m->classes_n = i + 1;
    }
    return SPK_OK;
}

static spk_status read_range(const spk_json_at *images, const char *key, const char *where, uint64_t out[3],
                             spk_error *err)
{
    const json_t *object = NULL;
    SPK_TRY(spk_json_get(images, key, JSON_OBJECT, &object, err));
    spk_json_at at = {object, where};
    SPK_TRY(spk_json_number(&at, "min", &out[0], err));
    SPK_TRY(spk_json_number(&at, "max", &out[1], err));
    SPK_TRY(spk_json_number(&at, "sum", &out[2], err));
    if (out[0] > out[1] || out[2] < out[1])
        return spk_error_set(err, SPK_E_FORMAT,
                             "key \"images.%s\": min %" PRIu64 ", max %" PRIu64 " and sum %" PRIu64 " do not fit", key,
                             out[0], out[1], out[2]);
    return SPK_OK;
}

static spk_status read_sides(spk_image_stat *s, const spk_json_at *images, spk_error *err)
{
    const json_t *array = NULL;
    uint64_t sum = 0;
    SPK_TRY(spk_json_get(images, "longer_side", JSON_ARRAY, &array, err));
    if (json_array_size(array) != SPK_IMAGE_BUCKETS)
        return spk_error_set(err, SPK_E_FORMAT, "key \"images.longer_side\" has %zu counts, expected %d",
                             json_array_size(array), SPK_IMAGE_BUCKETS);
    for (size_t i = 0; i < SPK_IMAGE_BUCKETS; i++) {
        char name[64];
        snprintf(name, sizeof name, "key \"images.longer_side[%zu]\"", i);
        SPK_TRY(spk_json_integer(json_array_get(array, i), name, &s->longer_side[i], err));
        sum += s->longer_side[i]; /* 18 numbers of at most 2^53 */
    }
    if (sum != s->count)
        return spk_error_set(err, SPK_E_FORMAT, "key \"images.longer_side\" adds up to %" PRIu64 ", count is %" PRIu64,
                             sum, s->count);
    return SPK_OK;
}

spk_status spk_manifest_read_images(spk_manifest *m, const spk_json_at *root, spk_error *err)
{
    const json_t *object = NULL;
    uint64_t width[3] = {0}, height[3] = {0};
    spk_image_stat *s = &m->images;
    if (!json_object_get(root->object, "images"))
        return SPK_OK;
    SPK_TRY(spk_json_get(root, "images", JSON_OBJECT, &object, err));
    spk_json_at at = {object, "images."};
    SPK_TRY(spk_json_number(&at, "count", &s->count, err));
    if (s->count == 0)
        return spk_error_set(err, SPK_E_FORMAT, "key \"images.count\" is 0, where \"images\" should be missing");
    SPK_TRY(spk_json_number(&at, "jpeg", &s->jpeg, err));
    SPK_TRY(spk_json_number(&at, "png", &s->png, err));
    SPK_TRY(spk_json_number(&at, "other", &s->other, err));
    if (s->jpeg + s->png + s->other != s->count)
        return spk_error_set(err, SPK_E_FORMAT,
                             "key \"images.count\" is %" PRIu64 ", jpeg, png and other add up to %" PRIu64, s->count,
                             s->jpeg + s->png + s->other);
    SPK_TRY(read_range(&at, "width", "images.width.", width, err));
    SPK_TRY(read_range(&at, "height", "images.height.", height, err));
    s->min_width = width[0], s->max_width = width[1], s->sum_width = width[2];
    s->min_height = height[0], s->max_height = height[1], s->sum_height = height[2];
    return read_sides(s, &at, err);
}
