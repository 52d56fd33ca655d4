/* A short list searched from front to back, the shard used last in front: a worker's lanes need few shards at a time.
 */
#include "load/shard_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dataset/dataset.h"

#define OPEN_MAX 4096u
#define EXPECTED_MAX 64u

typedef struct cache_entry {
    uint64_t number;
    spk_shard *shard;
} cache_entry;

/* A remote shard whose tail is on its way. */
typedef struct expected_source {
    uint64_t number;
    spk_source *source;
} expected_source;

struct spk_shard_cache {
    const uint8_t *base;
    const spk_shm_head *head;
    const spk_load_spec *spec;
    const uint64_t *first_sample;
    const uint32_t *chosen; /* NULL: all */
    const spk_shm_shard *rows;
    const char *names;
    spk_net *net;  /* of a dataset by URL */
    uint64_t hint; /* shard located last */
    cache_entry *entries;
    uint32_t n, max;
    expected_source expected[EXPECTED_MAX];
    uint32_t expected_n;
};

static spk_status open_net(spk_shard_cache *c, uint8_t *base, const char *net, spk_error *err)
{
    if (!net)
        return spk_error_set(err, SPK_E_STATE, "a dataset by URL without its mirrors");
    return spk_net_unpack(&c->net, net, (size_t)c->head->net_bytes, (spk_net_shared *)(base + c->head->net_shared),
                          err);
}

spk_status spk_shard_cache_new(spk_shard_cache **out, const uint8_t *base, const char *net, uint32_t max_open,
                               spk_error *err)
{
    *out = NULL;
    spk_shard_cache *c = calloc(1, sizeof *c);
    cache_entry *entries = calloc(OPEN_MAX, sizeof *entries);
    if (!c || !entries) {
        free(c);
        free(entries);
        return spk_error_nomem(err, OPEN_MAX * sizeof *entries);
    }
    c->entries = entries;
    c->base = base;
    c->head = (const spk_shm_head *)base;
    c->spec = (const spk_load_spec *)(base + c->head->spec);
    c->first_sample = (const uint64_t *)(base + c->head->first_sample);
    c->chosen = c->head->chosen ? (const uint32_t *)(base + c->head->chosen) : NULL;
    c->rows = (const spk_shm_shard *)(base + c->head->shards);
    c->names = (const char *)(base + c->head->names);
    spk_shard_cache_resize(c, max_open);
    spk_status status = c->head->net_bytes > 0 ? open_net(c, (uint8_t *)(uintptr_t)base, net, err) : SPK_OK;
    if (status < 0)
        spk_shard_cache_free(c);
    else
        *out = c;
    return status;
}

void spk_shard_cache_free(spk_shard_cache *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n; i++)
        spk_shard_close(c->entries[i].shard);
    spk_shard_cache_forget(c);
    spk_net_free(c->net);
    free(c->entries);
    free(c);
}

void spk_shard_cache_resize(spk_shard_cache *c, uint32_t max_open)
{
    if (c->net && max_open <= OPEN_MAX / 2)
        max_open *= 2; /* a lane's next shard is opened while it reads the one before */
    c->max = max_open < 1 ? 1 : max_open < OPEN_MAX ? max_open : OPEN_MAX;
    while (c->n > c->max)
        spk_shard_close(c->entries[--c->n].shard);
}

static spk_status open_remote(spk_shard_cache *c, uint64_t number, spk_source **out, spk_error *err)
{
    const spk_shm_shard *row = &c->rows[number];
    const spk_net_object object = {.size = row->bytes, .units = row->frames + 1, .digest = row->tail_sha256};
    return spk_net_open(c->net, c->names + row->name, &object, out, err);
}

static spk_source *remove_expected(spk_shard_cache *c, uint32_t i)
{
    spk_source *source = c->expected[i].source;
    c->expected_n--;
    memmove(c->expected + i, c->expected + i + 1, (c->expected_n - i) * sizeof *c->expected);
    return source;
}

static spk_source *take_expected(spk_shard_cache *c, uint64_t number)
{
    for (uint32_t i = 0; i < c->expected_n; i++)
        if (c->expected[i].number == number)
            return remove_expected(c, i);
    return NULL;
}

void spk_shard_cache_expect(spk_shard_cache *c, uint64_t number)
{
    spk_source *source = NULL;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->entries[i].number == number)
            return;
    for (uint32_t i = 0; i < c->expected_n; i++)
        if (c->expected[i].number == number)
            return;
    if (c->expected_n == EXPECTED_MAX || open_remote(c, number, &source, NULL) < 0)
        return; /* it is asked for when it is needed */
    c->expected[c->expected_n++] = (expected_source){number, source};
    spk_source_ahead(source, c->rows[number].index_offset, c->rows[number].bytes, c->rows[number].bytes, 0);
}

