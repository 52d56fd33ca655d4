/* The lock, libcurl's multi handle and waiting. One thread at a time drives all transfers; it gives the lock away only
 * while it sleeps in curl_multi_poll, whoever wants something wakes it first, and then has its turn. */
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"
#include "io/net_impl.h"

#define ASK_MS 100
#define ASK_NS ((uint64_t)ASK_MS * 1000000u)

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

static CURLM *make_multi(void)
{
    CURLM *m = curl_multi_init();
    if (m) {
        /* Requests that libcurl held back would age there, and time out once their turn has come: window.c holds them
         * back itself. This is for those that do not wait, and second ones. */
        curl_multi_setopt(m, CURLMOPT_MAX_HOST_CONNECTIONS, 2L * SPK_NET_PER_HOST);
        curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, 64L);
        curl_multi_setopt(m, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    }
    return m;
}

static void init_sync(spk_net *net)
{
    pthread_condattr_t a;
    pthread_mutex_init(&net->lock, NULL);
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&net->changed, &a);
    pthread_condattr_destroy(&a);
}

spk_status spk_loop_init(spk_net *net, spk_error *err)
{
    pthread_once(&once, init_curl);
    init_sync(net);
    net->pid = getpid();
    net->multi = make_multi();
    net->windows_end = &net->windows;
    return net->multi ? SPK_OK : spk_error_nomem(err, 0);
}

void spk_loop_free(spk_net *net)
{
    bool mine = net->pid == getpid();
    for (size_t i = 0; i < net->idle_n && mine; i++)
        curl_easy_cleanup(net->idle[i]);
    if (mine)
        curl_multi_cleanup(net->multi);
    pthread_cond_destroy(&net->changed);
    pthread_mutex_destroy(&net->lock);
}

/* In a forked child: the parent's sockets must not be used, not even closed in good order. What was under way begins
 * anew on the child's own connections. */
static void after_fork(spk_net *net)
{
    init_sync(net);
    net->pid = getpid();
    net->polling = false;
    net->wanting = 0;
    net->idle_n = 0;
    net->multi = make_multi();
    net->transfers = NULL;
    for (size_t i = 0; i < net->mirrors_n; i++)
        net->mirrors[i].running = 0;
    for (spk_window *w = net->windows; w; w = w->list)
        w->main_on = w->hedge_on = false;
}

void spk_net_turn(spk_net *net)
{
    if (!net->polling)
        return;
    net->wanting++;
    while (net->polling) {
        curl_multi_wakeup(net->multi);
        pthread_cond_wait(&net->changed, &net->lock);
    }
    net->wanting--;
    net->served++;
    pthread_cond_broadcast(&net->changed);
}

void spk_net_lock(spk_net *net)
{
    if (net->pid != getpid())
        after_fork(net);
    pthread_mutex_lock(&net->lock);
    spk_net_turn(net);
}

/* A thread that drives comes back here at once, and would have the lock again before one that it has just woken. */
static void give_way(spk_net *net)
{
    unsigned served = net->served;
    while (net->wanting > 0 && net->served == served && !net->polling)
        pthread_cond_wait(&net->changed, &net->lock);
}

void spk_net_unlock(spk_net *net)
{
    pthread_mutex_unlock(&net->lock);
}

CURL *spk_easy_get(spk_net *net)
{
    if (net->idle_n == 0)
        return curl_easy_init();
    CURL *easy = net->idle[--net->idle_n];
    curl_easy_reset(easy);
    return easy;
}

void spk_easy_put(spk_net *net, CURL *easy)
{
    if (net->idle_n < SPK_NET_IDLE_MAX)
        net->idle[net->idle_n++] = easy;
    else
        curl_easy_cleanup(easy);
}

static void take_messages(spk_net *net)
{
    int left = 0;
    for (CURLMsg *m = curl_multi_info_read(net->multi, &left); m; m = curl_multi_info_read(net->multi, &left)) {
        spk_transfer *t = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        t->result = m->data.result;
        net->events++;
        t->done = true;
    }
}

/* Those that are under way first: where one ends, the oldest that waits begins. */
static void step_all(spk_net *net)
{
    uint64_t now = spk_now_ns();
    for (int waiting = 0; waiting < 2; waiting++)
        for (spk_window *w = net->windows, *next = NULL; w; w = next) {
            next = w->list;
            if ((waiting != 0) == !(w->main_on || w->hedge_on))
                spk_window_step(w, now);
        }
}

static uint64_t next_due(const spk_net *net, uint64_t now, uint64_t until)
{
    for (const spk_window *w = net->windows; w; w = w->list) {
        uint64_t due = spk_window_due(w, now);
        until = due < until ? due : until;
    }
    return until;
}

static void perform(spk_net *net)
{
    int running = 0;
    curl_multi_perform(net->multi, &running);
    take_messages(net);
    step_all(net);
}

static void sleep_as_other(spk_net *net, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&net->changed, &net->lock, &until);
}

spk_status spk_net_cancelled(spk_error *err)
{
    return spk_error_set(err, SPK_E_CANCELLED, "cancelled while waiting for a server");
}

/* The callback may want other locks, so it is called without ours. */
static bool goes_on(spk_net *net)
{
    uint64_t now = spk_now_ns();
    if (!net->on_wait || now - net->asked_ns < ASK_NS)
        return true;
    net->asked_ns = now;
    int (*on_wait)(void *) = net->on_wait;
    void *user = net->on_wait_user;
    pthread_mutex_unlock(&net->lock);
    bool wanted = on_wait(user) == 0;
    spk_net_lock(net);
    return wanted;
}

bool spk_net_wait(spk_net *net, int fd, int ms)
{
    if (net->on_wait && ms > ASK_MS)
        ms = ASK_MS;
    give_way(net);
    if (net->polling) {
        sleep_as_other(net, ms);
        return goes_on(net);
    }
    uint64_t events = net->events;
    perform(net);
    if (net->events != events)
        ms = 0;
    uint64_t now = spk_now_ns(), until = next_due(net, now, now + (uint64_t)ms * 1000000u);
    struct curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN};
    if (ms > 0 && until > now) {
        net->polling = true;
        pthread_mutex_unlock(&net->lock);
        curl_multi_poll(net->multi, fd >= 0 ? &extra : NULL, fd >= 0, (int)((until - now + 999999) / 1000000), NULL);
        pthread_mutex_lock(&net->lock);
        net->polling = false;
        perform(net);
    }
    pthread_cond_broadcast(&net->changed);
    return goes_on(net);
}

bool spk_net_drive(spk_net *net, int fd, int ms)
{
    spk_net_lock(net);
    bool busy = net->windows != NULL;
    if (busy)
        (void)spk_net_wait(net, fd, ms);
    spk_net_unlock(net);
    return busy;
}
