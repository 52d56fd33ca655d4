/* A stand-in for libcudart, for machines without a GPU: "device memory" is malloc'ed, and a thread executes what is
 * queued on streams, late and in order. It is no emulation of CUDA, only as much of the runtime as
 * lib/load/pinned_cuda.h declares, with checks that the real one does not make:
 *   - the source of a copy must be alive, locked (unless pageable ones are allowed), and unchanged when it is executed
 *   - memory must not be unlocked or freed while copies from or to it are queued
 *   - events and streams must be of the caller's device
 * Tests reach the functions standin_* by dlsym. For programs that cannot: CUDART_STANDIN_DELAY_US,
 * CUDART_STANDIN_DEVICES and CUDART_STANDIN_FAIL ("HostRegister:2", several with commas) do at the start what the
 * functions do. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))
#define RANGES_MAX 256
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
static _Thread_local int current;
static _Thread_local unsigned latched;

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

/* ---- the runtime ---- */

/* Counts the call; the code it is to fail with, or OK. Leaves the mutex locked. */
static unsigned enter(const char *name)
{
    unsigned code = OK;
    pthread_mutex_lock(&mutex);
    start();
    for (int i = 0; i < 64; i++) {
        if (!s.counts[i].name[0])
            snprintf(s.counts[i].name, sizeof s.counts[i].name, "%s", name);
        if (strcmp(s.counts[i].name, name) == 0) {
            s.counts[i].calls++;
            break;
        }
    }
    for (int i = 0; i < FAILS_MAX; i++) {
        fault *f = &s.faults[i];
        if (f->times == 0 || strcmp(f->name, name) != 0)
            continue;
        if (f->skip > 0) {
            f->skip--;
            continue;
        }
        f->times--;
        code = f->code;
        break;
    }
    return code;
}

static unsigned leave(unsigned code)
{
    pthread_mutex_unlock(&mutex);
    if (code != OK)
        latched = code;
    return code;
}

static stream *stream_of(void *handle)
{
    if (!handle)
        return &s.defaults[current];
    for (stream *st = s.streams; st; st = st->next)
        if (st == handle)
            return st;
    return NULL;
}

static unsigned push(void *handle, op what)
{
    stream *st = stream_of(handle);
    op *o = malloc(sizeof *o);
    if (!st || !o) {
        free(o);
        return BAD_HANDLE;
    }
    *o = what;
    o->next = NULL;
    o->due_ns = now_ns() + s.delay_ns;
    *st->last = o;
    st->last = &o->next;
    pthread_cond_broadcast(&changed);
    return OK;
}

static void use_context(void)
{
    s.contexts |= 1u << current;
}

/* True if a queued copy reads or writes there. */
static bool in_use(const uint8_t *base, size_t bytes)
{
    for (const stream *st = s.streams; st; st = st->next)
        for (const op *o = st->first; o; o = o->next) {
            const uint8_t *from = o->from, *to = o->to;
            if ((from && from >= base && from < base + bytes) || (to && to >= base && to < base + bytes))
                return true;
        }
    return false;
}

API unsigned cudaRuntimeGetVersion(int *version)
{
    unsigned code = enter("RuntimeGetVersion");
    const char *text = getenv("CUDART_STANDIN_VERSION");
    *version = text ? atoi(text) : 12040;
    return leave(code);
}

API unsigned cudaGetLastError(void)
{
    unsigned code = latched;
    latched = OK;
    return code;
}

API const char *cudaGetErrorString(unsigned code)
{
    return code == NO_DEVICE ? "no CUDA-capable device is detected" : code == NO_MEMORY ? "out of memory" : "stand-in";
}

API unsigned cudaGetDevice(int *device_out)
{
    unsigned code = enter("GetDevice");
    *device_out = current;
    return leave(code ? code : s.devices == 0 ? NO_DEVICE : OK);
}

API unsigned cudaSetDevice(int number)
{
    unsigned code = enter("SetDevice");
    if (code == OK && (number < 0 || number >= s.devices))
        code = s.devices == 0 ? NO_DEVICE : BAD_DEVICE;
    if (code == OK) {
        current = number;
        use_context();
    }
    return leave(code);
}

