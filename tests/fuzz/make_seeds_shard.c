/* Writes the seeds of the shard fuzzers: make_seeds_shard FOLDER makes FOLDER/NAME/seed-NN. */
#include <stdarg.h>
#include <sys/stat.h>

#include "../unit/index_fixture.h"
#include "shard/seek_table.h"

static const char *root;

/* One seed from `parts` pairs of pointer and size. */
static void put(const char *target, int number, int parts, ...)
{
    char path[4096];
    va_list ap;
    snprintf(path, sizeof path, "%s/%s", root, target);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/seed-%02d", root, target, number);
    FILE *f = fopen(path, "wb");
    if (!f)
        abort();
    va_start(ap, parts);
    for (int i = 0; i < parts; i++) {
        const void *p = va_arg(ap, const void *);
        size_t n = va_arg(ap, size_t);
        if (fwrite(p, 1, n, f) != n)
            abort();
    }
    va_end(ap);
    if (fclose(f) != 0)
        abort();
}

static void tar_seeds(void)
{
    static const char *const names[][2] = {{"a", "jpg"}, {"dir/sub_dir/IMG-1", "seg.png"}, {"_a/b", "cls"}};
    for (int i = 0; i < 3; i++) {
        uint8_t h[SPK_TAR_BLOCK];
        fixture_must(spk_tar_header(h, names[i][0], names[i][1], (uint64_t)i * 123456789, fe));
        put("tar", i, 2, h, sizeof h, i % 2 ? "\1" : "\0", (size_t)1);
    }
}

/* The sample list of fixture_small, as the writer encodes it. */
static const char list[] = "\x05\x03"
                           "cls\x08identity\x03jpg\x08identity\x03"
                           "bin\x08identity\x07seg.png\x08identity\x03txt\x08identity"
                           "\x05"
                           "a/one\x02\x00\x01\x00\x01\x0d\x0a"
                           "a/one.JPG"
                           "\x03"
                           "b-2\x01\x01\x06\x01"
                           "\x03"
                           "c_3\x03\x02\x00\x04"
                           "c_3\x03\x28\x01\x04\x05\x01";

static void index_seeds(const uint8_t *frame, size_t n)
{
    const uint8_t two[] = {0, 1, 2, 6, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0};
    put("shard_index", 0, 2, two, sizeof two, frame, n);
    const uint8_t sealed[] = {1, 1, 2, 6, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0};
    put("shard_index", 3, 2, sealed, sizeof sealed, frame, n);
    const uint8_t listed[] = {2, 1, 2, 6, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0};
    put("shard_index", 1, 2, listed, sizeof listed, list, sizeof list - 1);
    static const char tiny[] = "\x01\x03jpg\x08identity\x01"
                               "a\x01\x00\x00\x01";
    const uint8_t one[] = {2, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    put("shard_index", 2, 2, one, sizeof one, tiny, sizeof tiny - 1);
}

static void shard_seeds(const char *scratch)
{
    spk_shard_info info;
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        fixture_shard(scratch, fixture_small, 6, i == 0 ? 3 : 6, i == 0 ? 1 : 9, &info);
        uint8_t *file = fixture_load(scratch, &n);
        put("shard", i, 2, "\0", (size_t)1, file, n);
        if (i == 0) {
            size_t table = (size_t)spk_seek_table_bytes(info.frames + 1);
            index_seeds(file + info.index_offset, n - table - (size_t)info.index_offset);
            put("seek_table", 0, 2, "\0\0\0\0\0\0\0\0\0", (size_t)9, file + n - table, table);
            uint8_t sized[9] = {1};
            spk_le64_store(sized + 1, n);
            put("seek_table", 1, 2, sized, sizeof sized, file + n - table, table);
            put("frame", 0, 2, "\0", (size_t)1, file, (size_t)info.index_offset);
        } else {
            put("frame", 1, 2, "\0", (size_t)1, file, (size_t)info.index_offset);
        }
        free(file);
    }
    remove(scratch);
    spk_buf tar = {0};
    uint8_t head[] = {3, (uint8_t)(sizeof list - 1), 0};
    fixture_tar(&tar, fixture_small, 6, 1);
    put("shard", 2, 3, head, sizeof head, list, sizeof list - 1, tar.data, tar.len);
    put("frame", 2, 2, "\3", (size_t)1, tar.data, (size_t)1024);
    spk_buf_free(&tar);
}

int main(int argc, char **argv)
{
    char scratch[4096];
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    root = argv[1];
    mkdir(root, 0755);
    snprintf(scratch, sizeof scratch, "%s/scratch.tar.zst", root);
    tar_seeds();
    shard_seeds(scratch);
    return 0;
}
