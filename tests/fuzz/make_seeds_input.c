/* Writes the first inputs of the fuzz targets key, list and image: make_seeds_input OUT makes OUT/TARGET/NAME. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../unit/image_fixture.h"

static void save(const char *out, const char *target, const char *name, const void *data, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", out, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", out, target, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static void save_text(const char *out, const char *target, const char *name, const char *text)
{
    save(out, target, name, text, strlen(text));
}

static void keys(const char *out)
{
    save_text(out, "key", "plain", "0n01440764/n01440764_10026.JPEG");
    save_text(out, "key", "odd", "1a b/__x/\xc3\xa9\xff.seg..JPEG");
    save_text(out, "key", "hashed", "2/./..//.hidden/._a.tar.gz/");
    save_text(out, "key", "long",
              "0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.jpg");
}

static void lists(const char *out)
{
    save_text(out, "list", "csv", "4path,label,note\r\na.jpg,3,\"x \"\"y\"\"\n,z\"\r\nb.jpg,,\r\n");
    save_text(out, "list", "csv-bom", "\x0c\xef\xbb\xbfpath,label\nd/c.jpg,cat\n\nd/e.jpg,dog\n");
    save_text(out, "list", "tsv", "5path\tlabel\tw\na.jpg\t1\t0.5\n");
    save_text(
        out, "list", "jsonl",
        "6{\"path\":\"a\",\"label\":\"x\",\"o\":{\"b\":[\"}\",\"\\\"\"]},\"n\":1e3}\n{\"path\":\"b\",\"label\":2}\n");
}

static void images(const char *out)
{
    size_t n = 0;
    char name[64];
    for (int components = 1; components <= 4; components += components == 1 ? 2 : 1)
        for (int mode = 0; mode < (components == 3 ? 3 : 2); mode++) {
            unsigned char *p = make_jpeg(40, 24, components, mode, &n);
            snprintf(name, sizeof name, "jpeg-%d-%d", components, mode);
            save(out, "image", name, p, n);
            free(p);
        }
    static const int colors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_RGB_ALPHA};
    for (int i = 0; i < 6; i++) {
        unsigned char *p = make_png(9, 7, colors[i / 2], colors[i / 2] == PNG_COLOR_TYPE_PALETTE ? 4 : 8, i % 2, &n);
        snprintf(name, sizeof name, "png-%d", i);
        save(out, "image", name, p, n);
        free(p);
    }
    static const char gif[] = "GIF89a\x05\x00\x07\x00\x00\x00\x00";
    static const char webp[30] = "RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x63\0\0\x31\0\0";
    static const char bmp[54] = "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x09\0\0\0\xf8\xff\xff\xff";
    static const char tiff[] = "MM\0*\0\0\0\x08\0\2\x01\0\0\3\0\0\0\1\0\x20\0\0\x01\1\0\3\0\0\0\1\0\x10\0\0";
    save(out, "image", "gif", gif, sizeof gif - 1);
    save(out, "image", "webp", webp, sizeof webp);
    save(out, "image", "bmp", bmp, sizeof bmp);
    save(out, "image", "tiff", tiff, sizeof tiff - 1);
    save_text(out, "image", "text", "hello\n");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_seeds_input OUT\n");
        return 2;
    }
    mkdir(argv[1], 0777);
    keys(argv[1]);
    lists(argv[1]);
    images(argv[1]);
    return 0;
}
