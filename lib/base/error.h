/* Filling the error record. Text is built outermost object first: the failing layer sets it, each layer above prefixes
 * the object it knows. Control bytes and bytes that are not UTF-8 come out as \xNN, so the text stays one line. */
#ifndef SPK_BASE_ERROR_H
#define SPK_BASE_ERROR_H

#include <shardpack/error.h>

#define SPK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Returns a negative status to the caller; positive ones are ignored and must be handled before. */
#define SPK_TRY(expr)                                                                                                  \
    do {                                                                                                               \
        spk_status spk_try_ = (expr);                                                                                  \
        if (spk_try_ < 0)                                                                                              \
            return spk_try_;                                                                                           \
    } while (0)

/* Sets code and text; returns code, so that `return spk_error_set(...)` works. err may be NULL in all of these. */
spk_status spk_error_set(spk_error *err, spk_status code, const char *fmt, ...) SPK_PRINTF(3, 4);
/* The same with a byte offset in the outermost file. */
spk_status spk_error_at(spk_error *err, spk_status code, uint64_t offset, const char *fmt, ...) SPK_PRINTF(4, 5);
/* From a system call's errno: picks the code (ENOENT: NOT_FOUND, EACCES, EPERM, EROFS: PERMISSION, EEXIST: EXISTS,
 * ENOMEM: NOMEM, else IO) and appends ": " and the system's text for it. */
spk_status spk_error_sys(spk_error *err, int sys_errno, const char *fmt, ...) SPK_PRINTF(3, 4);
/* SPK_E_NOMEM for an allocation of `bytes`. */
spk_status spk_error_nomem(spk_error *err, size_t bytes);
/* Puts the text and ": " in front of what is there. */
void spk_error_prefix(spk_error *err, const char *fmt, ...) SPK_PRINTF(2, 3);

#endif
