/* The handle of remote places: options, mirrors, and both as text for a worker process. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "io/cache.h"
#include "io/net_impl.h"

#define DEADLINE_SECONDS 60.0
#define DEADLINE_MAX 1e6
#define AHEAD ((uint64_t)4 << 20)
#define PACK_MAX ((size_t)1 << 20)

static bool copy(char **out, const char *text)
{
    *out = text && *text ? strdup(text) : NULL;
    return *out || !text || !*text;
}

/* 500000, 64k, 20G, 20GiB, 20GB: powers of 1024, as the command takes them. */
static spk_status parse_bytes(const char *text, uint64_t *out, spk_error *err)
{
    static const char units[] = "kMGT";
    char *end = NULL;
    unsigned long long n = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    bool ends = unit ? !end[1] || strcmp(end + 1, "B") == 0 || strcmp(end + 1, "iB") == 0 : !*end;
    bool good = end != text && *text != '-' && ends && n <= UINT64_MAX >> shift;
    if (!good)
        return spk_error_set(err, SPK_E_INVALID, "SHARDPACK_CACHE_LIMIT is \"%.40s\": must be bytes, as in 500G", text);
    *out = (uint64_t)n << shift;
    return SPK_OK;
}

/* Workers start later, perhaps from another folder: the path is made absolute. */
static spk_status open_cache(spk_net *net, spk_error *err)
{
    SPK_TRY(spk_cache_open(&net->cache, net->cache_dir, net->cache_limit, net->shared, err));
    char *path = realpath(net->cache_dir, NULL);
    if (!path)
        return spk_error_nomem(err, 4096);
    free(net->cache_dir);
    net->cache_dir = path;
    return SPK_OK;
}

static spk_status set_options(spk_net *net, const spk_net_options *o, spk_error *err)
{
    const char *given = secure_getenv("SHARDPACK_DEADLINE"), *folder = secure_getenv("SHARDPACK_CACHE_DIR");
    double deadline = o->deadline > 0 ? o->deadline : given && atof(given) > 0 ? atof(given) : DEADLINE_SECONDS;
    const char *plain = secure_getenv("SHARDPACK_PLAIN_CREDENTIALS");
    net->deadline_ns = (uint64_t)((deadline < DEADLINE_MAX ? deadline : DEADLINE_MAX) * 1e9);
    net->ahead = o->ahead ? o->ahead : AHEAD;
    net->cache_limit = o->cache_limit;
    net->on_wait = o->on_wait;
    net->on_wait_user = o->user;
    if (o->cache_dir || !folder || !*folder)
        folder = o->cache_dir;
    const char *limit = secure_getenv("SHARDPACK_CACHE_LIMIT");
    if (!folder && net->cache_limit > 0)
        return spk_error_set(err, SPK_E_INVALID,
                             "cache_limit: there is no cache: cache_dir must be given, or "
                             "SHARDPACK_CACHE_DIR be set");
    if (folder && *folder && net->cache_limit == 0 && limit && *limit)
        SPK_TRY(parse_bytes(limit, &net->cache_limit, err));
    net->plain_credentials = o->plain_credentials || (plain && strcmp(plain, "1") == 0);
    if (!copy(&net->ca_file, spk_ca_file()) || !copy(&net->cache_dir, folder))
        return spk_error_nomem(err, 4096);
    net->shared = o->shared;
    if (!net->shared) {
        net->own_shared = calloc(1, sizeof *net->own_shared);
        if (!net->own_shared)
            return spk_error_nomem(err, sizeof *net->own_shared);
        net->shared = net->own_shared;
    }
    return net->cache_dir ? open_cache(net, err) : SPK_OK;
}

spk_status spk_net_new(spk_net **out, const spk_net_options *options, spk_error *err)
{
    *out = NULL;
    spk_net *net = calloc(1, sizeof *net);
    if (!net)
        return spk_error_nomem(err, sizeof *net);
    net->random = spk_now_ns() | 1;
    spk_status st = spk_loop_init(net, err);
    if (st < 0) {
        free(net);
        return st;
    }
    st = set_options(net, options, err);
    if (st < 0)
        spk_net_free(net);
    else
        *out = net;
    return st;
}

static void free_mirror(spk_mirror *m)
{
    spk_place_free(&m->place);
    free(m->url);
    free(m->target);
    free(m->host);
}

void spk_net_free(spk_net *net)
{
    if (!net)
        return;
    spk_loop_free(net);
    for (size_t i = 0; i < net->mirrors_n; i++)
        free_mirror(&net->mirrors[i]);
    spk_s3_free(net->s3);
    spk_cache_close(net->cache);
    for (size_t i = 0; i < net->spare_n; i++)
        free(net->spare[i].data);
    free(net->own_shared);
    free(net->cache_dir);
    free(net->ca_file);
    free(net);
}

