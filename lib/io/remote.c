/* An object on one or more mirrors as a byte source. Reads go through streams (stream.c); what has a digest is checked
 * here, fetched again from elsewhere if it is wrong, and cached once it is right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/hash.h"
#include "io/cache.h"
#include "io/net_impl.h"

#define MS UINT64_C(1000000)
#define END_BYTES ((uint64_t)64 << 10) /* asked for at the end of an object of unknown size */
#define LIES_MAX 3u                    /* of one mirror on one object */
#define OTHERS_POLL_MS 3
#define OTHERS_PATIENCE_NS (3000 * MS) /* another process has the piece, or the entry, but does not get on */

typedef struct remote {
    spk_source base;
    spk_object object;
    spk_streams streams;
    bool owns_net;
    bool busy; /* a thread reads; the others wait */
    char *shown;
    spk_window *held; /* of a size that was unknown: what came with it */
    spk_cache_entry *entry;
    uint64_t units;
    const uint8_t (*digests)[16]; /* of the pieces, borrowed; NULL: not known */
    const uint64_t *offsets;
    uint8_t digest[SPK_SHA256_BYTES]; /* of the last piece, which names the whole */
    uint64_t last_off;
    uint32_t last_served;
} remote;

static remote *of_source(spk_source *s)
{
    return (remote *)s;
}

static void enter(remote *r)
{
    spk_net *net = r->object.net;
    spk_net_lock(net);
    while (r->busy) {
        pthread_cond_wait(&net->changed, &net->lock);
        spk_net_turn(net);
    }
    r->busy = true;
}

static void leave(remote *r)
{
    r->busy = false;
    pthread_cond_broadcast(&r->object.net->changed);
    spk_net_unlock(r->object.net);
}

static uint64_t deadline_of(const remote *r)
{
    return spk_now_ns() + r->object.net->deadline_ns;
}

/* From what came when the size was asked for. */
static bool from_held(remote *r, void *out, size_t n, uint64_t off)
{
    const spk_window *w = r->held;
    if (!w || off < w->from || off + n > w->to)
        return false;
    memcpy(out, w->data + (off - w->from), n);
    r->last_served = w->served;
    return true;
}

static spk_status read_plain(remote *r, void *out, size_t n, uint64_t off, uint64_t deadline, uint32_t *served,
                             spk_error *err)
{
    if (from_held(r, out, n, off)) {
        *served = r->last_served;
        return SPK_OK;
    }
    return spk_streams_read(&r->streams, out, n, off, deadline, served, err);
}

static spk_status remote_pread(spk_source *s, void *out, size_t n, uint64_t off, spk_error *err)
{
    remote *r = of_source(s);
    uint32_t served = 0;
    enter(r);
    spk_status st = read_plain(r, out, n, off, deadline_of(r), &served, err);
    r->last_off = off;
    r->last_served = served;
    leave(r);
    return st;
}

/* Mirrors that gave wrong bytes are asked last, and after some such replies not at all for this object. */
static void count_lie(spk_object *o, uint32_t served)
{
    for (size_t i = 0; i < o->net->mirrors_n; i++) {
        if (!(served >> i & 1))
            continue;
        spk_tries *t = &o->tries[i];
        snprintf(t->last, sizeof t->last, "bytes do not match their SHA-256");
        spk_mirror_bad(o->net, i, SPK_FAULT_DIGEST, 0);
        if (++t->faults[SPK_FAULT_DIGEST] >= LIES_MAX)
            o->excluded |= 1u << i;
    }
    o->lied |= served;
}

static spk_status matches(const void *data, size_t n, const uint8_t *want, size_t want_n, bool *same, spk_error *err)
{
    uint8_t digest[SPK_SHA256_BYTES];
    SPK_TRY(spk_sha256_once(data, n, digest, err));
    *same = memcmp(digest, want, want_n) == 0;
    return SPK_OK;
}

