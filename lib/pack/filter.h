/* --include and --exclude. A pattern without '/' is matched against the base name, one with '/' against the whole
 * relative path ("./" in front and '/' at the end are dropped). '*' matches any run of characters, '/' included ("**"
 * is the same), '?' one character, [a-z] and [!a-z] one character of a set, '\' takes the next character as it is.
 * A character is a UTF-8 sequence, or a single byte where the name is not UTF-8. fnmatch would go by the caller's
 * locale; here the same names match everywhere, in time linear in pattern times name.
 *
 * A file is taken if some include pattern matches it (or there is none) and no exclude pattern does. A folder that an
 * exclude pattern matches is left out with all that is in it.
 */
#ifndef SPK_PACK_FILTER_H
#define SPK_PACK_FILTER_H

#include <shardpack/pack.h>
#include <stdbool.h>

bool spk_glob_match(const char *pattern, size_t pattern_n, const char *text, size_t n);

/* base: where the base name begins in path. */
bool spk_filter_file(const spk_pack_options *o, const char *path, size_t n, size_t base);
bool spk_filter_folder(const spk_pack_options *o, const char *path, size_t n, size_t base);

#endif
