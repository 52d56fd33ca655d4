/* The byte source: opening by path or URL, and the checked read that every caller uses. Which kind of source stands
 * behind a URL is decided here and nowhere else. No state. */
#include "io/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "io/net.h"
#include "io/source_file.h"
#include "io/url.h"

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
    spk_status st = spk_url_decode(path, rest, err);
    if (st < 0)
        spk_error_prefix(err, "%s", url);
    else
        st = spk_source_file(out, path, err);
    free(path);
    return st;
}

spk_status spk_source_open(spk_source **out, const char *url, spk_error *err)
{
    const spk_source_options defaults = {0};
    return spk_source_open_with(out, url, &defaults, err);
}

spk_status spk_source_open_with(spk_source **out, const char *url, const spk_source_options *options, spk_error *err)
{
    *out = NULL;
    if (!url || !*url)
        return spk_error_set(err, SPK_E_INVALID, "empty path");
    size_t scheme = spk_url_scheme(url);
    if (scheme == 0)
        return spk_source_file(out, url, err);
    if (scheme == 4 && strncmp(url, "file", 4) == 0)
        return open_file_url(out, url, err);
    if (spk_url_is_remote(url))
        return spk_net_open_url(out, url, options, err);
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

spk_status spk_source_pread_checked(spk_source *s, void *out, size_t n, uint64_t off, const spk_source_check *check,
                                    spk_error *err)
{
    uint8_t digest[SPK_SHA256_BYTES];
    if (s->ops->pread_checked && off <= s->ops->size(s) && n <= s->ops->size(s) - off)
        return s->ops->pread_checked(s, out, n, off, check, err);
    SPK_TRY(spk_source_pread(s, out, n, off, err));
    SPK_TRY(spk_sha256_once(out, n, digest, err));
    if (memcmp(digest, check->digest, check->digest_bytes) != 0)
        return spk_error_at(err, SPK_E_CHECKSUM, off, "SHA-256 mismatch at byte %llu", (unsigned long long)off);
    return SPK_OK;
}

bool spk_source_is_remote(const spk_source *s)
{
    return s->ops->pread_checked != NULL;
}

void spk_source_ahead(spk_source *s, uint64_t from, uint64_t to, uint64_t until, uint64_t reader)
{
    if (s->ops->ahead)
        s->ops->ahead(s, from, to, until, reader);
}

void spk_source_units(spk_source *s, const uint64_t *offsets, const uint8_t (*digests)[16], uint64_t n)
{
    if (s->ops->units)
        s->ops->units(s, offsets, digests, n);
}

bool spk_source_reject(spk_source *s, uint64_t off, size_t n, uint64_t unit)
{
    return s->ops->reject && s->ops->reject(s, off, n, unit);
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
