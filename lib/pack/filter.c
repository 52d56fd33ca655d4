/* Globs. Pure functions. */
#include "pack/filter.h"

#include <string.h>

#include "base/utf8.h"

/* Bytes of the character at p, and its number; a stray byte gets one that no UTF-8 character has. */
static size_t next_char(const char *p, size_t n, uint32_t *code)
{
    size_t len = spk_utf8_step(p, n);
    const unsigned char *b = (const unsigned char *)p;
    if (len <= 1) {
        *code = len == 1 ? b[0] : 0x110000u + b[0];
        return 1;
    }
    *code = b[0] & (0xFFu >> (len + 1));
    for (size_t i = 1; i < len; i++)
        *code = *code << 6 | (b[i] & 0x3Fu);
    return len;
}

/* p[0] is '['. Returns the length of the set, 0 if it has no end (then '[' stands for itself). */
static size_t match_set(const char *p, size_t n, uint32_t code, bool *hit)
{
    size_t i = 1;
    bool negated = i < n && (p[i] == '!' || p[i] == '^'), found = false;
    if (negated)
        i++;
    for (size_t first = i; i < n && (p[i] != ']' || i == first);) {
        uint32_t low = 0, high = 0;
        if (p[i] == '\\' && i + 1 < n)
            i++;
        i += next_char(p + i, n - i, &low);
        high = low;
        if (i + 1 < n && p[i] == '-' && p[i + 1] != ']') {
            i++;
            if (p[i] == '\\' && i + 1 < n)
                i++;
            i += next_char(p + i, n - i, &high);
        }
        found = found || (code >= low && code <= high);
    }
    *hit = found != negated;
    return i < n ? i + 1 : 0;
}

/* One element of the pattern other than '*' against one character. Returns the element's length. */
static size_t match_one(const char *p, size_t n, uint32_t code, bool *hit)
{
    uint32_t own = 0;
    if (p[0] == '?') {
        *hit = true;
        return 1;
    }
    if (p[0] == '[') {
        size_t len = match_set(p, n, code, hit);
        if (len > 0)
            return len;
    }
    size_t skip = p[0] == '\\' && n > 1 ? 1 : 0;
    size_t len = skip + next_char(p + skip, n - skip, &own);
    *hit = own == code;
    return len;
}

/* Only the last '*' seen ever needs another try: earlier ones have already found their shortest match. */
bool spk_glob_match(const char *pattern, size_t pattern_n, const char *text, size_t n)
{
    size_t p = 0, t = 0, star = SIZE_MAX, retry = 0;
    while (t < n) {
        uint32_t code = 0;
        size_t step = next_char(text + t, n - t, &code);
        bool hit = false;
        if (p < pattern_n && pattern[p] == '*') {
            star = ++p;
            retry = t;
            continue;
        }
        size_t len = p < pattern_n ? match_one(pattern + p, pattern_n - p, code, &hit) : 0;
        if (hit) {
            p += len;
            t += step;
        } else if (star != SIZE_MAX) {
            p = star;
            retry += next_char(text + retry, n - retry, &code);
            t = retry;
        } else {
            return false;
        }
    }
    while (p < pattern_n && pattern[p] == '*')
        p++;
    return p == pattern_n;
}

static bool any_match(const char *const *patterns, size_t count, const char *path, size_t n, size_t base)
{
    for (size_t i = 0; i < count; i++) {
        const char *p = patterns[i];
        while (p[0] == '.' && p[1] == '/')
            p += 2;
        size_t len = strlen(p);
        while (len > 1 && p[len - 1] == '/')
            len--;
        size_t from = memchr(p, '/', len) ? 0 : base;
        if (spk_glob_match(p, len, path + from, n - from))
            return true;
    }
    return false;
}

bool spk_filter_file(const spk_pack_options *o, const char *path, size_t n, size_t base)
{
    if (o->include_count > 0 && !any_match(o->include, o->include_count, path, n, base))
        return false;
    return !any_match(o->exclude, o->exclude_count, path, n, base);
}

bool spk_filter_folder(const spk_pack_options *o, const char *path, size_t n, size_t base)
{
    return !any_match(o->exclude, o->exclude_count, path, n, base);
}
