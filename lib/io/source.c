/* The byte source: opening by path or URL, and the checked read that every caller uses. Which kind of source stands
 * behind a URL is decided here and nowhere else. No state. */
#include "io/source.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "io/source_file.h"

/* Length of the scheme if url looks like "scheme://", else 0 (RFC 3986 section 3.1). */
static size_t scheme_length(const char *url)
{
    size_t n = 0;
    for (;; n++) {
        char c = url[n];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
        if (!letter && !(n > 0 && other))
            break;
    }
    return n > 0 && strncmp(url + n, "://", 3) == 0 ? n : 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undoes percent-encoding of text into out (at least strlen(text) + 1 bytes). */
static spk_status percent_decode(char *out, const char *text, spk_error *err)
{
    for (; *text; text++) {
        if (*text != '%') {
            *out++ = *text;
            continue;
        }
        int hi = hex_digit(text[1]), lo = hi < 0 ? -1 : hex_digit(text[2]);
        if (lo < 0)
            return spk_error_set(err, SPK_E_INVALID, "\"%%\" without two hex digits in a URL");
        if (hi == 0 && lo == 0)
            return spk_error_set(err, SPK_E_INVALID, "\"%%00\" in a URL");
        *out++ = (char)(hi * 16 + lo);
        text += 2;
    }
    *out = '\0';
    return SPK_OK;
}

static spk_status open_file_url(spk_source **out, const char *url, spk_error *err)
{
    const char *rest = url + strlen("file://");
    if (strncmp(rest, "localhost/", 10) == 0)
        rest += strlen("localhost");
    if (rest[0] != '/') {
        spk_error_set(err, SPK_E_INVALID, "a file URL needs an absolute path: file:///...");
        spk_error_prefix(err, "%s", url);
        return SPK_E_INVALID;
    }
    size_t cap = strlen(rest) + 1;
    char *path = malloc(cap);
    if (!path)
        return spk_error_nomem(err, cap);
    spk_status st = percent_decode(path, rest, err);
    if (st < 0)
        spk_error_prefix(err, "%s", url);
    else
        st = spk_source_file(out, path, err);
    free(path);
    return st;
}

spk_status spk_source_open(spk_source **out, const char *url, spk_error *err)
{
    *out = NULL;
    if (!url || !*url)
        return spk_error_set(err, SPK_E_INVALID, "empty path");
    size_t scheme = scheme_length(url);
    if (scheme == 0)
        return spk_source_file(out, url, err);
    if (scheme == 4 && strncmp(url, "file", 4) == 0)
        return open_file_url(out, url, err);
    return spk_error_set(err, SPK_E_UNSUPPORTED, "%s: URL scheme \"%.*s\" is not supported", url, (int)scheme, url);
}

spk_status spk_source_pread(spk_source *s, void *out, size_t n, uint64_t off, spk_error *err)
{
    uint64_t size = s->ops->size(s);
    if (off > size || n > size - off)
        return spk_error_at(err, SPK_E_FORMAT, off, "ends at byte %llu, need %zu bytes at %llu",
                            (unsigned long long)size, n, (unsigned long long)off);
    if (n == 0)
        return SPK_OK;
    return s->ops->pread(s, out, n, off, err);
}

uint64_t spk_source_size(const spk_source *s)
{
    return s->ops->size(s);
}

const char *spk_source_name(const spk_source *s)
{
    return s->ops->name(s);
}

void spk_source_close(spk_source *s)
{
    if (s)
        s->ops->close(s);
}
