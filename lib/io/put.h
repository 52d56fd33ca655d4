/* Sending objects to one place: PUT for a web server, also multipart for S3. Blocking, with retries.
 * Thread-safety: confined; several may share one net. */
#ifndef SPK_IO_PUT_H
#define SPK_IO_PUT_H

#include "io/net.h"

typedef struct spk_put spk_put;

/* What a server says of an object. */
typedef struct spk_put_head {
    bool exists;
    uint64_t size;
    char digest[65]; /* that spk_put_object gave it; empty: unknown */
} spk_put_head;

/* Gives the next bytes of a body, *n > 0, or *n = 0 behind the last; borrowed until the next call. */
typedef struct spk_put_body {
    spk_status (*next)(void *ctx, const uint8_t **p, size_t *n, spk_error *err);
    spk_status (*rewind)(void *ctx, spk_error *err);
    void *ctx;
    uint64_t size;
} spk_put_body;

/* net has one mirror. cancel (may be NULL) is asked now and then with the bytes sent so far of an object; nonzero ends
 * with CANCELLED. */
SPK_CHECK spk_status spk_put_new(spk_put **out, spk_net *net, int (*cancel)(void *user, uint64_t sent), void *user,
                                 spk_error *err);
void spk_put_free(spk_put *p);
bool spk_put_is_s3(const spk_put *p);

SPK_CHECK spk_status spk_put_look(spk_put *p, const char *name, spk_put_head *out, spk_error *err);
/* Sends an object. digest: in hex, kept with it where that is possible; NULL: none. replace: what is there may be
 * overwritten; else EXISTS, if the server can tell. */
SPK_CHECK spk_status spk_put_object(spk_put *p, const char *name, const spk_put_body *body, const char *digest,
                                    bool replace, spk_error *err);
SPK_CHECK spk_status spk_put_remove(spk_put *p, const char *name, spk_error *err);
/* Calls fn for each object of the folder itself, with its name below it. S3 only: UNSUPPORTED otherwise. */
SPK_CHECK spk_status spk_put_list(spk_put *p,
                                  spk_status (*fn)(void *ctx, const char *name, uint64_t size, spk_error *e), void *ctx,
                                  spk_error *err);

#endif
