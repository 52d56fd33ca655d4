/* delay_relay HOST_PORT MS: relays TCP connections on loopback to 127.0.0.1:HOST_PORT and delays every byte by MS / 2
 * in each direction, and a connection's first byte by MS more, as a handshake would. Prints its port; ends with its
 * standard input. Bandwidth is not limited: at most WINDOW bytes are under way in each direction. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAIRS_MAX 512
#define WINDOW (16u << 20)
#define PIECE (256u << 10)

typedef struct piece {
    struct piece *next;
    uint64_t due;
    size_t n, sent;
    char data[];
} piece;

typedef struct lane {
    int from, to;
    piece *first, **last;
    size_t held;
    int ended; /* from has no more */
    uint64_t extra;
} lane;

static struct pair {
    lane lanes[2];
    int open;
} pairs[PAIRS_MAX];

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void close_pair(struct pair *p)
{
    close(p->lanes[0].from);
    close(p->lanes[1].from);
    for (int i = 0; i < 2; i++)
        for (piece *x = p->lanes[i].first, *next = NULL; x; x = next) {
            next = x->next;
            free(x);
        }
    memset(p, 0, sizeof *p);
}

static void open_pair(int listener, const struct sockaddr_in *upstream, uint64_t handshake)
{
    int on = 1, a = accept4(listener, NULL, NULL, SOCK_NONBLOCK), b = socket(AF_INET, SOCK_STREAM, 0), i = 0;
    while (i < PAIRS_MAX && pairs[i].open)
        i++;
    if (a < 0 || b < 0 || i == PAIRS_MAX || connect(b, (const struct sockaddr *)upstream, sizeof *upstream) != 0) {
        close(a);
        close(b);
        return;
    }
    setsockopt(a, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(b, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct pair *p = &pairs[i];
    p->open = 1;
    p->lanes[0] = (lane){.from = a, .to = b, .last = &p->lanes[0].first, .extra = handshake};
    p->lanes[1] = (lane){.from = b, .to = a, .last = &p->lanes[1].first};
}

static void take(lane *l, uint64_t delay)
{
    piece *x = malloc(sizeof *x + PIECE);
    ssize_t n = x ? recv(l->from, x->data, PIECE, MSG_DONTWAIT) : -1;
    if (n <= 0) {
        free(x);
        l->ended = n == 0 || (n < 0 && errno != EAGAIN);
        return;
    }
    x->next = NULL;
    x->n = (size_t)n;
    x->sent = 0;
    x->due = now_ns() + delay + l->extra;
    l->extra = 0;
    *l->last = x;
    l->last = &x->next;
    l->held += x->n;
}

/* -1: the connection is gone. */
static int give(lane *l, uint64_t now)
{
    while (l->first && l->first->due <= now) {
        piece *x = l->first;
        ssize_t n = send(l->to, x->data + x->sent, x->n - x->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        x->sent += (size_t)n;
        l->held -= (size_t)n;
        if (x->sent < x->n)
            return 0;
        l->first = x->next;
        if (!l->first)
            l->last = &l->first;
        free(x);
    }
    return l->ended && !l->first ? -1 : 0;
}

static void run(int listener, const struct sockaddr_in *upstream, uint64_t rtt)
{
    static struct pollfd fds[2 * PAIRS_MAX + 2];
    static lane *lanes[2 * PAIRS_MAX];
    for (;;) {
        uint64_t now = now_ns(), next = now + 1000000000u;
        nfds_t n = 2;
        fds[0] = (struct pollfd){.fd = 0, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (int i = 0; i < PAIRS_MAX; i++) {
            if (pairs[i].open && (give(&pairs[i].lanes[0], now) < 0 || give(&pairs[i].lanes[1], now) < 0))
                close_pair(&pairs[i]);
            for (int k = 0; k < 2 && pairs[i].open; k++) {
                lane *l = &pairs[i].lanes[k];
                short events = l->held < WINDOW && !l->ended ? POLLIN : 0;
                if (l->first && l->first->due > now)
                    next = l->first->due < next ? l->first->due : next;
                lanes[n - 2] = l;
                lane *back = &pairs[i].lanes[1 - k]; /* what is due there and did not go out waits for this socket */
                events = (short)(events | (back->first && back->first->due <= now ? POLLOUT : 0));
                fds[n++] = (struct pollfd){.fd = l->from, .events = events};
            }
        }
        struct timespec wait = {.tv_nsec = next > now ? (long)((next - now) % 1000000000u) : 0};
        ppoll(fds, n, &wait, NULL);
        if (fds[0].revents)
            return;
        for (nfds_t i = 2; i < n; i++)
            if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
                take(lanes[i - 2], rtt / 2);
        if (fds[1].revents)
            open_pair(listener, upstream, rtt);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, up = a;
    socklen_t size = sizeof a;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (argc != 3 || listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen(listener, 256) != 0 || getsockname(listener, (struct sockaddr *)&a, &size) != 0) {
        fprintf(stderr, "usage: delay_relay PORT MS\n");
        return 2;
    }
    up.sin_port = htons((uint16_t)atoi(argv[1]));
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    run(listener, &up, (uint64_t)(atof(argv[2]) * 1e6));
    return 0;
}