/* Of a cached object a piece has come from a mirror. */
static void count_miss(const spk_object *o)
{
    atomic_fetch_add_explicit(&o->net->shared->cache_misses, 1, memory_order_relaxed);
}

/* A window that was fetched ahead for the cache is complete: into the cache with it, so that others do not wait until
 * this process gets there. */
static void on_done(spk_object *o, spk_window *w)
{
    remote *r = (remote *)((char *)o - offsetof(remote, object));
    bool same = false;
    bool last = w->unit + 1 == r->units;
    if (w->unit == SPK_NO_UNIT || !r->entry || (!last && !r->digests) || w->unit >= r->units)
        return;
    if (!w->done) {
        spk_cache_unclaim(r->entry, w->unit);
        return;
    }
    const uint8_t *want = last ? r->digest : r->digests[w->unit];
    if (matches(w->data, w->have, want, last ? sizeof r->digest : sizeof r->digests[0], &same, NULL) == SPK_OK &&
        same) {
        count_miss(o);
        spk_cache_store(r->entry, w->unit, w->from, w->data, w->have);
        return;
    }
    count_lie(o, w->served);
    spk_cache_unclaim(r->entry, w->unit);
    w->unit = SPK_NO_UNIT; /* nobody finds it */
}

static bool wanted(spk_streams *s, uint64_t unit)
{
    remote *r = (remote *)((char *)s - offsetof(remote, streams));
    return r->entry && !spk_cache_has(r->entry, unit) && spk_cache_claim(r->entry, unit) == SPK_CLAIM_MINE;
}

/* One piece by a request of its own. */
static spk_status read_alone(remote *r, void *out, size_t n, uint64_t off, uint64_t deadline, uint32_t *served,
                             spk_error *err)
{
    spk_window *w = NULL;
    SPK_TRY(spk_window_new(&w, &r->object, SPK_ASK_RANGE, off, off + n, 0, err));
    spk_status st = spk_window_wait(w, n, deadline, err);
    if (st == SPK_OK) {
        memcpy(out, w->data, n);
        *served = w->served | (w->main_on ? 1u << w->main.mirror : 0);
    }
    spk_window_free(w);
    return st;
}

/* Through the cache. *mine: the piece is claimed, the caller stores it or gives it up. *good: it is known to be right.
 */
static spk_status read_cached(remote *r, void *out, size_t n, uint64_t off, uint64_t unit, uint64_t deadline,
                              uint32_t *served, bool *mine, bool *good, spk_error *err)
{
    uint64_t patience = spk_now_ns() + OTHERS_PATIENCE_NS;
    *mine = *good = false;
    for (;;) {
        if (spk_cache_read(r->entry, unit, off, out, n)) {
            *good = !spk_cache_is_foreign(r->entry);
            return SPK_OK;
        }
        spk_window *w = spk_streams_unit(&r->streams, unit);
        if (w) {
            spk_status st = spk_window_wait(w, n, deadline, err);
            if (st < 0 || w->unit != unit)
                spk_streams_drop(&r->streams, off, n);
            SPK_TRY(st);
            if (spk_streams_unit(&r->streams, unit) != w)
                continue;
            memcpy(out, w->data, n);
            *served = w->served;
            w->unit = SPK_NO_UNIT;
            return SPK_OK;
        }
        spk_claim claim = spk_cache_claim(r->entry, unit);
        *mine = claim == SPK_CLAIM_MINE;
        uint64_t now = spk_now_ns();
        if (*mine || claim == SPK_CLAIM_OFF || now > patience || now > deadline)
            break;
        if (claim == SPK_CLAIM_OTHERS && !spk_net_wait(r->object.net, -1, OTHERS_POLL_MS))
            return spk_net_cancelled(err);
    }
    count_miss(&r->object);
    return read_alone(r, out, n, off, deadline, served, err);
}

