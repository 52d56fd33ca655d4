/* The sample list: fields, then samples in the order of the tar. Offsets are not stored, they follow from the sizes, so
 * the list is right exactly if it fills each frame. Confined. */
#include "shard/index_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "shard/index_part.h"
#include "shard/tar.h"

struct parser {
    spk_index *x;
    spk_cursor c;
    const uint8_t *list;
    spk_buf strings;
    size_t members_cap;
    size_t fields_used; /* fields are numbered by first use */
    uint64_t offset;    /* in the tar, of the next header */
    uint64_t frame_end; /* of the frame's members, without the end marker */
};

static unsigned long long at(const struct parser *s)
{
    return (unsigned long long)(s->c.p - s->list);
}

static spk_status cut(const struct parser *s, spk_error *err)
{
    return spk_error_set(err, SPK_E_FORMAT, "byte %llu: cut short, or a number in a wrong form", at(s));
}

/* A length of at most max, then that many bytes. */
static spk_status take_text(struct parser *s, uint64_t max, const char **text, size_t *len, spk_error *err)
{
    uint64_t n = 0;
    const uint8_t *p = NULL;
    if (!spk_cursor_varint(&s->c, &n))
        return cut(s, err);
    if (n > max)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: name of %llu bytes, at most %llu are allowed", at(s),
                             (unsigned long long)n, (unsigned long long)max);
    if (!spk_cursor_bytes(&s->c, n, &p))
        return cut(s, err);
    *text = (const char *)p;
    *len = (size_t)n;
    return SPK_OK;
}

static spk_status parse_field(struct parser *s, spk_index_field *out, spk_error *err)
{
    const char *name = NULL, *encoding = NULL;
    size_t name_len = 0, encoding_len = 0;
    SPK_TRY(take_text(s, SPK_FIELD_MAX, &name, &name_len, err));
    const char *problem = spk_field_problem(name, name_len);
    if (problem)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: field \"%.*s\" %s", at(s), (int)name_len, name, problem);
    SPK_TRY(take_text(s, SPK_ENCODING_MAX, &encoding, &encoding_len, err));
    problem = spk_encoding_problem(encoding, encoding_len);
    if (problem)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: encoding \"%.*s\" %s", at(s), (int)encoding_len, encoding,
                             problem);
    out->name = strndup(name, name_len);
    out->encoding = strndup(encoding, encoding_len);
    return out->name && out->encoding ? SPK_OK : spk_error_nomem(err, name_len + encoding_len);
}

static int by_name(const void *a, const void *b)
{
    const spk_index_field *f = *(const spk_index_field *const *)a, *g = *(const spk_index_field *const *)b;
    int r = strcmp(f->name, g->name);
    return r != 0 ? r : strcmp(f->encoding, g->encoding);
}

static spk_status check_fields_differ(const spk_index *x, spk_error *err)
{
    const spk_index_field **sorted = malloc((x->fields_n + 1) * sizeof *sorted);
    if (!sorted)
        return spk_error_nomem(err, x->fields_n * sizeof *sorted);
    for (size_t i = 0; i < x->fields_n; i++)
        sorted[i] = &x->fields[i];
    qsort(sorted, x->fields_n, sizeof *sorted, by_name);
    spk_status st = SPK_OK;
    for (size_t i = 1; i < x->fields_n && st == SPK_OK; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            st = spk_error_set(err, SPK_E_FORMAT, "field \"%s\" is listed twice", sorted[i]->name);
    free(sorted);
    return st;
}

static spk_status parse_fields(struct parser *s, spk_error *err)
{
    uint64_t n = 0;
    if (!spk_cursor_varint(&s->c, &n))
        return cut(s, err);
    if (n == 0 || n > spk_cursor_left(&s->c) / 4) /* two lengths and a byte of each name */
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: %llu fields cannot stand in %zu bytes", at(s),
                             (unsigned long long)n, spk_cursor_left(&s->c));
    s->x->fields = calloc((size_t)n, sizeof *s->x->fields);
    if (!s->x->fields)
        return spk_error_nomem(err, (size_t)n * sizeof *s->x->fields);
    while (s->x->fields_n < n) {
        s->x->fields_n++; /* first, so that a half made one is freed */
        SPK_TRY(parse_field(s, &s->x->fields[s->x->fields_n - 1], err));
    }
    return check_fields_differ(s->x, err);
}

