/* Header lines: RFC 9110 (Content-Range section 14.4, Retry-After 10.2.3, ETag 8.8.3). What does not parse counts as
 * not said. */
#include "io/reply.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#define RETRY_AFTER_MAX 86400u

static bool number(const char **p, const char *end, uint64_t *out)
{
    const char *s = *p;
    uint64_t v = 0;
    while (s < end && *s >= '0' && *s <= '9') {
        if (v > (UINT64_MAX / 2 - 9) / 10)
            return false;
        v = v * 10 + (uint64_t)(*s++ - '0');
    }
    if (s == *p)
        return false;
    *p = s;
    *out = v;
    return true;
}

static void content_range(spk_reply *r, const char *p, const char *end)
{
    uint64_t from = 0, last = 0, total = SPK_REPLY_UNKNOWN;
    if (end - p < 6 || strncasecmp(p, "bytes ", 6) != 0)
        return;
    p += 6;
    if (p < end && *p == '*') { /* of a 416: only the total */
        p++;
        if (p < end && *p++ == '/' && number(&p, end, &total) && p == end)
            r->total = total;
        return;
    }
    if (!number(&p, end, &from) || p == end || *p++ != '-' || !number(&p, end, &last) || p == end || *p++ != '/')
        return;
    if (p < end && *p == '*')
        p++;
    else if (!number(&p, end, &total))
        return;
    if (p != end || last < from || total <= last)
        return;
    r->has_range = true;
    r->from = from;
    r->to = last + 1;
    r->total = total;
}

static void keep(char *out, size_t cap, const char *p, const char *end)
{
    size_t n = (size_t)(end - p);
    if (n >= cap)
        return;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] < ' ' || (unsigned char)p[i] >= 0x7f)
            return;
    memcpy(out, p, n);
    out[n] = '\0';
}

static int64_t date_of(const char *p, const char *end)
{
    char text[64] = "";
    keep(text, sizeof text, p, end);
    int64_t t = text[0] ? (int64_t)curl_getdate(text, NULL) : -1;
    return t > 0 ? t : 0;
}

static void retry_after(spk_reply *r, const char *p, const char *end)
{
    uint64_t v = 0;
    if (number(&p, end, &v) && p == end)
        r->retry_after = v < RETRY_AFTER_MAX ? (uint32_t)v : RETRY_AFTER_MAX;
    else
        r->retry_date = date_of(p, end);
}

/* The two come in any order. */
static void until_retry_date(spk_reply *r)
{
    int64_t left = r->retry_date - r->date;
    if (r->date > 0 && left > 0)
        r->retry_after = left < (int64_t)RETRY_AFTER_MAX ? (uint32_t)left : RETRY_AFTER_MAX;
}

static void status_line(spk_reply *r, const char *line, const char *end)
{
    const char *p = memchr(line, ' ', (size_t)(end - line));
    uint64_t status = 0;
    memset(r, 0, sizeof *r);
    r->length = r->total = SPK_REPLY_UNKNOWN;
    while (p && p < end && *p == ' ')
        p++;
    if (p && number(&p, end, &status) && status >= 100 && status <= 999)
        r->status = (int)status;
}

static bool is_name(const char *line, size_t n, const char *name)
{
    return n == strlen(name) && strncasecmp(line, name, n) == 0;
}

void spk_reply_line(spk_reply *r, const char *line, size_t n)
{
    const char *end = line + n;
    uint64_t v = 0;
    while (end > line && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (end - line >= 5 && strncasecmp(line, "HTTP/", 5) == 0) {
        status_line(r, line, end);
        return;
    }
    const char *colon = memchr(line, ':', (size_t)(end - line)), *p = colon;
    if (!colon)
        return;
    size_t name = (size_t)(colon - line);
    for (p++; p < end && (*p == ' ' || *p == '\t');)
        p++;
    if (is_name(line, name, "content-range")) {
        content_range(r, p, end);
    } else if (is_name(line, name, "content-length")) {
        if (number(&p, end, &v) && p == end)
            r->length = v;
    } else if (is_name(line, name, "retry-after")) {
        retry_after(r, p, end);
        until_retry_date(r);
    } else if (is_name(line, name, "date")) {
        r->date = date_of(p, end);
        until_retry_date(r);
    } else if (is_name(line, name, "etag")) {
        keep(r->etag, sizeof r->etag, p, end);
    } else if (is_name(line, name, "x-amz-bucket-region")) {
        keep(r->region, sizeof r->region, p, end);
    } else if (is_name(line, name, "content-encoding")) {
        r->is_coded = p < end && !is_name(p, (size_t)(end - p), "identity");
    } else if (is_name(line, name, "content-type")) {
        r->is_html = end - p >= 9 && strncasecmp(p, "text/html", 9) == 0;
    }
}
