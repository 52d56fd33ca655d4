/* One GET: options, the reply's head against what was asked, bytes to where they belong. A reply that is not what was
 * asked for never reaches the reader: its body is kept for the message, in part, and dropped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "io/net_impl.h"

#define CONNECT_TIMEOUT_MS 10000L
#define DRAIN_MAX 65536u /* bytes of an unwanted body that are read so that the connection can be used again */
#define REDIRECTS_MAX 5L
#define PROGRESS_LEAST ((size_t)16 << 10) /* bytes that count as progress: a trickle is a stall */

static size_t on_header(char *data, size_t size, size_t n, void *user)
{
    spk_transfer *t = user;
    spk_reply_line(&t->reply, data, size * n);
    return size * n;
}

/* Is the reply what was asked for? data: its first bytes. */
static bool accept_reply(spk_transfer *t, const char *data)
{
    const spk_reply *r = &t->reply;
    if (r->is_coded || (t->etag && *t->etag && *r->etag && strcmp(t->etag, r->etag) != 0))
        return false;
    if (t->ask == SPK_ASK_WHOLE) {
        if (r->is_html && *data == '<') /* the page of a portal or of an error, with status 200 */
            return false;
        t->from = 0;
        t->total = t->to = r->length;
        return r->status == 200 && (r->length == SPK_REPLY_UNKNOWN || r->length <= t->cap_max);
    }
    if (r->status != 206 || !r->has_range || r->total == SPK_REPLY_UNKNOWN)
        return false;
    t->total = r->total;
    if (t->expected && r->total != t->expected)
        return false;
    if (t->ask == SPK_ASK_RANGE)
        return r->from == t->from && r->to == t->to;
    t->from = r->from;
    t->to = r->to;
    return r->to == r->total && r->to - r->from <= t->cap;
}

static bool grow(spk_transfer *t, size_t n)
{
    if (t->have + n <= t->cap)
        return true;
    size_t cap = t->cap < 65536 ? 65536 : 2 * t->cap;
    while (cap < t->have + n)
        cap *= 2;
    cap = cap < t->cap_max ? cap : t->cap_max;
    uint8_t *bigger = t->grows && cap >= t->have + n ? realloc(t->into, cap) : NULL;
    if (!bigger)
        return false;
    t->into = bigger;
    t->cap = cap;
    return true;
}

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
    spk_transfer *t = user;
    size_t n = size * count;
    t->net->events++;
    if (!t->accepted && !t->refused) {
        t->first_ns = t->progress_ns = spk_now_ns();
        t->accepted = accept_reply(t, data);
        t->refused = !t->accepted;
    }
    if (t->refused) {
        size_t room = sizeof t->body - 1 - (t->body_n < sizeof t->body - 1 ? t->body_n : sizeof t->body - 1);
        memcpy(t->body + (sizeof t->body - 1 - room), data, n < room ? n : room);
        t->body_n += n;
        return t->body_n <= DRAIN_MAX ? n : 0;
    }
    if (t->ask != SPK_ASK_WHOLE && t->have + n > t->to - t->from)
        return 0; /* more than it said */
    if (!grow(t, n))
        return 0;
    memcpy(t->into + t->have, data, n);
    t->have += n;
    if (t->have - t->marked >= PROGRESS_LEAST) {
        t->marked = t->have;
        t->progress_ns = spk_now_ns();
    }
    return n;
}

static void set_options(const spk_net *net, spk_transfer *t, const char *url)
{
    const spk_mirror *m = &net->mirrors[t->mirror];
    bool secure = strncmp(m->target, "https:", 6) == 0;
    CURL *e = t->easy;
    curl_easy_setopt(e, CURLOPT_URL, url);
    curl_easy_setopt(e, CURLOPT_PRIVATE, (char *)t);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, secure ? "https" : "http");
    curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    /* Headers of a signed request would go to the new host as well. */
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, m->place.kind == SPK_PLACE_HTTP ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 262144L);
    curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "shardpack/" SPK_VERSION_STRING);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->detail);
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, t->fresh ? 1L : 0L);
    if (net->ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, net->ca_file);
    if (secure || net->plain_credentials)
        curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    if (m->place.user) {
        curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(e, CURLOPT_USERNAME, m->place.user);
        curl_easy_setopt(e, CURLOPT_PASSWORD, m->place.password ? m->place.password : "");
    }
}

