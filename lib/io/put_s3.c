/* What only S3 has: objects in parts, which appear when all of them are there, and lists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/put_impl.h"

#define PART ((size_t)16 << 20)
#define PARTS_MAX 10000u
#define ETAG_CHARS 100

typedef struct parts {
    char (*etags)[ETAG_CHARS];
    size_t n, cap;
} parts;

static spk_status begin(spk_put *p, const char *name, const char *digest, char *id, size_t cap, spk_error *err)
{
    char meta[128], raw[1024];
    snprintf(meta, sizeof meta, SPK_DIGEST_HEADER ": %s", digest ? digest : "");
    const spk_put_request r = {.method = "POST",
                               .name = name,
                               .query = "uploads=",
                               .headers = {digest ? meta : NULL},
                               .data = (const uint8_t *)""};
    spk_put_reply reply = {0};
    spk_status st = spk_put_ask(p, &r, &reply, err);
    const char *text = reply.text.data ? (const char *)reply.text.data : "";
    if (st == SPK_OK && reply.reply.status != 200)
        st = spk_put_refused(p, &r, &reply, err);
    else if (st == SPK_OK && !spk_put_tag(&text, "UploadId", raw, sizeof raw))
        st = spk_error_set(err, SPK_E_NETWORK, "%s: the server gave no upload id", name);
    spk_put_reply_free(&reply);
    SPK_TRY(st);
    char *encoded = spk_url_encode(raw);
    if (!encoded)
        return spk_error_nomem(err, sizeof raw);
    if ((size_t)snprintf(id, cap, "%s", encoded) >= cap || strchr(id, '/'))
        st = spk_error_set(err, SPK_E_NETWORK, "%s: the server gave an upload id that makes no sense", name);
    free(encoded);
    return st;
}

static spk_status send_part(spk_put *p, const char *name, const char *id, parts *done, const spk_buf *data,
                            spk_error *err)
{
    char query[1200];
    spk_put_reply reply = {0};
    snprintf(query, sizeof query, "partNumber=%zu&uploadId=%s", done->n + 1, id);
    const spk_put_request r = {.method = "PUT", .name = name, .query = query, .data = data->data, .n = data->len};
    if (done->n == PARTS_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "%s: more than %u parts", name, PARTS_MAX);
    SPK_TRY(spk_grow(&done->etags, &done->cap, done->n + 1, sizeof *done->etags, err));
    spk_status st = spk_put_ask(p, &r, &reply, err);
    if (st == SPK_OK && reply.reply.status != 200)
        st = spk_put_refused(p, &r, &reply, err);
    if (st == SPK_OK && (!reply.reply.etag[0] || strpbrk(reply.reply.etag, "<>&")))
        st = spk_error_set(err, SPK_E_NETWORK, "%s: the server gave no ETag for a part", name);
    if (st == SPK_OK)
        snprintf(done->etags[done->n++], ETAG_CHARS, "%s", reply.reply.etag);
    spk_put_reply_free(&reply);
    p->sent += st == SPK_OK ? data->len : 0;
    return st;
}

static spk_status finish(spk_put *p, const char *name, const char *id, const parts *done, spk_error *err)
{
    spk_buf body = {0};
    char query[1200];
    spk_put_reply reply = {0};
    snprintf(query, sizeof query, "uploadId=%s", id);
    spk_status st = spk_buf_printf(&body, err, "<CompleteMultipartUpload>");
    for (size_t i = 0; i < done->n && st == SPK_OK; i++)
        st = spk_buf_printf(&body, err, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag></Part>", i + 1,
                            done->etags[i]);
    if (st == SPK_OK)
        st = spk_buf_printf(&body, err, "</CompleteMultipartUpload>");
    const spk_put_request r = {.method = "POST", .name = name, .query = query, .data = body.data, .n = body.len};
    if (st == SPK_OK)
        st = spk_put_ask(p, &r, &reply, err);
    /* A failure may come as an error document behind status 200. */
    if (st == SPK_OK && (reply.reply.status != 200 || strstr((const char *)reply.text.data, "<Error>")))
        st = spk_put_refused(p, &r, &reply, err);
    spk_put_reply_free(&reply);
    spk_buf_free(&body);
    return st;
}

