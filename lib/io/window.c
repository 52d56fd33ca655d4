/* One range of an object until its bytes are there: asks a mirror, goes on behind the last byte after a cut, asks
 * another one, waits longer after each round in which all failed, and has a second request race one that stalls. A
 * small state machine that spk_net_wait lets step; nothing in here waits but spk_window_wait. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "io/net_impl.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define BACKOFF_FIRST (100 * MS)
#define BACKOFF_MOST (10 * SECOND)
#define STALL_MOST (15 * SECOND) /* a request without a byte for so long is given up */
#define HEDGE_SHARE 10u          /* at most one request in so many is a hedge, after the first few */
#define HEDGE_FREE 8u
#define SPARE_LEAST ((size_t)128 << 10)
#define SPARE_MOST ((size_t)32 << 20)
#define LOOK_AGAIN (50 * MS)

static void list_add(spk_window *w)
{
    spk_net *net = w->object->net;
    if (w->list_in)
        return;
    w->list = NULL;
    w->list_in = net->windows_end;
    *net->windows_end = w;
    net->windows_end = &w->list;
}

static void list_remove(spk_window *w)
{
    if (!w->list_in)
        return;
    *w->list_in = w->list;
    if (w->list)
        w->list->list_in = w->list_in;
    else
        w->object->net->windows_end = w->list_in;
    w->list = NULL;
    w->list_in = NULL;
}

static uint8_t *take_buffer(spk_net *net, size_t n, size_t *cap)
{
    for (size_t i = 0; i < net->spare_n; i++) {
        uint8_t *data = net->spare[i].data;
        *cap = net->spare[i].cap;
        if (*cap < n || *cap / 2 > n)
            continue;
        net->spare_bytes -= *cap;
        net->spare[i] = net->spare[--net->spare_n];
        return data;
    }
    *cap = n;
    return malloc(n);
}

static void keep_buffer(spk_net *net, uint8_t *data, size_t cap)
{
    if (data && cap >= SPARE_LEAST && net->spare_n < SPK_NET_SPARE_MAX && net->spare_bytes + cap <= SPARE_MOST) {
        net->spare[net->spare_n].data = data;
        net->spare[net->spare_n++].cap = cap;
        net->spare_bytes += cap;
    } else {
        free(data);
    }
}

spk_status spk_window_new(spk_window **out, spk_object *o, spk_ask ask, uint64_t from, uint64_t to, size_t cap,
                          spk_error *err)
{
    *out = NULL;
    spk_window *w = calloc(1, sizeof *w);
    size_t room = ask == SPK_ASK_RANGE ? (size_t)(to - from) : ask == SPK_ASK_END ? cap : 0;
    if (!w)
        return spk_error_nomem(err, sizeof *w);
    if (room)
        w->data = take_buffer(o->net, room, &w->room);
    if (room && !w->data) {
        free(w);
        return spk_error_nomem(err, room);
    }
    w->object = o;
    w->ask = ask;
    w->from = from;
    w->to = to;
    w->cap = cap;
    w->begun_ns = spk_now_ns();
    w->mirror = SPK_NO_MIRROR;
    w->unit = SPK_NO_UNIT;
    list_add(w);
    spk_window_step(w, w->begun_ns);
    *out = w;
    return SPK_OK;
}

static void end_hedge(spk_window *w)
{
    if (w->hedge_on)
        spk_transfer_end(&w->hedge);
    w->hedge_on = false;
    free(w->hedge_data);
    w->hedge_data = NULL;
}

void spk_window_free(spk_window *w)
{
    if (!w)
        return;
    if (w->main_on) {
        if (w->ask == SPK_ASK_WHOLE)
            w->data = w->main.into;
        spk_transfer_end(&w->main);
    }
    end_hedge(w);
    list_remove(w);
    if (!w->done && w->unit != SPK_NO_UNIT && w->object->on_done)
        w->object->on_done(w->object, w);
    keep_buffer(w->object->net, w->data, w->room);
    free(w);
}

