/* Windows one behind the other. A reader that announced its range, or reads on where it stopped, has the next windows
 * under way while it works; how many bytes is bounded. Several readers of one object have a stream each. */
#include <stdlib.h>
#include <string.h>

#include "io/net_impl.h"

#define STREAMS_MAX 256u
#define WINDOW_FIRST ((uint64_t)256 << 10) /* of a reader that has not said how far it will go */
#define WINDOW_LEAST ((uint64_t)2 << 20)   /* of one that has: most frames are in one */
#define ASKED_LEAST ((uint64_t)1 << 20)    /* of one that says how far it wants to go now */
#define ASKED_MOST ((uint64_t)2 << 20)
#define SKIP_MAX ((uint64_t)256 << 10) /* bytes passed over instead of asking anew */

struct spk_stream {
    spk_stream *next;
    uint64_t at;   /* where the reader will go on */
    uint64_t from; /* where the next window begins */
    uint64_t end;
    uint64_t step;   /* bytes of the next window */
    uint64_t reader; /* one that says how far it wants to go now; 0: none */
    bool announced;
    uint64_t used, reads;
    spk_window *first, *last;
};

static void drop_window(spk_stream *t)
{
    spk_window *w = t->first;
    t->first = w->next;
    if (!t->first)
        t->last = NULL;
    spk_window_free(w);
}

static void free_stream(spk_stream *t)
{
    while (t->first)
        drop_window(t);
    free(t);
}

void spk_streams_free(spk_streams *s)
{
    for (spk_stream *t = s->first, *next = NULL; t; t = next) {
        next = t->next;
        free_stream(t);
    }
    s->first = NULL;
    s->n = 0;
}

static void remove_stream(spk_streams *s, spk_stream *t)
{
    spk_stream **p = &s->first;
    while (*p != t)
        p = &(*p)->next;
    *p = t->next;
    s->n--;
    free_stream(t);
}

/* Before a stream is added: the one that was used longest ago goes. */
static void make_room(spk_streams *s)
{
    spk_stream *oldest = s->first;
    if (s->n < STREAMS_MAX)
        return;
    for (spk_stream *t = s->first; t; t = t->next)
        if (t->used < oldest->used)
            oldest = t;
    remove_stream(s, oldest);
}

static spk_stream *add_stream(spk_streams *s, uint64_t from, uint64_t end, bool announced)
{
    make_room(s);
    spk_stream *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    uint64_t half = s->object->net->ahead / 2;
    *t = (spk_stream){.next = s->first, .at = from, .from = from, .end = end, .announced = announced};
    t->step = !announced ? end - from : half > WINDOW_LEAST ? half : WINDOW_LEAST;
    t->used = ++s->clock;
    s->first = t;
    s->n++;
    return t;
}

static bool covers(const spk_stream *t, uint64_t off)
{
    uint64_t first = t->first ? t->first->from : t->from;
    return off >= first && (off < t->from || (off - t->from <= SKIP_MAX && off < t->end) || off == t->at);
}

static spk_stream *find(spk_streams *s, uint64_t off)
{
    spk_stream *found = NULL;
    for (spk_stream *t = s->first; t; t = t->next) {
        if (t->at == off && (t->from > off || !found))
            found = t;
        else if (!found && covers(t, off))
            found = t;
    }
    return found;
}

static spk_status add_window(spk_streams *s, spk_stream *t, uint64_t from, uint64_t to, spk_error *err)
{
    spk_window *w = NULL;
    SPK_TRY(spk_window_new(&w, s->object, SPK_ASK_RANGE, from, to, 0, err));
    if (t->last)
        t->last->next = w;
    else
        t->first = w;
    t->last = w;
    t->from = to;
    return SPK_OK;
}

