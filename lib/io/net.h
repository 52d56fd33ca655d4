/* Remote places: a dataset's mirrors, their connections, credentials, health and cache. Objects are opened as byte
 * sources (source.h). Thread-safety: shareable; after fork the child gets connections of its own. */
#ifndef SPK_IO_NET_H
#define SPK_IO_NET_H

#include "base/buf.h"
#include "io/net_stat.h"
#include "io/source.h"

typedef struct spk_net spk_net;

/* Zero is the default of every member. Strings are copied. */
typedef struct spk_net_options {
    double deadline;            /* seconds that one read may take, retries and all; 0: 60 */
    const char *cache_dir;      /* NULL or empty: no cache */
    uint64_t cache_limit;       /* bytes; 0: 90 % of what the file system has free */
    uint64_t ahead;             /* bytes read ahead by each sequential reader; 0: 4 MiB */
    int plain_credentials;      /* nonzero: credentials may go over http:// */
    spk_net_shared *shared;     /* borrowed; NULL: private */
    int (*on_wait)(void *user); /* as spk_net_on_wait; may be NULL */
    void *user;
} spk_net_options;

SPK_CHECK spk_status spk_net_new(spk_net **out, const spk_net_options *options, spk_error *err);
void spk_net_free(spk_net *net); /* after all of its sources */
/* Adds a base URL; one that is there already is left out. The first one added is preferred while nothing is known. */
SPK_CHECK spk_status spk_net_add_mirror(spk_net *net, const char *url, spk_error *err);
/* Adds the folder of an object's URL, whose name goes to *name (malloc'ed). */
SPK_CHECK spk_status spk_net_add_folder_of(spk_net *net, const char *url, char **name, spk_error *err);
/* on_wait is called by whoever waits for a server, some ten times a second, and must not use the net: while credentials
 * are asked for, the lock is held; nonzero ends
 * the wait with CANCELLED. NULL: nothing does. */
void spk_net_on_wait(spk_net *net, int (*on_wait)(void *user), void *user);
size_t spk_net_mirrors(const spk_net *net);
/* Base URL of mirror i as it may be shown. */
const char *spk_net_mirror_name(const spk_net *net, size_t i);
spk_net_shared *spk_net_counts_of(const spk_net *net);

/* Options and mirrors as text for another process, which must be trusted: it holds what URLs held. */
SPK_CHECK spk_status spk_net_pack(const spk_net *net, spk_buf *out, spk_error *err);
SPK_CHECK spk_status spk_net_unpack(spk_net **out, const char *text, size_t n, spk_net_shared *shared, spk_error *err);

/* What is known of an object before it is asked for. */
typedef struct spk_net_object {
    uint64_t size;         /* 0: unknown, to be asked for */
    uint64_t units;        /* pieces with a digest (spk_source_check.unit is below); 0: not to be cached */
    const uint8_t *digest; /* SHA-256 that names the content in the cache; NULL: not to be cached */
} spk_net_object;

/* Object `name` (as it stands in a URL), below each mirror. Nothing is requested if its size is known. */
SPK_CHECK spk_status spk_net_open(spk_net *net, const char *name, const spk_net_object *object, spk_source **out,
                                  spk_error *err);

/* One object by its URL, with a net of its own and no digests. */
SPK_CHECK spk_status spk_net_open_url(spk_source **out, const char *url, const spk_source_options *options,
                                      spk_error *err);
/* Bytes that each sequential reader has fetched ahead, from now on. */
void spk_net_set_ahead(spk_net *net, uint64_t bytes);
typedef struct spk_net_vote {
    bool agreed;      /* two mirrors gave the same */
    size_t different; /* answers there were */
} spk_net_vote;
/* The bytes of a small object (at most `most`) that has no digest. With several mirrors all are asked at once, and what
 * two of them agree on is taken, else, a while after the first answer, that one. If it turns out to be useless, the
 * next attempt (they count from 0) takes another answer. *text is malloc'ed and ends with a NUL behind its *n bytes. */
SPK_CHECK spk_status spk_net_fetch(spk_net *net, const char *name, uint64_t most, size_t attempt, char **text,
                                   size_t *n, spk_net_vote *vote, spk_error *err);
/* Lets transfers under way go on for up to ms, or until `fd` (-1: none) is readable. False if there are none. */
bool spk_net_drive(spk_net *net, int fd, int ms);

#endif