/* Fills in a request for what is missing. */
static void make_request(const spk_window *w, spk_transfer *t, size_t mirror, uint8_t *into)
{
    const spk_object *o = w->object;
    memset(t, 0, sizeof *t);
    t->mirror = mirror;
    t->ask = w->ask;
    t->expected = o->size;
    t->etag = o->tries[mirror].etag;
    t->from = w->from + w->have;
    t->to = w->to;
    t->into = into;
    t->cap = w->ask == SPK_ASK_RANGE ? (size_t)(w->to - w->from) - w->have : w->ask == SPK_ASK_END ? w->cap : 0;
    t->grows = w->ask == SPK_ASK_WHOLE;
    t->cap_max = w->cap;
}

static void fail(spk_window *w)
{
    w->failed = true;
    list_remove(w);
    w->object->net->events++;
}

static void note_text(spk_tries *t, const char *text)
{
    snprintf(t->last, sizeof t->last, "%.255s", text);
}

/* Whether as many requests as may be are under way at mirror m, or (SPK_NO_MIRROR) at every one. */
static bool is_busy(const spk_net *net, size_t m)
{
    for (size_t i = 0; i < net->mirrors_n; i++)
        if ((m == SPK_NO_MIRROR || m == i) && net->mirrors[i].running < SPK_NET_PER_HOST)
            return false;
    return true;
}

static void start_main(spk_window *w, uint64_t now)
{
    spk_object *o = w->object;
    spk_net *net = o->net;
    spk_error err;
    if (!w->urgent && is_busy(net, SPK_NO_MIRROR))
        return;
    size_t m = spk_mirror_pick(net, o->excluded | o->lied, w->avoided);
    if (m == SPK_NO_MIRROR)
        m = spk_mirror_pick(net, o->excluded, w->avoided);
    if (m == SPK_NO_MIRROR && w->avoided) { /* all have failed: wait before the next round */
        uint64_t pause = BACKOFF_FIRST;
        for (uint32_t i = 0; i < w->rounds && pause < BACKOFF_MOST; i++)
            pause *= 2;
        pause = pause < BACKOFF_MOST ? pause : BACKOFF_MOST;
        w->rounds++;
        w->avoided = 0;
        w->ready_ns = now + pause / 2 + spk_net_random(net, pause / 2);
        if (spk_mirror_pick(net, o->excluded, 0) == SPK_NO_MIRROR)
            fail(w);
        return;
    }
    if (m == SPK_NO_MIRROR) {
        fail(w);
        return;
    }
    if (!w->urgent && is_busy(net, m))
        return;
    uint64_t slot = spk_mirror_slot(net, m, now);
    if (slot > now) {
        w->ready_ns = slot;
        return;
    }
    if (w->mirror != SPK_NO_MIRROR && w->mirror != m)
        atomic_fetch_add_explicit(&net->mirrors[m].counts->failovers, 1, memory_order_relaxed);
    else if (w->mirror == m)
        atomic_fetch_add_explicit(&net->mirrors[m].counts->retries, 1, memory_order_relaxed);
    w->mirror = m;
    make_request(w, &w->main, m, w->data ? w->data + w->have : NULL);
    o->tries[m].attempts++;
    spk_error_clear(&err);
    spk_status st = spk_transfer_start(net, &w->main, o->name, &err);
    if (st == SPK_E_CANCELLED) { /* whoever waits will be asked, too */
        w->ready_ns = now + LOOK_AGAIN;
        return;
    }
    if (st < 0) { /* no memory, or no credentials to be had */
        note_text(&o->tries[m], err.text);
        o->tries[m].faults[SPK_FAULT_DENIED]++;
        o->excluded |= 1u << m;
        w->ready_ns = now;
        return;
    }
    w->main_on = true;
}