static spk_status prepare(spk_net *net, spk_transfer *t, const char *name, spk_error *err)
{
    const spk_mirror *m = &net->mirrors[t->mirror];
    spk_buf url = {0};
    char range[64];
    spk_status st = spk_buf_printf(&url, err, "%s/%s%s", m->target, name, m->place.query);
    if (st == SPK_OK)
        set_options(net, t, (const char *)url.data);
    spk_buf_free(&url); /* libcurl has copied it */
    SPK_TRY(st);
    if (t->ask == SPK_ASK_RANGE)
        snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)t->from, (unsigned long long)t->to - 1);
    else
        snprintf(range, sizeof range, "-%zu", t->cap);
    if (t->ask != SPK_ASK_WHOLE)
        curl_easy_setopt(t->easy, CURLOPT_RANGE, range);
    if (m->place.kind == SPK_PLACE_S3)
        SPK_TRY(spk_s3_sign(net, m, t->easy, &t->headers, NULL, err));
    t->keys = spk_s3_keys_in_use(net);
    if (t->headers)
        curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
    return SPK_OK;
}

spk_status spk_transfer_start(spk_net *net, spk_transfer *t, const char *name, spk_error *err)
{
    t->net = net;
    t->easy = spk_easy_get(net);
    if (!t->easy)
        return spk_error_nomem(err, 0);
    spk_status st = prepare(net, t, name, err);
    t->started_ns = t->progress_ns = spk_now_ns();
    if (st == SPK_OK && curl_multi_add_handle(net->multi, t->easy) != CURLM_OK)
        st = spk_error_nomem(err, 0);
    if (st < 0) {
        curl_slist_free_all(t->headers);
        t->headers = NULL;
        spk_easy_put(net, t->easy);
        t->easy = NULL;
        return st;
    }
    t->next = net->transfers;
    t->link = &net->transfers;
    if (t->next)
        t->next->link = &t->next;
    net->transfers = t;
    net->mirrors[t->mirror].running++;
    atomic_fetch_add_explicit(&net->mirrors[t->mirror].counts->requests, 1, memory_order_relaxed);
    net->requests++;
    return SPK_OK;
}

void spk_transfer_end(spk_transfer *t)
{
    if (!t->easy)
        return;
    curl_multi_remove_handle(t->net->multi, t->easy);
    t->net->mirrors[t->mirror].running--;
    spk_easy_put(t->net, t->easy);
    curl_slist_free_all(t->headers);
    t->easy = NULL;
    t->headers = NULL;
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    atomic_fetch_add_explicit(&t->net->mirrors[t->mirror].counts->bytes, t->have, memory_order_relaxed);
}

static spk_net_fault say(spk_net_fault fault, char *text, size_t cap, const char *what)
{
    if (text)
        snprintf(text, cap, "%s", what);
    return fault;
}

/* The <Code> of an S3 error. */
static void add_code(const spk_transfer *t, char *what, size_t cap)
{
    const char *code = strstr(t->body, "<Code>"), *end = code ? strstr(code, "</Code>") : NULL;
    size_t n = strlen(what);
    if (end && end - code < 48)
        snprintf(what + n, cap - n, " %.*s", (int)(end - code) - 6, code + 6);
}

/* What is wrong with a reply that has status 200 or 206. */
static void tell_reply(const spk_transfer *t, char *what, size_t cap)
{
    const spk_reply *r = &t->reply;
    char asked[64], length[40] = "";
    if (t->ask == SPK_ASK_RANGE)
        snprintf(asked, sizeof asked, "bytes %llu to %llu", (unsigned long long)t->from, (unsigned long long)t->to - 1);
    else
        snprintf(asked, sizeof asked, "the last %zu bytes", t->cap);
    if (r->length != SPK_REPLY_UNKNOWN)
        snprintf(length, sizeof length, " with %llu bytes", (unsigned long long)r->length);
    if (r->is_coded)
        snprintf(what, cap, "compressed (Content-Encoding), which was not asked for: switch that off for these files");
    else if (r->is_html)
        snprintf(what, cap, "HTML instead of data");
    else if (t->ask == SPK_ASK_WHOLE && r->status == 200)
        snprintf(what, cap, "more than the %zu bytes that it may have", t->cap_max);
    else if (r->status == 200)
        snprintf(what, cap,
                 "HTTP 200%s to a request for %s: the server does not honour ranges; use one that does, such as nginx, "
                 "Apache or S3, or copy the dataset",
                 length, asked);
    else if (!r->has_range)
        snprintf(what, cap, "HTTP 206%s without a valid Content-Range to a request for %s", length, asked);
    else
        snprintf(what, cap, "another range than asked for: bytes %llu to %llu to a request for %s",
                 (unsigned long long)r->from, (unsigned long long)r->to - 1, asked);
}

