/* UTF-8 by the table of RFC 3629 section 4. Pure functions. */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

size_t spk_utf8_step(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    if (n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t len = p[0] >= 0xC2 && p[0] <= 0xDF   ? 2
                 : p[0] >= 0xE0 && p[0] <= 0xEF ? 3
                 : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4
                                                : 0;
    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
        (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return len;
}

bool spk_utf8_valid(const char *p, size_t n)
{
    while (n > 0) {
        size_t step = spk_utf8_step(p, n);
        if (step == 0)
            return false;
        p += step;
        n -= step;
    }
    return true;
}

/* C0, DEL and C1 controls (the latter two bytes in UTF-8), and U+2028, U+2029, which terminals and tools take as lines.
 */
static bool is_control(const unsigned char *p, size_t len)
{
    if (len == 1)
        return p[0] < 0x20 || p[0] == 0x7F;
    if (len == 2)
        return p[0] == 0xC2 && p[1] < 0xA0;
    return len == 3 && p[0] == 0xE2 && p[1] == 0x80 && (p[2] == 0xA8 || p[2] == 0xA9);
}

static size_t escape(char *out, size_t cap, const char *p, size_t n, char mark)
{
    static const char hex[] = "0123456789abcdef";
    size_t used = 0;

    while (n > 0) {
        size_t step = spk_utf8_step(p, n);
        bool keep = step > 0 && !is_control((const unsigned char *)p, step) && !(mark == '%' && *p == '%');
        if (step == 0)
            step = 1;
        size_t need = keep ? step : step * (mark == '%' ? 3 : 4);
        if (used + need >= cap)
            break;
        if (keep) {
            memcpy(out + used, p, step);
        } else {
            char *q = out + used;
            for (size_t i = 0; i < step; i++) {
                unsigned char c = (unsigned char)p[i];
                *q++ = mark;
                if (mark == '\\')
                    *q++ = 'x';
                *q++ = hex[c >> 4];
                *q++ = hex[c & 15];
            }
        }
        used += need;
        p += step;
        n -= step;
    }
    if (cap > 0)
        out[used] = '\0';
    return used;
}

size_t spk_utf8_escape(char *out, size_t cap, const char *p, size_t n)
{
    return escape(out, cap, p, n, '\\');
}

size_t spk_utf8_percent(char *out, size_t cap, const char *p, size_t n)
{
    return escape(out, cap, p, n, '%');
}
