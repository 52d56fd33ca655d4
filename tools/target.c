/* A dataset or a shard, as named on the command line. */
#include "target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

static int has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

/* A file that is not called *.json is a shard; what is not there is one if it is called like one. */
static int looks_like_shard(const char *path)
{
    struct stat st;
    if (strncmp(path, "file://", 7) == 0)
        path += 7;
    if (strstr(path, "://")) {
        size_t n = strcspn(path, "?"), m = strlen(".tar.zst");
        return n >= m && strncmp(path + n - m, ".tar.zst", m) == 0;
    }
    if (stat(path, &st) == 0)
        return S_ISREG(st.st_mode) && !has_suffix(path, ".json");
    return has_suffix(path, ".tar.zst");
}

int target_open_dataset(target *t, const char *path, const remote_values *remote)
{
    spk_error err;
    spk_dataset_options options = remote_options(remote);
    spk_dataset_stat st;
    memset(t, 0, sizeof *t);
    t->path = path;
    spk_error_clear(&err);
    if (spk_dataset_open(&t->dataset, path, &options, &err) < 0)
        return cli_fail(&err, NULL);
    spk_dataset_get_stat(t->dataset, &st);
    t->samples = st.samples;
    t->shards = st.shards;
    t->frames = st.frames;
    t->bytes = st.bytes;
    t->tar_bytes = st.tar_bytes;
    return CLI_OK;
}

int target_open(target *t, const char *path, const remote_values *remote)
{
    spk_error err;
    const spk_dataset_options from = remote_options(remote);
    spk_shard_options options = {
        .size = sizeof options, .deadline = from.deadline, .on_wait = from.on_wait, .user = from.user};
    spk_shard_stat st;
    if (!looks_like_shard(path))
        return target_open_dataset(t, path, remote);
    memset(t, 0, sizeof *t);
    t->path = path;
    if (from.mirror_count > 0)
        return cli_error("%s: mirrors are for a dataset that is opened by URL", path);
    spk_error_clear(&err);
    if (spk_shard_open(&t->shard, path, &options, &err) < 0)
        return cli_fail(&err, NULL);
    spk_shard_get_stat(t->shard, &st);
    t->samples = st.samples;
    t->shards = 1;
    t->frames = st.frames;
    t->bytes = st.bytes;
    t->tar_bytes = st.tar_bytes;
    return CLI_OK;
}

void target_close(target *t)
{
    spk_dataset_close(t->dataset);
    spk_shard_close(t->shard);
    t->dataset = NULL;
    t->shard = NULL;
}

int target_each(const target *t, target_fn fn, void *ctx)
{
    int rc = CLI_OK;
    if (t->shard)
        return fn(ctx, t->shard, 0, 0);
    for (uint64_t i = 0; i < t->shards && rc == CLI_OK; i++) {
        spk_shard *shard = NULL;
        spk_shard_row row;
        spk_error err;
        spk_error_clear(&err);
        if (spk_dataset_get_shard(t->dataset, i, &row, &err) < 0 ||
            spk_dataset_open_shard(t->dataset, i, &shard, &err) < 0)
            return cli_fail(&err, NULL);
        rc = fn(ctx, shard, i, row.first_sample);
        spk_shard_close(shard);
    }
    return rc;
}

int target_reader(const target *t, uint64_t first, spk_reader **out)
{
    spk_error err;
    spk_error_clear(&err);
    spk_status st =
        t->shard ? spk_reader_open_shard(out, t->shard, first, &err) : spk_reader_open(out, t->dataset, first, &err);
    return st < 0 ? cli_fail(&err, NULL) : CLI_OK;
}

const char *target_shard_path(const target *t, uint64_t number)
{
    spk_shard_row row;
    if (t->shard)
        return t->path;
    return spk_dataset_get_shard(t->dataset, number, &row, NULL) < 0 ? "" : row.path;
}
