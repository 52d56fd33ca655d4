/* A small object without a digest, such as a manifest: asked of all mirrors at once. One that answers with wrong bytes
 * is outvoted; one that does not answer costs a short wait. */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "io/net_impl.h"

#define MS UINT64_C(1000000)
#define SECOND_ANSWER (2000 * MS) /* how long the first answer waits for another one */

typedef struct vote {
    spk_object object;
    spk_window *window;
} vote;

typedef struct poll_of {
    vote votes[SPK_NET_MIRRORS_MAX];
    size_t n;
} poll_of;

static const spk_window *answer(const poll_of *p, size_t i)
{
    const spk_window *w = p->votes[i].window;
    return w && w->done && w->have > 0 ? w : NULL;
}

/* The answer to take now, or NULL: one that another mirror gave too, or the first one when there is nothing to wait
 * for. */
static const spk_window *choose(const poll_of *p, uint64_t *first_ns, uint64_t now, bool *agreed)
{
    const spk_window *first = NULL;
    size_t open = 0;
    *agreed = false;
    for (size_t i = 0; i < p->n; i++) {
        const spk_window *a = answer(p, i);
        open += p->votes[i].window && !p->votes[i].window->done && !p->votes[i].window->failed;
        first = first ? first : a;
        for (size_t j = 0; j < i && a; j++) {
            const spk_window *b = answer(p, j);
            if (b && a->have == b->have && memcmp(a->data, b->data, a->have) == 0) {
                *agreed = true;
                return a;
            }
        }
    }
    if (first && *first_ns == 0)
        *first_ns = now;
    return first && (open == 0 || now - *first_ns > SECOND_ANSWER) ? first : NULL;
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
    return spk_story_tell(net, tries, why, err);
}

static spk_status run(spk_net *net, poll_of *p, char **text, size_t *n, bool *agreed, spk_error *err)
{
    uint64_t deadline = spk_now_ns() + net->deadline_ns, first_ns = 0;
    for (;;) {
        uint64_t now = spk_now_ns();
        const spk_window *w = choose(p, &first_ns, now, agreed);
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
            return tell(net, p, "no mirror has it", err);
        if (now >= deadline)
            return tell(net, p, "the deadline has passed", err);
        uint64_t left = (deadline - now) / MS + 1;
        if (!spk_net_wait(net, -1, left < 100 ? (int)left : 100))
            return spk_net_cancelled(err);
    }
}

spk_status spk_net_fetch(spk_net *net, const char *name, uint64_t most, char **text, size_t *n, bool *agreed,
                         spk_error *err)
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
        st = run(net, p, text, n, agreed, err);
    for (size_t i = 0; i < p->n; i++) {
        spk_window_free(p->votes[i].window);
        free(p->votes[i].object.name);
    }
    spk_net_unlock(net);
    free(p);
    return st;
}
