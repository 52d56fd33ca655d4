/* UTF-8 checks and escapes for names that may hold any byte. */
#ifndef SPK_BASE_UTF8_H
#define SPK_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the well-formed UTF-8 sequence (RFC 3629: no surrogates, no overlong forms) at p[0..n), 0 if there is none.
 */
size_t spk_utf8_step(const char *p, size_t n);
bool spk_utf8_valid(const char *p, size_t n);
/* Copies n bytes to out as printable UTF-8: control bytes and stray bytes become \xNN (text that is already printable
 * is unchanged). Cuts at an escape's border if cap is short; always ends with NUL. Returns the length written. */
size_t spk_utf8_escape(char *out, size_t cap, const char *p, size_t n);
/* The reversible form for class names: control bytes, '%' and stray bytes become %NN. Same conventions. A cap of
 * 3 n + 1 always suffices. */
size_t spk_utf8_percent(char *out, size_t cap, const char *p, size_t n);

#endif
