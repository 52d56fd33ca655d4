/* Output for people and machines. */
#include "out.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

/* Length of the printable UTF-8 character at s, 0 if there is none: a control, a stray or overlong byte, a surrogate.
 */
static size_t printable(const unsigned char *s)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f) || (s[0] == 0xc2 && s[1] < 0xa0))
        return 0;
    /* Characters that reorder a line or end it. */
    if (s[0] == 0xe2 &&
        ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) || (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)))
        return 0;
    return n;
}

/* Writes the safe form of the next character to buf (at most 4 bytes and a NUL); returns how many bytes it took. */
static size_t escape_one(char *buf, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = printable(s);
    if (n) {
        memcpy(buf, s, n);
        buf[n] = 0;
        return n;
    }
    if (*s == '\n' || *s == '\t')
        snprintf(buf, 5, "\\%c", *s == '\n' ? 'n' : 't');
    else
        snprintf(buf, 5, "\\x%02x", *s);
    return 1;
}

char *out_escape(char *buf, size_t size, const char *text)
{
    size_t used = 0;
    char one[5];
    while (*text) {
        text += escape_one(one, text);
        size_t n = strlen(one);
        if (used + n + 1 > size)
            break;
        memcpy(buf + used, one, n);
        used += n;
    }
    buf[used] = 0;
    return buf;
}

size_t out_safe_char(FILE *f, const char *text)
{
    char one[5];
    size_t n = escape_one(one, text);
    fputs(one, f);
    return n;
}

void out_name(FILE *f, const char *text)
{
    while (*text) {
        if (*text == '\\')
            putc('\\', f);
        text += out_safe_char(f, text);
    }
}

size_t out_columns(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

char *out_size(char *buf, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    size_t u = 0;
    /* 1023.95 would print as 1024.0: go on to the next unit there. */
    while (u < 6 && v >= (u ? 1023.95 : 1024.0)) {
        v /= 1024;
        u++;
    }
    if (u == 0)
        snprintf(buf, size, "%llu B", (unsigned long long)bytes);
    else
        snprintf(buf, size, "%.1f %s", v, units[u]);
    return buf;
}

char *out_size_exact(char *buf, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    while (bytes && u < 4 && bytes % 1024 == 0) {
        bytes /= 1024;
        u++;
    }
    snprintf(buf, size, "%llu%s", (unsigned long long)bytes, units[u]);
    return buf;
}

char *out_count(char *buf, size_t size, uint64_t n)
{
    char digits[32];
    size_t used = 0;
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (int i = 0; i < len && used + 2 < size; i++) {
        if (i && (len - i) % 3 == 0)
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = 0;
    return buf;
}

char *out_time(char *buf, size_t size, double seconds)
{
    if (seconds < 0.0995) {
        snprintf(buf, size, "%d ms", (int)(seconds < 0 ? 0 : seconds * 1000 + 0.5));
        return buf;
    }
    if (seconds < 9.95) {
        snprintf(buf, size, "%.1f s", seconds);
        return buf;
    }
    unsigned long s = (unsigned long)(seconds < 1e9 ? seconds + 0.5 : 1e9);
    if (s < 60)
        snprintf(buf, size, "%lu s", s);
    else if (s < 3600)
        snprintf(buf, size, "%lu min %02lu s", s / 60, s % 60);
    else
        snprintf(buf, size, "%lu h %02lu min", s / 3600, s % 3600 / 60);
    return buf;
}

char *out_plural(char *buf, size_t size, uint64_t n, const char *singular, const char *plural)
{
    char count[32];
    snprintf(buf, size, "%s %s%s", out_count(count, sizeof count, n), n != 1 && plural ? plural : singular,
             n != 1 && !plural ? "s" : "");
    return buf;
}

void out_json_text(json_t *object, const char *key, const char *value)
{
    json_t *text = value ? json_string(value) : json_null(); /* json_string refuses what is no UTF-8 */
    if (text) {
        json_object_set_new(object, key, text);
        return;
    }
    size_t n = strlen(value);
    char *hex = malloc(2 * n + 1), name[64];
    if (!hex)
        return;
    for (size_t i = 0; i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)value[i]);
    snprintf(name, sizeof name, "%s_hex", key);
    json_object_set_new(object, name, json_string(hex));
    free(hex);
}

void out_json_count(json_t *object, const char *key, uint64_t n)
{
    json_object_set_new(object, key, json_integer((json_int_t)(n > INT64_MAX ? INT64_MAX : n)));
}

static int dump(json_t *value, size_t flags)
{
    int rc = value ? json_dumpf(value, stdout, flags | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : -1;
    json_decref(value);
    if (rc == 0)
        putchar('\n');
    else if (!ferror(stdout))
        return cli_no_memory();
    return cli_stdout_failed() ? CLI_FAILED : CLI_OK;
}

int out_json_line(json_t *value)
{
    return dump(value, JSON_COMPACT);
}

int out_json(json_t *value)
{
    return dump(value, JSON_INDENT(2));
}

double out_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
