/* Writes the seed files of the fuzz targets manifest and table: make_seeds_dataset OUT makes OUT/manifest/ and
 * OUT/table/. The same program gives the same bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "dataset/manifest.h"
#include "dataset/table.h"

#define HEX64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void save(const char *out, const char *target, const char *name, const void *data, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", out, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", out, target, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, n, file) != n || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static void check(spk_status status, const spk_error *err)
{
    if (status != SPK_OK) {
        fprintf(stderr, "%s\n", err->text);
        exit(1);
    }
}

static void save_manifest(const char *out, const char *name, const spk_manifest *m)
{
    spk_buf text = {0};
    spk_error err;
    check(spk_manifest_encode(m, &text, &err), &err);
    save(out, "manifest", name, text.data, text.len);
    spk_buf_free(&text);
}

static void manifests(const char *out)
{
    char table[] = "shards-00112233.tsv", jpg[] = "jpg", image[] = "image", cls[] = "cls", label[] = "label";
    char cat[] = "cat", odd[] = "d\xc3\xa9j\xc3\xa0%ff",
         pack[] = "{\"seed\":7,\"split\":[{\"name\":\"val\",\"share\":0.1}]}";
    char *classes[] = {cat, odd};
    spk_manifest_field fields[] = {{cls, label, 9}, {jpg, image, 10}};
    spk_manifest m = {.fingerprint = HEX64, .table_name = table, .table_bytes = strlen(SPK_TABLE_HEADER)};

    save_manifest(out, "empty", &m);
    m.samples = 10, m.shards = 2, m.frames = 3, m.bytes = 5000, m.tar_bytes = 20480, m.payload_bytes = 4000;
    m.fields = fields, m.fields_n = 2, m.classes = classes, m.classes_n = 2, m.shuffled = true;
    save_manifest(out, "labels", &m);
    m.images = (spk_image_stat){.count = 10,
                                .jpeg = 7,
                                .png = 2,
                                .other = 1,
                                .min_width = 1,
                                .max_width = 500,
                                .sum_width = 3000,
                                .min_height = 2,
                                .max_height = 400,
                                .sum_height = 2500,
                                .longer_side = {[1] = 1, [9] = 9}};
    m.pack = pack;
    save_manifest(out, "images", &m);
    save(out, "manifest", "no-format", "{\"version\": \"1.0\"}\n", 19);
    save(out, "manifest", "version-2", "{\"format\": \"shardpack\", \"version\": \"2.0\"}\n", 43);
    save(out, "manifest", "array", "[1, 2.5e3, null, true, \"\\u00e9\"]", 32);
    save(out, "manifest", "twice", "{\"format\": \"shardpack\", \"format\": \"shardpack\"}", 46);
    char deep[64];
    memset(deep, '[', sizeof deep);
    save(out, "manifest", "deep", deep, sizeof deep);
}

static void tables(const char *out)
{
    spk_buf text = {0};
    spk_error err;
    spk_table_row row = {"t-00112233-000000.tar.zst", 3, 2, 4000, 5120, 3000, {1, 2, 3}};
    check(spk_table_begin(&text, &err), &err);
    save(out, "table", "header", text.data, text.len);
    check(spk_table_add(&text, &row, &err), &err);
    save(out, "table", "one", text.data, text.len);
    save(out, "table", "cut", text.data, text.len - 1);
    row = (spk_table_row){"sub/a.b_c", UINT32_MAX, 1, SPK_NUMBER_MAX, SPK_NUMBER_MAX, SPK_NUMBER_MAX - 1, {0}};
    check(spk_table_add(&text, &row, &err), &err);
    save(out, "table", "two", text.data, text.len);
    char *zero = strstr((char *)text.data, "\t4000");
    memcpy(zero, "\t0x40", 5);
    save(out, "table", "bad-number", text.data, text.len);
    spk_buf_free(&text);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_seeds_dataset OUT\n");
        return 2;
    }
    mkdir(argv[1], 0777);
    manifests(argv[1]);
    tables(argv[1]);
    return 0;
}
