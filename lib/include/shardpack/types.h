/* Export macro, version and the status codes that every call returns.
 * Every header of this folder compiles alone, as C11 and as C++. */
#ifndef SHARDPACK_TYPES_H
#define SHARDPACK_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPK_API __attribute__((visibility("default")))
#define SPK_CHECK __attribute__((warn_unused_result))

#define SPK_VERSION_MAJOR 0
#define SPK_VERSION_MINOR 1
#define SPK_VERSION_PATCH 0
#define SPK_VERSION_STRING "0.1.0"
#define SPK_VERSION_DATE "2026-11-30" /* in the manual pages; changes with the version */

/* Version of the library in use, as "major.minor.patch"; static storage. */
SPK_API const char *spk_version(void);

/* 0 is success, positive values are normal alternatives, negative values are errors. Values are stable.
 * After SPK_E_INVALID, SPK_E_STATE and SPK_E_CANCELLED a handle is as it was before the call. */
typedef enum spk_status {
    SPK_OK = 0,
    SPK_END = 1,            /* an iterator has no more elements */
    SPK_E_NOMEM = -1,       /* allocation failed */
    SPK_E_IO = -2,          /* the system refused a read, write or other call; see sys_errno */
    SPK_E_NOT_FOUND = -3,   /* no such file, dataset, key or field */
    SPK_E_EXISTS = -4,      /* the target exists and must not be overwritten */
    SPK_E_PERMISSION = -5,  /* access denied, read-only file system */
    SPK_E_INVALID = -6,     /* bad argument or option */
    SPK_E_STATE = -7,       /* calls in the wrong order */
    SPK_E_FORMAT = -8,      /* malformed or truncated data */
    SPK_E_UNSUPPORTED = -9, /* newer format version, unknown encoding, unknown URL scheme */
    SPK_E_LIMIT = -10,      /* a stated bound was exceeded */
    SPK_E_CHECKSUM = -11,   /* data does not match its recorded checksum or digest */
    SPK_E_NETWORK = -12,    /* a remote source failed */
    SPK_E_WORKER = -13,     /* a worker process died or stalled */
    SPK_E_CANCELLED = -14,  /* stopped on the caller's request */
    SPK_E_CHANGED = -15,    /* input, options or versions differ from those recorded */
    SPK_E_BUSY = -16,       /* another process holds the lock */
    SPK_E_DEVICE = -17      /* the CUDA runtime or a GPU failed */
} spk_status;

/* Short stable name of a status, such as "checksum"; "unknown" for other values. Static storage. */
SPK_API const char *spk_status_name(spk_status status);

#ifdef __cplusplus
}
#endif

#endif
