/* What servers, users and their files say: header lines, URLs, INI text. First byte: which. */
#include <stdlib.h>
#include <string.h>

#include "io/reply.h"
#include "io/s3.h"
#include "io/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void reply(const char *text, size_t n)
{
    spk_reply r = {0};
    spk_reply_line(&r, "HTTP/1.1 206 X", 14);
    while (n > 0) {
        const char *end = memchr(text, '\n', n);
        size_t line = end ? (size_t)(end - text) + 1 : n;
        spk_reply_line(&r, text, line);
        text += line;
        n -= line;
    }
    if (r.has_range && (r.from >= r.to || r.to > r.total))
        abort();
    if (!memchr(r.etag, 0, sizeof r.etag) || !memchr(r.region, 0, sizeof r.region))
        abort();
}

static void url(const char *text)
{
    spk_place p;
    char *name = NULL, *shown = spk_url_shown(text);
    if (!shown)
        abort();
    if (spk_place_parse(&p, text, NULL) == SPK_OK) {
        if (strchr(p.prefix + strcspn(p.prefix, "/") + 2, '?') || !*p.host)
            abort();
        spk_place_free(&p);
    }
    if (spk_place_parse_object(&p, &name, text, NULL) == SPK_OK) {
        if (!*name || strchr(name, '/'))
            abort();
        spk_place_free(&p);
    }
    free(name);
    free(shown);
}

static void ini(const char *text)
{
    static const char *const parents[] = {NULL, "s3"};
    for (size_t i = 0; i < 2; i++) {
        char *value = NULL;
        if (spk_ini_get(text, "profile a", parents[i], "region", &value, NULL) == SPK_OK && value &&
            strlen(value) > strlen(text))
            abort();
        free(value);
    }
    (void)spk_ini_has(text, "default");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 65536)
        return 0;
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 3 == 0)
        reply(text, size - 1);
    else if (data[0] % 3 == 1)
        url(text);
    else
        ini(text);
    free(text);
    return 0;
}
