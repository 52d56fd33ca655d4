/* The one place that formats error text and picks codes for errno values. No state; safe from any thread. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
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

/* Copies raw to out as printable UTF-8. A text that does not fit loses its middle, since the object is named at the
 * front and the cause at the end. */
static void store_text(char *out, const char *raw)
{
    char clean[4 * SPK_ERROR_TEXT];
    size_t n = spk_utf8_escape(clean, sizeof clean, raw, strlen(raw));

    if (n < SPK_ERROR_TEXT) {
        memcpy(out, clean, n + 1);
        return;
    }
    size_t head = SPK_ERROR_TEXT / 2 - 8, tail = SPK_ERROR_TEXT - 1 - 3 - head;
    while (head > 0 && ((unsigned char)clean[head] & 0xC0) == 0x80)
        head--;
    size_t from = n - tail;
    while (from < n && ((unsigned char)clean[from] & 0xC0) == 0x80)
        from++;
    memcpy(out, clean, head);
    memcpy(out + head, "...", 3);
    memcpy(out + head + 3, clean + from, n - from + 1);
}

static void set(spk_error *err, spk_status code, int sys_errno, int64_t offset, const char *raw)
{
    err->code = code;
    err->sys_errno = sys_errno;
    err->retryable = 0;
    err->reserved = 0;
    err->offset = offset;
    store_text(err->text, raw);
}

spk_status spk_error_set(spk_error *err, spk_status code, const char *fmt, ...)
{
    if (err) {
        char raw[2 * SPK_ERROR_TEXT];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(raw, sizeof raw, fmt, ap);
        va_end(ap);
        set(err, code, 0, -1, raw);
    }
    return code;
}

spk_status spk_error_at(spk_error *err, spk_status code, uint64_t offset, const char *fmt, ...)
{
    if (err) {
        char raw[2 * SPK_ERROR_TEXT];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(raw, sizeof raw, fmt, ap);
        va_end(ap);
        set(err, code, 0, offset <= INT64_MAX ? (int64_t)offset : -1, raw);
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
        char raw[2 * SPK_ERROR_TEXT], reason[128];
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(raw, sizeof raw - sizeof reason - 2, fmt, ap);
        va_end(ap);
        size_t used = n < 0 ? 0 : (size_t)n;
        if (used > sizeof raw - sizeof reason - 3)
            used = sizeof raw - sizeof reason - 3;
        if (strerror_r(sys_errno, reason, sizeof reason) != 0) /* the XSI variant, by _POSIX_C_SOURCE */
            snprintf(reason, sizeof reason, "system error %d", sys_errno);
        snprintf(raw + used, sizeof raw - used, ": %s", reason);
        set(err, code, sys_errno, -1, raw);
    }
    return code;
}

spk_status spk_error_nomem(spk_error *err, size_t bytes)
{
    return spk_error_set(err, SPK_E_NOMEM, "out of memory (%zu bytes)", bytes);
}

void spk_error_prefix(spk_error *err, const char *fmt, ...)
{
    if (!err)
        return;
    char raw[4 * SPK_ERROR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(raw, sizeof raw / 2, fmt, ap);
    va_end(ap);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used > sizeof raw / 2 - 1)
        used = sizeof raw / 2 - 1;
    snprintf(raw + used, sizeof raw - used, ": %s", err->text);
    store_text(err->text, raw);
}
