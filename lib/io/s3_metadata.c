/* Temporary credentials that a container's or a machine's own service hands out, as JSON over plain HTTP on a link that
 * does not leave the machine: so no proxy, short timeouts, and only hosts that can be such a service. */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cpu.h"
#include "io/s3.h"
#include "io/url.h"

#define CONTAINER_HOST "http://169.254.170.2"
#define INSTANCE_HOST "http://169.254.169.254"
#define ANSWER_MAX ((size_t)64 << 10)
#define TRIES 3
#define ANSWER_MS 5000L

static const char *env(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
    spk_buf *b = user;
    if (b->len + size * n > ANSWER_MAX || spk_buf_append(b, data, size * n, NULL) < 0)
        return 0;
    return size * n;
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    spk_s3_wait *wait = user;
    (void)a, (void)b, (void)c, (void)d;
    wait->cancelled = wait->cancelled || (wait->on_wait && wait->on_wait(wait->user) != 0);
    return wait->cancelled;
}

static long least(long a, long b)
{
    return a < b ? a : b;
}

/* One request; the answer's status, 0 if there was none. out gets the body, with a NUL behind it. */
static long ask(spk_s3_wait *wait, const char *method, const char *url, const char *header, long connect_ms,
                spk_buf *out)
{
    uint64_t now = spk_now_ns();
    long left = now < wait->until_ns ? (long)((wait->until_ns - now) / 1000000u) : 0;
    CURL *e = curl_easy_init();
    struct curl_slist *headers = header ? curl_slist_append(NULL, header) : NULL;
    long status = 0;
    out->len = 0;
    if (e && left > 0) {
        curl_easy_setopt(e, CURLOPT_URL, url);
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, method);
        curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
        curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, least(connect_ms, left));
        curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, least(ANSWER_MS, left));
        curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(e, CURLOPT_XFERINFODATA, wait);
        curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(e, CURLOPT_WRITEDATA, out);
        if (curl_easy_perform(e) == CURLE_OK)
            curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status);
    }
    curl_easy_cleanup(e);
    curl_slist_free_all(headers);
    if (spk_buf_terminate(out, NULL) < 0)
        return 0;
    return status;
}

static long ask_often(spk_s3_wait *wait, const char *url, const char *header, long connect_ms, spk_buf *out)
{
    long status = 0;
    for (int i = 0; i < TRIES && !wait->cancelled && (status == 0 || status >= 500); i++)
        status = ask(wait, "GET", url, header, connect_ms, out);
    return status;
}

static spk_status refused(const char *who, long status, spk_error *err)
{
    if (status == 0)
        return spk_error_set(err, SPK_E_NETWORK, "S3 credentials: the %s's service does not answer", who);
    return spk_error_set(err, SPK_E_NETWORK, "S3 credentials: the %s's service answered with HTTP %ld", who, status);
}

/* 2026-11-30T12:00:00Z */
static time_t parse_time(const char *text)
{
    struct tm t;
    memset(&t, 0, sizeof t);
    return text && strptime(text, "%Y-%m-%dT%H:%M:%S", &t) ? timegm(&t) : 0;
}

static spk_status parse_keys(spk_s3_keys *k, const spk_buf *answer, const char *who, spk_error *err)
{
    json_t *root = json_loadb((const char *)answer->data, answer->len, JSON_REJECT_DUPLICATES, NULL);
    const char *access = json_string_value(json_object_get(root, "AccessKeyId"));
    const char *secret = json_string_value(json_object_get(root, "SecretAccessKey"));
    const char *token = json_string_value(json_object_get(root, "Token"));
    spk_status st = SPK_OK;
    if (!access || !secret) {
        st = spk_error_set(err, SPK_E_FORMAT, "S3 credentials: the answer of the %s's service holds none", who);
    } else {
        k->access = strdup(access);
        k->secret = strdup(secret);
        k->token = token ? strdup(token) : NULL;
        k->expires = parse_time(json_string_value(json_object_get(root, "Expiration")));
        if (!k->access || !k->secret || (token && !k->token))
            st = spk_error_nomem(err, 0);
    }
    json_decref(root);
    return st;
}

