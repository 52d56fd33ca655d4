/* Private to put*.c: one request and what it brought. */
#ifndef SPK_IO_PUT_IMPL_H
#define SPK_IO_PUT_IMPL_H

#include "io/net_impl.h"
#include "io/put.h"

struct spk_put {
    spk_net *net;
    CURL *easy;
    int (*cancel)(void *user, uint64_t sent);
    void *user;
    uint64_t sent; /* of the object, in requests before this one */
    uint32_t keys; /* S3: which credentials signed the last request */
};

typedef struct spk_put_request {
    const char *method, *name, *query; /* query: without "?", may be NULL */
    const char *headers[3];            /* more of them, NULL at the end */
    const uint8_t *data;               /* the body, or */
    const spk_put_body *body;          /* a stream of it */
    uint64_t n;
    bool at_folder; /* the request is for the place itself (its bucket), not for an object */
} spk_put_request;

typedef struct spk_put_reply {
    spk_reply reply;
    char digest[65];
    spk_buf text; /* of the body, bounded, with a NUL behind it */
} spk_put_reply;

/* Retries what may be retried. Any reply that another try would not change is SPK_OK, with its status in reply. */
SPK_CHECK spk_status spk_put_ask(spk_put *p, const spk_put_request *r, spk_put_reply *out, spk_error *err);
/* The error of a reply that was not wanted. */
spk_status spk_put_refused(const spk_put *p, const spk_put_request *r, const spk_put_reply *reply, spk_error *err);
void spk_put_reply_free(spk_put_reply *r);
/* Text between <tag> and </tag>, from *at on, which moves behind it; false if there is none. */
bool spk_put_tag(const char **at, const char *tag, char *out, size_t cap);

/* put_s3.c */
SPK_CHECK spk_status spk_put_multipart(spk_put *p, const char *name, const spk_put_body *body, const char *digest,
                                       spk_error *err);

#define SPK_DIGEST_HEADER "x-amz-meta-shardpack-sha256"

#endif
