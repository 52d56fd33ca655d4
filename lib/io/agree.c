/* A small object without a digest, such as a manifest: asked of all mirrors at once. One that answers with wrong bytes
 * is outvoted; one that does not answer costs a short wait. */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "io/net_impl.h"

#define MS UINT64_C(1000000)
#define SECOND_ANSWER (2000 * MS) /* how long the first answer waits for another one */

typedef struct ballot {
    spk_object object;
    spk_window *window;
} ballot;

typedef struct poll_of {
    ballot votes[SPK_NET_MIRRORS_MAX];
    size_t n;
} poll_of;

static const spk_window *answer(const poll_of *p, size_t i)
{
    const spk_window *w = p->votes[i].window;
    return w && w->done && w->have > 0 ? w : NULL;
}

static bool is_same(const spk_window *a, const spk_window *b)
{
    return a->have == b->have && memcmp(a->data, b->data, a->have) == 0;
}

/* Mirrors that gave what mirror i gave; 0 if it gave nothing, or what one before it gave. */
static size_t votes_for(const poll_of *p, size_t i)
{
    const spk_window *a = answer(p, i);
    size_t n = 0;
    for (size_t j = 0; j < p->n && a; j++) {
        const spk_window *b = answer(p, j);
        if (b && is_same(a, b) && j < i)
            return 0;
        n += b && is_same(a, b);
    }
    return n;
}

/* Answer number `rank`, those that most mirrors gave first. */
static const spk_window *ranked(const poll_of *p, size_t rank, size_t *votes)
{
    for (size_t n = p->n; n > 0; n--)
        for (size_t i = 0; i < p->n; i++)
            if (votes_for(p, i) == n && rank-- == 0) {
                *votes = n;
                return answer(p, i);
            }
    return NULL;
}

/* The answer to take now, or NULL: at the first attempt one that two mirrors gave, else, when there is nothing to wait
 * for, each attempt the next one. */
static const spk_window *choose(const poll_of *p, size_t attempt, uint64_t *first_ns, uint64_t now, spk_net_vote *vote)
{
    size_t open = 0, different = 0, votes = 0;
    for (size_t i = 0; i < p->n; i++) {
        const spk_window *w = p->votes[i].window;
        open += w && !w->done && !w->failed;
        different += votes_for(p, i) > 0;
    }
    if (different == 0)
        return NULL;
    *first_ns = *first_ns ? *first_ns : now;
    const spk_window *w = ranked(p, attempt % different, &votes);
    *vote = (spk_net_vote){.agreed = votes > 1, .different = different};
    bool now_or_never = open == 0 || now - *first_ns > SECOND_ANSWER;
    return now_or_never || (attempt == 0 && votes > 1) ? w : NULL;
}

static bool all_failed(const poll_of *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->votes[i].window && !p->votes[i].window->failed)
            return false;
    return true;
}

/* The story of all of them as one. */
static spk_status tell(const spk_net *net, const poll_of *p, const char *why, spk_error *err)
{
    spk_tries tries[SPK_NET_MIRRORS_MAX];
    for (size_t i = 0; i < p->n; i++)
        tries[i] = p->votes[i].object.tries[i];
    return spk_story_tell(net, tries, why ? why : spk_story_end(net, tries), err);
}

static spk_status run(spk_net *net, poll_of *p, size_t attempt, char **text, size_t *n, spk_net_vote *vote,
                      spk_error *err)
{
    uint64_t deadline = spk_now_ns() + net->deadline_ns, first_ns = 0;
    for (;;) {
        uint64_t now = spk_now_ns();
        const spk_window *w = choose(p, attempt, &first_ns, now, vote);
        if (w) {
            *text = malloc(w->have + 1);
            if (!*text)
                return spk_error_nomem(err, w->have + 1);
            memcpy(*text, w->data, w->have);
            (*text)[w->have] = '\0';
            *n = w->have;
            return SPK_OK;
        }
        if (all_failed(p))
            return tell(net, p, NULL, err);
        for (size_t i = 0; i < p->n && now >= deadline; i++)
            if (p->votes[i].window)
                spk_window_give_up(p->votes[i].window, now);
        if (now >= deadline)
            return tell(net, p, "the deadline has passed", err);
        uint64_t left = (deadline - now) / MS + 1;
        if (!spk_net_wait(net, -1, left < 100 ? (int)left : 100))
            return spk_net_cancelled(err);
    }
}

spk_status spk_net_fetch(spk_net *net, const char *name, uint64_t most, size_t attempt, char **text, size_t *n,
                         spk_net_vote *vote, spk_error *err)
{
    poll_of *p = calloc(1, sizeof *p);
    *text = NULL;
    if (!p)
        return spk_error_nomem(err, sizeof *p);
    spk_status st = SPK_OK;
    p->n = net->mirrors_n;
    spk_net_lock(net);
    for (size_t i = 0; i < p->n && st == SPK_OK; i++) {
        spk_object *o = &p->votes[i].object;
        o->net = net;
        o->excluded = ~(1u << i);
        o->name = strdup(name);
        st = o->name ? spk_window_new(&p->votes[i].window, o, SPK_ASK_WHOLE, 0, 0, (size_t)most, err)
                     : spk_error_nomem(err, strlen(name));
    }
    if (st == SPK_OK)
        st = run(net, p, attempt, text, n, vote, err);
    for (size_t i = 0; i < p->n; i++) {
        spk_window_free(p->votes[i].window);
        free(p->votes[i].object.name);
    }
    spk_net_unlock(net);
    free(p);
    return st;
}
