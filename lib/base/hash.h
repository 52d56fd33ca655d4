/* SHA-256 (libcrypto, hardware where there is) and hex text. XXH64 is used straight from xxhash.h where needed. */
#ifndef SPK_BASE_HASH_H
#define SPK_BASE_HASH_H

#include <stdbool.h>

#include "base/error.h"

#define SPK_SHA256_BYTES 32
#define SPK_SHA256_HEX 65 /* with its NUL */

/* A running digest. Confined to one thread. */
typedef struct spk_sha256 spk_sha256;

SPK_CHECK spk_status spk_sha256_new(spk_sha256 **out, spk_error *err);
/* Starts anew; needed before the first update and after each final. */
void spk_sha256_init(spk_sha256 *h);
void spk_sha256_update(spk_sha256 *h, const void *p, size_t n);
void spk_sha256_final(spk_sha256 *h, uint8_t out[SPK_SHA256_BYTES]);
void spk_sha256_free(spk_sha256 *h);

/* One call over n bytes; NOMEM is the only failure. */
SPK_CHECK spk_status spk_sha256_once(const void *p, size_t n, uint8_t out[SPK_SHA256_BYTES], spk_error *err);

/* n bytes as 2 n lower-case hex digits and a NUL. */
void spk_hex(char *out, const uint8_t *p, size_t n);
/* Exactly 2 n lower-case hex digits of text to n bytes; false otherwise. text need not end with NUL. */
bool spk_unhex(uint8_t *out, size_t n, const char *text, size_t len);

#endif