static spk_status read_checked(remote *r, void *out, size_t n, uint64_t off, const spk_source_check *check,
                               spk_error *err)
{
    uint64_t deadline = deadline_of(r);
    bool cached = r->entry && check->unit < r->units, mine = false, same = false;
    for (;;) {
        uint32_t served = 0;
        spk_status st = SPK_OK;
        mine = same = false;
        if (cached && !from_held(r, out, n, off))
            st = read_cached(r, out, n, off, check->unit, deadline, &served, &mine, &same, err);
        else
            st = read_plain(r, out, n, off, deadline, &served, err);
        /* A cached frame has a checksum of its own, like one in a local file. */
        if (st == SPK_OK && (!same || check->digest_bytes == SPK_SHA256_BYTES))
            st = matches(out, n, check->digest, check->digest_bytes, &same, err);
        if (st == SPK_OK && same) {
            if (mine)
                spk_cache_store(r->entry, check->unit, off, out, n);
            if (cached)
                spk_streams_passed(&r->streams, off + n);
            return SPK_OK;
        }
        if (mine)
            spk_cache_unclaim(r->entry, check->unit);
        if (st < 0)
            return st;
        count_lie(&r->object, served);
        if (cached && served == 0) /* it came from the cache */
            spk_cache_drop(r->entry, check->unit);
        spk_streams_drop(&r->streams, off, n);
        if (spk_mirror_pick(r->object.net, r->object.excluded, 0) == SPK_NO_MIRROR || spk_now_ns() > deadline) {
            char why[80];
            snprintf(why, sizeof why, "SHA-256 mismatch at byte %llu", (unsigned long long)off);
            st = spk_story_tell(r->object.net, r->object.tries, why, err);
            if (err)
                err->offset = (int64_t)off;
            return st;
        }
    }
}

static spk_status remote_pread_checked(spk_source *s, void *out, size_t n, uint64_t off, const spk_source_check *check,
                                       spk_error *err)
{
    remote *r = of_source(s);
    if (n == 0)
        return SPK_OK;
    enter(r);
    spk_status st = read_checked(r, out, n, off, check, err);
    leave(r);
    return st;
}

static void remote_ahead(spk_source *s, uint64_t from, uint64_t to, uint64_t until, uint64_t reader)
{
    remote *r = of_source(s);
    if (from >= to || to > r->object.size)
        return;
    enter(r);
    if (!r->entry || r->offsets)
        spk_streams_ahead(&r->streams, from, to, until, reader);
    else if (to == r->object.size && wanted(&r->streams, r->units - 1))
        spk_streams_ahead_unit(&r->streams, from, to, r->units - 1);
    leave(r);
}

static void remote_units(spk_source *s, const uint64_t *offsets, const uint8_t (*digests)[16], uint64_t n)
{
    remote *r = of_source(s);
    enter(r);
    if (r->entry && n < r->units) { /* the last unit is the tail */
        r->offsets = r->streams.offsets = offsets;
        r->streams.units = n;
        r->digests = digests;
    }
    leave(r);
}

/* What came through all digests and is wrong still: damage of the cached copy, or of something without a digest. */
static bool remote_reject(spk_source *s, uint64_t off, size_t n, uint64_t unit)
{
    remote *r = of_source(s);
    bool again = false;
    enter(r);
    if (r->entry && unit < r->units && spk_cache_has(r->entry, unit)) {
        spk_cache_drop(r->entry, unit);
        again = true;
    }
    spk_streams_drop(&r->streams, off, n);
    leave(r);
    return again;
}

static uint64_t remote_size(const spk_source *s)
{
    return ((const remote *)s)->object.size;
}

static const char *remote_name(const spk_source *s)
{
    return ((const remote *)s)->shown;
}

static void remote_close(spk_source *s)
{
    remote *r = of_source(s);
    enter(r);
    spk_streams_free(&r->streams);
    spk_window_free(r->held);
    spk_cache_entry_close(r->entry);
    leave(r);
    if (r->owns_net)
        spk_net_free(r->object.net);
    free(r->object.name);
    free(r->shown);
    free(r);
}