static uint64_t unit_at(const spk_streams *s, uint64_t off)
{
    uint64_t low = 0, high = s->units;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (s->offsets[middle] <= off)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The same with a window for each piece; those that somebody else has, or fetches, are passed over. */
static spk_status fill_units(spk_streams *s, spk_stream *t, uint64_t until, spk_error *err)
{
    while (t->from < until && t->from < s->offsets[s->units]) {
        uint64_t unit = unit_at(s, t->from), from = s->offsets[unit], to = s->offsets[unit + 1];
        if (!spk_streams_unit(s, unit) && s->wanted(s, unit)) {
            SPK_TRY(add_window(s, t, from, to, err));
            t->last->unit = unit;
        }
        t->from = to;
    }
    return SPK_OK;
}

/* Makes windows up to `until` at least. */
static spk_status fill(spk_streams *s, spk_stream *t, uint64_t until, spk_error *err)
{
    uint64_t most = s->object->net->ahead / 2;
    until = until < t->end ? until : t->end;
    if (s->offsets && t->from < s->offsets[s->units])
        return fill_units(s, t, until, err);
    while (t->from < until) {
        uint64_t n = t->step;
        if (t->reader)
            n = until - t->from < ASKED_LEAST  ? ASKED_LEAST
                : until - t->from < ASKED_MOST ? until - t->from
                                               : ASKED_MOST;
        n = n < t->end - t->from ? n : t->end - t->from;
        SPK_TRY(add_window(s, t, t->from, t->from + n, err));
        if (!t->announced)
            t->step = 2 * t->step < WINDOW_FIRST ? WINDOW_FIRST : 2 * t->step < most ? 2 * t->step : most;
    }
    return SPK_OK;
}

static spk_window *window_at(const spk_stream *t, uint64_t off)
{
    spk_window *w = t->first;
    while (w && !(off >= w->from && off < w->to))
        w = w->next;
    return w;
}

static spk_status copy_out(spk_stream *t, uint8_t *out, size_t n, uint64_t off, uint64_t deadline, uint32_t *served,
                           spk_error *err)
{
    while (n > 0) {
        spk_window *w = window_at(t, off);
        if (!w)
            return spk_error_set(err, SPK_E_STATE, "a range that was not asked for");
        size_t k = n < w->to - off ? n : (size_t)(w->to - off), at = (size_t)(off - w->from);
        SPK_TRY(spk_window_wait(w, at + k, deadline, err));
        memcpy(out, w->data + at, k);
        *served |= w->served | (w->main_on ? 1u << w->main.mirror : 0);
        out += k;
        off += k;
        n -= k;
    }
    return SPK_OK;
}

/* The reader is at `off` now; t may be gone afterwards. */
static spk_status pass(spk_streams *s, spk_stream *t, uint64_t off, spk_error *err)
{
    t->at = off;
    while (t->first && t->first->to <= off)
        drop_window(t);
    if (t->announced && off >= t->end) {
        remove_stream(s, t);
        return SPK_OK;
    }
    return t->reader ? SPK_OK : fill(s, t, off + s->object->net->ahead / 2, err);
}

spk_status spk_streams_read(spk_streams *s, uint8_t *out, size_t n, uint64_t off, uint64_t deadline, uint32_t *served,
                            spk_error *err)
{
    *served = 0;
    spk_stream *t = find(s, off);
    if (!t)
        t = add_stream(s, off, off + n, false);
    if (!t)
        return spk_error_nomem(err, sizeof *t);
    bool goes_on = !s->told && t->reads > 0 && off == t->at;
    t->used = ++s->clock;
    t->reads++;
    if (goes_on)
        t->end = s->object->size;
    else if (t->end < off + n)
        t->end = off + n;
    spk_status st = fill(s, t, off + n, err);
    if (st == SPK_OK)
        st = copy_out(t, out, n, off, deadline, served, err);
    if (st < 0) {
        remove_stream(s, t); /* what failed is asked for anew if somebody tries again */
        return st;
    }
    return pass(s, t, off + n, err);
}

void spk_streams_passed(spk_streams *s, uint64_t off)
{
    spk_stream *t = find(s, off);
    if (!t)
        return;
    t->used = ++s->clock;
    if (pass(s, t, off, NULL) < 0)
        remove_stream(s, t);
}

/* Each reader has its own, also of the same bytes. */
void spk_streams_ahead(spk_streams *s, uint64_t from, uint64_t to, uint64_t until, uint64_t reader)
{
    spk_stream *t = reader ? s->first : NULL;
    while (t && t->reader != reader)
        t = t->next;
    s->told = true;
    if (!t)
        t = add_stream(s, from, to, true);
    if (!t)
        return;
    t->reader = reader;
    if (fill(s, t, reader ? until : from + 1, NULL) < 0)
        remove_stream(s, t);
}

void spk_streams_ahead_unit(spk_streams *s, uint64_t from, uint64_t to, uint64_t unit)
{
    spk_stream *t = add_stream(s, from, to, true);
    if (t && add_window(s, t, from, to, NULL) < 0)
        remove_stream(s, t);
    else if (t)
        t->first->unit = unit;
}

spk_window *spk_streams_unit(spk_streams *s, uint64_t unit)
{
    for (spk_stream *t = s->first; t; t = t->next)
        for (spk_window *w = t->first; w; w = w->next)
            if (w->unit == unit)
                return w;
    return NULL;
}

void spk_streams_drop(spk_streams *s, uint64_t off, uint64_t n)
{
    for (spk_stream *t = s->first, *next = NULL; t; t = next) {
        next = t->next;
        uint64_t first = t->first ? t->first->from : t->from;
        if (first < off + n && t->from > off)
            remove_stream(s, t);
    }
}
