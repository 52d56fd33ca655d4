/* The beginning of cudart_standin.c: its state, and the thread that executes what is queued. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))
#define RANGES_MAX 4096
#define FAILS_MAX 16

enum {
    OK = 0,
    INVALID = 1,
    NO_MEMORY = 2,
    NO_DEVICE = 100,
    BAD_DEVICE = 101,
    BAD_HANDLE = 400,
    NOT_READY = 600,
    LOCKED_ALREADY = 712,
    NOT_LOCKED = 713
};
enum op_kind { COPY, RECORD, WAIT, DIGEST };

typedef struct event {
    int device;
    uint64_t recorded, done;
    unsigned users; /* operations that name it, and its owner */
    bool destroyed;
} event;

typedef struct op {
    struct op *next;
    enum op_kind kind;
    event *event;
    uint64_t target;
    void *to;
    const void *from;
    size_t bytes;
    uint64_t digest, due_ns;
    uint64_t *out;
} op;

typedef struct stream {
    struct stream *next;
    int device;
    op *first, **last;
} stream;

typedef struct range {
    const uint8_t *base;
    size_t bytes;
} range;

typedef struct fault {
    char name[32];
    unsigned skip, times, code;
} fault;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
    bool started, held, pageable;
    int devices;
    uint64_t delay_ns;
    stream *streams;
    stream defaults[8];
    range locked[RANGES_MAX], memory[RANGES_MAX];
    fault faults[FAILS_MAX];
    struct {
        char name[32];
        uint64_t calls;
    } counts[64];
    unsigned contexts; /* bit per device */
    uint64_t violations, copied;
    char violation[256];
    int live_events, live_streams;
} s = {.devices = 2, .delay_ns = 500000};
/* In the static block of each thread: of thread-local memory that is made on demand, for a library opened later, the
 * leak checker of GCC 12 guesses where it begins, and may read anywhere. */
#define PER_THREAD _Thread_local __attribute__((tls_model("initial-exec")))
static PER_THREAD int current;
static PER_THREAD unsigned latched;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t digest(const void *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3u;
    return h;
}

static void violate(const char *text)
{
    s.violations++;
    snprintf(s.violation, sizeof s.violation, "%s", text);
    fprintf(stderr, "cudart stand-in: %s\n", text);
}

static bool inside(const range *ranges, const void *p, size_t n)
{
    const uint8_t *b = p;
    for (int i = 0; i < RANGES_MAX; i++)
        if (ranges[i].base && b >= ranges[i].base && b + n <= ranges[i].base + ranges[i].bytes)
            return true;
    return false;
}

static range *find(range *ranges, const void *base)
{
    for (int i = 0; i < RANGES_MAX; i++)
        if (ranges[i].base == base)
            return &ranges[i];
    return NULL;
}

static void add_fault(const char *name, unsigned skip, unsigned times, unsigned code)
{
    for (int i = 0; i < FAILS_MAX; i++)
        if (s.faults[i].times == 0) {
            snprintf(s.faults[i].name, sizeof s.faults[i].name, "%s", name);
            s.faults[i].skip = skip;
            s.faults[i].times = times;
            s.faults[i].code = code;
            return;
        }
}

static void event_unref(event *e)
{
    if (--e->users == 0)
        free(e);
}

/* ---- the device: one thread; mutex is held but for the work itself ---- */

static bool can_run(const op *o)
{
    if (o->kind == WAIT)
        return o->event->done >= o->target;
    return o->kind == RECORD || (!s.held && now_ns() >= o->due_ns);
}

static void execute(op *o)
{
    if (o->kind == COPY) {
        if (!s.pageable && !inside(s.locked, o->from, o->bytes))
            violate("a copy from memory that is not page-locked");
        if (digest(o->from, o->bytes) != o->digest)
            violate("the source of a copy changed before the copy was made");
        memcpy(o->to, o->from, o->bytes);
        s.copied += o->bytes;
    } else if (o->kind == RECORD) {
        o->event->done++;
    } else if (o->kind == DIGEST) {
        *o->out = digest(o->to, o->bytes);
    }
    if (o->event)
        event_unref(o->event);
    free(o);
}

static bool run_one(stream *st)
{
    op *o = st->first;
    if (!o || !can_run(o))
        return false;
    st->first = o->next;
    if (!st->first)
        st->last = &st->first;
    execute(o);
    return true;
}

static void *device(void *none)
{
    (void)none;
    pthread_mutex_lock(&mutex);
    for (;;) {
        bool busy = false;
        for (stream *st = s.streams; st; st = st->next)
            busy = run_one(st) || busy;
        if (busy) {
            pthread_cond_broadcast(&changed);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        pthread_cond_timedwait(&changed, &mutex, &until);
    }
    return NULL;
}

static void start(void)
{
    pthread_t thread;
    if (s.started)
        return;
    s.started = true;
    for (int i = 0; i < 8; i++) {
        s.defaults[i] = (stream){.next = s.streams, .device = i};
        s.defaults[i].last = &s.defaults[i].first;
        s.streams = &s.defaults[i];
    }
    if (pthread_create(&thread, NULL, device, NULL) == 0)
        pthread_detach(thread);
}

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void configure(void)
{
    const char *delay = getenv("CUDART_STANDIN_DELAY_US"), *devices = getenv("CUDART_STANDIN_DEVICES");
    const char *fail = getenv("CUDART_STANDIN_FAIL");
    char name[32];
    unsigned code = 0;
    int n = 0;
    pthread_atfork(lock, unlock, unlock);
    if (delay)
        s.delay_ns = strtoull(delay, NULL, 10) * 1000;
    if (devices)
        s.devices = atoi(devices);
    for (; fail && sscanf(fail, "%31[A-Za-z]:%u%n", name, &code, &n) == 2; fail += n + (fail[n] == ','))
        add_fault(name, 0, 1000000, code);
}
