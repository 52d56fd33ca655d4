/* Typed access to parsed JSON. Pure functions over borrowed values. */
#include "dataset/manifest_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dataset/table.h"

static const char *type_name(json_type type)
{
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction or exponent";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

const char *spk_json_type_name(const json_t *value)
{
    return type_name(json_typeof(value));
}

spk_status spk_json_get(const spk_json_at *at, const char *key, json_type type, const json_t **out, spk_error *err)
{
    const json_t *value = json_object_get(at->object, key);
    if (!value)
        return spk_error_set(err, SPK_E_FORMAT, "key \"%s%s\" is missing", at->where, key);
    if (json_typeof(value) != type)
        return spk_error_set(err, SPK_E_FORMAT, "key \"%s%s\" is %s, not %s", at->where, key, spk_json_type_name(value),
                             type_name(type));
    *out = value;
    return SPK_OK;
}

spk_status spk_json_integer(const json_t *value, const char *name, uint64_t *out, spk_error *err)
{
    if (!json_is_integer(value))
        return spk_error_set(err, SPK_E_FORMAT, "%s is %s, not an integer", name, spk_json_type_name(value));
    json_int_t v = json_integer_value(value);
    if (v < 0 || (uint64_t)v > SPK_NUMBER_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "%s is %" JSON_INTEGER_FORMAT ", not from 0 to %" PRIu64, name, v,
                             SPK_NUMBER_MAX);
    *out = (uint64_t)v;
    return SPK_OK;
}

spk_status spk_json_number(const spk_json_at *at, const char *key, uint64_t *out, spk_error *err)
{
    char name[128];
    const json_t *value = json_object_get(at->object, key);
    if (!value)
        return spk_error_set(err, SPK_E_FORMAT, "key \"%s%s\" is missing", at->where, key);
    snprintf(name, sizeof name, "key \"%s%s\"", at->where, key);
    return spk_json_integer(value, name, out, err);
}

bool spk_text_has_control(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
            return true;
    return false;
}

spk_status spk_json_text(const spk_json_at *at, const char *key, const char **out, spk_error *err)
{
    const json_t *value = NULL;
    SPK_TRY(spk_json_get(at, key, JSON_STRING, &value, err));
    if (spk_text_has_control(json_string_value(value), json_string_length(value)))
        return spk_error_set(err, SPK_E_FORMAT, "key \"%s%s\" has a control character", at->where, key);
    *out = json_string_value(value);
    return SPK_OK;
}

spk_status spk_text_copy(char **out, const char *text, spk_error *err)
{
    *out = strdup(text);
    return *out ? SPK_OK : spk_error_nomem(err, strlen(text) + 1);
}

spk_status spk_json_copy(const spk_json_at *at, const char *key, char **out, spk_error *err)
{
    const char *text = NULL;
    SPK_TRY(spk_json_text(at, key, &text, err));
    return spk_text_copy(out, text, err);
}