API unsigned cudaHostRegister(void *base, size_t bytes, unsigned flags)
{
    unsigned code = enter("HostRegister");
    use_context();
    if (code == OK && (bytes == 0 || flags != 1))
        code = INVALID;
    if (code == OK && inside(s.locked, base, 1))
        code = LOCKED_ALREADY;
    if (code == OK)
        *find(s.locked, NULL) = (range){base, bytes};
    return leave(code);
}

API unsigned cudaHostUnregister(void *base)
{
    unsigned code = enter("HostUnregister");
    range *r = base ? find(s.locked, base) : NULL;
    if (!r)
        return leave(code ? code : NOT_LOCKED);
    if (in_use(r->base, r->bytes))
        violate("memory was unlocked while a copy from it was queued");
    *r = (range){NULL, 0};
    return leave(code);
}

API unsigned cudaMalloc(void **out, size_t bytes)
{
    unsigned code = enter("Malloc");
    use_context();
    *out = code == OK ? malloc(bytes) : NULL;
    if (code == OK && !*out)
        code = NO_MEMORY;
    if (code == OK)
        *find(s.memory, NULL) = (range){*out, bytes};
    return leave(code);
}

/* Waits for the device, as the real one does. */
API unsigned cudaFree(void *memory)
{
    unsigned code = enter("Free");
    range *r = memory ? find(s.memory, memory) : NULL;
    if (!r)
        return leave(code ? code : INVALID);
    while (in_use(r->base, r->bytes) && !s.held)
        pthread_cond_wait(&changed, &mutex);
    free(memory);
    *r = (range){NULL, 0};
    return leave(code);
}

API unsigned cudaMemcpyAsync(void *to, const void *from, size_t bytes, unsigned kind, void *handle)
{
    unsigned code = enter("MemcpyAsync");
    if (code == OK && (kind != 1 || !inside(s.memory, to, bytes)))
        code = INVALID;
    if (code == OK && !s.pageable && !inside(s.locked, from, bytes))
        violate("a copy from memory that is not page-locked was queued");
    if (code == OK)
        code = push(handle, (op){.kind = COPY, .to = to, .from = from, .bytes = bytes, .digest = digest(from, bytes)});
    return leave(code);
}

API unsigned cudaEventCreateWithFlags(void **out, unsigned flags)
{
    unsigned code = enter("EventCreateWithFlags");
    event *e = code == OK ? calloc(1, sizeof *e) : NULL;
    use_context();
    (void)flags;
    if (e) {
        e->device = current;
        e->users = 1;
        s.live_events++;
    }
    *out = e;
    return leave(code);
}

API unsigned cudaEventRecord(void *handle, void *stream_handle)
{
    unsigned code = enter("EventRecord");
    event *e = handle;
    stream *st = stream_of(stream_handle);
    if (code == OK && (!st || st->device != e->device))
        code = BAD_HANDLE;
    if (code == OK) {
        e->recorded++;
        e->users++;
        code = push(stream_handle, (op){.kind = RECORD, .event = e});
    }
    return leave(code);
}

API unsigned cudaEventQuery(void *handle)
{
    unsigned code = enter("EventQuery");
    const event *e = handle;
    if (code == OK && e->done < e->recorded)
        code = NOT_READY;
    return leave(code);
}

API unsigned cudaEventDestroy(void *handle)
{
    unsigned code = enter("EventDestroy");
    event *e = handle;
    if (e->destroyed)
        violate("an event was destroyed twice");
    e->destroyed = true;
    s.live_events--;
    event_unref(e);
    return leave(code);
}

API unsigned cudaStreamCreateWithFlags(void **out, unsigned flags)
{
    unsigned code = enter("StreamCreateWithFlags");
    stream *st = code == OK ? calloc(1, sizeof *st) : NULL;
    use_context();
    (void)flags;
    if (st) {
        st->device = current;
        st->last = &st->first;
        st->next = s.streams;
        s.streams = st;
        s.live_streams++;
    }
    *out = st;
    return leave(code);
}

