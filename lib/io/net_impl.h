/* Private to io/: what the files of the remote sources owe each other.
 *
 *   net.c       the handle: options, mirrors, packing
 *   loop.c      the lock, libcurl's multi handle, waiting
 *   transfer.c  one request and its reply
 *   mirror.c    which mirror is asked next, and when
 *   window.c    one range of an object, until its bytes are there: retries, failover, hedge
 *   stream.c    windows one behind the other for a reader that goes forward
 *   remote.c    an object as a byte source: streams, digests, cache
 *   story.c     what was tried, as text
 *
 * Everything here is touched with the net's lock held. */
#ifndef SPK_IO_NET_IMPL_H
#define SPK_IO_NET_IMPL_H

#include <curl/curl.h>
#include <pthread.h>
#include <sys/types.h>

#include "io/net.h"
#include "io/reply.h"
#include "io/url.h"

#define SPK_NET_IDLE_MAX 32u
#define SPK_NET_SPARE_MAX 16u
#define SPK_NET_PER_HOST 16u /* requests at a time of a mirror; what waits for its turn is not begun */
#define SPK_REPLY_BODY 1024u /* bytes kept of an error's body */

typedef struct spk_s3 spk_s3;
typedef struct spk_cache spk_cache;
typedef struct spk_window spk_window;
typedef struct spk_object spk_object;
typedef struct spk_streams spk_streams;
typedef struct spk_transfer spk_transfer;

typedef struct spk_mirror {
    spk_place place;
    char *url;        /* as given, for packing */
    char *target;     /* prefix that requests go to: place.prefix, or the S3 endpoint's */
    char *host;       /* S3: value of the Host header */
    uint32_t running; /* requests of this process */
    spk_net_counts *counts;
} spk_mirror;

struct spk_net {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool polling;             /* a thread is in curl_multi_poll, without the lock */
    unsigned wanting, served; /* threads that wait for it to end, and how many had their turn */
    pid_t pid;
    CURLM *multi;
    CURL *idle[SPK_NET_IDLE_MAX];
    size_t idle_n;
    spk_transfer *transfers; /* all that were added to multi */
    spk_window *windows;     /* all that are not complete, the oldest first */
    spk_window **windows_end;
    spk_mirror mirrors[SPK_NET_MIRRORS_MAX];
    size_t mirrors_n;
    spk_net_shared *shared, *own_shared;
    uint64_t deadline_ns, ahead, cache_limit;
    char *cache_dir, *ca_file;
    bool plain_credentials;
    spk_s3 *s3; /* NULL until an s3:// mirror is added */
    spk_cache *cache;
    uint64_t hedges, requests; /* of this process, for the share of hedges */
    uint32_t explored;
    uint64_t random;
    struct {
        uint8_t *data;
        size_t cap;
    } spare[SPK_NET_SPARE_MAX]; /* buffers of windows that are done: fresh pages would cost as much as the copy */
    size_t spare_n, spare_bytes;
    uint64_t events; /* counts bytes that came and requests that ended */
    int (*on_wait)(void *user);
    void *on_wait_user;
    uint64_t asked_ns; /* when on_wait was called last */
};

/* ---- loop.c ---- */
void spk_net_lock(spk_net *net);
/* With the lock: waits until no thread is in curl_multi_poll. */
void spk_net_turn(spk_net *net);
void spk_net_unlock(spk_net *net);
/* Waits up to ms for something to happen and lets all windows take a step. fd: as in spk_net_drive. False: on_wait
 * wants no more. */
bool spk_net_wait(spk_net *net, int fd, int ms);
spk_status spk_net_cancelled(spk_error *err);
SPK_CHECK spk_status spk_loop_init(spk_net *net, spk_error *err);
void spk_loop_free(spk_net *net);
CURL *spk_easy_get(spk_net *net); /* NULL without memory */
void spk_easy_put(spk_net *net, CURL *easy);

/* ---- transfer.c ---- */
typedef enum spk_ask { SPK_ASK_RANGE = 0, SPK_ASK_WHOLE = 1, SPK_ASK_END = 2 } spk_ask;