static const struct spk_source_ops remote_ops = {.pread = remote_pread,
                                                 .size = remote_size,
                                                 .name = remote_name,
                                                 .close = remote_close,
                                                 .pread_checked = remote_pread_checked,
                                                 .ahead = remote_ahead,
                                                 .units = remote_units,
                                                 .reject = remote_reject};

/* Asks for the end of an object, and so for its size. */
static spk_status find_size(remote *r, spk_error *err)
{
    spk_window *w = NULL;
    enter(r);
    spk_status st = spk_window_new(&w, &r->object, SPK_ASK_END, 0, 0, END_BYTES, err);
    if (st == SPK_OK)
        st = spk_window_wait(w, 0, deadline_of(r), err);
    if (st == SPK_OK)
        r->held = w;
    else
        spk_window_free(w);
    leave(r);
    if (st < 0)
        spk_error_prefix(err, "%s", r->shown);
    return st;
}

/* The object's place in the cache; for other processes it takes a moment to make or remove one. */
static spk_status open_entry(remote *r, const spk_net_object *object, spk_error *err)
{
    spk_net *net = r->object.net;
    uint64_t patience = spk_now_ns() + OTHERS_PATIENCE_NS;
    spk_status st = SPK_OK;
    bool busy = false;
    enter(r);
    do {
        r->entry = spk_cache_entry_open(net->cache, object->digest, object->size, object->units, &busy);
        if (busy && spk_now_ns() > patience) {
            spk_cache_note_busy(net->cache);
            break;
        }
        if (busy && !spk_net_wait(net, -1, OTHERS_POLL_MS))
            st = spk_net_cancelled(err);
    } while (busy && st == SPK_OK);
    leave(r);
    return st;
}

spk_status spk_net_open(spk_net *net, const char *name, const spk_net_object *object, spk_source **out, spk_error *err)
{
    remote *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return spk_error_nomem(err, sizeof *r);
    const char *prefix = net->mirrors[0].place.prefix;
    size_t cap = strlen(prefix) + strlen(name) + 2;
    r->base.ops = &remote_ops;
    r->object.net = net;
    r->object.size = object->size;
    r->object.on_done = on_done;
    r->object.name = strdup(name);
    r->streams.object = &r->object;
    r->streams.wanted = wanted;
    r->units = object->units;
    if (object->digest)
        memcpy(r->digest, object->digest, sizeof r->digest);
    r->shown = malloc(cap);
    if (!r->shown || !r->object.name) {
        free(r->shown);
        free(r->object.name);
        free(r);
        return spk_error_nomem(err, cap);
    }
    snprintf(r->shown, cap, "%s/%s", prefix, name);
    spk_status st = SPK_OK;
    if (object->size == 0)
        st = find_size(r, err);
    if (st == SPK_OK && net->cache && object->digest && object->units > 0)
        st = open_entry(r, object, err);
    if (st < 0)
        remote_close(&r->base);
    else
        *out = &r->base;
    return st;
}

spk_status spk_net_open_url(spk_source **out, const char *url, const spk_source_options *o, spk_error *err)
{
    spk_net *net = NULL;
    char *name = NULL;
    const spk_net_options options = {.deadline = o->deadline,
                                     .cache_dir = "",
                                     .plain_credentials = o->plain_credentials,
                                     .on_wait = o->on_wait,
                                     .user = o->user};
    spk_net_object object = {0};
    *out = NULL;
    SPK_TRY(spk_net_new(&net, &options, err));
    spk_status st = spk_net_add_folder_of(net, url, &name, err);
    if (st == SPK_OK)
        st = spk_net_open(net, name, &object, out, err);
    free(name);
    if (st < 0)
        spk_net_free(net);
    else
        of_source(*out)->owns_net = true;
    return st;
}
