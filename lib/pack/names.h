/* Keys and fields from paths: the rules of format-spec/dataset.md. Pure functions of the path's bytes: no locale. */
#ifndef SPK_PACK_NAMES_H
#define SPK_PACK_NAMES_H

#include <shardpack/pack.h>
#include <stdbool.h>

#include "shard/format.h"

/* Length of the stem of path[0..n): the path without its extension. The extension begins at the last dot of the base
 * name (SPK_STEM_FIRST_DOT: at the first), where a leading dot does not count. n if there is none. */
size_t spk_name_stem(const char *path, size_t n, spk_stem rule);

/* The field of a path with that stem length; always valid. */
void spk_name_field(const char *path, size_t n, size_t stem, char out[SPK_FIELD_MAX + 1]);
/* Is the path's extension spelled exactly like its field? Of a.jpg, a.JPG and a.jpeg only the first. */
bool spk_name_is_exact(const char *path, size_t n, size_t stem, const char *field);

typedef enum spk_key_form {
    SPK_KEY_PLAIN = 0,
    SPK_KEY_HASHED = 1, /* with the hash in any case */
    SPK_KEY_MOVED = 2   /* with the hash of the text and its NUL, which no stem's hash equals: text[n] must be NUL */
} spk_key_form;
/* The key of a stem, or of a whole path, of any bytes; always valid. Cleaned where needed; a cleaned or cut key, and
 * any key of the other forms, ends with a hash of the original. NOMEM is the only failure. */
SPK_CHECK spk_status spk_name_key(const char *stem, size_t n, spk_key_form form, char out[SPK_KEY_MAX + 1],
                                  spk_error *err);

/* Bytes of a path relative to the source: what one system call takes. */
#define SPK_SCAN_PATH_MAX 4095u
/* Drops "." and empty components of a path that a list or an archive gives. NULL, or why it is not one below the
 * source; *n is then not set. */
const char *spk_name_plain(const char *path, char out[SPK_SCAN_PATH_MAX + 1], size_t *n);

/* Base names that systems leave behind: "._*", ".DS_Store", "Thumbs.db", "desktop.ini". */
bool spk_name_is_junk(const char *base);

#endif
