/* Requests that send: one at a time on a handle of its own, so that threads need no lock but for credentials. */
#include "io/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/hash.h"
#include "io/put_impl.h"

#define TRIES 6
#define STALLS 2 /* that many tries may end by one */
#define TEXT_MAX ((size_t)8 << 20)
#define SLICE_MS 50u
#define SINGLE_MAX ((uint64_t)32 << 20) /* larger objects go to S3 in parts */

/* Where a body is while libcurl takes it. */
typedef struct upload {
    spk_put *p;
    const spk_put_request *r;
    spk_put_reply *out;
    const uint8_t *piece;
    size_t left;
    uint64_t done;
    spk_status status;
    spk_error *err;
} upload;

spk_status spk_put_new(spk_put **out, spk_net *net, int (*cancel)(void *user, uint64_t sent), void *user,
                       spk_error *err)
{
    spk_put *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p)
        return spk_error_nomem(err, sizeof *p);
    *p = (spk_put){.net = net, .easy = curl_easy_init(), .cancel = cancel, .user = user};
    if (!p->easy) {
        free(p);
        return spk_error_nomem(err, 0);
    }
    *out = p;
    return SPK_OK;
}

void spk_put_free(spk_put *p)
{
    if (p)
        curl_easy_cleanup(p->easy);
    free(p);
}

bool spk_put_is_s3(const spk_put *p)
{
    return p->net->mirrors[0].place.kind == SPK_PLACE_S3;
}

void spk_put_reply_free(spk_put_reply *r)
{
    spk_buf_free(&r->text);
}

bool spk_put_tag(const char **at, const char *tag, char *out, size_t cap)
{
    char open[64], shut[64];
    snprintf(open, sizeof open, "<%s>", tag);
    snprintf(shut, sizeof shut, "</%s>", tag);
    const char *p = *at ? strstr(*at, open) : NULL, *end = p ? strstr(p, shut) : NULL;
    if (!end || (size_t)(end - p) - strlen(open) >= cap)
        return false;
    p += strlen(open);
    memcpy(out, p, (size_t)(end - p));
    out[end - p] = '\0';
    *at = end;
    return true;
}

static size_t on_header(char *line, size_t size, size_t n, void *user)
{
    upload *u = user;
    size_t bytes = size * n, name = strlen(SPK_DIGEST_HEADER);
    spk_reply_line(&u->out->reply, line, bytes);
    if (bytes > name + 65 && strncasecmp(line, SPK_DIGEST_HEADER ":", name + 1) == 0) {
        const char *p = line + name + 1;
        while (p < line + bytes && *p == ' ')
            p++;
        if ((size_t)(line + bytes - p) >= 64)
            snprintf(u->out->digest, sizeof u->out->digest, "%.64s", p);
    }
    return bytes;
}

static size_t on_text(char *data, size_t size, size_t n, void *user)
{
    upload *u = user;
    if (u->out->text.len + size * n > TEXT_MAX || spk_buf_append(&u->out->text, data, size * n, NULL) < 0)
        return 0;
    return size * n;
}

static size_t on_read(char *to, size_t size, size_t n, void *user)
{
    upload *u = user;
    size_t room = size * n;
    if (u->r->data) {
        size_t left = (size_t)(u->r->n - u->done), k = room < left ? room : left;
        memcpy(to, u->r->data + u->done, k);
        u->done += k;
        return k;
    }
    if (u->left == 0) {
        u->status = u->r->body->next(u->r->body->ctx, &u->piece, &u->left, u->err);
        if (u->status < 0)
            return CURL_READFUNC_ABORT;
    }
    size_t k = room < u->left ? room : u->left;
    memcpy(to, u->piece, k);
    u->piece += k;
    u->left -= k;
    u->done += k;
    return k;
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    upload *u = user;
    (void)a, (void)b, (void)c, (void)d;
    return u->p->cancel ? u->p->cancel(u->p->user, u->p->sent + u->done) : 0;
}

static spk_status make_url(const spk_put *p, const spk_put_request *r, spk_buf *url, spk_error *err)
{
    const spk_mirror *m = &p->net->mirrors[0];
    size_t n = strlen(m->target);
    if (r->at_folder) /* the bucket: what is before the prefix */
        n -= strlen(m->place.path);
    SPK_TRY(spk_buf_printf(url, err, "%.*s/%s", (int)n, m->target, r->name));
    if (r->query)
        return spk_buf_printf(url, err, "?%s", r->query);
    return spk_buf_printf(url, err, "%s", m->place.query);
}

static spk_status add_headers(spk_put *p, const spk_put_request *r, struct curl_slist **headers, spk_error *err)
{
    const spk_mirror *m = &p->net->mirrors[0];
    uint8_t digest[SPK_SHA256_BYTES];
    char hex[SPK_SHA256_HEX];
    for (size_t i = 0; i < 3 && r->headers[i]; i++) {
        struct curl_slist *more = curl_slist_append(*headers, r->headers[i]);
        if (!more)
            return spk_error_nomem(err, 0);
        *headers = more;
    }
    if (m->place.kind != SPK_PLACE_S3)
        return SPK_OK;
    SPK_TRY(spk_sha256_once(r->data ? r->data : (const uint8_t *)"", r->data ? (size_t)r->n : 0, digest, err));
    spk_hex(hex, digest, sizeof digest);
    spk_net_lock(p->net);
    spk_status st = spk_s3_sign(p->net, m, p->easy, headers, hex, err);
    p->keys = spk_s3_keys_in_use(p->net);
    spk_net_unlock(p->net);
    if (st < 0)
        spk_error_prefix(err, "%s", m->place.prefix);
    return st;
}

