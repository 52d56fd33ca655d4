/* URLs as text. What a user or a manifest names is untrusted: no control bytes, no spaces, and secrets never leave in a
 * message. */
#include "io/url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define URL_MAX 4096u

size_t spk_url_scheme(const char *url)
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

static bool is_scheme(const char *url, const char *name)
{
    size_t n = spk_url_scheme(url);
    return n == strlen(name) && strncasecmp(url, name, n) == 0;
}

bool spk_url_is_remote(const char *url)
{
    return url && (is_scheme(url, "http") || is_scheme(url, "https") || is_scheme(url, "s3"));
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

spk_status spk_url_decode(char *out, const char *text, spk_error *err)
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

char *spk_url_encode(const char *name)
{
    static const char hex[] = "0123456789ABCDEF";
    char *out = malloc(3 * strlen(name) + 1), *p = out;
    for (; out && *name; name++) {
        unsigned char c = (unsigned char)*name;
        if (isalnum(c) || strchr("-._~/", c)) {
            *p++ = (char)c;
        } else {
            *p++ = '%';
            *p++ = hex[c >> 4];
            *p++ = hex[c & 15];
        }
    }
    if (out)
        *p = '\0';
    return out;
}

/* Where the user's part of an authority ends (behind its "@"); the authority's start if there is none. */
static const char *host_of(const char *authority, size_t n)
{
    const char *host = authority;
    for (size_t i = 0; i < n; i++)
        if (authority[i] == '@')
            host = authority + i + 1;
    return host;
}

char *spk_url_shown(const char *url)
{
    size_t scheme = spk_url_scheme(url);
    if (scheme == 0)
        return strdup(url);
    const char *authority = url + scheme + 3;
    const char *host = host_of(authority, strcspn(authority, "/?#"));
    size_t head = scheme + 3, tail = strcspn(host, "?#");
    char *out = malloc(head + tail + 1);
    if (!out)
        return NULL;
    memcpy(out, url, head);
    memcpy(out + head, host, tail);
    out[head + tail] = '\0';
    return out;
}

spk_status spk_url_refuse(const char *url, const char *why, spk_error *err)
{
    char *shown = spk_url_shown(url);
    spk_status status = spk_error_set(err, SPK_E_INVALID, "%s: %s", shown ? shown : "a URL", why);
    free(shown);
    return status;
}

void spk_place_free(spk_place *p)
{
    free(p->prefix);
    free(p->host);
    free(p->path);
    free(p->query);
    free(p->user);
    free(p->password);
    memset(p, 0, sizeof *p);
}

static bool copy(char **out, const char *text, size_t n)
{
    *out = strndup(text, n);
    return *out != NULL;
}

static spk_status take_user(spk_place *p, const char *text, size_t n, spk_error *err)
{
    if (n == 0)
        return SPK_OK;
    const char *colon = memchr(text, ':', n);
    size_t user = colon ? (size_t)(colon - text) : n;
    if (!copy(&p->user, text, user) || (colon && !copy(&p->password, colon + 1, n - user - 1)))
        return spk_error_nomem(err, n);
    p->secret = true;
    SPK_TRY(spk_url_decode(p->user, p->user, err));
    return p->password ? spk_url_decode(p->password, p->password, err) : SPK_OK;
}

/* host[:port]: what a name, an IPv4 or a bracketed IPv6 address may hold. */
static bool is_host(const char *text, size_t n)
{
    size_t i = 0;
    if (n > 0 && text[0] == '[') {
        while (i < n && text[i] != ']')
            if (!strchr("[0123456789abcdefABCDEF:.", text[i++]))
                return false;
        if (i++ == n)
            return false;
    }
    size_t name = i;
    while (i < n && (isalnum((unsigned char)text[i]) || strchr("-._", text[i])))
        i++;
    if (i == 0 || (i == name && text[0] != '['))
        return false;
    if (i < n && text[i] == ':')
        for (i++; i < n && isdigit((unsigned char)text[i]);)
            i++;
    return i == n;
}

static spk_status check_text(const char *url, spk_error *err)
{
    size_t n = strlen(url);
    if (n > URL_MAX)
        return spk_error_set(err, SPK_E_INVALID, "a URL of %zu bytes, at most %u are allowed", n, URL_MAX);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)url[i] <= ' ' || (unsigned char)url[i] == 0x7f)
            return spk_error_set(err, SPK_E_INVALID, "a URL with a space or control byte at position %zu", i);
    if (strchr(url, '#'))
        return spk_error_set(err, SPK_E_INVALID, "a URL with a fragment (\"#\")");
    return SPK_OK;
}