static spk_net_fault of_status(const spk_transfer *t, char *text, size_t cap)
{
    char what[240];
    const spk_reply *r = &t->reply;
    int status = r->status;
    snprintf(what, sizeof what, "HTTP %d", status);
    add_code(t, what, sizeof what);
    if (status == 401 || status == 403)
        return say(SPK_FAULT_DENIED, text, cap, what);
    if (status == 404 || status == 410)
        return say(SPK_FAULT_MISSING, text, cap, what);
    if (status == 429 || status == 503)
        return say(SPK_FAULT_THROTTLE, text, cap, what);
    if (status >= 500 || status == 408)
        return say(SPK_FAULT_SERVER, text, cap, what);
    if (status == 206 || status == 200) {
        if (t->etag && *t->etag && *r->etag && strcmp(t->etag, r->etag) != 0)
            return say(SPK_FAULT_CHANGED, text, cap, "the object changed (ETag)");
        if (status == 206 && t->expected && r->total != SPK_REPLY_UNKNOWN && r->total != t->expected) {
            snprintf(what, sizeof what, "%llu bytes there, expected %llu", (unsigned long long)r->total,
                     (unsigned long long)t->expected);
            return say(SPK_FAULT_CHANGED, text, cap, what);
        }
        tell_reply(t, what, sizeof what);
        return say(SPK_FAULT_REPLY, text, cap, what);
    }
    if (status == 416 && t->expected && r->total != SPK_REPLY_UNKNOWN && r->total != t->expected)
        snprintf(what, sizeof what, "HTTP 416: %llu bytes there, expected %llu", (unsigned long long)r->total,
                 (unsigned long long)t->expected);
    return say(SPK_FAULT_REPLY, text, cap, what);
}

spk_net_fault spk_transfer_fault(const spk_transfer *t, char *text, size_t cap)
{
    if (text && cap)
        text[0] = '\0';
    bool no_body = t->result == CURLE_OK && !t->accepted && !t->refused;
    if (t->refused || (no_body && t->reply.status != 0 && !(t->ask == SPK_ASK_WHOLE && t->reply.status == 200)))
        return of_status(t, text, cap);
    if (t->ask == SPK_ASK_WHOLE && t->result == CURLE_OK && t->have == 0)
        return say(SPK_FAULT_REPLY, text, cap, "HTTP 200 without any bytes");
    switch (t->result) {
    case CURLE_OK:
        if (t->ask == SPK_ASK_WHOLE ? t->to == SPK_REPLY_UNKNOWN || t->have == t->to : t->have == t->to - t->from)
            return SPK_FAULT_NONE;
        return say(SPK_FAULT_BROKEN, text, cap, "reply cut short");
    case CURLE_WRITE_ERROR:
        return say(SPK_FAULT_REPLY, text, cap,
                   t->ask == SPK_ASK_WHOLE ? "more bytes than it may have" : "more bytes than announced");
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return say(SPK_FAULT_CONNECT, text, cap, t->detail[0] ? t->detail : curl_easy_strerror(t->result));
    case CURLE_OPERATION_TIMEDOUT:
        return say(t->have || t->first_ns ? SPK_FAULT_STALL : SPK_FAULT_CONNECT, text, cap, "timed out");
    case CURLE_PARTIAL_FILE:
        return say(SPK_FAULT_BROKEN, text, cap, "reply cut short");
    case CURLE_TOO_MANY_REDIRECTS:
        return say(SPK_FAULT_REPLY, text, cap, "too many redirects");
    default:
        return say(SPK_FAULT_BROKEN, text, cap, t->detail[0] ? t->detail : curl_easy_strerror(t->result));
    }
}
