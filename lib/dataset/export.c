/* Index files for other readers: the shard index of wids ("wids-shard-index-v1": url, nsamples, filesize) and
 * open_clip's sizes.json (samples by shard file name). Built as text: a million shards need no tree. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "dataset/dataset.h"

void spk_free(void *p)
{
    free(p);
}

/* text as a JSON string without its closing quote, so that more can follow; malloc'ed. */
static spk_status open_string(char **out, const char *text, spk_error *err)
{
    *out = NULL;
    if (!spk_utf8_valid(text, strlen(text)))
        return spk_error_set(err, SPK_E_INVALID, "URL prefix \"%s\" is not UTF-8", text);
    json_t *value = json_string(text);
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    json_decref(value);
    if (!quoted)
        return spk_error_nomem(err, strlen(text) + 3);
    quoted[strlen(quoted) - 1] = '\0';
    *out = quoted;
    return SPK_OK;
}

/* Paths of shards need no escapes: the table's rules allow [A-Za-z0-9_./-] only. */
static spk_status write_wids(const spk_catalog *c, const char *prefix, spk_buf *out, spk_error *err)
{
    char *open = NULL;
    size_t n = prefix ? strlen(prefix) : 0;
    const char *slash = n > 0 && prefix[n - 1] != '/' ? "/" : "";
    SPK_TRY(open_string(&open, prefix ? prefix : "", err));
    spk_status status = spk_buf_printf(
        out, err, "{\n  \"__kind__\": \"wids-shard-index-v1\",\n  \"wids_version\": 1,\n  \"shardlist\": [");
    for (size_t i = 0; i < c->n && status == SPK_OK; i++)
        status = spk_buf_printf(
            out, err, "%s\n    {\"url\": %s%s%s\", \"nsamples\": %" PRIu32 ", \"filesize\": %" PRIu64 "}", i ? "," : "",
            open, slash, spk_catalog_path(c, i), c->rows[i].samples, c->rows[i].bytes);
    if (status == SPK_OK)
        status = spk_buf_printf(out, err, "%s]\n}\n", c->n ? "\n  " : "");
    free(open);
    return status;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static spk_status check_base_names(const spk_catalog *c, spk_error *err)
{
    const char **names = calloc(c->n + 1, sizeof *names);
    if (!names)
        return spk_error_nomem(err, c->n * sizeof *names);
    for (size_t i = 0; i < c->n; i++)
        names[i] = base_name(spk_catalog_path(c, i));
    qsort(names, c->n, sizeof *names, compare_names);
    spk_status status = SPK_OK;
    for (size_t i = 1; i < c->n && status == SPK_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = spk_error_set(err, SPK_E_UNSUPPORTED, "two shards are named %s; sizes.json tells shards by name",
                                   names[i]);
    free(names);
    return status;
}

static spk_status write_sizes(const spk_catalog *c, spk_buf *out, spk_error *err)
{
    SPK_TRY(check_base_names(c, err));
    SPK_TRY(spk_buf_printf(out, err, "{"));
    for (size_t i = 0; i < c->n; i++)
        SPK_TRY(spk_buf_printf(out, err, "%s\n  \"%s\": %" PRIu32, i ? "," : "", base_name(spk_catalog_path(c, i)),
                               c->rows[i].samples));
    return spk_buf_printf(out, err, "%s}\n", c->n ? "\n" : "");
}

spk_status spk_dataset_export(const spk_dataset *d, const char *format, const char *url_prefix, char **text,
                              spk_error *err)
{
    spk_buf out = {0};
    spk_status status = SPK_OK;
    *text = NULL;
    if (strcmp(format, "wids") == 0)
        status = write_wids(&d->catalog, url_prefix, &out, err);
    else if (strcmp(format, "sizes") == 0)
        status = write_sizes(&d->catalog, &out, err);
    else if (strcmp(format, "sha256") == 0)
        status = spk_export_sha256(d, &out, err);
    else
        status = spk_error_set(err, SPK_E_INVALID, "export format \"%s\" is none of \"wids\", \"sizes\", \"sha256\"",
                               format);
    if (status == SPK_OK)
        status = spk_buf_terminate(&out, err);
    if (status < 0)
        spk_buf_free(&out);
    else
        *text = (char *)out.data;
    return status;
}
