/* The one place that formats error text and picks codes for errno values. No state; safe from any thread. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

const char *spk_version(void)
{
    return SPK_VERSION_STRING;
}

const char *spk_status_name(spk_status status)
{
    switch (status) {
    case SPK_OK:
        return "ok";
    case SPK_END:
        return "end";
    case SPK_E_NOMEM:
        return "nomem";
    case SPK_E_IO:
        return "io";
    case SPK_E_NOT_FOUND:
        return "not-found";
    case SPK_E_EXISTS:
        return "exists";
    case SPK_E_PERMISSION:
        return "permission";
    case SPK_E_INVALID:
        return "invalid";
    case SPK_E_STATE:
        return "state";
    case SPK_E_FORMAT:
        return "format";
    case SPK_E_UNSUPPORTED:
        return "unsupported";
    case SPK_E_LIMIT:
        return "limit";
    case SPK_E_CHECKSUM:
        return "checksum";
    case SPK_E_NETWORK:
        return "network";
    case SPK_E_WORKER:
        return "worker";
    case SPK_E_CANCELLED:
        return "cancelled";
    case SPK_E_CHANGED:
        return "changed";
    case SPK_E_BUSY:
        return "busy";
    case SPK_E_DEVICE:
        return "device";
    }
    return "unknown";
}

void spk_error_clear(spk_error *err)
{
    if (err) {
        memset(err, 0, sizeof *err);
        err->offset = -1;
    }
}

/* Bytes that continue a UTF-8 character. */
static bool continues(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Makes a text of n bytes shorter than SPK_ERROR_TEXT. It loses its middle, since the object is named at the front and
 * the cause at the end. */
static void cut_middle(char *text, size_t n)
{
    size_t head = SPK_ERROR_TEXT / 2 - 8, tail = SPK_ERROR_TEXT - 1 - 3 - head, from = n - tail;
    if (n < SPK_ERROR_TEXT)
        return;
    while (head > 0 && continues(text[head]))
        head--;
    while (from < n && continues(text[from]))
        from++;
    memcpy(text + head, "...", 3);
    memmove(text + head + 3, text + from, n - from + 1);
}

/* Writes fmt, and ": " and `end` unless that is NULL, to out as printable UTF-8, cut to fit. */
__attribute__((format(printf, 3, 0))) static void write_text(char out[SPK_ERROR_TEXT], const char *end, const char *fmt,
                                                             va_list ap)
{
    enum { ROOM = 2 * SPK_ERROR_TEXT, END_ROOM = SPK_ERROR_TEXT + 2 }; /* an end has less than SPK_ERROR_TEXT bytes */
    char fixed[ROOM + END_ROOM], clean[4 * SPK_ERROR_TEXT], *raw = fixed;
    size_t end_n = end ? strlen(end) + 2 : 0;
    va_list again;
    va_copy(again, ap);
    int got = vsnprintf(fixed, ROOM, fmt, ap);
    size_t n = got < 0 ? 0 : (size_t)got;
    if (n >= ROOM) { /* a path may be longer than any message */
        char *grown = malloc(n + end_n + 1);
        if (grown) {
            raw = grown;
            vsnprintf(raw, n + 1, fmt, again);
        } else {
            n = ROOM - 1;
        }
    }
    va_end(again);
    if (end)
        snprintf(raw + n, end_n + 1, ": %s", end);
    cut_middle(raw, n + end_n);
    cut_middle(clean, spk_utf8_escape(clean, sizeof clean, raw, strlen(raw)));
    memcpy(out, clean, strlen(clean) + 1);
    if (raw != fixed)
        free(raw);
}

static void set(spk_error *err, spk_status code, int sys_errno, int64_t offset)
{
    err->code = code;
    err->sys_errno = sys_errno;
    err->retryable = 0;
    err->reserved = 0;
    err->offset = offset;
}

spk_status spk_error_set(spk_error *err, spk_status code, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        write_text(err->text, NULL, fmt, ap);
        va_end(ap);
        set(err, code, 0, -1);
    }
    return code;
}

spk_status spk_error_at(spk_error *err, spk_status code, uint64_t offset, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        write_text(err->text, NULL, fmt, ap);
        va_end(ap);
        set(err, code, 0, offset <= INT64_MAX ? (int64_t)offset : -1);
    }
    return code;
}

static spk_status code_of_errno(int e)
{
    switch (e) {
    case ENOENT:
    case ENOTDIR:
        return SPK_E_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return SPK_E_PERMISSION;
    case EEXIST:
    case ENOTEMPTY:
        return SPK_E_EXISTS;
    case ENOMEM:
        return SPK_E_NOMEM;
    default:
        return SPK_E_IO;
    }
}

spk_status spk_error_sys(spk_error *err, int sys_errno, const char *fmt, ...)
{
    spk_status code = code_of_errno(sys_errno);
    if (err) {
        char reason[128];
        va_list ap;
        if (strerror_r(sys_errno, reason, sizeof reason) != 0) /* the XSI variant, by _POSIX_C_SOURCE */
            snprintf(reason, sizeof reason, "system error %d", sys_errno);
        va_start(ap, fmt);
        write_text(err->text, reason, fmt, ap);
        va_end(ap);
        set(err, code, sys_errno, -1);
    }
    return code;
}

spk_status spk_error_nomem(spk_error *err, size_t bytes)
{
    return spk_error_set(err, SPK_E_NOMEM, "out of memory (%zu bytes)", bytes);
}

void spk_error_prefix(spk_error *err, const char *fmt, ...)
{
    va_list ap;
    if (!err)
        return;
    va_start(ap, fmt);
    write_text(err->text, err->text, fmt, ap);
    va_end(ap);
}
