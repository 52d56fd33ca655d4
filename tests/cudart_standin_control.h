/* The end of cudart_standin.c: what tests call. */
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

/* For a test that breaks a rule on purpose. */
API void standin_forgive(void)
{
    LOCKED(s.violations = 0);
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
