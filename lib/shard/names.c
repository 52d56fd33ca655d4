/* The rules on keys and fields, in one place: writer, reader and packer all ask here. Pure. */
#include <stdbool.h>

#include "shard/tar.h"

/* Looked up rather than compared, since every key of a shard passes here when it is opened. */
static const bool key_bytes[256] = {
    ['-'] = true, ['_'] = true, ['0'] = true, ['1'] = true, ['2'] = true, ['3'] = true, ['4'] = true, ['5'] = true,
    ['6'] = true, ['7'] = true, ['8'] = true, ['9'] = true, ['A'] = true, ['B'] = true, ['C'] = true, ['D'] = true,
    ['E'] = true, ['F'] = true, ['G'] = true, ['H'] = true, ['I'] = true, ['J'] = true, ['K'] = true, ['L'] = true,
    ['M'] = true, ['N'] = true, ['O'] = true, ['P'] = true, ['Q'] = true, ['R'] = true, ['S'] = true, ['T'] = true,
    ['U'] = true, ['V'] = true, ['W'] = true, ['X'] = true, ['Y'] = true, ['Z'] = true, ['a'] = true, ['b'] = true,
    ['c'] = true, ['d'] = true, ['e'] = true, ['f'] = true, ['g'] = true, ['h'] = true, ['i'] = true, ['j'] = true,
    ['k'] = true, ['l'] = true, ['m'] = true, ['n'] = true, ['o'] = true, ['p'] = true, ['q'] = true, ['r'] = true,
    ['s'] = true, ['t'] = true, ['u'] = true, ['v'] = true, ['w'] = true, ['x'] = true, ['y'] = true, ['z'] = true,
};

static bool field_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

const char *spk_key_problem(const char *key, size_t len)
{
    if (len == 0)
        return "is empty";
    if (len > SPK_KEY_MAX)
        return "is longer than 72 bytes";
    size_t start = 0; /* of the component */
    for (size_t i = 0; i <= len; i++) {
        if (i < len && key[i] != '/') {
            if (!key_bytes[(unsigned char)key[i]])
                return "holds a byte outside A-Z a-z 0-9 _ - /";
            continue;
        }
        if (i == start)
            return "has an empty component";
        if (i - start >= 2 && key[start] == '_' && key[start + 1] == '_')
            return "has a component that starts with \"__\"";
        start = i + 1;
    }
    return NULL;
}

const char *spk_field_problem(const char *field, size_t len)
{
    if (len == 0)
        return "is empty";
    if (len > SPK_FIELD_MAX)
        return "is longer than 27 bytes";
    if (len >= 2 && field[0] == '_' && field[1] == '_')
        return "starts with \"__\"";
    size_t start = 0;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && field[i] != '.') {
            if (!field_byte(field[i]))
                return "holds a byte outside a-z 0-9 _ .";
            continue;
        }
        if (i == start)
            return "has an empty part between dots";
        start = i + 1;
    }
    return NULL;
}
