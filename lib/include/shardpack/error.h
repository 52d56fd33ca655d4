/* The error record: one caller-owned struct for the whole library. */
#ifndef SHARDPACK_ERROR_H
#define SHARDPACK_ERROR_H

#include <shardpack/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPK_ERROR_TEXT 1024

/* Filled by the call that failed, untouched by calls that succeed. Plain data: may be copied, sent to another thread or
 * process. Every `spk_error *err` parameter of the library may be NULL.
 * text is one line of printable UTF-8 or ASCII without a newline, outermost object first, such as
 * "train-000012.tar.zst: frame 418: checksum mismatch at byte 73400320". */
typedef struct spk_error {
    spk_status code;
    int sys_errno; /* errno of the failed system call, 0 if none */
    int retryable; /* nonzero if the same call may succeed later */
    int reserved;
    int64_t offset; /* byte position in the outermost file, -1 if none */
    char text[SPK_ERROR_TEXT];
} spk_error;

/* Makes *err empty: code SPK_OK, offset -1, no text. */
SPK_API void spk_error_clear(spk_error *err);

#ifdef __cplusplus
}
#endif

#endif
