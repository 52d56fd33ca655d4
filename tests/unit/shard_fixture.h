/* Builds small shards the way the packer does, for tests and for the fuzzers' seeds. Failures abort: what is built here
 * is valid by construction. */
#ifndef SHARD_FIXTURE_H
#define SHARD_FIXTURE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shard/format.h"
#include "shard/tar.h"
#include "shard/writer.h"

#define fixture_must(call)                                                                                             \
    do {                                                                                                               \
        spk_error fixture_err_;                                                                                        \
        spk_error_clear(&fixture_err_);                                                                                \
        spk_error *fe = &fixture_err_;                                                                                 \
        if ((call) != SPK_OK) {                                                                                        \
            fprintf(stderr, "%s: %s\n", #call, fe->text);                                                              \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct fixture_member {
    const char *key; /* the same as before: another member of the sample */
    const char *field;
    const void *data;
    size_t size;
    const char *path;
    const char *encoding; /* NULL: identity */
    size_t original;      /* of what is encoded; 0: size */
} fixture_member;

/* Tar bytes of n members, with the end marker if last. */
static inline void fixture_tar(spk_buf *tar, const fixture_member *m, size_t n, int last)
{
    static const uint8_t zeros[SPK_TAR_END];
    for (size_t i = 0; i < n; i++) {
        uint8_t header[SPK_TAR_BLOCK];
        char room[SPK_FIELD_MAX + 1];
        const char *name = spk_tar_field(room, m[i].field, m[i].encoding ? m[i].encoding : "identity");
        fixture_must(spk_tar_header(header, m[i].key, name, m[i].size, fe));
        fixture_must(spk_buf_append(tar, header, sizeof header, fe));
        fixture_must(spk_buf_append(tar, m[i].data, m[i].size, fe));
        size_t pad = (size_t)(spk_tar_member_bytes(m[i].size) - SPK_TAR_BLOCK - m[i].size);
        fixture_must(spk_buf_append(tar, zeros, pad, fe));
    }
    if (last)
        fixture_must(spk_buf_append(tar, zeros, sizeof zeros, fe));
}

/* Appends one frame of n members, with tar bytes given. */
static inline void fixture_frame_tar(spk_shard_writer *w, spk_frame_writer *z, const fixture_member *m, size_t n,
                                     int level, const spk_buf *tar)
{
    spk_index_part *part = NULL;
    spk_frame_info info;
    fixture_must(spk_index_part_new(&part, fe));
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(m[i].key, m[i - 1].key) != 0)
            fixture_must(spk_index_part_sample(part, m[i].key, fe));
        fixture_must(spk_index_part_member(part, m[i].field, m[i].encoding ? m[i].encoding : "identity", m[i].path,
                                           m[i].size, m[i].original > 0 ? m[i].original : m[i].size, fe));
    }
    fixture_must(spk_frame_begin(z, level, tar->len, spk_shard_writer_bytes, w, fe));
    fixture_must(spk_frame_write(z, tar->data, tar->len, fe));
    fixture_must(spk_frame_end(z, &info, fe));
    fixture_must(spk_shard_writer_frame(w, &info, part, fe));
    spk_index_part_free(part);
}

static inline void fixture_frame(spk_shard_writer *w, spk_frame_writer *z, const fixture_member *m, size_t n, int level,
                                 int last)
{
    spk_buf tar = {0};
    fixture_tar(&tar, m, n, last);
    fixture_frame_tar(w, z, m, n, level, &tar);
    spk_buf_free(&tar);
}

/* Writes a shard of n members, per_frame of them in each frame (cut where no sample is torn: the caller's duty). */
static inline void fixture_shard(const char *path, const fixture_member *m, size_t n, size_t per_frame, int level,
                                 spk_shard_info *info)
{
    spk_shard_writer *w = NULL;
    spk_frame_writer *z = NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        abort();
    fixture_must(spk_shard_writer_new(&w, fd, path, fe));
    fixture_must(spk_frame_writer_new(&z, fe));
    for (size_t i = 0; i < n; i += per_frame) {
        size_t k = n - i < per_frame ? n - i : per_frame;
        fixture_frame(w, z, m + i, k, level, i + k == n);
    }
    fixture_must(spk_shard_writer_finish(w, info, fe));
    spk_frame_writer_free(z);
    spk_shard_writer_free(w);
    close(fd);
}

/* The whole file; malloc'ed. */
static inline uint8_t *fixture_load(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        abort();
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *p = malloc(*n + 1);
    if (!p || fread(p, 1, *n, f) != *n)
        abort();
    fclose(f);
    return p;
}

static const fixture_member fixture_small[] = {
    {"a/one", "cls", "0", 1, NULL, NULL, 0},
    {"a/one", "jpg", "first picture", 13, "a/one.JPG", NULL, 0},
    {"b-2", "jpg", "second", 6, "b-2.jpg", NULL, 0},
    {"c_3", "bin", "", 0, "c_3", NULL, 0},
    {"c_3", "seg.png", "0123456789012345678901234567890123456789", 40, "c_3.seg.png", NULL, 0},
    {"c_3", "txt", "text\n", 5, "c_3.txt", NULL, 0},
};

#endif
