/* A stand-in for libcudart, for machines without a GPU: "device memory" is malloc'ed, and a thread executes what is
 * queued on streams, late and in order. It is no emulation of CUDA, only as much of the runtime as
 * lib/load/pinned_cuda.h declares, with checks that the real one does not make:
 *   - the source of a copy must be alive, locked (unless pageable ones are allowed), and unchanged when it is executed
 *   - memory must not be unlocked or freed while copies from or to it are queued
 *   - events and streams must be of the caller's device
 * Tests reach the functions standin_* by dlsym. For programs that cannot: CUDART_STANDIN_DELAY_US,
 * CUDART_STANDIN_DEVICES and CUDART_STANDIN_FAIL ("HostRegister:2", several with commas) do at the start what the
 * functions do. */
#include "cudart_standin_device.h"

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

#include "cudart_standin_control.h"
