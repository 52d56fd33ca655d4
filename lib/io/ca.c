/* Which certificates a server's is checked against: those the user names, else libcurl's own, else those of the system.
 * A libcurl that travels in a wheel looks where the distribution that built it keeps them; others keep them elsewhere.
 */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/net_impl.h"

/* Debian, Ubuntu, Arch; Fedora, RHEL, Amazon Linux; openSUSE; Alpine. */
static const char *const SYSTEM[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                     "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

static bool readable(const char *path)
{
    return path && *path && access(path, R_OK) == 0;
}

static bool libcurl_has_one(void)
{
    bool found = false;
#if LIBCURL_VERSION_NUM >= 0x075400
    CURL *easy = curl_easy_init();
    char *file = NULL, *folder = NULL;
    if (easy) {
        curl_easy_getinfo(easy, CURLINFO_CAINFO, &file);
        curl_easy_getinfo(easy, CURLINFO_CAPATH, &folder);
        /* Neither: a TLS library with a store of its own. A folder alone is no use where its files lack hashed names.
         */
        found = readable(file) || (!file && !folder);
        curl_easy_cleanup(easy);
    }
#endif
    return found;
}

const char *spk_ca_file(void)
{
    const char *given = secure_getenv("CURL_CA_BUNDLE");
    if (!given || !*given)
        given = secure_getenv("SSL_CERT_FILE");
    if (given && *given)
        return given;
    if (!libcurl_has_one())
        for (size_t i = 0; i < sizeof SYSTEM / sizeof *SYSTEM; i++)
            if (readable(SYSTEM[i]))
                return SYSTEM[i];
    return NULL;
}