struct spk_transfer {
    spk_transfer *next, **link;
    spk_net *net;
    size_t mirror;
    CURL *easy;
    struct curl_slist *headers;
    spk_ask ask;
    uint64_t from, to; /* RANGE: what was asked for; else set by the reply */
    uint64_t total;    /* size of the object by the reply */
    uint64_t expected; /* size that it must have; 0: any */
    const char *etag;  /* that it must have; "" or NULL: any */
    uint8_t *into;
    size_t cap, have;
    size_t marked; /* bytes at the last progress */
    bool grows;    /* into is the transfer's own, up to cap_max */
    size_t cap_max;
    bool accepted, refused, done, fresh;
    uint32_t keys; /* S3: which credentials signed it */
    spk_reply reply;
    char body[SPK_REPLY_BODY];
    size_t body_n;
    CURLcode result;
    char detail[CURL_ERROR_SIZE];
    uint64_t started_ns, first_ns, progress_ns;
};
/* Begins a request for `name` of a mirror. The caller has filled in mirror, ask, from, to, expected, etag, into, cap,
 * fresh. */
SPK_CHECK spk_status spk_transfer_start(spk_net *net, spk_transfer *t, const char *name, spk_error *err);
/* What became of one that is done; text (may be NULL) says it in a few words. */
spk_net_fault spk_transfer_fault(const spk_transfer *t, char *text, size_t cap);
/* Ends it, whatever its state; the memory stays the caller's. */
void spk_transfer_end(spk_transfer *t);

/* ---- mirror.c ---- */
#define SPK_NO_MIRROR SIZE_MAX
/* The best mirror outside the two sets (bit i: mirror i), or SPK_NO_MIRROR. */
size_t spk_mirror_pick(spk_net *net, uint32_t excluded, uint32_t avoided);
/* Time before which nothing may be asked of the mirror (0: now); a slot of its pace is taken if there is one. */
uint64_t spk_mirror_slot(spk_net *net, size_t mirror, uint64_t now);
uint64_t spk_mirror_not_before(const spk_net *net, size_t mirror);
void spk_mirror_good(spk_net *net, size_t mirror, uint64_t latency_ns);
void spk_mirror_bad(spk_net *net, size_t mirror, spk_net_fault fault, uint32_t retry_after);
/* Counts the status of a reply that was no use; one that promised the bytes (200, 206) does not count. */
void spk_mirror_code(spk_net *net, size_t mirror, int status);
/* Without progress for so long, a request is hedged. */
uint64_t spk_mirror_patience(const spk_net *net, size_t mirror);
uint64_t spk_net_random(spk_net *net, uint64_t below);

/* ---- story.c ---- */
typedef struct spk_tries {
    uint32_t attempts;
    uint32_t faults[SPK_FAULTS];
    uint64_t bytes;
    int status;     /* of the last reply */
    char last[256]; /* what went wrong last */
    char etag[96];
} spk_tries;
/* Adds a request that is given up though it has not ended. */
void spk_story_under_way(spk_tries *t, const spk_transfer *x, uint64_t now);
/* What to say when no mirror is left. */
const char *spk_story_end(const spk_net *net, const spk_tries *tries);
/* Sets the final error: `why` and each mirror's share. */
spk_status spk_story_tell(const spk_net *net, const spk_tries *tries, const char *why, spk_error *err);

/* ---- window.c ---- */
struct spk_window {
    spk_window *next;            /* of its stream */
    spk_window *list, **list_in; /* of the net */
    spk_object *object;
    spk_ask ask;
    uint64_t from, to;
    uint8_t *data;
    size_t room; /* of data */
    size_t cap, have;
    spk_transfer main, hedge;
    bool main_on, hedge_on;
    bool urgent; /* a reader waits for it: begins at once */
    uint8_t *hedge_data;
    uint64_t ready_ns; /* not to be asked for again before */
    uint32_t served;   /* mirrors that gave bytes of it */
    uint32_t avoided;  /* mirrors that failed in this round */
    uint32_t rounds;   /* all mirrors failed so often */
    size_t mirror;     /* asked last */
    size_t hedge_from; /* have when the hedge began */
    bool done, failed; /* failed: no mirror is left */
    uint64_t begun_ns;
    uint64_t unit; /* piece that it holds exactly and that is claimed in the cache, or SPK_NO_UNIT */
};
#define SPK_NO_UNIT UINT64_MAX
/* What the windows of an object share. */
struct spk_object {
    spk_net *net;
    char *name;
    uint64_t size;     /* 0: unknown */
    uint32_t excluded; /* mirrors that are not asked any more */
    uint32_t lied;     /* mirrors that gave wrong bytes: asked when nothing else is left */
    spk_tries tries[SPK_NET_MIRRORS_MAX];
    void (*on_done)(spk_object *o, spk_window *w); /* all of a window is there, or it is dropped before */
};
SPK_CHECK spk_status spk_window_new(spk_window **out, spk_object *o, spk_ask ask, uint64_t from, uint64_t to,
                                    size_t cap, spk_error *err);
