/* Keys, fields, junk, and what a field's name tells about its contents. No state. */
#include "pack/names.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "pack/input.h"

#define KEY_CUT 55 /* bytes kept in front of "-" and 16 hex digits: 72 in all */
#define KEY_HASH_BYTES 8

static size_t base_of(const char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '/')
        n--;
    return n;
}

size_t spk_name_stem(const char *path, size_t n, spk_stem rule)
{
    size_t from = base_of(path, n) + 1; /* a dot in first place is part of the name */
    if (from >= n)
        return n;
    const char *dot = rule == SPK_STEM_FIRST_DOT ? memchr(path + from, '.', n - from) : NULL;
    if (rule == SPK_STEM_FIRST_DOT)
        return dot ? (size_t)(dot - path) : n;
    for (size_t i = n; i > from; i--)
        if (path[i - 1] == '.')
            return i - 1;
    return n;
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Parts between dots that are empty vanish; the field may not begin with two underscores. */
void spk_name_field(const char *path, size_t n, size_t stem, char out[SPK_FIELD_MAX + 1])
{
    size_t len = 0;
    for (size_t i = stem < n ? stem + 1 : n; i < n && len < SPK_FIELD_MAX; i++) {
        char c = path[i];
        if (is_upper(c))
            c = (char)(c - 'A' + 'a');
        else if (!is_lower(c) && !is_digit(c) && c != '.')
            c = '_';
        if (c == '.' && (len == 0 || out[len - 1] == '.'))
            continue;
        if (c == '_' && len == 1 && out[0] == '_')
            continue;
        out[len++] = c;
    }
    while (len > 0 && out[len - 1] == '.')
        len--;
    if (len == 0) {
        memcpy(out, "bin", 3);
        len = 3;
    }
    out[len] = '\0';
    char *last = strrchr(out, '.');
    last = last ? last + 1 : out;
    if (strcmp(last, "jpeg") == 0 || strcmp(last, "jpe") == 0 || strcmp(last, "jfif") == 0)
        memcpy(last, "jpg", 4);
}

bool spk_name_is_exact(const char *path, size_t n, size_t stem, const char *field)
{
    size_t len = strlen(field);
    return stem < n && n - stem - 1 == len && memcmp(path + stem + 1, field, len) == 0;
}

static bool key_byte(char c)
{
    return is_lower(c) || is_upper(c) || is_digit(c) || c == '_' || c == '-';
}

/* Writes the first SPK_KEY_MAX bytes of the cleaned stem. True if nothing had to be changed or left out. */
static bool clean(const char *stem, size_t n, char *out, size_t *out_len)
{
    size_t len = 0, part = 0; /* part: bytes of the current component so far */
    bool same = n > 0, slash = false, lone = false;
    for (size_t i = 0; i < n;) {
        char c = stem[i];
        size_t step = 1;
        if (c == '/') {
            same = same && part > 0 && i + 1 < n;
            slash = len > 0; /* written when its component begins */
            part = 0;
            i++;
            continue;
        }
        if (!key_byte(c)) {
            size_t utf8 = spk_utf8_step(stem + i, n - i);
            step = utf8 > 0 ? utf8 : 1;
            c = '_';
            same = false;
        }
        i += step;
        if (part == 1 && lone && c == '_') { /* one leading underscore is enough */
            same = false;
            continue;
        }
        if (slash && len < SPK_KEY_MAX)
            out[len++] = '/';
        slash = false;
        same = same && len < SPK_KEY_MAX;
        if (len < SPK_KEY_MAX)
            out[len++] = c;
        lone = part == 0 && c == '_';
        part++;
    }
    *out_len = len;
    return same;
}

spk_status spk_name_key(const char *stem, size_t n, spk_key_form form, char out[SPK_KEY_MAX + 1], spk_error *err)
{
    size_t len = 0;
    bool same = clean(stem, n, out, &len);
    if (!same || form != SPK_KEY_PLAIN) {
        uint8_t digest[SPK_SHA256_BYTES];
        SPK_TRY(spk_sha256_once(stem, form == SPK_KEY_MOVED ? n + 1 : n, digest, err));
        len = len < KEY_CUT ? len : KEY_CUT;
        while (len > 0 && out[len - 1] == '/')
            len--;
        out[len++] = '-';
        spk_hex(out + len, digest, KEY_HASH_BYTES);
        len += 2 * (size_t)KEY_HASH_BYTES;
    }
    out[len] = '\0';
    return SPK_OK;
}

/* strcasecmp would go by the locale. */
static bool equals_lower(const char *s, const char *lower)
{
    while (*lower != '\0' && (is_upper(*s) ? *s - 'A' + 'a' : *s) == *lower) {
        s++;
        lower++;
    }
    return *lower == '\0' && *s == '\0';
}

bool spk_name_is_junk(const char *base)
{
    return strncmp(base, "._", 2) == 0 || strcmp(base, ".DS_Store") == 0 || equals_lower(base, "thumbs.db") ||
           equals_lower(base, "desktop.ini");
}

static bool is_one_of(const char *field, const char *const *names, size_t n)
{
    const char *last = strrchr(field, '.');
    last = last ? last + 1 : field;
    for (size_t i = 0; i < n; i++)
        if (strcmp(last, names[i]) == 0)
            return true;
    return false;
}

/* Images are those whose contents the check knows; labels and texts as WebDataset's decoders name them. */
const char *spk_field_kind(const char *field)
{
    static const char *const image[] = {"jpg", "png", "webp", "gif", "bmp", "tif", "tiff"};
    static const char *const label[] = {"cls", "cls2", "index", "inx", "id"};
    static const char *const text[] = {"txt", "text", "transcript", "html", "htm"};
    static const char *const json[] = {"json", "jsn"};
    if (is_one_of(field, image, SPK_ARRAY_SIZE(image)))
        return "image";
    if (is_one_of(field, label, SPK_ARRAY_SIZE(label)))
        return "label";
    if (is_one_of(field, text, SPK_ARRAY_SIZE(text)))
        return "text";
    return is_one_of(field, json, SPK_ARRAY_SIZE(json)) ? "json" : "bytes";
}

bool spk_field_is_compressed(const char *field)
{
    static const char *const names[] = {"jpg", "png", "webp", "gif",  "avif", "heic", "heif", "jxl",
                                        "jp2", "mp4", "m4v",  "m4a",  "mov",  "mkv",  "webm", "avi",
                                        "mp3", "ogg", "oga",  "opus", "flac", "aac",  "gz",   "tgz",
                                        "bz2", "xz",  "zst",  "lz4",  "br",   "zip",  "7z",   "rar"};
    return is_one_of(field, names, SPK_ARRAY_SIZE(names));
}

/* The upper 53 bits, so that the largest share stays below 1. */
double spk_split_position(const char *stem, size_t n)
{
    spk_sha256 *h = NULL;
    uint8_t digest[SPK_SHA256_BYTES];
    if (spk_sha256_new(&h, NULL) != SPK_OK)
        return -1;
    spk_sha256_init(h);
    spk_sha256_update(h, "split:", 6);
    spk_sha256_update(h, stem, n);
    spk_sha256_final(h, digest);
    spk_sha256_free(h);
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | digest[i];
    return (double)(v >> 11) / 9007199254740992.0;
}

/* Do the ".." of a relative path lead above where it begins? */
static bool leaves(const char *path)
{
    size_t depth = 0;
    for (const char *p = path; *p != '\0';) {
        size_t part = strcspn(p, "/");
        bool up = part == 2 && p[0] == '.' && p[1] == '.';
        if (up && depth == 0)
            return true;
        if (up)
            depth--;
        else if (part > 0 && !(part == 1 && p[0] == '.'))
            depth++;
        p += part + (p[part] == '/');
    }
    return false;
}

const char *spk_name_plain(const char *path, char out[SPK_SCAN_PATH_MAX + 1], size_t *n)
{
    size_t len = 0;
    if (path[0] == '\0' || path[0] == '/')
        return path[0] == '/' ? "absolute" : "empty";
    for (const char *p = path; *p != '\0';) {
        size_t part = strcspn(p, "/");
        if (part == 2 && p[0] == '.' && p[1] == '.')
            return leaves(path) ? "leaves the source folder" : "has a \"..\" component";
        if (len + part + 1 > SPK_SCAN_PATH_MAX)
            return "longer than 4095 bytes";
        if (part > 0 && !(part == 1 && p[0] == '.')) {
            if (len > 0)
                out[len++] = '/';
            memcpy(out + len, p, part);
            len += part;
        }
        p += part + (p[part] == '/');
    }
    out[len] = '\0';
    *n = len;
    return len == 0 ? "names the source folder itself" : NULL;
}
