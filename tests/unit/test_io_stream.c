/* io/: what is requested, and in which order, against a small HTTP server in this process that logs requests and can
 * hold its replies back. */
#include "check_main.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/net.h"
#include "io/source.h"

#define MB (UINT64_C(1) << 20)
#define SIZE (48 * MB)
#define LOG_MAX 512
#define AT_ONCE 16 /* requests of a mirror, io/net_impl.h */

static spk_error err;
static uint8_t *content;
static char url[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool held; /* no reply goes out */
static struct {
    uint64_t from, to;
} requests[LOG_MAX];
static size_t requests_n;

static bool send_all(int fd, const void *p, size_t n)
{
    for (ssize_t k = 0; n > 0; p = (const char *)p + k, n -= (size_t)k) {
        k = send(fd, p, n, MSG_NOSIGNAL);
        if (k <= 0)
            return false;
    }
    return true;
}

static bool reply(int fd, const char *request)
{
    unsigned long long from = 0, last = 0;
    char head[256];
    const char *range = strstr(request, "Range: bytes=");
    ck_assert(range && sscanf(range, "Range: bytes=%llu-%llu", &from, &last) == 2 && last < SIZE);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i <= requests_n; i++) /* a second request for what stalls counts once */
        if (i == requests_n && i < LOG_MAX) {
            requests[i].from = from;
            requests[requests_n++].to = last + 1;
            break;
        } else if (requests[i].from == from) {
            break;
        }
    pthread_cond_broadcast(&changed);
    while (held)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    int n =
        snprintf(head, sizeof head,
                 "HTTP/1.1 206 Partial Content\r\nContent-Length: %llu\r\nContent-Range: bytes %llu-%llu/%llu\r\n\r\n",
                 last + 1 - from, from, last, (unsigned long long)SIZE);
    return send_all(fd, head, (size_t)n) && send_all(fd, content + from, (size_t)(last + 1 - from));
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char request[4096];
    size_t n = 0;
    for (ssize_t k = 0; (k = recv(fd, request + n, sizeof request - 1 - n, 0)) > 0;) {
        n += (size_t)k;
        request[n] = '\0';
        if (!strstr(request, "\r\n\r\n"))
            continue;
        if (!reply(fd, request))
            break;
        n = 0;
    }
    close(fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    pthread_t thread;
    int listener = (int)(intptr_t)arg;
    for (int fd = 0; (fd = accept(listener, NULL, NULL)) >= 0;)
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
    return NULL;
}

static void setup(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    pthread_t thread;
    requests_n = 0;
    content = malloc(SIZE);
    ck_assert_ptr_nonnull(content);
    for (uint64_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(i * 2654435761u >> 24);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(bind(listener, (struct sockaddr *)&a, sizeof a) == 0 && listen(listener, 64) == 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &size), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(a.sin_port));
    unsetenv("http_proxy");
    ck_assert_int_eq(pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)listener), 0);
    pthread_detach(thread);
}

static spk_source *open_object(spk_net **net)
{
    const spk_net_options options = {.deadline = 300};
    const spk_net_object object = {.size = SIZE};
    spk_source *s = NULL;
    ck_ok(spk_net_new(net, &options, &err), err);
    ck_ok(spk_net_add_mirror(*net, url, &err), err);
    ck_ok(spk_net_open(*net, "object", &object, &s, &err), err);
    return s;
}

static void drive_all(spk_net *net)
{
    while (spk_net_drive(net, -1, 100))
        continue;
}

static uint64_t asked(void)
{
    uint64_t sum = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < requests_n; i++)
        sum += requests[i].to - requests[i].from;
    pthread_mutex_unlock(&lock);
    return sum;
}

static void read_all(spk_source *s, uint64_t from, uint64_t to)
{
    static _Thread_local uint8_t piece[300000];
    for (uint64_t n = 0; from < to; from += n) {
        n = to - from < sizeof piece ? to - from : sizeof piece;
        ck_ok(spk_source_pread(s, piece, (size_t)n, from, &err), err);
        ck_assert_mem_eq(piece, content + from, (size_t)n);
    }
}

