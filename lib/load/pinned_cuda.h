/* The CUDA runtime, loaded at run time: the calls that are needed, declared here, since no header of CUDA is. A unit
 * test compares the declarations with the real ones where a toolkit is installed. */
#ifndef SPK_LOAD_PINNED_CUDA_H
#define SPK_LOAD_PINNED_CUDA_H

#include <shardpack/error.h>
#include <stdbool.h>

#include "base/error.h"

#ifndef SPK_CUDA_REAL_TYPES
typedef unsigned spk_cuda_status; /* cudaError_t */
typedef unsigned spk_cuda_kind;   /* enum cudaMemcpyKind */
typedef void *spk_cuda_stream;    /* cudaStream_t */
typedef void *spk_cuda_event;     /* cudaEvent_t */
#endif

/* Name without "cuda", and parameters. All return a status. */
#define SPK_CUDA_CALLS(X)                                                                                              \
    X(RuntimeGetVersion, (int *version))                                                                               \
    X(GetLastError, (void))                                                                                            \
    X(GetDevice, (int *device))                                                                                        \
    X(SetDevice, (int device))                                                                                         \
    X(HostRegister, (void *base, size_t bytes, unsigned flags))                                                        \
    X(HostUnregister, (void *base))                                                                                    \
    X(Malloc, (void **out, size_t bytes))                                                                              \
    X(Free, (void *memory))                                                                                            \
    X(MemcpyAsync, (void *to, const void *from, size_t bytes, spk_cuda_kind kind, spk_cuda_stream stream))             \
    X(EventCreateWithFlags, (spk_cuda_event * out, unsigned flags))                                                    \
    X(EventRecord, (spk_cuda_event event, spk_cuda_stream stream))                                                     \
    X(EventQuery, (spk_cuda_event event))                                                                              \
    X(EventDestroy, (spk_cuda_event event))                                                                            \
    X(StreamCreateWithFlags, (spk_cuda_stream * out, unsigned flags))                                                  \
    X(StreamSynchronize, (spk_cuda_stream stream))                                                                     \
    X(StreamWaitEvent, (spk_cuda_stream stream, spk_cuda_event event, unsigned flags))                                 \
    X(StreamDestroy, (spk_cuda_stream stream))

/* Values of the runtime's enums and flags. */
enum {
    SPK_CUDA_OK = 0,           /* cudaSuccess */
    SPK_CUDA_NO_MEMORY = 2,    /* cudaErrorMemoryAllocation */
    SPK_CUDA_UNLOADING = 4,    /* cudaErrorCudartUnloading */
    SPK_CUDA_NOT_READY = 600,  /* cudaErrorNotReady */
    SPK_CUDA_NO_CONTEXT = 709, /* cudaErrorContextIsDestroyed */
    SPK_CUDA_TO_DEVICE = 1,    /* cudaMemcpyHostToDevice */
    SPK_CUDA_PORTABLE = 1,     /* cudaHostRegisterPortable */
    SPK_CUDA_NO_TIMING = 2,    /* cudaEventDisableTiming */
    SPK_CUDA_NON_BLOCKING = 1  /* cudaStreamNonBlocking */
};

#ifndef SPK_CUDA_REAL_TYPES
typedef struct spk_cuda {
    void *library; /* NULL: none */
    int version;   /* 1000 * major + 10 * minor */
#define SPK_CUDA_MEMBER(name, parameters) spk_cuda_status(*name) parameters;
    SPK_CUDA_CALLS(SPK_CUDA_MEMBER)
#undef SPK_CUDA_MEMBER
    const char *(*GetErrorString)(spk_cuda_status status);
} spk_cuda;

/* SHARDPACK_CUDART alone if it is set; else what the process has loaded, the loader's path, the toolkit's usual folder.
 * UNSUPPORTED if there is none, or none of a known version. Makes no context. */
SPK_CHECK spk_status spk_cuda_open(spk_cuda *out, spk_error *err);
/* The runtime itself stays in the process: it does not like to go. */
void spk_cuda_close(spk_cuda *cuda);
/* The error of a call that returned `status`: DEVICE or NOMEM, "text: CUDA error N (the runtime's words)". Clears it in
 * the runtime, where the next call of somebody else would get it. */
spk_status spk_cuda_fail(const spk_cuda *cuda, spk_cuda_status status, spk_error *err, const char *fmt, ...)
    SPK_PRINTF(4, 5);
#endif

#endif