/* Credentials must not be asked of, nor a token be sent to, any host that somebody wrote into a variable. */
static bool is_local_service(const char *url)
{
    static const char *const hosts[] = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]",
                                        "localhost",     "127.0.0.1",      "[::1]"};
    spk_place p;
    bool good = false;
    if (spk_place_parse(&p, url, NULL) < 0)
        return false;
    char *end = p.host + strlen(p.host), *colon = strrchr(p.host, ':');
    if (colon && strspn(colon + 1, "0123456789") == (size_t)(end - colon - 1) && !strchr(colon, ']'))
        *colon = '\0';
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        good = good || strcasecmp(p.host, hosts[i]) == 0;
    good = (good || p.secure) && !p.secret;
    spk_place_free(&p);
    return good;
}

/* "Authorization: TOKEN", if there is one. */
static spk_status authorization(char **out, spk_error *err)
{
    char token[8192] = "";
    const char *file = env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), *value = env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    *out = NULL;
    if (file) {
        FILE *f = fopen(file, "rbe");
        size_t n = f ? fread(token, 1, sizeof token - 1, f) : 0;
        if (f)
            fclose(f);
        token[n] = '\0';
        token[strcspn(token, "\r\n")] = '\0';
        if (n == 0)
            return spk_error_set(err, SPK_E_NOT_FOUND, "S3 credentials: %s holds no token", file);
        value = token;
    }
    if (!value || strpbrk(value, "\r\n"))
        return SPK_OK;
    size_t cap = strlen(value) + 32;
    *out = malloc(cap);
    if (!*out)
        return spk_error_nomem(err, cap);
    snprintf(*out, cap, "Authorization: %s", value);
    return SPK_OK;
}

spk_status spk_s3_keys_container(spk_s3_keys *out, spk_s3_wait *wait, bool *found, spk_error *err)
{
    const char *relative = env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    char *header = NULL, url[2048];
    spk_buf answer = {0};
    *found = relative || full;
    if (!*found)
        return SPK_OK;
    snprintf(url, sizeof url, "%s%s", relative ? CONTAINER_HOST : "", relative ? relative : full);
    if (!is_local_service(url))
        return spk_error_set(err, SPK_E_INVALID,
                             "S3 credentials: AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor of this machine");
    SPK_TRY(authorization(&header, err));
    long status = ask_often(wait, url, header, 2000, &answer);
    spk_status st = status == 200 ? parse_keys(out, &answer, "container", err) : refused("container", status, err);
    free(header);
    spk_buf_free(&answer);
    return st;
}

static spk_status from_instance(spk_s3_keys *out, spk_s3_wait *wait, bool *found, spk_buf *answer, spk_error *err)
{
    const char *base = env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    char url[1024], header[512] = "";
    int n = (int)strlen(base ? base : INSTANCE_HOST);
    n -= base && n > 0 && base[n - 1] == '/';
    snprintf(url, sizeof url, "%.*s/latest/api/token", n, base ? base : INSTANCE_HOST);
    /* A short wait: most machines have no such service, and nothing answers there. */
    long status = ask(wait, "PUT", url, "X-aws-ec2-metadata-token-ttl-seconds: 21600", 300, answer);
    if (status != 200 || answer->len == 0 || strpbrk((char *)answer->data, "\r\n"))
        return SPK_OK;
    snprintf(header, sizeof header, "X-aws-ec2-metadata-token: %.400s", (char *)answer->data);
    n = snprintf(url, sizeof url, "%.*s/latest/meta-data/iam/security-credentials/", n, base ? base : INSTANCE_HOST);
    if (ask_often(wait, url, header, 1000, answer) != 200 || answer->len == 0)
        return SPK_OK; /* no role */
    snprintf(url + n, sizeof url - (size_t)n, "%.*s", (int)strcspn((char *)answer->data, "\r\n "),
             (char *)answer->data);
    *found = true;
    status = ask_often(wait, url, header, 1000, answer);
    if (status != 200)
        return refused("instance", status, err);
    return parse_keys(out, answer, "instance", err);
}

spk_status spk_s3_keys_instance(spk_s3_keys *out, spk_s3_wait *wait, bool *found, spk_error *err)
{
    const char *off = env("AWS_EC2_METADATA_DISABLED");
    spk_buf answer = {0};
    *found = false;
    if (off && strcasecmp(off, "true") == 0)
        return SPK_OK;
    spk_status st = from_instance(out, wait, found, &answer, err);
    if (answer.data)
        explicit_bzero(answer.data, answer.cap);
    spk_buf_free(&answer);
    return st;
}