/* A request that gets nowhere ends after the time that a read may take. */
static long stall_seconds(const spk_net *net)
{
    uint64_t seconds = net->deadline_ns / 1000000000u;
    return seconds < 1 ? 1 : seconds < 600 ? (long)seconds : 600;
}

static void set_options(spk_put *p, const spk_put_request *r, upload *u, const char *url)
{
    const spk_mirror *m = &p->net->mirrors[0];
    CURL *e = p->easy;
    bool sends = r->data || r->body;
    curl_easy_setopt(e, CURLOPT_URL, url);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, strncmp(url, "https:", 6) == 0 ? "https" : "http");
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, stall_seconds(p->net));
    curl_easy_setopt(e, CURLOPT_EXPECT_100_TIMEOUT_MS, 200L);
    curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 524288L);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "shardpack/" SPK_VERSION_STRING);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, u);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_text);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, u);
    curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(e, CURLOPT_XFERINFODATA, u);
    curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
    if (p->net->ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, p->net->ca_file);
    if (sends) {
        curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(e, CURLOPT_READDATA, u);
        curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->n);
    }
    if (strcmp(r->method, "HEAD") == 0)
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r->method);
    if (m->place.user) {
        curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(e, CURLOPT_USERNAME, m->place.user);
        curl_easy_setopt(e, CURLOPT_PASSWORD, m->place.password ? m->place.password : "");
    }
}

static CURLcode ask_once(spk_put *p, const spk_put_request *r, upload *u, spk_error *err)
{
    spk_buf url = {0};
    struct curl_slist *headers = NULL;
    CURLcode result = CURLE_OUT_OF_MEMORY;
    spk_put_reply *out = u->out;
    curl_easy_reset(p->easy);
    memset(&out->reply, 0, sizeof out->reply);
    out->digest[0] = '\0';
    out->text.len = 0;
    u->done = u->left = 0;
    u->status = r->body && r->body->rewind ? r->body->rewind(r->body->ctx, err) : SPK_OK;
    if (u->status == SPK_OK)
        u->status = make_url(p, r, &url, err);
    if (u->status == SPK_OK) {
        set_options(p, r, u, (const char *)url.data);
        u->status = add_headers(p, r, &headers, err);
    }
    if (u->status == SPK_OK) {
        curl_easy_setopt(p->easy, CURLOPT_HTTPHEADER, headers);
        result = curl_easy_perform(p->easy);
    }
    curl_slist_free_all(headers);
    spk_buf_free(&url);
    if (u->status == SPK_OK)
        u->status = spk_buf_terminate(&out->text, err);
    return result;
}

/* Before try number i. False: cancelled. */
static bool pause(const spk_put *p, int i, uint32_t retry_after)
{
    uint32_t wait = retry_after ? retry_after * 1000 : 100u << (i - 1);
    wait = wait < 30000 ? wait : 30000;
    for (uint32_t slept = 0; slept < wait; slept += SLICE_MS) {
        if (p->cancel && p->cancel(p->user, p->sent))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = (long)SLICE_MS * 1000000}, NULL);
    }
    return true;
}

/* A refusal after which the same request may do better, with new keys or in another region. */
static bool is_mended(spk_put *p, const spk_put_request *r, const spk_put_reply *reply)
{
    int status = reply->reply.status;
    if (status != 301 && status != 400 && status != 401 && status != 403)
        return false;
    const char *text = strcmp(r->method, "HEAD") == 0 ? NULL : (const char *)reply->text.data;
    spk_net_lock(p->net);
    bool again = spk_s3_again(p->net, 0, text, reply->reply.region, p->keys);
    spk_net_unlock(p->net);
    return again;
}

spk_status spk_put_ask(spk_put *p, const spk_put_request *r, spk_put_reply *out, spk_error *err)
{
    CURLcode result = CURLE_OK;
    int tries = 0, stalls = 0;
    upload u = {.p = p, .r = r, .out = out, .err = err};
    for (; tries < TRIES && stalls < STALLS; tries++) {
        if (tries > 0 && !pause(p, tries, out->reply.retry_after))
            return spk_error_set(err, SPK_E_CANCELLED, "cancelled");
        result = ask_once(p, r, &u, err);
        if (u.status < 0)
            return u.status;
        if (result == CURLE_ABORTED_BY_CALLBACK)
            return spk_error_set(err, SPK_E_CANCELLED, "cancelled");
        int status = out->reply.status;
        bool again =
            is_mended(p, r, out) || status == 408 || status == 429 || (status >= 500 && status != 501 && status != 507);
        if (result == CURLE_OK && !again)
            return SPK_OK;
        stalls += result == CURLE_OPERATION_TIMEDOUT;
    }
    const char *prefix = p->net->mirrors[0].place.prefix;
    if (result != CURLE_OK)
        return spk_error_set(err, SPK_E_NETWORK, "%s/%s: %s: %s (after %d attempts)", prefix, r->name, r->method,
                             stalls == STALLS ? "the server stalls" : curl_easy_strerror(result), tries);
    return spk_put_refused(p, r, out, err);
}

