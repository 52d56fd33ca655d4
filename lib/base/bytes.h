/* Little-endian loads and stores, and overflow-checked size arithmetic. Header only. */
#ifndef SPK_BASE_BYTES_H
#define SPK_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint32_t spk_le32_load(const void *p)
{
    const unsigned char *b = p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t spk_le64_load(const void *p)
{
    return (uint64_t)spk_le32_load(p) | (uint64_t)spk_le32_load((const unsigned char *)p + 4) << 32;
}

static inline void spk_le32_store(void *p, uint32_t v)
{
    unsigned char *b = p;
    for (int i = 0; i < 4; i++)
        b[i] = (unsigned char)(v >> (8 * i));
}

static inline void spk_le64_store(void *p, uint64_t v)
{
    spk_le32_store(p, (uint32_t)v);
    spk_le32_store((unsigned char *)p + 4, (uint32_t)(v >> 32));
}

/* a + b and a * b into *out; false on overflow. */
static inline bool spk_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool spk_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

#define SPK_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