/* A reader that says how far it wants to go gets that, some more, and nothing twice. */
START_TEST(no_more_is_asked_for_than_is_wanted)
{
    spk_net *net = NULL;
    spk_source *s = open_object(&net);
    spk_source_ahead(s, MB, 20 * MB, 4 * MB, 7);
    drive_all(net);
    ck_assert_uint_ge(asked(), 3 * MB);
    ck_assert_uint_le(asked(), 5 * MB);
    read_all(s, MB, 4 * MB);
    ck_assert_uint_le(asked(), 5 * MB); /* reading is no wish for more */
    spk_source_ahead(s, MB, 20 * MB, 9 * MB, 7);
    spk_source_ahead(s, MB, 20 * MB, 9 * MB, 7);
    drive_all(net);
    ck_assert_uint_ge(asked(), 8 * MB);
    ck_assert_uint_le(asked(), 10 * MB);
    spk_source_ahead(s, MB, 20 * MB, 20 * MB, 7);
    read_all(s, 4 * MB, 20 * MB);
    ck_assert_uint_eq(asked(), 19 * MB);
    spk_source_close(s);
    spk_net_free(net);
}
END_TEST

/* net: drives it; NULL: another thread does. */
static size_t wait_for_requests(spk_net *net, size_t n)
{
    for (;;) {
        if (net)
            spk_net_drive(net, -1, 10);
        pthread_mutex_lock(&lock);
        size_t have = requests_n;
        pthread_mutex_unlock(&lock);
        if (have >= n)
            return have;
        poll(NULL, 0, 1);
    }
}

static void *read_last(void *s)
{
    read_all(s, 40 * MB, 41 * MB);
    return NULL;
}

/* So many requests at a time, the oldest first; what a reader waits for does not queue behind them. */
START_TEST(those_that_wait_keep_their_order)
{
    spk_net *net = NULL;
    spk_source *s = open_object(&net);
    pthread_t reader;
    held = true;
    for (uint64_t i = 0; i < 41; i++)
        spk_source_ahead(s, i * MB, (i + 1) * MB, (i + 1) * MB, i + 1);
    ck_assert_uint_eq(wait_for_requests(net, AT_ONCE), AT_ONCE);
    for (int i = 0; i < 20; i++)
        spk_net_drive(net, -1, 10);
    ck_assert_uint_eq(wait_for_requests(net, 0), AT_ONCE);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_last, s), 0);
    ck_assert_uint_eq(wait_for_requests(NULL, AT_ONCE + 1), AT_ONCE + 1);
    ck_assert_uint_eq(requests[AT_ONCE].from, 40 * MB);
    pthread_mutex_lock(&lock);
    held = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(reader, NULL);
    drive_all(net);
    read_all(s, 0, 40 * MB);
    ck_assert_uint_eq(requests_n, 41);
    for (size_t i = 0; i < AT_ONCE; i++)
        ck_assert_uint_lt(requests[i].from, AT_ONCE * MB);
    spk_source_close(s);
    spk_net_free(net);
}
END_TEST

static void *read_first(void *s)
{
    read_all(s, 0, MB);
    return NULL;
}

/* A thread that waits for bytes drives the transfers, but gives way to others: what they ask for is not held up until
 * its bytes come. */
START_TEST(one_that_waits_gives_way)
{
    spk_net *net = NULL;
    spk_source *s = open_object(&net), *other = NULL;
    const spk_net_object object = {.size = SIZE};
    pthread_t reader;
    ck_ok(spk_net_open(net, "other", &object, &other, &err), err);
    spk_source_ahead(other, 40 * MB, 41 * MB, 41 * MB, 1);
    drive_all(net);
    held = true;
    ck_assert_int_eq(pthread_create(&reader, NULL, read_first, s), 0);
    wait_for_requests(NULL, 2);
    for (int i = 0; i < 100; i++)
        spk_net_drive(net, -1, 1);
    read_last(other);
    pthread_mutex_lock(&lock);
    held = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(reader, NULL);
    spk_source_close(other);
    spk_source_close(s);
    spk_net_free(net);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("io/stream");
    TCase *t = tcase_create("stream");
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, no_more_is_asked_for_than_is_wanted);
    tcase_add_test(t, those_that_wait_keep_their_order);
    tcase_add_test(t, one_that_waits_gives_way);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
