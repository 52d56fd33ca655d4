/* URLs as text: what kind they are, and the places that objects are fetched from. Pure functions. */
#ifndef SPK_IO_URL_H
#define SPK_IO_URL_H

#include <stdbool.h>

#include "base/error.h"

/* Length of the scheme if url looks like "scheme://" (RFC 3986 section 3.1), else 0. */
size_t spk_url_scheme(const char *url);
/* True for http, https and s3, in any case. */
bool spk_url_is_remote(const char *url);

typedef enum spk_place_kind { SPK_PLACE_HTTP = 0, SPK_PLACE_S3 = 1 } spk_place_kind;

/* A base URL taken apart: objects are at prefix/NAME + query. */
typedef struct spk_place {
    spk_place_kind kind;
    bool secure;  /* https */
    bool secret;  /* carries a user name or password */
    char *prefix; /* without user, password, query and slashes at its end; scheme and host in lower case */
    char *host;   /* host[:port] of http(s), bucket of s3 */
    char *path;   /* what follows the host, with its leading slash; may be empty */
    char *query;  /* with its "?"; empty if there is none */
    char *user;   /* percent-decoded; NULL: none */
    char *password;
} spk_place;

/* A base URL of a dataset. INVALID says what is wrong, without showing user, password or query. */
SPK_CHECK spk_status spk_place_parse(spk_place *out, const char *url, spk_error *err);
/* The same for the URL of one object: its last path component goes to *name (malloc'ed). */
SPK_CHECK spk_status spk_place_parse_object(spk_place *out, char **name, const char *url, spk_error *err);
void spk_place_free(spk_place *p);

/* url as it may be shown: without user, password and query (malloc'ed; NULL without memory). */
char *spk_url_shown(const char *url);
/* INVALID, with the URL as it may be shown and the reason. */
spk_status spk_url_refuse(const char *url, const char *why, spk_error *err);
/* Appends name with every byte outside the unreserved ones and "/" percent-encoded (malloc'ed; NULL without memory). */
char *spk_url_encode(const char *name);
/* Undoes percent-encoding of text into out (at least strlen(text) + 1 bytes). */
SPK_CHECK spk_status spk_url_decode(char *out, const char *text, spk_error *err);

#endif
