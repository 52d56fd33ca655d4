/* JSON Lines. jansson says whether a line is sound and what path and label are; the other members are then copied as
 * they are written, because a number that goes through a double and back may come out with other digits.
 */
#include <string.h>

#include "base/error.h"
#include "pack/list_read.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* p is at a member of an object that is known to be sound. Returns the ',' or '}' behind it. */
static const char *member_end(const char *p)
{
    int depth = 0;
    bool quoted = false;
    for (;; p++) {
        if (quoted) {
            if (*p == '\\')
                p++;
            else if (*p == '"')
                quoted = false;
        } else if (*p == '"') {
            quoted = true;
        } else if (depth == 0 && (*p == ',' || *p == '}')) {
            return p;
        } else if (*p == '{' || *p == '[') {
            depth++;
        } else if (*p == '}' || *p == ']') {
            depth--;
        }
    }
}

/* The line's members and jansson's run in step: both keep the order, and repeated names were refused. */
static spk_status copy_others(spk_list *l, const char *p, spk_error *err)
{
    l->text.len = 0;
    p = strchr(p, '{');
    for (void *it = json_object_iter(l->json); it; it = json_object_iter_next(l->json, it)) {
        const char *name = json_object_iter_key(it), *start = p + 1, *end = member_end(p + 1);
        p = end;
        if (strcmp(name, "path") == 0 || strcmp(name, "label") == 0)
            continue;
        while (is_space(*start))
            start++;
        while (is_space(end[-1]))
            end--;
        SPK_TRY(spk_buf_append(&l->text, l->text.len == 0 ? "{" : ",", 1, err));
        SPK_TRY(spk_buf_append(&l->text, start, (size_t)(end - start), err));
    }
    return spk_buf_append(&l->text, "}", 2, err);
}

static spk_status take_label(const json_t *label, spk_list_row *row, spk_error *err)
{
    if (!label || json_is_null(label))
        return SPK_OK;
    if (json_is_string(label)) {
        row->label = json_string_length(label) > 0 ? SPK_LABEL_TEXT : SPK_LABEL_NONE;
        row->label_text = json_string_value(label);
        return SPK_OK;
    }
    if (!json_is_integer(label))
        return spk_error_set(err, SPK_E_FORMAT, "label is neither an integer nor a string");
    json_int_t v = json_integer_value(label);
    if (v < 0 || v > INT32_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "label %lld: not from 0 to %d", (long long)v, INT32_MAX);
    row->label = SPK_LABEL_NUMBER;
    row->label_number = (int32_t)v;
    return SPK_OK;
}

spk_status spk_list_json_row(spk_list *l, const char *record, size_t n, spk_list_row *row, spk_error *err)
{
    json_error_t e;
    json_decref(l->json);
    l->json = json_loadb(record, n, JSON_REJECT_DUPLICATES, &e);
    if (!l->json)
        return spk_error_set(err, SPK_E_FORMAT, "bad JSON: %s at column %d", e.text, e.column);
    if (!json_is_object(l->json))
        return spk_error_set(err, SPK_E_FORMAT, "not a JSON object");
    const json_t *path = json_object_get(l->json, "path"), *label = json_object_get(l->json, "label");
    if (!json_is_string(path))
        return spk_error_set(err, SPK_E_FORMAT, path ? "path is not a string" : "no member \"path\"");
    row->path = json_string_value(path);
    SPK_TRY(take_label(label, row, err));
    if (json_object_size(l->json) == 1u + (label != NULL))
        return SPK_OK;
    SPK_TRY(copy_others(l, record, err));
    row->json = (const char *)l->text.data;
    return SPK_OK;
}