/* Takes the place; its requests go to target. */
static spk_status add(spk_net *net, spk_place *place, const char *url, spk_error *err)
{
    for (size_t i = 0; i < net->mirrors_n; i++)
        if (strcmp(net->mirrors[i].place.prefix, place->prefix) == 0 &&
            strcmp(net->mirrors[i].place.query, place->query) == 0) {
            spk_place_free(place);
            return SPK_OK;
        }
    spk_mirror m = {.place = *place, .url = strdup(url), .counts = &net->shared->mirrors[net->mirrors_n]};
    spk_status st = m.url ? SPK_OK : spk_error_nomem(err, strlen(url));
    if (st == SPK_OK && net->mirrors_n == SPK_NET_MIRRORS_MAX)
        st = spk_error_set(err, SPK_E_LIMIT, "more than %u mirrors", SPK_NET_MIRRORS_MAX);
    if (st == SPK_OK && m.place.secret && !m.place.secure && !net->plain_credentials)
        st =
            spk_error_set(err, SPK_E_INVALID,
                          "user and password would be sent unencrypted; set SHARDPACK_PLAIN_CREDENTIALS=1 to allow it");
    if (st == SPK_OK && m.place.kind == SPK_PLACE_S3)
        st = spk_s3_add(net, &m, err);
    if (st == SPK_OK && !m.target) {
        m.target = strdup(m.place.prefix);
        st = m.target ? SPK_OK : spk_error_nomem(err, strlen(url));
    }
    if (st < 0) {
        spk_error_prefix(err, "%s", m.place.prefix);
        free_mirror(&m);
        return st;
    }
    net->mirrors[net->mirrors_n++] = m;
    return SPK_OK;
}

spk_status spk_net_add_mirror(spk_net *net, const char *url, spk_error *err)
{
    spk_place place;
    SPK_TRY(spk_place_parse(&place, url, err));
    return add(net, &place, url, err);
}

spk_status spk_net_add_folder_of(spk_net *net, const char *url, char **name, spk_error *err)
{
    spk_place place;
    SPK_TRY(spk_place_parse_object(&place, name, url, err));
    /* The folder's URL as it was written, so that a worker parses the same. */
    const char *query = strchr(url, '?');
    size_t n = query ? (size_t)(query - url) : strlen(url);
    while (n > 0 && url[n - 1] == '/')
        n--;
    while (n > 0 && url[n - 1] != '/')
        n--;
    char *folder = malloc(strlen(url) + 1);
    if (!folder) {
        spk_place_free(&place);
        return spk_error_nomem(err, strlen(url));
    }
    memcpy(folder, url, n);
    strcpy(folder + n, query ? query : "");
    spk_status st = add(net, &place, folder, err);
    free(folder);
    if (st < 0) {
        free(*name);
        *name = NULL;
    }
    return st;
}

void spk_net_on_wait(spk_net *net, int (*on_wait)(void *user), void *user)
{
    spk_net_lock(net);
    net->on_wait = on_wait;
    net->on_wait_user = user;
    spk_net_unlock(net);
}

void spk_net_set_ahead(spk_net *net, uint64_t bytes)
{
    net->ahead = bytes;
}

size_t spk_net_mirrors(const spk_net *net)
{
    return net->mirrors_n;
}

const char *spk_net_mirror_name(const spk_net *net, size_t i)
{
    return i < net->mirrors_n ? net->mirrors[i].place.prefix : NULL;
}

spk_net_shared *spk_net_counts_of(const spk_net *net)
{
    return net->shared;
}

/* key=value, each with its NUL; "mirror" as often as there are mirrors. */
static spk_status pack_one(spk_buf *out, const char *key, const char *value, spk_error *err)
{
    SPK_TRY(spk_buf_append(out, key, strlen(key), err));
    SPK_TRY(spk_buf_append(out, "=", 1, err));
    return spk_buf_append(out, value, strlen(value) + 1, err);
}

static spk_status pack_number(spk_buf *out, const char *key, uint64_t value, spk_error *err)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return pack_one(out, key, text, err);
}

spk_status spk_net_pack(const spk_net *net, spk_buf *out, spk_error *err)
{
    SPK_TRY(pack_number(out, "deadline_ns", net->deadline_ns, err));
    SPK_TRY(pack_number(out, "ahead", net->ahead, err));
    SPK_TRY(pack_number(out, "plain", net->plain_credentials, err));
    if (net->cache_dir) {
        SPK_TRY(pack_one(out, "cache_dir", net->cache_dir, err));
        SPK_TRY(pack_number(out, "cache_limit", net->cache_limit, err));
    }
    for (size_t i = 0; i < net->mirrors_n; i++)
        SPK_TRY(pack_one(out, "mirror", net->mirrors[i].url, err));
    return SPK_OK;
}

spk_status spk_net_unpack(spk_net **out, const char *text, size_t n, spk_net_shared *shared, spk_error *err)
{
    const char *end = text + n;
    spk_net_options o = {.shared = shared};
    *out = NULL;
    if (n == 0 || n > PACK_MAX || text[n - 1] != '\0')
        return spk_error_set(err, SPK_E_FORMAT, "mirrors in the shared memory: %zu bytes make no sense", n);
    for (const char *p = text; p < end; p += strlen(p) + 1) {
        if (strncmp(p, "deadline_ns=", 12) == 0)
            o.deadline = (double)strtoull(p + 12, NULL, 10) / 1e9;
        else if (strncmp(p, "ahead=", 6) == 0)
            o.ahead = strtoull(p + 6, NULL, 10);
        else if (strncmp(p, "plain=", 6) == 0)
            o.plain_credentials = p[6] == '1';
        else if (strncmp(p, "cache_dir=", 10) == 0)
            o.cache_dir = p + 10;
        else if (strncmp(p, "cache_limit=", 12) == 0)
            o.cache_limit = strtoull(p + 12, NULL, 10);
    }
    spk_net *net = NULL;
    SPK_TRY(spk_net_new(&net, &o, err));
    spk_status st = SPK_OK;
    for (const char *p = text; p < end && st == SPK_OK; p += strlen(p) + 1)
        if (strncmp(p, "mirror=", 7) == 0)
            st = spk_net_add_mirror(net, p + 7, err);
    if (st < 0)
        spk_net_free(net);
    else
        *out = net;
    return st;
}
