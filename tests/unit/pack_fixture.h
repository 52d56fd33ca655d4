/* What the tests of spk_pack share: a temporary folder per test, a small source tree in it, and looks at what comes
 * out. Images are GIF headers, which the check takes by their dimensions alone. */
#ifndef PACK_FIXTURE_H
#define PACK_FIXTURE_H

#include <shardpack.h>
#include <stdbool.h>

#include "check_main.h"

static char *dir; /* of the test; each runs in its own process */

static inline const char *in_dir(const char *name)
{
    static char path[4][4096];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, 4096, "%s/%s", dir, name);
    return out;
}

static inline void put_file(const char *name, const void *data, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", in_dir(name));
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0777);
        *p = '/';
    }
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

/* n bytes that do not shrink, with the head of a GIF image if good. */
static inline void put_noise(const char *name, size_t n, uint32_t seed, bool good)
{
    static const uint8_t head[13] = "GIF89a\x40\x01\xf0\x00\x00\x00";
    uint8_t *data = malloc(n + sizeof head);
    for (size_t i = 0; i < n + sizeof head; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (uint8_t)(seed >> 24);
    }
    memcpy(data, good ? head : (const uint8_t *)"no image here", sizeof head);
    put_file(name, data, n < sizeof head ? sizeof head : n);
    free(data);
}

/* src: `classes` folders of `each` images and a text beside every third. */
static inline void put_tree(int classes, int each, size_t most)
{
    char name[64];
    for (int c = 0; c < classes; c++)
        for (int i = 0; i < each; i++) {
            snprintf(name, sizeof name, "src/c%02d/%03d.gif", c, i);
            put_noise(name, (size_t)(c * 7919 + i * 104729) % most, (uint32_t)(c * 1000 + i), true);
            snprintf(name, sizeof name, "src/c%02d/%03d.txt", c, i);
            if (i % 3 == 0)
                put_file(name, "some text", 9);
        }
}

static inline spk_status pack(const char *dst, spk_pack_options o, spk_pack_result *r, spk_error *err)
{
    o.size = sizeof o;
    spk_error_clear(err);
    return spk_pack(in_dir("src"), in_dir(dst), &o, r, err);
}

static inline void same_tree(const char *a, const char *b)
{
    char command[9000];
    snprintf(command, sizeof command, "diff -r '%s' '%s' >&2", in_dir(a), in_dir(b));
    ck_assert_msg(system(command) == 0, "%s and %s differ", a, b);
}

static inline bool exists(const char *name)
{
    struct stat st;
    return lstat(in_dir(name), &st) == 0;
}

static inline void sound(const char *name, uint64_t samples)
{
    spk_verify_options o = {.size = sizeof o, .jobs = 1};
    spk_verify_result r;
    spk_error err;
    ck_ok(spk_verify(in_dir(name), &o, &r, &err), err);
    ck_assert_uint_eq(r.problems, 0);
    ck_assert_uint_eq(r.samples, samples);
    char work[256];
    snprintf(work, sizeof work, "%s/.shardpack", name);
    ck_assert(!exists(work));
}

static inline void read_text(const char *name, char *out, size_t cap)
{
    FILE *f = fopen(in_dir(name), "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(out, 1, cap - 1, f);
    out[n] = '\0';
    fclose(f);
}

static inline void setup(void)
{
    dir = check_temp_folder();
}

static inline void teardown(void)
{
    check_remove_tree(dir);
}

#endif
