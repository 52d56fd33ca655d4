/* Values of options: numbers, sizes, words; their ranges; and the nearest word to a misspelt one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "opts.h"
#include "out.h"

/* The unit that s names, all of it: nothing, B, or one of k M G T with an optional B or iB. 0 if it is none. */
static uint64_t parse_unit(const char *s)
{
    static const char letters[] = "kmgt";
    uint64_t unit = 1;
    const char *u = *s ? strchr(letters, *s | 0x20) : NULL;
    if (u) {
        unit = UINT64_C(1) << (10 * (u - letters + 1));
        s++;
        if (strcmp(s, "iB") == 0)
            return unit;
    }
    return *s && strcmp(s, "B") != 0 ? 0 : unit;
}

static void reduce(uint64_t *num, uint64_t *den)
{
    uint64_t a = *num, b = *den;
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    *num /= a;
    *den /= a;
}

int opts_size(const char *text, uint64_t *out)
{
    uint64_t whole = 0, part = 0, den = 1;
    const char *s = text;
    if (*s < '0' || *s > '9')
        return -1;
    for (; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(whole, 10u, &whole) || __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
            return -1;
    if (*s == '.') {
        if (s[1] < '0' || s[1] > '9')
            return -1;
        for (s++; *s >= '0' && *s <= '9'; s++) {
            if (den > UINT64_MAX / 100)
                return -1;
            part = part * 10 + (uint64_t)(*s - '0');
            den *= 10;
        }
    }
    uint64_t unit = parse_unit(s);
    reduce(&part, &den); /* whole bytes only: the rest must divide the unit */
    if (!unit || unit % den || __builtin_mul_overflow(whole, unit, &whole) ||
        __builtin_add_overflow(whole, part * (unit / den), &whole))
        return -1;
    *out = whole;
    return 0;
}

/* Least and greatest value that a row accepts. */
static void bounds(const opt *r, int64_t *min, uint64_t *max)
{
    *min = r->min;
    *max = r->max ? r->max : r->kind == OPT_INT ? (uint64_t)INT64_MAX : UINT64_MAX;
}

void opts_range(const opt *r, char *buf, size_t size)
{
    int64_t min;
    uint64_t max;
    char lo[32], hi[32];
    bounds(r, &min, &max);
    if (r->kind == OPT_SIZE) {
        out_size_exact(lo, sizeof lo, (uint64_t)min);
        out_size_exact(hi, sizeof hi, max);
        snprintf(buf, size, "%s to %s", lo, hi);
    } else if (r->max) {
        snprintf(buf, size, "%lld to %llu", (long long)min, (unsigned long long)max);
    } else {
        snprintf(buf, size, "%lld or more", (long long)min);
    }
}

static int refuse_number(const opt *r, char *why, size_t n)
{
    char range[80];
    opts_range(r, range, sizeof range);
    if (r->kind == OPT_SIZE)
        snprintf(why, n, "expected a size (%s), such as 65536, 256M or 1GiB", range);
    else if (r->kind == OPT_DOUBLE)
        snprintf(why, n, "expected a number (%s)", range);
    else
        snprintf(why, n, "expected a whole number (%s)", range);
    return -1;
}

static int parse_u64(const char *text, uint64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || *end)
        return -1;
    *out = v;
    return 0;
}

static int store_unsigned(const opt *r, const char *text, uint64_t *out)
{
    int64_t min;
    uint64_t max, v;
    bounds(r, &min, &max);
    if (r->kind == OPT_SIZE ? opts_size(text, &v) : parse_u64(text, &v))
        return -1;
    if (v < (uint64_t)min || v > max)
        return -1;
    *out = v;
    return 0;
}

static int store_int(const opt *r, const char *text, int64_t *out)
{
    int64_t min;
    uint64_t max, v;
    int minus = *text == '-';
    bounds(r, &min, &max);
    if (parse_u64(text + minus, &v) || v > (uint64_t)INT64_MAX)
        return -1;
    int64_t s = minus ? -(int64_t)v : (int64_t)v;
    if (s < min || (s > 0 && (uint64_t)s > max))
        return -1;
    *out = s;
    return 0;
}

static int store_double(const opt *r, const char *text, double *out)
{
    char *end;
    int64_t min;
    uint64_t max;
    bounds(r, &min, &max);
    if (!strchr("0123456789.-", *text) || !*text || strpbrk(text, "xX"))
        return -1;
    double v = strtod(text, &end);
    if (*end || !(v >= (double)min && v <= (double)max))
        return -1;
    *out = v;
    return 0;
}

static int store_word(const opt *r, const char *text, int *out, char *why, size_t n)
{
    size_t used;
    for (int i = 0; r->values[i]; i++)
        if (strcmp(r->values[i], text) == 0) {
            *out = i;
            return 0;
        }
    const char *near = opts_nearest(text, r->values);
    used = (size_t)snprintf(why, n, near ? "did you mean %s? (one of" : "expected one of%s", near ? near : "");
    for (int i = 0; r->values[i] && used < n; i++)
        used += (size_t)snprintf(why + used, n - used, "%s %s", i ? "," : "", r->values[i]);
    if (near && used < n)
        snprintf(why + used, n - used, ")");
    return -1;
}

static int store_item(opts_list *list, const char *text, char *why, size_t n)
{
    const char **grown = realloc(list->items, (list->count + 1) * sizeof *grown);
    if (!grown) {
        snprintf(why, n, "out of memory");
        return -1;
    }
    list->items = grown;
    list->items[list->count++] = text;
    return 0;
}

int opts_value(const opt *r, const char *text, void *values, char *why, size_t why_size)
{
    void *at = (char *)values + r->offset;
    int rc = 0;
    switch (r->kind) {
    case OPT_U64:
    case OPT_SIZE:
        rc = store_unsigned(r, text, at);
        break;
    case OPT_INT:
        rc = store_int(r, text, at);
        break;
    case OPT_DOUBLE:
        rc = store_double(r, text, at);
        break;
    case OPT_ENUM:
        return store_word(r, text, at, why, why_size);
    case OPT_LIST:
    case OPT_STRING:
        if (!*text) {
            snprintf(why, why_size, "is empty");
            return -1;
        }
        if (r->kind == OPT_LIST)
            return store_item(at, text, why, why_size);
        *(const char **)at = text;
        break;
    case OPT_GROUP:
    case OPT_FLAG:
        break;
    }
    return rc ? refuse_number(r, why, why_size) : 0;
}

#define WORD_MAX 40

/* Edits (insert, delete, replace, swap of neighbours) from a to b; words longer than WORD_MAX count as far. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), rows[3][WORD_MAX + 1];
    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = up[j - 1] + (a[i - 1] != b[j - 1]);
            best = up[j] + 1 < best ? up[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < best)
                best = up2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *opts_nearest(const char *text, const char *const *words)
{
    const char *best = NULL;
    size_t best_distance = strlen(text) < 4 ? 2 : 3; /* must be nearer than this */
    for (size_t i = 0; words[i]; i++) {
        size_t d = distance(text, words[i]);
        if (strlen(text) >= 3 && strncmp(words[i], text, strlen(text)) == 0)
            d = d < 1 ? d : 1; /* an abbreviation */
        if (d < best_distance) {
            best = words[i];
            best_distance = d;
        }
    }
    return best;
}