API unsigned cudaStreamSynchronize(void *handle)
{
    unsigned code = enter("StreamSynchronize");
    stream *st = stream_of(handle);
    while (code == OK && st && st->first)
        pthread_cond_wait(&changed, &mutex);
    return leave(code ? code : st ? OK : BAD_HANDLE);
}

API unsigned cudaStreamWaitEvent(void *handle, void *event_handle, unsigned flags)
{
    unsigned code = enter("StreamWaitEvent");
    event *e = event_handle;
    (void)flags;
    if (code == OK) {
        e->users++;
        code = push(handle, (op){.kind = WAIT, .event = e, .target = e->recorded});
    }
    return leave(code);
}

API unsigned cudaStreamDestroy(void *handle)
{
    unsigned code = enter("StreamDestroy");
    stream **at = &s.streams;
    while (*at && *at != handle)
        at = &(*at)->next;
    stream *st = *at;
    if (!st || !handle)
        return leave(BAD_HANDLE);
    while (st->first && !s.held)
        pthread_cond_wait(&changed, &mutex);
    for (at = &s.streams; *at != st; at = &(*at)->next)
        continue;
    *at = st->next;
    s.live_streams--;
    free(st);
    return leave(code);
}

/* ---- for tests ---- */

#define LOCKED(...)                                                                                                    \
    do {                                                                                                               \
        pthread_mutex_lock(&mutex);                                                                                    \
        __VA_ARGS__;                                                                                                   \
        pthread_cond_broadcast(&changed);                                                                              \
        pthread_mutex_unlock(&mutex);                                                                                  \
    } while (0)

/* Copies and digests wait as long as it is nonzero. */
API void standin_hold(int held)
{
    LOCKED(s.held = held != 0);
}

API void standin_delay_us(unsigned delay)
{
    LOCKED(s.delay_ns = delay * (uint64_t)1000);
}

API void standin_devices(int devices)
{
    LOCKED(s.devices = devices);
}

API void standin_allow_pageable(int allowed)
{
    LOCKED(s.pageable = allowed != 0);
}

/* The call (without "cuda") fails `times` times with `code`, after `skip` times that it does not. */
API void standin_fail(const char *name, unsigned skip, unsigned times, unsigned code)
{
    LOCKED(add_fault(name, skip, times, code));
}

API uint64_t standin_calls(const char *name)
{
    uint64_t calls = 0;
    LOCKED(for (int i = 0; i < 64; i++) if (strcmp(s.counts[i].name, name) == 0) calls = s.counts[i].calls);
    return calls;
}

/* Rules broken so far; the text of the last. */
API uint64_t standin_violations(const char **text)
{
    uint64_t n = 0;
    LOCKED(n = s.violations);
    if (text)
        *text = s.violation;
    return n;
}

/* Locked ranges, device memory, events and streams that are there. */
API int standin_live(void)
{
    int n = 0;
    LOCKED(n = s.live_events + s.live_streams;
           for (int i = 0; i < RANGES_MAX; i++) n += (s.locked[i].base != NULL) + (s.memory[i].base != NULL));
    return n;
}

API unsigned standin_contexts(void)
{
    unsigned bits = 0;
    LOCKED(bits = s.contexts);
    return bits;
}

API uint64_t standin_copied(void)
{
    uint64_t n = 0;
    LOCKED(n = s.copied);
    return n;
}

/* A kernel: digests device memory when its turn comes. *out is written then. */
API void standin_digest(void *handle, void *memory, size_t bytes, uint64_t *out)
{
    LOCKED(push(handle, (op){.kind = DIGEST, .to = memory, .bytes = bytes, .out = out}));
}

/* 1: page-locked, as torch's is_pinned asks. */
API int standin_is_locked(const void *p)
{
    int is = 0;
    LOCKED(is = inside(s.locked, p, 1));
    return is;
}
