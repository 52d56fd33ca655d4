/* Whole datasets of small shards, written by hand so that tests can bend every part. */
#ifndef DATASET_FIXTURE_H
#define DATASET_FIXTURE_H

#include "shard_fixture.h"

#include "base/hash.h"
#include "dataset/manifest.h"
#include "dataset/publish.h"
#include "dataset/table.h"

#define FIXTURE_SHARDS_MAX 8

/* Filled shard by shard with dataset_add, then written by dataset_write; what lies between may change anything. */
typedef struct dataset_fixture {
    const char *folder;
    const char *prefix;
    spk_table_row rows[FIXTURE_SHARDS_MAX];
    char names[FIXTURE_SHARDS_MAX][128];
    size_t n;
    spk_manifest m;
    char table_name[64];
    spk_manifest_field fields[8];
} dataset_fixture;

static inline void fixture_path(char *out, size_t cap, const char *folder, const char *name)
{
    if (snprintf(out, cap, "%s/%s", folder, name) >= (int)cap)
        abort();
}

static inline void fixture_write(const char *folder, const char *name, const void *data, size_t n)
{
    char path[4200];
    fixture_path(path, sizeof path, folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        abort();
}

static inline void dataset_count_field(dataset_fixture *d, const char *name)
{
    size_t i = 0;
    for (; i < d->m.fields_n; i++)
        if (strcmp(d->fields[i].name, name) == 0)
            break;
    if (i == d->m.fields_n) {
        d->fields[i] = (spk_manifest_field){.name = strdup(name), .kind = strdup("bytes")};
        d->m.fields_n++;
    }
    d->fields[i].samples++;
}

/* Writes one shard under a working name and counts it. */
static inline void dataset_add(dataset_fixture *d, const fixture_member *m, size_t n, size_t per_frame)
{
    char path[4200];
    spk_shard_info info;
    snprintf(d->names[d->n], sizeof d->names[0], "working-%zu", d->n);
    fixture_path(path, sizeof path, d->folder, d->names[d->n]);
    fixture_shard(path, m, n, per_frame, 1, &info);
    spk_table_row *row = &d->rows[d->n++];
    *row = (spk_table_row){NULL, info.samples, info.frames, info.bytes, info.tar_bytes, info.index_offset, {0}};
    memcpy(row->tail_sha256, info.tail_sha256, 32);
    d->m.fields = d->fields;
    for (size_t i = 0; i < n; i++) {
        dataset_count_field(d, m[i].field);
        if (m[i].path)
            d->m.payload_bytes += m[i].size;
    }
    d->m.samples += info.samples;
    d->m.frames += info.frames;
    d->m.bytes += info.bytes;
    d->m.tar_bytes += info.tar_bytes;
    d->m.shards++;
}

/* Fingerprint, final names and the table; sets what the manifest says of it. */
static inline void dataset_table(dataset_fixture *d)
{
    uint8_t digests[FIXTURE_SHARDS_MAX * 32], digest[32];
    char from[4200], to[4200];
    spk_buf table = {0};
    for (size_t i = 0; i < d->n; i++)
        memcpy(digests + 32 * i, d->rows[i].tail_sha256, 32);
    fixture_must(spk_sha256_once(digests, 32 * d->n, digest, fe));
    spk_hex(d->m.fingerprint, digest, 32);
    fixture_must(spk_table_begin(&table, fe));
    for (size_t i = 0; i < d->n; i++) {
        fixture_path(from, sizeof from, d->folder, d->names[i]);
        fixture_must(spk_shard_file_name(d->names[i], sizeof d->names[0], d->prefix, d->m.fingerprint, i, fe));
        fixture_path(to, sizeof to, d->folder, d->names[i]);
        if (rename(from, to) != 0)
            abort();
        d->rows[i].path = d->names[i];
        fixture_must(spk_table_add(&table, &d->rows[i], fe));
    }
    fixture_must(spk_table_file_name(d->table_name, sizeof d->table_name, d->m.fingerprint, fe));
    fixture_must(spk_sha256_once(table.data, table.len, d->m.table_sha256, fe));
    d->m.table_name = d->table_name;
    d->m.table_bytes = table.len;
    fixture_write(d->folder, d->table_name, table.data, table.len);
    spk_buf_free(&table);
}

static inline void dataset_manifest(const dataset_fixture *d)
{
    spk_buf text = {0};
    fixture_must(spk_manifest_encode(&d->m, &text, fe));
    fixture_write(d->folder, SPK_MANIFEST_NAME, text.data, text.len);
    spk_buf_free(&text);
}

static inline void dataset_write(dataset_fixture *d)
{
    dataset_table(d);
    dataset_manifest(d);
}

static inline void dataset_free(dataset_fixture *d)
{
    for (size_t i = 0; i < d->m.fields_n; i++) {
        free(d->fields[i].name);
        free(d->fields[i].kind);
    }
}

static const fixture_member dataset_first[] = {
    {"a/one", "cls", "0", 1, NULL, NULL, 0},
    {"a/one", "jpg", "first picture", 13, "a/one.JPG", NULL, 0},
    {"a/two", "jpg", "second", 6, "a/two.jpg", NULL, 0},
    {"b/Three", "jpg", "the third", 9, "b/Three.jpg", NULL, 0},
};
static const fixture_member dataset_second[] = {
    {"c/four", "jpg", "4", 1, "c/four.jpg", NULL, 0},
    {"c/five", "txt", "five\n", 5, "c/five.txt", NULL, 0},
};

/* Two shards, five samples. */
static inline void dataset_small(dataset_fixture *d, const char *folder)
{
    memset(d, 0, sizeof *d);
    d->folder = folder;
    d->prefix = "t";
    dataset_add(d, dataset_first, 4, 2);
    dataset_add(d, dataset_second, 2, 8);
    dataset_write(d);
}

#endif
