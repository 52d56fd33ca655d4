/* Writes the seed files of the fuzz target decode: make_seeds_decode OUT makes OUT/decode/. */
#include <sys/stat.h>

#include "../unit/image_encode.h"

static void save(const char *out, const char *name, const unsigned char head[8], unsigned char *data, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/decode/%s", out, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(head, 1, 8, file) != 8 || fwrite(data, 1, n, file) != n || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    free(data);
}

int main(int argc, char **argv)
{
    static const jpeg_kind kinds[] = JPEG_KINDS;
    static const int types[][2] = {{PNG_COLOR_TYPE_GRAY, 1},       {PNG_COLOR_TYPE_GRAY, 16},
                                   {PNG_COLOR_TYPE_RGB, 8},        {PNG_COLOR_TYPE_PALETTE, 4},
                                   {PNG_COLOR_TYPE_GRAY_ALPHA, 8}, {PNG_COLOR_TYPE_RGB_ALPHA, 16}};
    char name[256];
    size_t n;
    if (argc != 2)
        return 2;
    snprintf(name, sizeof name, "%s/decode", argv[1]);
    mkdir(name, 0777);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const unsigned char head[8] = {(unsigned char)(i * 17), (unsigned char)(i * 29), 100, 200,
                                       (unsigned char)(i % 8)};
        snprintf(name, sizeof name, "jpeg-%u", i);
        unsigned char *image = encode_jpeg(37, 21, &kinds[i], &n);
        save(argv[1], name, head, image, n);
    }
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
        const unsigned char head[8] = {(unsigned char)(i * 17), (unsigned char)(i * 29), 100, 200,
                                       (unsigned char)(i % 2)};
        snprintf(name, sizeof name, "png-%u", i);
        unsigned char *image = make_png(19, 13, types[i][0], types[i][1], i % 2, &n);
        save(argv[1], name, head, image, n);
    }
    return 0;
}
