/* One tar header out and in: plain ustar (POSIX.1-2017, pax utility, "ustar Interchange Format") with every field but
 * name, size and checksum fixed. Since nothing else varies, reading compares with what writing would have given. Pure.
 */
#include "shard/tar.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define SIZE_MAX_OCTAL 077777777777ull /* 11 octal digits */

enum { AT_MODE = 100, AT_SIZE = 124, AT_SUM = 148, AT_TYPE = 156, AT_MAGIC = 257 };

static void put_octal(uint8_t *at, unsigned digits, uint64_t v)
{
    for (unsigned i = digits; i-- > 0; v >>= 3)
        at[i] = (uint8_t)('0' + (v & 7));
}

/* Sum of all bytes, those of the checksum field counted as blanks. */
static unsigned header_sum(const uint8_t *h)
{
    unsigned sum = 8 * ' ';
    for (unsigned i = 0; i < SPK_TAR_BLOCK; i++)
        if (i < AT_SUM || i >= AT_SUM + 8)
            sum += h[i];
    return sum;
}

/* Sum of the bytes that are the same in each header, blanks of the checksum field included. */
#define FIXED_SUM 3179u

static void build(uint8_t out[SPK_TAR_BLOCK], const char *name, size_t len, uint64_t size)
{
    memset(out, 0, SPK_TAR_BLOCK);
    memcpy(out, name, len);
    memcpy(out + AT_MODE, "0000444\0000000000\0000000000", 24);
    put_octal(out + AT_SIZE, 11, size);
    memcpy(out + 136, "00000000000", 12);
    out[AT_TYPE] = '0';
    memcpy(out + AT_MAGIC, "ustar\00000", 8);
    memcpy(out + 329, "0000000\0000000000", 16);
    unsigned sum = FIXED_SUM;
    for (size_t i = 0; i < len; i++)
        sum += out[i];
    for (size_t i = 0; i < 11; i++)
        sum += out[AT_SIZE + i];
    put_octal(out + AT_SUM, 6, sum);
    out[AT_SUM + 7] = ' ';
}

void spk_tar_header_unchecked(uint8_t out[SPK_TAR_BLOCK], const char *key, size_t key_len, const char *field,
                              size_t field_len, uint64_t size)
{
    char name[SPK_NAME_MAX];
    memcpy(name, key, key_len);
    name[key_len] = '.';
    memcpy(name + key_len + 1, field, field_len);
    build(out, name, key_len + 1 + field_len, size);
}

const char *spk_tar_field(char room[SPK_FIELD_MAX + 1], const char *field, const char *encoding)
{
    if (strcmp(encoding, SPK_IDENTITY) == 0)
        return field;
    int n = snprintf(room, SPK_FIELD_MAX + 1, "%s.%s", field, encoding);
    return n >= 0 && n <= (int)SPK_FIELD_MAX ? room : NULL;
}

spk_status spk_tar_header(uint8_t out[SPK_TAR_BLOCK], const char *key, const char *field, uint64_t size, spk_error *err)
{
    size_t k = strlen(key), f = strlen(field);
    const char *problem = spk_key_problem(key, k);
    if (problem)
        return spk_error_set(err, SPK_E_INVALID, "key \"%s\" %s", key, problem);
    problem = spk_field_problem(field, f);
    if (problem)
        return spk_error_set(err, SPK_E_INVALID, "field \"%s\" %s", field, problem);
    if (size > SIZE_MAX_OCTAL)
        return spk_error_set(err, SPK_E_LIMIT, "member \"%s.%s\" of %llu bytes: a tar member holds at most %llu", key,
                             field, (unsigned long long)size, SIZE_MAX_OCTAL);
    spk_tar_header_unchecked(out, key, k, field, f, size);
    return SPK_OK;
}

/* The ranges in which a header may differ from ours, in the order in which they are reported. */
static const struct {
    uint16_t at, len;
    const char *what;
} parts[] = {
    {AT_TYPE, 1, "type is not that of a regular file"},
    {AT_MODE, 8, "mode is not 0000444"},
    {108, 8, "owner number is not 0"},
    {116, 8, "group number is not 0"},
    {136, 12, "time is not 0"},
    {157, 100, "link name is in use"},
    {265, 32, "owner name is in use"},
    {297, 32, "group name is in use"},
    {329, 16, "device numbers are not 0"},
    {345, 155, "name prefix is in use"},
    {500, 12, "bytes behind the header's fields are not 0"},
    {AT_SUM, 8, "checksum is written in another form"},
};

static bool parse_octal(const uint8_t *p, unsigned digits, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < digits; i++) {
        if (p[i] < '0' || p[i] > '7')
            return false;
        v = v << 3 | (uint64_t)(p[i] - '0');
    }
    *out = v;
    return true;
}

static bool all_zero(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* The name: key, dot, field, then zeros. */
static spk_status parse_name(const uint8_t *block, spk_tar_entry *out, size_t *len, spk_error *err)
{
    const uint8_t *nul = memchr(block, 0, SPK_NAME_MAX);
    *len = nul ? (size_t)(nul - block) : SPK_NAME_MAX;
    memcpy(out->name, block, *len);
    out->name[*len] = '\0';
    if (!all_zero(block + *len, SPK_NAME_MAX - *len))
        return spk_error_set(err, SPK_E_FORMAT, "member \"%s\": bytes behind the name", out->name);
    const char *dot = memchr(out->name, '.', *len);
    if (!dot)
        return spk_error_set(err, SPK_E_FORMAT, "member \"%s\": name has no field", out->name);
    size_t key = (size_t)(dot - out->name);
    const char *problem = spk_key_problem(out->name, key);
    if (problem)
        return spk_error_set(err, SPK_E_FORMAT, "member \"%s\": key %s", out->name, problem);
    problem = spk_field_problem(dot + 1, *len - key - 1);
    if (problem)
        return spk_error_set(err, SPK_E_FORMAT, "member \"%s\": field %s", out->name, problem);
    return SPK_OK;
}

spk_status spk_tar_parse(const uint8_t block[SPK_TAR_BLOCK], spk_tar_entry *out, spk_error *err)
{
    memset(out, 0, sizeof *out);
    if (all_zero(block, SPK_TAR_BLOCK))
        return SPK_END;
    if (memcmp(block + AT_MAGIC, "ustar\00000", 8) != 0)
        return spk_error_set(err, SPK_E_FORMAT, "not a ustar header");
    uint64_t sum = 0;
    if (!parse_octal(block + AT_SUM, 6, &sum) || sum != header_sum(block))
        return spk_error_set(err, SPK_E_FORMAT, "tar header checksum does not match");
    size_t len = 0;
    SPK_TRY(parse_name(block, out, &len, err));
    if (!parse_octal(block + AT_SIZE, 11, &out->size) || block[AT_SIZE + 11] != 0)
        return spk_error_set(err, SPK_E_FORMAT, "member \"%s\": size is not 11 octal digits", out->name);
    uint8_t want[SPK_TAR_BLOCK];
    build(want, out->name, len, out->size);
    if (memcmp(want, block, SPK_TAR_BLOCK) == 0)
        return SPK_OK;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (memcmp(want + parts[i].at, block + parts[i].at, parts[i].len) != 0)
            return spk_error_set(err, SPK_E_FORMAT, "member \"%s\": %s", out->name, parts[i].what);
    return spk_error_set(err, SPK_E_FORMAT, "member \"%s\": header differs", out->name);
}