static void give_up(spk_put *p, const char *name, const char *id)
{
    char query[1200];
    spk_put_reply reply = {0};
    snprintf(query, sizeof query, "uploadId=%s", id);
    int (*cancel)(void *, uint64_t) = p->cancel;
    p->cancel = NULL; /* also when cancelled: the parts would stay and be paid for */
    const spk_put_request r = {.method = "DELETE", .name = name, .query = query};
    spk_status ignored = spk_put_ask(p, &r, &reply, NULL);
    (void)ignored;
    p->cancel = cancel;
    spk_put_reply_free(&reply);
}

spk_status spk_put_multipart(spk_put *p, const char *name, const spk_put_body *body, const char *digest, spk_error *err)
{
    char id[1100];
    parts done = {0};
    spk_buf part = {0};
    size_t want = body->size / (PARTS_MAX - 1000) > PART ? (size_t)(body->size / (PARTS_MAX - 1000)) : PART;
    const uint8_t *piece = NULL;
    size_t n = 0;
    SPK_TRY(body->rewind(body->ctx, err));
    SPK_TRY(begin(p, name, digest, id, sizeof id, err));
    spk_status st = SPK_OK;
    do {
        st = body->next(body->ctx, &piece, &n, err);
        if (st == SPK_OK && n > 0)
            st = spk_buf_append(&part, piece, n, err);
        if (st == SPK_OK && part.len > 0 && (n == 0 || part.len >= want)) {
            st = send_part(p, name, id, &done, &part, err);
            part.len = 0;
        }
    } while (st == SPK_OK && n > 0);
    if (st == SPK_OK)
        st = finish(p, name, id, &done, err);
    if (st < 0)
        give_up(p, name, id);
    free(done.etags);
    spk_buf_free(&part);
    return st;
}

/* Names below the prefix, without those of folders below it. */
static spk_status take_page(const char *text, const char *prefix,
                            spk_status (*fn)(void *, const char *, uint64_t, spk_error *), void *ctx, spk_error *err)
{
    char key[1100], size[32];
    const char *at = text;
    while (spk_put_tag(&at, "Key", key, sizeof key)) {
        const char *after = at;
        uint64_t bytes = spk_put_tag(&after, "Size", size, sizeof size) ? strtoull(size, NULL, 10) : 0;
        size_t n = strlen(prefix);
        if (strncmp(key, prefix, n) == 0 && !strchr(key + n, '/'))
            SPK_TRY(fn(ctx, key + n, bytes, err));
    }
    return SPK_OK;
}

spk_status spk_put_list(spk_put *p, spk_status (*fn)(void *ctx, const char *name, uint64_t size, spk_error *e),
                        void *ctx, spk_error *err)
{
    const spk_mirror *m = &p->net->mirrors[0];
    if (m->place.kind != SPK_PLACE_S3)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "%s: a web server cannot be asked for a list of its files",
                             m->place.prefix);
    char token[1100] = "", prefix[1100], query[4096];
    snprintf(prefix, sizeof prefix, "%s%s", m->place.path[0] ? m->place.path + 1 : "", m->place.path[0] ? "/" : "");
    for (;;) {
        spk_put_reply reply = {0};
        const spk_put_request r = {.method = "GET", .name = "", .query = query, .at_folder = true};
        char *encoded = curl_easy_escape(p->easy, prefix, 0), *next = curl_easy_escape(p->easy, token, 0);
        snprintf(query, sizeof query, "%s%s%slist-type=2&prefix=%s", token[0] ? "continuation-token=" : "",
                 token[0] && next ? next : "", token[0] ? "&" : "", encoded ? encoded : "");
        curl_free(encoded);
        curl_free(next);
        spk_status st = spk_put_ask(p, &r, &reply, err);
        if (st == SPK_OK && reply.reply.status != 200)
            st = spk_put_refused(p, &r, &reply, err);
        if (st == SPK_OK)
            st = take_page((const char *)reply.text.data, prefix, fn, ctx, err);
        const char *at = reply.text.data ? (const char *)reply.text.data : "";
        bool more = st == SPK_OK && spk_put_tag(&at, "NextContinuationToken", token, sizeof token);
        spk_put_reply_free(&reply);
        SPK_TRY(st);
        if (!more)
            return SPK_OK;
    }
}