uint64_t spk_shard_cache_end(const spk_shard_cache *c, uint64_t number)
{
    return c->first_sample[number + 1];
}

uint64_t spk_shard_cache_index(const spk_shard_cache *c, uint64_t shard, uint64_t within)
{
    return c->rows[shard].first + within;
}

bool spk_shard_cache_has_all(const spk_shard_cache *c)
{
    return !c->chosen;
}

void spk_shard_cache_forget(spk_shard_cache *c)
{
    while (c->expected_n > 0)
        spk_source_close(c->expected[--c->expected_n].source);
}

uint32_t spk_shard_cache_max(const spk_shard_cache *c)
{
    return c->max;
}

double spk_shard_cache_sample_bytes(const spk_shard_cache *c)
{
    double sum = 0, frames = 0;
    for (uint64_t i = 0; i < c->spec->shards; i++) {
        sum += (double)c->rows[i].bytes;
        frames += (double)c->rows[i].frames;
    }
    if (c->spec->samples == 0)
        return 0;
    return sum / ((double)c->spec->samples > frames ? (double)c->spec->samples : frames); /* few chosen: a frame each */
}

spk_net *spk_shard_cache_net(const spk_shard_cache *c)
{
    return c->net;
}

static spk_status open_shard(spk_shard_cache *c, uint64_t number, spk_shard **out, spk_error *err)
{
    const spk_shm_shard *row = &c->rows[number];
    const spk_shard_options options = {.size = sizeof options, .verify_full = c->spec->verify_full != 0};
    spk_shard_expect expect = {.samples = row->samples,
                               .frames = row->frames,
                               .bytes = row->bytes,
                               .tar_bytes = row->tar_bytes,
                               .index_offset = row->index_offset};
    spk_source *source = NULL;
    char *path = NULL;
    memcpy(expect.tail_sha256, row->tail_sha256, sizeof expect.tail_sha256);
    spk_status status = SPK_OK;
    if (c->net) {
        source = take_expected(c, number);
        if (!source)
            status = open_remote(c, number, &source, err);
    } else {
        SPK_TRY(spk_path_join(&path, c->names + c->head->folder, c->names + row->name, err));
        status = spk_source_open(&source, path, err);
        free(path);
    }
    if (status < 0)
        return status;
    return spk_shard_open_source(out, source, &expect, &options, err);
}

static uint32_t find(const spk_shard_cache *c, uint64_t number)
{
    uint32_t at = 0;
    while (at < c->n && c->entries[at].number != number)
        at++;
    return at;
}

static void to_front(spk_shard_cache *c, uint32_t at, cache_entry entry)
{
    memmove(c->entries + 1, c->entries, at * sizeof *c->entries);
    c->entries[0] = entry;
}

void spk_shard_cache_touch(spk_shard_cache *c, uint64_t number)
{
    uint32_t at = find(c, number);
    if (at < c->n)
        to_front(c, at, c->entries[at]);
}

spk_status spk_shard_cache_get(spk_shard_cache *c, uint64_t number, const spk_shard **out, spk_error *err)
{
    cache_entry found = {number, NULL};
    uint32_t at = find(c, number);
    if (at < c->n) {
        found = c->entries[at];
    } else {
        if (c->n == c->max) /* first, so that its descriptor is free for the next */
            spk_shard_close(c->entries[--c->n].shard);
        SPK_TRY(open_shard(c, number, &found.shard, err));
        at = c->n++;
    }
    to_front(c, at, found);
    *out = found.shard;
    return SPK_OK;
}

void spk_shard_cache_locate(spk_shard_cache *c, uint64_t sample, uint64_t *shard, uint64_t *within)
{
    const uint64_t *first = c->first_sample;
    if (c->hint >= c->spec->shards || sample < first[c->hint] || sample >= first[c->hint + 1]) {
        uint64_t low = 0, high = c->spec->shards; /* first[low] <= sample < first[high] */
        while (high - low > 1) {
            uint64_t middle = low + (high - low) / 2;
            if (first[middle] <= sample)
                low = middle;
            else
                high = middle;
        }
        c->hint = low;
    }
    *shard = c->hint;
    *within = c->chosen ? c->chosen[sample] : sample - first[c->hint];
}

const char *spk_shard_cache_name(const spk_shard_cache *c, uint64_t number)
{
    const char *path = c->names + c->rows[number].name, *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