/* What a refusal means, and what to do. */
static const char *advice(const spk_put *p, const char *method, int status)
{
    static const struct {
        int status;
        const char *text;
    } all[] = {
        {401, ": user and password are missing or wrong"},
        {403, ": these credentials may not write there"},
        {405,
         ": the server takes no PUT there, it can only be read from; it must allow PUT (WebDAV), or take an s3:// URL"},
        {409, ": the server wants the folder to be there first"},
        {413, ": the server takes no object of this size (nginx: client_max_body_size)"},
        {501, ": the server knows no PUT, it can only be read from; it must allow PUT (WebDAV), or take an s3:// URL"},
        {507, ": the server has no space left"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].status == status && strcmp(method, "PUT") == 0 && !(status == 409 && spk_put_is_s3(p)))
            return all[i].text;
    return status >= 300 && status < 400 ? ": redirects are not followed; give the URL that it points to" : "";
}

spk_status spk_put_refused(const spk_put *p, const spk_put_request *r, const spk_put_reply *reply, spk_error *err)
{
    char code[64] = "";
    const char *text = reply->text.data ? (const char *)reply->text.data : "";
    int status = reply->reply.status;
    spk_put_tag(&text, "Code", code, sizeof code);
    spk_status st = status == 401 || status == 403   ? SPK_E_PERMISSION
                    : status == 404                  ? SPK_E_NOT_FOUND
                    : status == 409 || status == 412 ? SPK_E_EXISTS
                                                     : SPK_E_NETWORK;
    return spk_error_set(err, st, "%s/%s: %s: HTTP %d%s%s%s", p->net->mirrors[0].place.prefix, r->name, r->method,
                         status, *code ? " " : "", code, advice(p, r->method, status));
}

spk_status spk_put_look(spk_put *p, const char *name, spk_put_head *out, spk_error *err)
{
    const spk_put_request r = {.method = "HEAD", .name = name};
    spk_put_reply reply = {0};
    memset(out, 0, sizeof *out);
    spk_status st = spk_put_ask(p, &r, &reply, err);
    int status = reply.reply.status;
    if (st == SPK_OK && status == 200) {
        out->exists = true;
        out->size = reply.reply.length;
        memcpy(out->digest, reply.digest, sizeof out->digest);
    } else if (st == SPK_OK && status != 404) {
        st = spk_put_refused(p, &r, &reply, err);
    }
    spk_put_reply_free(&reply);
    return st;
}

/* The whole body in memory: signed requests need its digest beforehand. */
static spk_status gather(const spk_put_body *body, spk_buf *out, spk_error *err)
{
    const uint8_t *p = NULL;
    size_t n = 0;
    SPK_TRY(body->rewind(body->ctx, err));
    for (;;) {
        SPK_TRY(body->next(body->ctx, &p, &n, err));
        if (n == 0)
            return SPK_OK;
        SPK_TRY(spk_buf_append(out, p, n, err));
    }
}

spk_status spk_put_object(spk_put *p, const char *name, const spk_put_body *body, const char *digest, bool replace,
                          spk_error *err)
{
    spk_buf data = {0};
    spk_put_reply reply = {0};
    char meta[128];
    size_t headers = 0;
    p->sent = 0;
    if (spk_put_is_s3(p) && body->size > SINGLE_MAX)
        return spk_put_multipart(p, name, body, digest, err);
    spk_put_request r = {.method = "PUT", .name = name, .n = body->size};
    spk_status st = SPK_OK;
    if (spk_put_is_s3(p)) {
        snprintf(meta, sizeof meta, SPK_DIGEST_HEADER ": %s", digest ? digest : "");
        st = gather(body, &data, err);
        r.data = data.data ? data.data : (const uint8_t *)"";
        if (digest)
            r.headers[headers++] = meta;
    } else {
        r.body = body;
    }
    if (!replace)
        r.headers[headers++] = "If-None-Match: *";
    if (st == SPK_OK)
        st = spk_put_ask(p, &r, &reply, err);
    if (st == SPK_OK && (reply.reply.status < 200 || reply.reply.status > 299))
        st = spk_put_refused(p, &r, &reply, err);
    spk_buf_free(&data);
    spk_put_reply_free(&reply);
    return st;
}

spk_status spk_put_remove(spk_put *p, const char *name, spk_error *err)
{
    const spk_put_request r = {.method = "DELETE", .name = name};
    spk_put_reply reply = {0};
    spk_status st = spk_put_ask(p, &r, &reply, err);
    if (st == SPK_OK && (reply.reply.status < 200 || reply.reply.status > 299))
        st = spk_put_refused(p, &r, &reply, err);
    spk_put_reply_free(&reply);
    return st;
}
