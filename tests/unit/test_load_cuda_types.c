/* load/pinned_cuda.h declares what it calls of the CUDA runtime by itself. Where the toolkit's headers are installed,
 * this file compiles only if each declaration is that of the toolkit; where not, there is nothing to check. */
#include "check_main.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>

#define SPK_CUDA_REAL_TYPES
#define spk_cuda_status cudaError_t
#define spk_cuda_kind enum cudaMemcpyKind
#define spk_cuda_stream cudaStream_t
#define spk_cuda_event cudaEvent_t
#include "load/pinned_cuda.h"
#undef spk_cuda_status
#undef spk_cuda_kind

#define SAME(name, parameters)                                                                                         \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&cuda##name), cudaError_t(*) parameters),                   \
                   "cuda" #name " is declared differently");
#define spk_cuda_kind enum cudaMemcpyKind
SPK_CUDA_CALLS(SAME)

/* What stands in for their types has the same size and is passed alike. */
_Static_assert(sizeof(cudaError_t) == sizeof(unsigned), "statuses are as wide as unsigned");
_Static_assert(sizeof(enum cudaMemcpyKind) == sizeof(unsigned), "kinds are as wide as unsigned");
_Static_assert(sizeof(cudaStream_t) == sizeof(void *) && sizeof(cudaEvent_t) == sizeof(void *), "handles are pointers");
_Static_assert(__builtin_types_compatible_p(__typeof__(&cudaGetErrorString), const char *(*)(cudaError_t)),
               "cudaGetErrorString is declared differently");

START_TEST(values)
{
    ck_assert_int_eq(SPK_CUDA_OK, cudaSuccess);
    ck_assert_int_eq(SPK_CUDA_NO_MEMORY, cudaErrorMemoryAllocation);
    ck_assert_int_eq(SPK_CUDA_UNLOADING, cudaErrorCudartUnloading);
    ck_assert_int_eq(SPK_CUDA_NOT_READY, cudaErrorNotReady);
    ck_assert_int_eq(SPK_CUDA_NO_CONTEXT, cudaErrorContextIsDestroyed);
    ck_assert_int_eq(SPK_CUDA_TO_DEVICE, cudaMemcpyHostToDevice);
    ck_assert_int_eq(SPK_CUDA_PORTABLE, cudaHostRegisterPortable);
    ck_assert_int_eq(SPK_CUDA_NO_TIMING, cudaEventDisableTiming);
    ck_assert_int_eq(SPK_CUDA_NON_BLOCKING, cudaStreamNonBlocking);
}
END_TEST
#else
START_TEST(values)
{
    ck_assert_msg(1, "no CUDA headers here");
}
END_TEST
#endif

static Suite *suite(void)
{
    Suite *s = suite_create("load_cuda_types");
    TCase *t = tcase_create("types");
    tcase_add_test(t, values);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
