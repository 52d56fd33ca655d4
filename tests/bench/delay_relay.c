/* delay_relay HOST_PORT MS [MBIT]: relays TCP connections on loopback to 127.0.0.1:HOST_PORT. What clients send is held
 * back by MS, a connection's first bytes by MS more, as a handshake would; what the server sends passes at once, so
 * that each round trip takes MS longer. MBIT: so many megabits per second from the server, all connections together.
 * Prints its port; ends with its standard input. Replies are spliced from socket to socket: the machine is shared with
 * what is measured. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAIRS_MAX 512
#define WINDOW (16u << 20) /* bytes held back, at most, of one client */
#define PIECE (64u << 10)
#define PIPE (1 << 20)
#define SHARE (128 << 10) /* of a limited rate, at a time */
#define TICK_NS 500000u   /* how often a limited rate is looked at */

/* Sent by a client, not due yet. */
typedef struct piece {
    struct piece *next;
    uint64_t due;
    size_t n, sent;
    char data[PIECE];
} piece;

static struct pair {
    int open, client, server;
    piece *first, **last;
    size_t held;
    int client_ended, server_ended;
    uint64_t handshake; /* still to be added to the first bytes */
    int pipe[2];
    size_t in_pipe;
} pairs[PAIRS_MAX];

static uint64_t delay_ns;
static double bytes_per_ns, budget; /* 0: not limited */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void close_pair(struct pair *p)
{
    close(p->client);
    close(p->server);
    close(p->pipe[0]);
    close(p->pipe[1]);
    for (piece *x = p->first, *next = NULL; x; x = next) {
        next = x->next;
        free(x);
    }
    memset(p, 0, sizeof *p);
}

static void open_pair(int listener, const struct sockaddr_in *upstream)
{
    int on = 1, i = 0, fds[2] = {-1, -1};
    int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK), server = socket(AF_INET, SOCK_STREAM, 0);
    while (i < PAIRS_MAX && pairs[i].open)
        i++;
    if (client < 0 || server < 0 || i == PAIRS_MAX || pipe2(fds, O_NONBLOCK) != 0 ||
        connect(server, (const struct sockaddr *)upstream, sizeof *upstream) != 0) {
        close(client);
        close(server);
        close(fds[0]);
        close(fds[1]);
        return;
    }
    fcntl(server, F_SETFL, O_NONBLOCK);
    fcntl(fds[0], F_SETPIPE_SZ, PIPE);
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct pair *p = &pairs[i];
    *p = (struct pair){.open = 1, .client = client, .server = server, .handshake = delay_ns, .pipe = {fds[0], fds[1]}};
    p->last = &p->first;
}

static void take_request(struct pair *p)
{
    piece *x = malloc(sizeof *x);
    ssize_t n = x ? recv(p->client, x->data, PIECE, 0) : -1;
    if (n <= 0) {
        free(x);
        p->client_ended = n == 0 || errno != EAGAIN;
        return;
    }
    x->next = NULL;
    x->n = (size_t)n;
    x->sent = 0;
    x->due = now_ns() + delay_ns + p->handshake;
    p->handshake = 0;
    *p->last = x;
    p->last = &x->next;
    p->held += x->n;
}

/* -1: the connection is gone. */
static int give_request(struct pair *p, uint64_t now)
{
    while (p->first && p->first->due <= now) {
        piece *x = p->first;
        ssize_t n = send(p->server, x->data + x->sent, x->n - x->sent, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        x->sent += (size_t)n;
        p->held -= (size_t)n;
        if (x->sent < x->n)
            return 0;
        p->first = x->next;
        if (!p->first)
            p->last = &p->first;
        free(x);
    }
    return p->client_ended && !p->first ? -1 : 0;
}

static void take_reply(struct pair *p)
{
    size_t most = bytes_per_ns <= 0 ? PIPE : budget < SHARE ? (size_t)budget : SHARE;
    ssize_t n = splice(p->server, NULL, p->pipe[1], NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0) {
        p->in_pipe += (size_t)n;
        budget -= (double)n;
    } else {
        p->server_ended = n == 0 || errno != EAGAIN;
    }
}

/* -1: the connection is gone. */
static int give_reply(struct pair *p)
{
    while (p->in_pipe > 0) {
        ssize_t n = splice(p->pipe[0], NULL, p->client, NULL, p->in_pipe, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (n <= 0)
            return n < 0 && errno == EAGAIN ? 0 : -1;
        p->in_pipe -= (size_t)n;
    }
    return p->server_ended ? -1 : 0;
}

/* A socket that nothing is wanted of is left out: poll would tell of its end again and again. */
static struct pollfd want(int fd, int in, int out)
{
    short events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));
    return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

static void add_budget(uint64_t now)
{
    static uint64_t before;
    double most = 4 * TICK_NS * bytes_per_ns;
    budget += before ? (double)(now - before) * bytes_per_ns : 0;
    budget = budget < most ? budget : most;
    before = now;
}

static void run(int listener, const struct sockaddr_in *upstream)
{
    static struct pollfd fds[2 * PAIRS_MAX + 2];
    static struct pair *of[PAIRS_MAX];
    static int first; /* behind the one served last: a limited rate is shared evenly */
    for (;;) {
        uint64_t now = now_ns(), next = now + 999999999u;
        nfds_t n = 2;
        add_budget(now);
        int may = bytes_per_ns <= 0 || budget >= 1;
        fds[0] = (struct pollfd){.fd = 0, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (int i = 0; i < PAIRS_MAX; i++) {
            struct pair *p = &pairs[(i + first) % PAIRS_MAX];
            if (p->open && (give_request(p, now) < 0 || give_reply(p) < 0))
                close_pair(p);
            if (!p->open)
                continue;
            if (p->first && p->first->due > now)
                next = p->first->due < next ? p->first->due : next;
            of[n / 2 - 1] = p;
            fds[n++] = want(p->client, p->held < WINDOW && !p->client_ended, p->in_pipe > 0);
            fds[n++] = want(p->server, may && p->in_pipe == 0, p->first && p->first->due <= now);
        }
        if (!may)
            next = now + TICK_NS < next ? now + TICK_NS : next;
        struct timespec wait = {.tv_nsec = (long)(next - now)};
        ppoll(fds, n, &wait, NULL);
        if (fds[0].revents)
            return;
        for (nfds_t i = 2; i < n; i += 2) {
            struct pair *p = of[i / 2 - 1];
            if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
                take_request(p);
            if (fds[i + 1].revents & (POLLIN | POLLHUP | POLLERR) && (bytes_per_ns <= 0 || budget >= 1)) {
                take_reply(p);
                first = (int)(p - pairs) + 1;
            }
        }
        if (fds[1].revents)
            open_pair(listener, upstream);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, up = a;
    socklen_t size = sizeof a;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (argc < 3 || listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen(listener, 256) != 0 || getsockname(listener, (struct sockaddr *)&a, &size) != 0) {
        fprintf(stderr, "usage: delay_relay PORT MS [MBIT]\n");
        return 2;
    }
    delay_ns = (uint64_t)(atof(argv[2]) * 1e6);
    bytes_per_ns = argc > 3 ? atof(argv[3]) / 8e3 : 0;
    up.sin_port = htons((uint16_t)atoi(argv[1]));
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    signal(SIGPIPE, SIG_IGN); /* splice knows no MSG_NOSIGNAL */
    run(listener, &up);
    return 0;
}