/* A hedge takes what the main request has not brought yet; the first one to bring it all wins. */
static void maybe_hedge(spk_window *w, uint64_t now)
{
    spk_object *o = w->object;
    spk_net *net = o->net;
    spk_error err;
    uint64_t quiet = now > w->main.progress_ns ? now - w->main.progress_ns : 0;
    if (w->hedge_on || w->ask != SPK_ASK_RANGE || quiet < spk_mirror_patience(net, w->main.mirror) ||
        (net->hedges >= HEDGE_FREE && net->hedges * HEDGE_SHARE > net->requests))
        return;
    size_t m = spk_mirror_pick(net, o->excluded | o->lied, w->avoided | 1u << w->main.mirror);
    if (m == SPK_NO_MIRROR)
        m = w->main.mirror;
    if (spk_mirror_slot(net, m, now) > now)
        return;
    size_t n = (size_t)(w->to - w->from) - w->have - w->main.have;
    w->hedge_from = w->have + w->main.have;
    w->hedge_data = malloc(n);
    if (!w->hedge_data)
        return;
    size_t have = w->have;
    w->have = w->hedge_from;
    make_request(w, &w->hedge, m, w->hedge_data);
    w->have = have;
    w->hedge.fresh = m == w->main.mirror;
    o->tries[m].attempts++;
    spk_error_clear(&err);
    if (spk_transfer_start(net, &w->hedge, o->name, &err) < 0) {
        free(w->hedge_data);
        w->hedge_data = NULL;
        return;
    }
    net->hedges++;
    atomic_fetch_add_explicit(&net->mirrors[m].counts->hedges, 1, memory_order_relaxed);
    w->hedge_on = true;
}

/* What a transfer has brought is the window's. */
static void take(spk_window *w, spk_transfer *t)
{
    spk_tries *tries = &w->object->tries[t->mirror];
    if (!t->accepted)
        return;
    if (!tries->etag[0] && t->reply.etag[0])
        memcpy(tries->etag, t->reply.etag, sizeof tries->etag);
    tries->bytes += t->have;
    tries->status = t->reply.status;
    w->served |= 1u << t->mirror;
    if (w->ask == SPK_ASK_WHOLE) {
        w->data = t->into;
        w->have = t->have;
        w->from = 0;
        w->to = t->have;
    } else if (w->ask == SPK_ASK_END) {
        w->from = t->from;
        w->to = t->to;
        w->have = t->have;
    } else {
        w->have += t->have;
    }
    if (w->ask != SPK_ASK_RANGE && t->result == CURLE_OK)
        w->object->size = w->ask == SPK_ASK_WHOLE ? w->have : t->total;
}

static void drop_whole(spk_window *w)
{
    if (w->ask == SPK_ASK_RANGE)
        return;
    if (w->ask == SPK_ASK_WHOLE) {
        free(w->data);
        w->data = NULL;
    }
    w->have = 0; /* begins anew */
    w->object->size = 0;
}

static void count_fault(spk_window *w, const spk_transfer *t, spk_net_fault fault, const char *text)
{
    spk_object *o = w->object;
    spk_tries *tries = &o->tries[t->mirror];
    tries->faults[fault]++;
    tries->status = t->reply.status;
    note_text(tries, text);
    spk_mirror_bad(o->net, t->mirror, fault, t->reply.retry_after);
    spk_mirror_code(o->net, t->mirror, t->reply.status);
    w->avoided |= 1u << t->mirror;
    bool refused = fault == SPK_FAULT_DENIED || fault == SPK_FAULT_REPLY;
    bool untrusted = t->result == CURLE_PEER_FAILED_VERIFICATION || t->result == CURLE_SSL_CACERT_BADFILE;
    if (refused && spk_s3_again(o->net, t->mirror, t->body, t->reply.region, t->keys)) {
        w->avoided &= ~(1u << t->mirror);
    } else if (fault == SPK_FAULT_MISSING || fault == SPK_FAULT_DENIED || fault == SPK_FAULT_REPLY ||
               fault == SPK_FAULT_CHANGED || untrusted) {
        o->excluded |= 1u << t->mirror;
    }
}

static void finish(spk_window *w)
{
    end_hedge(w);
    w->done = true;
    list_remove(w);
    w->object->net->events++;
    if (w->object->on_done)
        w->object->on_done(w->object, w);
}

static void main_ended(spk_window *w, uint64_t now)
{
    char text[256];
    spk_transfer *t = &w->main;
    spk_net_fault fault = spk_transfer_fault(t, text, sizeof text);
    if (t->first_ns && t->accepted)
        spk_mirror_good(w->object->net, t->mirror, t->first_ns - t->started_ns);
    if (w->ask == SPK_ASK_WHOLE)
        w->data = t->into;
    spk_transfer_end(t);
    w->main_on = false;
    take(w, t);
    if (fault == SPK_FAULT_NONE) {
        finish(w);
        return;
    }
    drop_whole(w);
    count_fault(w, t, fault, text);
    w->ready_ns = now;
    if (w->hedge_on && w->hedge_from > w->have) /* there is a gap between what is there and what it fetches */
        end_hedge(w);
}