/* The original path: none, the member's name, or the bytes that follow. */
static spk_status parse_origin(struct parser *s, const spk_index_sample *sample, spk_index_member *m, spk_error *err)
{
    uint64_t p = 0;
    const uint8_t *bytes = NULL;
    if (!spk_cursor_varint(&s->c, &p))
        return cut(s, err);
    m->path = s->strings.len;
    m->path_len = 0;
    if (p == SPK_ORIGIN_MADE)
        return SPK_OK;
    if (p == SPK_ORIGIN_NAME) {
        const char *field = s->x->fields[m->field].name;
        size_t n = strlen(field) + 1;
        SPK_TRY(spk_buf_reserve(&s->strings, sample->key_len + 1 + n, err));
        uint8_t *to = s->strings.data + s->strings.len;
        memcpy(to, s->strings.data + sample->key, sample->key_len);
        to[sample->key_len] = '.';
        memcpy(to + sample->key_len + 1, field, n);
        m->path_len = (uint32_t)(sample->key_len + n);
        s->strings.len += m->path_len + 1;
        return SPK_OK;
    }
    if (p - 1 > SPK_PATH_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: original path of %llu bytes, at most %u are allowed", at(s),
                             (unsigned long long)(p - 1), SPK_PATH_MAX);
    if (!spk_cursor_bytes(&s->c, p - 1, &bytes))
        return cut(s, err);
    m->path_len = (uint32_t)(p - 1);
    const char *problem = spk_path_problem((const char *)bytes, m->path_len);
    if (problem)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: original path \"%.*s\" %s", at(s),
                             (int)(m->path_len < 200 ? m->path_len : 200), (const char *)bytes, problem);
    SPK_TRY(spk_buf_append(&s->strings, bytes, m->path_len, err));
    return spk_buf_append(&s->strings, "", 1, err);
}

/* How large the field is that was stored in an encoding. */
static spk_status parse_original(struct parser *s, spk_index_member *m, spk_error *err)
{
    m->original = m->size;
    if (strcmp(s->x->fields[m->field].encoding, SPK_IDENTITY) == 0)
        return SPK_OK;
    if (!spk_cursor_varint(&s->c, &m->original))
        return cut(s, err);
    if (m->original > SPK_ORIGINAL_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: stands for %llu bytes, at most %u are allowed", at(s),
                             (unsigned long long)m->original, SPK_ORIGINAL_MAX);
    return SPK_OK;
}

static spk_status parse_member(struct parser *s, const spk_index_sample *sample, spk_error *err)
{
    spk_index *x = s->x;
    spk_index_member m = {0};
    uint64_t field = 0;
    if (!spk_cursor_varint(&s->c, &field) || !spk_cursor_varint(&s->c, &m.size))
        return cut(s, err);
    if (field >= x->fields_n || field > s->fields_used)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: field number %llu is not one of %zu in order of first use",
                             at(s), (unsigned long long)field, x->fields_n);
    s->fields_used += field == s->fields_used;
    m.field = (uint32_t)field;
    if (x->members_n > sample->first &&
        strcmp(x->fields[x->members[x->members_n - 1].field].name, x->fields[field].name) >= 0)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: field \"%s\" after \"%s\"", at(s), x->fields[field].name,
                             x->fields[x->members[x->members_n - 1].field].name);
    uint64_t left = s->frame_end - s->offset;
    if (m.size > left || spk_tar_member_bytes(m.size) > left)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: member of %llu bytes, its frame has %llu left", at(s),
                             (unsigned long long)m.size, (unsigned long long)left);
    SPK_TRY(parse_original(s, &m, err));
    m.offset = s->offset + SPK_TAR_BLOCK;
    s->offset += spk_tar_member_bytes(m.size);
    SPK_TRY(parse_origin(s, sample, &m, err));
    SPK_TRY(spk_grow(&x->members, &s->members_cap, (size_t)x->members_n + 1, sizeof *x->members, err));
    x->members[x->members_n++] = m;
    return SPK_OK;
}

