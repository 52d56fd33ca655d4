/* Names of single files: KEY.FIELD (a key has no dot), #NUMBER.FIELD, or the original path. */
#include "find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { NOT_THERE = -1 };

/* Calls fn for the shard that holds a sample of the target. */
static int with_shard_of(const target *t, uint64_t number,
                         int (*fn)(void *ctx, const spk_shard *shard, uint64_t within), void *ctx)
{
    uint64_t index, within;
    spk_shard *shard = NULL;
    spk_error err;
    spk_error_clear(&err);
    if (t->shard)
        return fn(ctx, t->shard, number);
    if (spk_dataset_locate(t->dataset, number, &index, &within, &err) < 0 ||
        spk_dataset_open_shard(t->dataset, index, &shard, &err) < 0)
        return cli_fail(&err, NULL);
    int rc = fn(ctx, shard, within);
    spk_shard_close(shard);
    return rc;
}

typedef struct field_check {
    const target *target;
    const char *name, *field; /* field "": none was named */
    int complain;
} field_check;

/* CLI_OK if the sample has the field; otherwise NOT_THERE, or a message with the fields it has. */
static int check_field(void *ctx, const spk_shard *shard, uint64_t within)
{
    const field_check *c = ctx;
    char have[512] = "", last[256] = "";
    size_t n = spk_shard_member_count(shard, within), used = 0;
    for (size_t i = 0; i < n; i++) {
        spk_member m;
        if (spk_shard_get_member(shard, within, i, &m, NULL) < 0)
            break;
        if (strcmp(m.field, c->field) == 0)
            return CLI_OK;
        snprintf(last, sizeof last, "%s", m.field);
        if (used < sizeof have)
            used += (size_t)snprintf(have + used, sizeof have - used, "%s%s", used ? ", " : "", m.field);
    }
    if (!c->complain)
        return NOT_THERE;
    if (!*c->field)
        return cli_error("%s: \"%s\": is a sample with the fields %s; name one, as in \"%s.%s\"", c->target->path,
                         c->name, have, c->name, last);
    return cli_error("%s: \"%s\": the sample \"%s\" has no field \"%s\", but %s", c->target->path, c->name,
                     spk_shard_key(shard, within), c->field, have);
}

static int by_number(const target *t, const char *name, found_member *out)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(name + 1, &end, 10);
    if (name[1] < '0' || name[1] > '9' || errno || *end != '.' || !end[1] || strlen(end + 1) >= sizeof out->field)
        return cli_error("%s: \"%s\": expected #NUMBER.FIELD, such as #0.jpg", t->path, name);
    if (number >= t->samples)
        return cli_error("%s: \"%s\": there are %llu samples, numbered from 0", t->path, name,
                         (unsigned long long)t->samples);
    out->number = number;
    snprintf(out->field, sizeof out->field, "%s", end + 1);
    return with_shard_of(t, number, check_field, &(field_check){t, name, out->field, 1});
}

/* CLI_OK, NOT_THERE, or a failure. */
static int by_key(const target *t, const char *name, found_member *out, int complain)
{
    const char *dot = strchr(name, '.');
    size_t n = dot ? (size_t)(dot - name) : strlen(name);
    char key[256];
    spk_error err;
    spk_error_clear(&err);
    if (n == 0 || n >= sizeof key || (!dot && !complain))
        return NOT_THERE;
    if (dot && (!dot[1] || strlen(dot + 1) >= sizeof out->field))
        return NOT_THERE;
    snprintf(key, sizeof key, "%.*s", (int)n, name);
    snprintf(out->field, sizeof out->field, "%s", dot ? dot + 1 : "");
    spk_status st = t->shard ? spk_shard_find(t->shard, key, &out->number, &err)
                             : spk_dataset_find(t->dataset, key, &out->number, &err);
    if (st == SPK_E_NOT_FOUND)
        return NOT_THERE;
    if (st < 0)
        return cli_fail(&err, NULL);
    return with_shard_of(t, out->number, check_field, &(field_check){t, name, out->field, complain});
}

typedef struct path_search {
    const char *path;
    found_member *out;
    int found;
} path_search;

static int search_shard(void *ctx, const spk_shard *shard, uint64_t number, uint64_t first)
{
    path_search *s = ctx;
    spk_shard_stat st;
    (void)number;
    spk_shard_get_stat(shard, &st);
    for (uint64_t i = 0; i < st.samples && !s->found; i++) {
        size_t n = spk_shard_member_count(shard, i);
        for (size_t k = 0; k < n; k++) {
            spk_member m;
            if (spk_shard_get_member(shard, i, k, &m, NULL) < 0 || !m.path || strcmp(m.path, s->path) != 0)
                continue;
            s->out->number = first + i;
            snprintf(s->out->field, sizeof s->out->field, "%s", m.field);
            s->found = 1;
            break;
        }
    }
    return s->found ? NOT_THERE : CLI_OK; /* anything but 0 ends the walk */
}

int find_member(const target *t, const char *name, found_member *out)
{
    memset(out, 0, sizeof *out);
    if (*name == '#')
        return by_number(t, name, out);
    int rc = by_key(t, name, out, 0);
    if (rc != NOT_THERE)
        return rc;
    path_search s = {.path = name, .out = out};
    rc = target_each(t, search_shard, &s);
    if (s.found)
        return CLI_OK;
    if (rc != CLI_OK)
        return rc;
    rc = by_key(t, name, out, 1); /* the sample may be there without that field: say so */
    if (rc != NOT_THERE)
        return rc;
    return cli_error("%s: \"%s\": no such file in it, neither as KEY.FIELD nor as an original path", t->path, name);
}
