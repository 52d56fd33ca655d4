/* A loader's small dataset, and the stand-in for the CUDA runtime that is built beside the tests: its own calls and
 * those of CUDA that a trainer makes. */
#ifndef STANDIN_FIXTURE_H
#define STANDIN_FIXTURE_H

#include "load_fixture.h"

#include <dlfcn.h>
#include <shardpack/gpu.h>

static struct {
    void (*hold)(int);
    void (*delay_us)(unsigned);
    void (*devices)(int);
    void (*allow_pageable)(int);
    void (*break_call)(const char *, unsigned, unsigned, unsigned);
    uint64_t (*calls)(const char *);
    uint64_t (*violations)(const char **);
    int (*live)(void);
    unsigned (*contexts)(void);
    uint64_t (*copied)(void);
    void (*digest)(void *, void *, size_t, uint64_t *);
    unsigned (*malloc)(void **, size_t);
    unsigned (*free)(void *);
    unsigned (*copy)(void *, const void *, size_t, unsigned, void *);
    unsigned (*last_error)(void);
    unsigned (*new_stream)(void **, unsigned);
    unsigned (*destroy_stream)(void *);
    unsigned (*synchronize)(void *);
} cuda;

static inline void bind_call(void *library, const char *name, void *call)
{
    void *p = dlsym(library, name);
    ck_assert_msg(p != NULL, "the stand-in lacks %s", name);
    memcpy(call, &p, sizeof p);
}

static inline void standin_setup(void)
{
    char self[4096], path[4200];
    load_setup();
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(n, 0);
    self[n] = '\0';
    snprintf(path, sizeof path, "%s/../libcudart_standin.so", dirname(self));
    setenv("SHARDPACK_CUDART", path, 1);
    void *library = dlopen(path, RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
    bind_call(library, "standin_hold", &cuda.hold);
    bind_call(library, "standin_delay_us", &cuda.delay_us);
    bind_call(library, "standin_devices", &cuda.devices);
    bind_call(library, "standin_allow_pageable", &cuda.allow_pageable);
    bind_call(library, "standin_fail", &cuda.break_call);
    bind_call(library, "standin_calls", &cuda.calls);
    bind_call(library, "standin_violations", &cuda.violations);
    bind_call(library, "standin_live", &cuda.live);
    bind_call(library, "standin_contexts", &cuda.contexts);
    bind_call(library, "standin_copied", &cuda.copied);
    bind_call(library, "standin_digest", &cuda.digest);
    bind_call(library, "cudaMalloc", &cuda.malloc);
    bind_call(library, "cudaFree", &cuda.free);
    bind_call(library, "cudaMemcpyAsync", &cuda.copy);
    bind_call(library, "cudaGetLastError", &cuda.last_error);
    bind_call(library, "cudaStreamCreateWithFlags", &cuda.new_stream);
    bind_call(library, "cudaStreamDestroy", &cuda.destroy_stream);
    bind_call(library, "cudaStreamSynchronize", &cuda.synchronize);
}

/* No rule was broken, and nothing is left on the device. */
static inline void nothing_wrong(void)
{
    const char *text = NULL;
    ck_assert_msg(cuda.violations(&text) == 0, "%s", text);
    ck_assert_int_eq(cuda.live(), 0);
    ck_assert_uint_eq(cuda.last_error(), 0);
}

static inline spk_loader_options pin_options(int workers)
{
    spk_loader_options o = load_options(workers);
    o.pin_memory = SPK_PIN_ON;
    return o;
}

static inline spk_loader_stats stats_of(const spk_loader *l)
{
    spk_loader_stats s;
    spk_loader_get_stats(l, &s);
    return s;
}

#define SLOT_BYTES 64u /* of a label or index column, whole batch */

static const size_t fixed[] = {COL_LABEL, COL_INDEX};

/* Device memory for every batch of an epoch: two columns each. */
typedef struct target {
    void *memory;
    uint64_t want[64];
    size_t n;
} target;

static inline void target_new(target *t)
{
    memset(t, 0, sizeof *t);
    ck_assert_uint_eq(cuda.malloc(&t->memory, (size_t)64 * 2 * SLOT_BYTES), 0);
}

static inline void *place(const target *t, size_t batch, size_t column)
{
    return (uint8_t *)t->memory + (batch * 2 + column) * SLOT_BYTES;
}

static inline uint64_t digest_column(const spk_batch *b, size_t column)
{
    spk_view v;
    ck_ok(spk_batch_column(b, column, &v, &err), err);
    return digest_bytes(0xcbf29ce484222325u, v.data, (size_t)v.bytes);
}

static inline void upload(target *t, spk_batch *b, void *stream)
{
    void *to[] = {place(t, t->n, 0), place(t, t->n, 1)};
    t->want[t->n++] = digest_column(b, COL_INDEX);
    ck_ok(spk_batch_upload(b, fixed, 2, to, stream, &err), err);
}

/* What arrived is what the host saw. */
static inline void target_check(target *t, uint64_t rows)
{
    for (size_t i = 0; i < t->n; i++)
        ck_assert_msg(digest_bytes(0xcbf29ce484222325u, place(t, i, 1), (size_t)rows * 8) == t->want[i],
                      "batch %zu arrived with other bytes", i);
    ck_assert_uint_eq(cuda.free(t->memory), 0);
}

#endif