static spk_status parse_sample(struct parser *s, spk_index_sample *out, spk_error *err)
{
    const char *key = NULL;
    size_t len = 0;
    uint64_t members = 0;
    SPK_TRY(take_text(s, SPK_KEY_MAX, &key, &len, err));
    const char *problem = spk_key_problem(key, len);
    if (problem)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: key \"%.*s\" %s", at(s), (int)len, key, problem);
    *out = (spk_index_sample){s->strings.len, s->x->members_n, 0, (uint32_t)len};
    SPK_TRY(spk_buf_append(&s->strings, key, len, err));
    SPK_TRY(spk_buf_append(&s->strings, "", 1, err));
    if (!spk_cursor_varint(&s->c, &members))
        return cut(s, err);
    if (members == 0 || members > SPK_MEMBERS_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: sample \"%.*s\" of %llu members, 1 to %u are allowed",
                             at(s), (int)len, key, (unsigned long long)members, SPK_MEMBERS_MAX);
    out->members = (uint32_t)members;
    for (uint64_t i = 0; i < members; i++) {
        spk_status st = parse_member(s, out, err);
        if (st < 0) {
            spk_error_prefix(err, "sample \"%.*s\"", (int)len, key);
            return st;
        }
    }
    return SPK_OK;
}

static spk_status parse_frame(struct parser *s, uint64_t f, uint32_t content, spk_error *err)
{
    spk_index *x = s->x;
    uint32_t end_marker = f + 1 == x->frames ? SPK_TAR_END : 0;
    if (content < end_marker + SPK_TAR_BLOCK || content % SPK_TAR_BLOCK != 0)
        return spk_error_set(err, SPK_E_FORMAT, "frame %llu: content of %u bytes is no run of tar members",
                             (unsigned long long)f, content);
    s->frame_end = s->offset + (content - end_marker);
    for (uint64_t i = x->frame_first[f]; i < x->frame_first[f + 1]; i++)
        SPK_TRY(parse_sample(s, &x->samples[i], err));
    if (s->offset != s->frame_end)
        return spk_error_set(err, SPK_E_FORMAT, "frame %llu: its samples end %llu bytes before its content",
                             (unsigned long long)f, (unsigned long long)(s->frame_end - s->offset));
    s->offset += end_marker;
    return SPK_OK;
}

static spk_status parse_all(struct parser *s, const uint32_t *contents, spk_error *err)
{
    spk_index *x = s->x;
    SPK_TRY(parse_fields(s, err));
    x->samples = malloc((size_t)x->samples_n * sizeof *x->samples);
    if (!x->samples)
        return spk_error_nomem(err, (size_t)x->samples_n * sizeof *x->samples);
    for (uint64_t f = 0; f < x->frames; f++)
        SPK_TRY(parse_frame(s, f, contents[f], err));
    if (spk_cursor_left(&s->c) > 0)
        return spk_error_set(err, SPK_E_FORMAT, "byte %llu: %zu bytes behind the last sample", at(s),
                             spk_cursor_left(&s->c));
    if (s->fields_used != x->fields_n)
        return spk_error_set(err, SPK_E_FORMAT, "%zu of %zu fields are not used", x->fields_n - s->fields_used,
                             x->fields_n);
    return SPK_OK;
}

spk_status spk_index_list_parse(spk_index *x, const uint8_t *list, size_t bytes, const uint32_t *contents,
                                spk_error *err)
{
    struct parser s = {.x = x, .c = {list, list + bytes}, .list = list};
    spk_status st = parse_all(&s, contents, err);
    x->strings = (char *)s.strings.data; /* spk_index_free releases it, also after an error */
    return st;
}