static spk_status parse(spk_place *out, const char *url, spk_error *err)
{
    SPK_TRY(check_text(url, err));
    size_t scheme = spk_url_scheme(url);
    if (!spk_url_is_remote(url))
        return spk_error_set(err, SPK_E_UNSUPPORTED, "a base URL must be http://, https:// or s3://");
    out->kind = is_scheme(url, "s3") ? SPK_PLACE_S3 : SPK_PLACE_HTTP;
    out->secure = is_scheme(url, "https");
    const char *authority = url + scheme + 3;
    size_t all = strcspn(authority, "/?");
    const char *host = host_of(authority, all), *path = authority + all;
    size_t host_n = (size_t)(path - host), path_n = strcspn(path, "?");
    if (!is_host(host, host_n))
        return spk_error_set(err, SPK_E_INVALID, "a URL without a valid %s",
                             out->kind == SPK_PLACE_S3 ? "bucket" : "host");
    if (out->kind == SPK_PLACE_S3 && (host != authority || path[path_n]))
        return spk_error_set(err, SPK_E_INVALID, "an s3:// URL is s3://BUCKET/PREFIX, without user or query");
    if (host != authority)
        SPK_TRY(take_user(out, authority, (size_t)(host - authority) - 1, err));
    const char *query = path + path_n;
    while (path_n > 0 && path[path_n - 1] == '/')
        path_n--;
    if (!copy(&out->host, host, host_n) || !copy(&out->path, path, path_n) || !copy(&out->query, query, strlen(query)))
        return spk_error_nomem(err, strlen(url));
    for (char *c = out->host; *c && out->kind == SPK_PLACE_HTTP; c++)
        *c = (char)tolower((unsigned char)*c);
    const char *name = out->kind == SPK_PLACE_S3 ? "s3" : out->secure ? "https" : "http";
    size_t cap = strlen(url) + 16;
    out->prefix = malloc(cap);
    if (!out->prefix)
        return spk_error_nomem(err, cap);
    strcpy(out->prefix, name);
    strcat(out->prefix, "://");
    strcat(out->prefix, out->host);
    strcat(out->prefix, out->path);
    return SPK_OK;
}

spk_status spk_place_parse(spk_place *out, const char *url, spk_error *err)
{
    memset(out, 0, sizeof *out);
    spk_status st = parse(out, url, err);
    if (st < 0) {
        char *shown = spk_url_shown(url);
        spk_error_prefix(err, "%s", shown ? shown : "URL");
        free(shown);
        spk_place_free(out);
    }
    return st;
}

spk_status spk_place_parse_object(spk_place *out, char **name, const char *url, spk_error *err)
{
    *name = NULL;
    SPK_TRY(spk_place_parse(out, url, err));
    char *slash = strrchr(out->path, '/');
    if (!slash || !slash[1]) {
        spk_status st = spk_error_set(err, SPK_E_INVALID, "%s: names no object", out->prefix);
        spk_place_free(out);
        return st;
    }
    *name = strdup(slash + 1);
    if (!*name) {
        spk_place_free(out);
        return spk_error_nomem(err, strlen(slash));
    }
    *slash = '\0';
    *strrchr(out->prefix, '/') = '\0';
    return SPK_OK;
}
