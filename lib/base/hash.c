/* SHA-256 through libcrypto's EVP interface. The digest calls on a valid context cannot fail once it is set up, so only
 * creation reports errors; the algorithm is fetched once per context, not per message. */
#include "base/hash.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct spk_sha256 {
    EVP_MD_CTX *ctx;
    EVP_MD *md;
};

spk_status spk_sha256_new(spk_sha256 **out, spk_error *err)
{
    *out = NULL;
    spk_sha256 *h = calloc(1, sizeof *h);
    if (!h)
        return spk_error_nomem(err, sizeof *h);
    h->md = EVP_MD_fetch(NULL, "SHA256", NULL);
    h->ctx = EVP_MD_CTX_new();
    if (!h->md || !h->ctx || EVP_DigestInit_ex2(h->ctx, h->md, NULL) != 1) {
        spk_sha256_free(h);
        return spk_error_set(err, SPK_E_NOMEM, "SHA-256 is not available from libcrypto");
    }
    *out = h;
    return SPK_OK;
}

void spk_sha256_init(spk_sha256 *h)
{
    EVP_DigestInit_ex2(h->ctx, NULL, NULL);
}

void spk_sha256_update(spk_sha256 *h, const void *p, size_t n)
{
    EVP_DigestUpdate(h->ctx, p, n);
}

void spk_sha256_final(spk_sha256 *h, uint8_t out[SPK_SHA256_BYTES])
{
    unsigned len = 0;
    memset(out, 0, SPK_SHA256_BYTES);
    EVP_DigestFinal_ex(h->ctx, out, &len);
}

void spk_sha256_free(spk_sha256 *h)
{
    if (!h)
        return;
    EVP_MD_CTX_free(h->ctx);
    EVP_MD_free(h->md);
    free(h);
}

spk_status spk_sha256_once(const void *p, size_t n, uint8_t out[SPK_SHA256_BYTES], spk_error *err)
{
    spk_sha256 *h = NULL;
    SPK_TRY(spk_sha256_new(&h, err));
    spk_sha256_init(h);
    spk_sha256_update(h, p, n);
    spk_sha256_final(h, out);
    spk_sha256_free(h);
    return SPK_OK;
}

void spk_hex(char *out, const uint8_t *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * n] = '\0';
}

/* Value of a hex digit and one; 0 for other bytes. */
static const uint8_t hex_digits[256] = {
    ['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

/* By table and without a branch per digit: most of a large shard table is digests. */
bool spk_unhex(uint8_t *out, size_t n, const char *text, size_t len)
{
    unsigned bad = 0;
    if (len != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned high = hex_digits[(unsigned char)text[2 * i]], low = hex_digits[(unsigned char)text[2 * i + 1]];
        bad |= (high == 0) | (low == 0);
        out[i] = (uint8_t)((high - 1) << 4 | (low - 1));
    }
    return !bad;
}
