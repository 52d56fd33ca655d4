/* The samples of one frame while it is built. What is added is checked by the rules that the reader applies, so that a
 * shard which was written can be read. Confined. */
#include "shard/index_part.h"

#include <stdlib.h>
#include <string.h>

#include "shard/tar.h"

const char *spk_path_problem(const char *path, size_t len)
{
    if (len == 0)
        return "is empty";
    if (len > SPK_PATH_MAX)
        return "is longer than 65535 bytes";
    if (path[0] == '/')
        return "is absolute";
    size_t start = 0;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && path[i] == '\0')
            return "holds a zero byte";
        if (i < len && path[i] != '/')
            continue;
        if (i - start == 2 && path[start] == '.' && path[start + 1] == '.')
            return "leaves its folder";
        start = i + 1;
    }
    return NULL;
}

spk_status spk_index_part_new(spk_index_part **out, spk_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? SPK_OK : spk_error_nomem(err, sizeof **out);
}

void spk_index_part_reset(spk_index_part *part)
{
    spk_fields_reset(&part->fields);
    part->text.len = 0;
    part->samples_n = 0;
    part->members_n = 0;
}

void spk_index_part_free(spk_index_part *part)
{
    if (!part)
        return;
    spk_fields_free(&part->fields);
    spk_buf_free(&part->text);
    free(part->samples);
    free(part->members);
    free(part);
}

uint64_t spk_index_part_samples(const spk_index_part *part)
{
    return part->samples_n;
}

/* The sample begun last must have got a member before the next one begins or the frame ends. */
static spk_status check_last(const spk_index_part *part, spk_error *err)
{
    if (part->samples_n > 0 && part->samples[part->samples_n - 1].members == 0)
        return spk_error_set(err, SPK_E_STATE, "sample \"%s\" has no members",
                             (const char *)part->text.data + part->samples[part->samples_n - 1].key);
    return SPK_OK;
}

spk_status spk_index_part_sample(spk_index_part *part, const char *key, spk_error *err)
{
    const char *problem = spk_key_problem(key, strlen(key));
    if (problem)
        return spk_error_set(err, SPK_E_INVALID, "key \"%s\" %s", key, problem);
    SPK_TRY(check_last(part, err));
    SPK_TRY(spk_grow(&part->samples, &part->samples_cap, part->samples_n + 1, sizeof *part->samples, err));
    spk_part_sample s = {part->text.len, part->members_n, 0};
    SPK_TRY(spk_buf_append(&part->text, key, strlen(key) + 1, err));
    part->samples[part->samples_n++] = s;
    return SPK_OK;
}

static spk_origin origin_of(const char *key, const char *field, const char *path)
{
    if (!path)
        return SPK_ORIGIN_MADE;
    size_t k = strlen(key);
    if (strncmp(path, key, k) == 0 && path[k] == '.' && strcmp(path + k + 1, field) == 0)
        return SPK_ORIGIN_NAME;
    return SPK_ORIGIN_PATH;
}

spk_status spk_index_part_member(spk_index_part *part, const char *field, const char *encoding, const char *path,
                                 uint64_t size, uint64_t original, spk_error *err)
{
    if (part->samples_n == 0)
        return spk_error_set(err, SPK_E_STATE, "a member before its sample");
    spk_part_sample *s = &part->samples[part->samples_n - 1];
    const char *problem = spk_field_problem(field, strlen(field));
    if (problem)
        return spk_error_set(err, SPK_E_INVALID, "field \"%s\" %s", field, problem);
    problem = spk_encoding_problem(encoding, strlen(encoding));
    if (problem)
        return spk_error_set(err, SPK_E_INVALID, "encoding \"%s\" %s", encoding, problem);
    bool as_it_is = strcmp(encoding, SPK_IDENTITY) == 0;
    if (as_it_is ? original != size : original > SPK_ORIGINAL_MAX)
        return spk_error_set(err, SPK_E_INVALID, "field \"%s\" in the encoding \"%s\": %llu bytes for %llu", field,
                             encoding, (unsigned long long)size, (unsigned long long)original);
    problem = path ? spk_path_problem(path, strlen(path)) : NULL;
    if (problem)
        return spk_error_set(err, SPK_E_INVALID, "original path \"%.200s\" %s", path, problem);
    if (s->members == SPK_MEMBERS_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "a sample holds at most %u members", SPK_MEMBERS_MAX);
    if (s->members > 0) {
        const char *before = part->fields.items[part->members[part->members_n - 1].field].name;
        if (strcmp(before, field) >= 0)
            return spk_error_set(err, SPK_E_INVALID, "field \"%s\" after \"%s\": members are ordered by field", field,
                                 before);
    }
    spk_part_member m = {size, original, part->text.len, 0, SPK_ORIGIN_MADE};
    m.origin = origin_of((const char *)part->text.data + s->key, field, path);
    SPK_TRY(spk_fields_number(&part->fields, field, encoding, &m.field, err));
    SPK_TRY(spk_grow(&part->members, &part->members_cap, part->members_n + 1, sizeof *part->members, err));
    if (m.origin == SPK_ORIGIN_PATH)
        SPK_TRY(spk_buf_append(&part->text, path, strlen(path) + 1, err));
    part->members[part->members_n++] = m;
    s->members++;
    return SPK_OK;
}
