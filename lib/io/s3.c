/* s3://BUCKET/PREFIX: where its requests go, and their signature (Signature Version 4, made by libcurl). Settings come
 * from the environment and the shared files, as other tools take them. */
#define _GNU_SOURCE
#include "io/s3.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cpu.h"
#include "io/net_impl.h"

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define REFRESH_SECONDS 300 /* temporary keys are read anew before they end */
#define REFRESH_JITTER 120
#define REFRESH_LEAST 30
#define REREADS 5
#define READ_ANEW ((time_t)1)

struct spk_s3 {
    char *region, *endpoint; /* endpoint: NULL: that of AWS */
    bool path_style, path_chosen, unsigned_;
    spk_s3_keys keys;
    bool have_keys;
    time_t refresh_at; /* 0: never by time */
    uint32_t in_use;   /* counts the keys found */
    bool tried;        /* these were refused as expired, and have been looked for anew */
};

static const char *env(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

static bool is_yes(const char *text)
{
    return text && (strcmp(text, "1") == 0 || strcasecmp(text, "yes") == 0 || strcasecmp(text, "true") == 0);
}

/* From the environment, else from the profile. */
static spk_status setting(const spk_s3_files *f, const char *first, const char *second, const char *parent,
                          const char *key, char **out, spk_error *err)
{
    const char *value = env(first);
    if (!value && second)
        value = env(second);
    if (!value)
        return spk_s3_setting(f, parent, key, out, err);
    *out = strdup(value);
    return *out ? SPK_OK : spk_error_nomem(err, 0);
}

static spk_status read_endpoint(spk_s3 *s, const spk_s3_files *f, spk_error *err)
{
    char *services = NULL, section[256];
    if (is_yes(env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")))
        return SPK_OK;
    const char *given = env("AWS_ENDPOINT_URL_S3");
    if (!given)
        given = env("AWS_ENDPOINT_URL");
    if (given) {
        s->endpoint = strdup(given);
        return s->endpoint ? SPK_OK : spk_error_nomem(err, 0);
    }
    SPK_TRY(spk_s3_setting(f, NULL, "services", &services, err));
    if (services) {
        snprintf(section, sizeof section, "services %.200s", services);
        free(services);
        SPK_TRY(spk_ini_get(f->config, section, "s3", "endpoint_url", &s->endpoint, err));
    }
    return s->endpoint ? SPK_OK : spk_s3_setting(f, NULL, "endpoint_url", &s->endpoint, err);
}

static bool is_region(const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_')
            return false;
    return n > 0 && n < 64;
}

static spk_status read_settings(spk_s3 *s, spk_error *err)
{
    spk_s3_files f;
    char *style = NULL;
    s->unsigned_ = is_yes(env("AWS_NO_SIGN_REQUEST"));
    SPK_TRY(spk_s3_files_read(&f, err));
    spk_status st = setting(&f, "AWS_REGION", "AWS_DEFAULT_REGION", NULL, "region", &s->region, err);
    if (st == SPK_OK)
        st = read_endpoint(s, &f, err);
    if (st == SPK_OK)
        st = setting(&f, "SHARDPACK_S3_ADDRESSING", NULL, "s3", "addressing_style", &style, err);
    spk_s3_files_free(&f);
    if (st == SPK_OK && style && strcmp(style, "path") != 0 && strcmp(style, "virtual") != 0 &&
        strcmp(style, "auto") != 0)
        st = spk_error_set(err, SPK_E_INVALID, "S3 addressing style \"%.40s\": must be path, virtual or auto", style);
    s->path_chosen = style && strcmp(style, "auto") != 0;
    s->path_style = s->path_chosen ? strcmp(style, "path") == 0 : s->endpoint != NULL;
    free(style);
    SPK_TRY(st);
    if (!s->region && !(s->region = strdup("us-east-1")))
        return spk_error_nomem(err, 0);
    if (!is_region(s->region))
        return spk_error_set(err, SPK_E_INVALID, "S3 region \"%.80s\" is no region", s->region);
    return SPK_OK;
}

/* A bucket that can be part of a host name, also in a certificate. */
static bool is_host_label(const char *bucket)
{
    for (const char *c = bucket; *c; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '-')
            return false;
    return true;
}

static spk_status make_target(const spk_s3 *s, spk_mirror *m, bool *secure, spk_error *err)
{
    char aws[128];
    spk_place end;
    spk_buf target = {0}, host = {0};
    snprintf(aws, sizeof aws, "https://s3.%s.amazonaws.com%s", s->region,
             strncmp(s->region, "cn-", 3) == 0 ? ".cn" : "");
    SPK_TRY(spk_place_parse(&end, s->endpoint ? s->endpoint : aws, err));
    spk_status st = SPK_OK;
    if (end.kind == SPK_PLACE_S3 || end.secret || *end.query)
        st = spk_error_set(err, SPK_E_INVALID, "S3 endpoint %s: must be http(s)://HOST[:PORT]", end.prefix);
    bool path = s->path_style || (!s->path_chosen && !is_host_label(m->place.host));
    if (st == SPK_OK)
        st = spk_buf_printf(&host, err, "%s%s%s", path ? "" : m->place.host, path ? "" : ".", end.host);
    if (st == SPK_OK)
        st = spk_buf_printf(&target, err, "%s://%s%s%s%s%s", end.secure ? "https" : "http", (char *)host.data, end.path,
                            path ? "/" : "", path ? m->place.host : "", m->place.path);
    *secure = end.secure;
    spk_place_free(&end);
    if (st < 0) {
        spk_buf_free(&host);
        spk_buf_free(&target);
        return st;
    }
    m->host = (char *)host.data;
    m->target = (char *)target.data;
    return SPK_OK;
}

spk_status spk_s3_add(spk_net *net, spk_mirror *m, spk_error *err)
{
    bool secure = false;
    if (!net->s3) {
        net->s3 = calloc(1, sizeof *net->s3);
        if (!net->s3)
            return spk_error_nomem(err, sizeof *net->s3);
        SPK_TRY(read_settings(net->s3, err));
    }
    SPK_TRY(make_target(net->s3, m, &secure, err));
    if (!secure && !net->s3->unsigned_ && !net->plain_credentials)
        return spk_error_set(err, SPK_E_INVALID,
                             "the S3 endpoint is http://: credentials would be used unencrypted; set "
                             "SHARDPACK_PLAIN_CREDENTIALS=1 to allow it");
    return SPK_OK;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A file may be met while somebody writes it. */
static spk_status find_keys(const spk_net *net, spk_s3_keys *out, spk_error *err)
{
    spk_s3_wait wait = {spk_now_ns() + net->deadline_ns, net->on_wait, net->on_wait_user, false};
    spk_status st = spk_s3_keys_find(out, &wait, err);
    for (int i = 0; i < REREADS && st < 0 && !wait.cancelled && net->s3->have_keys; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        st = spk_s3_keys_find(out, &wait, err);
    }
    return st;
}

static spk_status get_keys(spk_net *net, spk_error *err)
{
    spk_s3 *s = net->s3;
    if (s->have_keys && (s->refresh_at == 0 || time(NULL) < s->refresh_at))
        return SPK_OK;
    spk_s3_keys fresh;
    spk_status st = find_keys(net, &fresh, err);
    if (st < 0 && s->have_keys && s->keys.expires > time(NULL)) { /* the old ones are good for a while */
        s->refresh_at = time(NULL) + 10;
        return SPK_OK;
    }
    SPK_TRY(st);
    if (!same_text(s->keys.access, fresh.access) || !same_text(s->keys.secret, fresh.secret) ||
        !same_text(s->keys.token, fresh.token)) {
        s->in_use++;
        s->tried = false;
    }
    spk_s3_keys_free(&s->keys);
    s->keys = fresh;
    s->have_keys = true;
    time_t soonest = time(NULL) + REFRESH_LEAST; /* a service that has no new ones yet is not asked for each request */
    s->refresh_at = fresh.expires - REFRESH_SECONDS - (time_t)spk_net_random(net, REFRESH_JITTER);
    s->refresh_at = !fresh.expires ? 0 : s->refresh_at > soonest ? s->refresh_at : soonest;
    return SPK_OK;
}

uint32_t spk_s3_keys_in_use(const spk_net *net)
{
    return net->s3 ? net->s3->in_use : 0;
}

static spk_status header(struct curl_slist **list, const char *name, const char *value, spk_error *err)
{
    spk_buf line = {0};
    SPK_TRY(spk_buf_printf(&line, err, "%s: %s", name, value));
    struct curl_slist *more = curl_slist_append(*list, (char *)line.data);
    spk_buf_free(&line);
    if (!more)
        return spk_error_nomem(err, 0);
    *list = more;
    return SPK_OK;
}

spk_status spk_s3_sign(spk_net *net, const spk_mirror *m, CURL *easy, struct curl_slist **headers,
                       const char *payload_sha256, spk_error *err)
{
    spk_s3 *s = net->s3;
    char scheme[96];
    if (s->unsigned_)
        return SPK_OK;
    SPK_TRY(get_keys(net, err));
    snprintf(scheme, sizeof scheme, "aws:amz:%s:s3", s->region);
    /* libcurl signs the headers that it is given; of the host it would leave out the port. */
    SPK_TRY(header(headers, "Host", m->host, err));
    SPK_TRY(header(headers, "x-amz-content-sha256", payload_sha256 ? payload_sha256 : EMPTY_SHA256, err));
    if (s->keys.token)
        SPK_TRY(header(headers, "x-amz-security-token", s->keys.token, err));
    curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, scheme);
    curl_easy_setopt(easy, CURLOPT_USERNAME, s->keys.access);
    curl_easy_setopt(easy, CURLOPT_PASSWORD, s->keys.secret);
    return SPK_OK;
}

/* text: of the refusal; NULL: it had none, as that of a HEAD. */
static bool says_expired(const spk_s3 *s, const char *text)
{
    if (!text)
        return s->keys.token != NULL;
    static const char *const codes[] = {"ExpiredToken", "TokenRefreshRequired", "InvalidToken", "InvalidAccessKeyId"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strstr(text, codes[i]))
            return true;
    return false;
}

static bool move_region(spk_net *net, const char *region)
{
    spk_s3 *s = net->s3;
    if (s->endpoint || !*region || strcmp(region, s->region) == 0 || !is_region(region))
        return false;
    char *mine = strdup(region);
    if (!mine)
        return false;
    free(s->region);
    s->region = mine;
    for (size_t i = 0; i < net->mirrors_n; i++) {
        spk_mirror *m = &net->mirrors[i], moved = *m;
        bool secure = false;
        if (m->place.kind != SPK_PLACE_S3 || make_target(s, &moved, &secure, NULL) < 0)
            continue;
        free(m->target);
        free(m->host);
        *m = moved;
    }
    return true;
}

bool spk_s3_again(spk_net *net, size_t mirror, const char *text, const char *region, uint32_t keys)
{
    spk_s3 *s = net->s3;
    if (!s || net->mirrors[mirror].place.kind != SPK_PLACE_S3)
        return false;
    if (move_region(net, region))
        return true;
    if (s->unsigned_ || !says_expired(s, text))
        return false;
    if (keys != s->in_use || s->refresh_at == READ_ANEW)
        return true;
    if (s->tried)
        return false;
    s->tried = true;
    s->refresh_at = READ_ANEW; /* for the next request */
    s->keys.expires = 0;
    return true;
}

void spk_s3_free(spk_s3 *s)
{
    if (!s)
        return;
    spk_s3_keys_free(&s->keys);
    free(s->region);
    free(s->endpoint);
    free(s);
}