void spk_window_free(spk_window *w);
/* Whatever is to be done now: begin, look at what ended, hedge. */
void spk_window_step(spk_window *w, uint64_t now);
/* When it has to be looked at again without anything having happened. */
uint64_t spk_window_due(const spk_window *w, uint64_t now);
/* Before its story is told at the deadline: what is under way becomes part of it. */
void spk_window_give_up(spk_window *w, uint64_t now);
/* Waits until w holds the bytes up to `have`, or the deadline. */
SPK_CHECK spk_status spk_window_wait(spk_window *w, size_t have, uint64_t deadline, spk_error *err);

/* ---- stream.c ---- */
typedef struct spk_stream spk_stream;
struct spk_streams {
    spk_object *object;
    spk_stream *first;
    size_t n;
    uint64_t clock;
    bool told; /* readers announce what they will read: nothing is guessed */
    /* Pieces of a cached object: a window is exactly one of them. NULL: none. Borrowed. */
    const uint64_t *offsets;
    uint64_t units;
    /* Whether a piece is to be fetched ahead (and is then claimed). */
    bool (*wanted)(spk_streams *s, uint64_t unit);
};
/* Reads n bytes at off through the stream that is there, or a new one. *served: mirrors that gave them. */
SPK_CHECK spk_status spk_streams_read(spk_streams *s, uint8_t *out, size_t n, uint64_t off, uint64_t deadline,
                                      uint32_t *served, spk_error *err);
/* The reader got the bytes before off some other way, and goes on there. */
void spk_streams_passed(spk_streams *s, uint64_t off);
void spk_streams_ahead(spk_streams *s, uint64_t from, uint64_t to, uint64_t until, uint64_t reader);
/* The same for one piece, which is claimed. */
void spk_streams_ahead_unit(spk_streams *s, uint64_t from, uint64_t to, uint64_t unit);
/* A window that holds the piece `unit`, of any stream; NULL: none. */
spk_window *spk_streams_unit(spk_streams *s, uint64_t unit);
/* Drops everything that holds bytes of [off, off + n). */
void spk_streams_drop(spk_streams *s, uint64_t off, uint64_t n);
void spk_streams_free(spk_streams *s);

/* ---- s3.c ---- */
/* Makes target and host of an s3:// mirror. */
SPK_CHECK spk_status spk_s3_add(spk_net *net, spk_mirror *m, spk_error *err);
/* Signs a request; payload_sha256: in hex, NULL: no body. */
SPK_CHECK spk_status spk_s3_sign(spk_net *net, const spk_mirror *m, CURL *easy, struct curl_slist **headers,
                                 const char *payload_sha256, spk_error *err);
/* Which credentials are in use: changes when others are found. */
uint32_t spk_s3_keys_in_use(const spk_net *net);
/* After a refusal (its text, NULL: it had none; the region that it named; which keys had signed). True if the same
 * request may do better: the credentials were too old and are read anew, or the bucket is in another region, which is
 * known now. */
bool spk_s3_again(spk_net *net, size_t mirror, const char *text, const char *region, uint32_t keys);
void spk_s3_free(spk_s3 *s3);

/* ---- ca.c ---- */

/* The file of certificates that servers are checked against; NULL: libcurl's own. Lent by the environment or static. */
const char *spk_ca_file(void);

#endif