static void hedge_ended(spk_window *w)
{
    char text[256];
    spk_transfer *t = &w->hedge;
    spk_net_fault fault = spk_transfer_fault(t, text, sizeof text);
    spk_transfer_end(t);
    w->hedge_on = false;
    if (fault != SPK_FAULT_NONE) {
        count_fault(w, t, fault, text);
        end_hedge(w);
        return;
    }
    spk_mirror_good(w->object->net, t->mirror, t->first_ns - t->started_ns);
    if (w->main_on) { /* the one that stalled */
        spk_mirror_bad(w->object->net, w->main.mirror, SPK_FAULT_STALL, 0);
        w->object->tries[w->main.mirror].faults[SPK_FAULT_STALL]++;
        spk_transfer_end(&w->main);
        w->main_on = false;
        take(w, &w->main);
    }
    memcpy(w->data + w->hedge_from, w->hedge_data, t->have);
    w->have = w->hedge_from;
    take(w, t);
    finish(w);
}

static void stalled(spk_window *w, uint64_t now)
{
    w->main.result = CURLE_OPERATION_TIMEDOUT;
    w->main.done = true;
    main_ended(w, now);
}

void spk_window_step(spk_window *w, uint64_t now)
{
    if (w->done || w->failed)
        return;
    if (w->main_on && w->main.done)
        main_ended(w, now);
    if (!w->done && w->hedge_on && w->hedge.done)
        hedge_ended(w);
    if (w->done || w->failed)
        return;
    if (w->main_on && now > w->main.progress_ns && now - w->main.progress_ns > STALL_MOST)
        stalled(w, now);
    if (w->hedge_on && now > w->hedge.progress_ns && now - w->hedge.progress_ns > STALL_MOST)
        end_hedge(w);
    if (!w->main_on && !w->hedge_on && now >= w->ready_ns)
        start_main(w, now);
    else if (w->main_on)
        maybe_hedge(w, now);
}

uint64_t spk_window_due(const spk_window *w, uint64_t now)
{
    if (w->main_on)
        return now + LOOK_AGAIN;
    return w->ready_ns > now ? w->ready_ns : now + LOOK_AGAIN;
}

static size_t held(const spk_window *w)
{
    return w->have + (w->main_on && w->main.accepted && w->ask == SPK_ASK_RANGE ? w->main.have : 0);
}

/* Every mirror that is left wants to be left alone for longer than there is time. */
static bool hopeless(const spk_window *w, uint64_t deadline)
{
    const spk_net *net = w->object->net;
    if (w->main_on || w->hedge_on)
        return false;
    bool any = false;
    for (size_t i = 0; i < net->mirrors_n; i++) {
        bool asked = !(w->object->excluded >> i & 1);
        any = any || asked;
        if (asked && spk_mirror_not_before(net, i) < deadline)
            return false;
    }
    return any;
}

void spk_window_give_up(spk_window *w, uint64_t now)
{
    if (w->main_on)
        spk_story_under_way(&w->object->tries[w->main.mirror], &w->main, now);
    if (w->hedge_on)
        spk_story_under_way(&w->object->tries[w->hedge.mirror], &w->hedge, now);
}

spk_status spk_window_wait(spk_window *w, size_t have, uint64_t deadline, spk_error *err)
{
    spk_object *o = w->object;
    w->urgent = true;
    for (;;) {
        uint64_t now = spk_now_ns();
        if (w->done || (w->ask == SPK_ASK_RANGE && held(w) >= have))
            return SPK_OK;
        if (w->failed)
            return spk_story_tell(o->net, o->tries, spk_story_end(o->net, o->tries), err);
        if (hopeless(w, deadline))
            return spk_story_tell(o->net, o->tries, "no mirror can be asked before the deadline", err);
        if (now >= deadline)
            spk_window_give_up(w, now);
        if (now >= deadline)
            return spk_story_tell(o->net, o->tries, "the deadline has passed", err);
        uint64_t left = (deadline - now) / MS + 1;
        if (!spk_net_wait(o->net, -1, left < 1000 ? (int)left : 1000))
            return spk_net_cancelled(err);
    }
}
