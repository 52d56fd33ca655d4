/* Writes the seed files of the fuzz targets jpeg and transcode: make_seeds_jpeg OUT makes OUT/jpeg/, OUT/transcode/. */
#include <sys/stat.h>

#include "../unit/jpeg_scripts.h"

static void save(const char *out, const char *target, unsigned number, const unsigned char *image, size_t n)
{
    char path[4096];
    const unsigned char head[6] = {(unsigned char)(number * 17), (unsigned char)(number * 29),    100, 200,
                                   (unsigned char)(number % 3),  (unsigned char)(number % 4 == 3)};
    snprintf(path, sizeof path, "%s/%s", out, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/jpeg-%u", out, target, number);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(head, 1, 6, file) != 6 || fwrite(image, 1, n, file) != n || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static const jpeg_variant seeds[] = {
        {37, 35, JCS_YCbCr, 2, 2, 75, 0, 0, 0, 0, CONTENT_SMOOTH},
        {37, 21, JCS_YCbCr, 2, 1, 75, 0, 0, 0, 0, CONTENT_SMOOTH},
        {21, 37, JCS_YCbCr, 1, 2, 75, 0, 0, 0, 0, CONTENT_SMOOTH},
        {19, 17, JCS_YCbCr, 1, 1, 75, 0, 0, 0, 0, CONTENT_SMOOTH},
        {18, 11, JCS_RGB, 1, 1, 75, 0, 0, 0, 0, CONTENT_SMOOTH},
        {33, 25, JCS_GRAYSCALE, 1, 1, 75, 0, 0, 0, 0, CONTENT_SMOOTH},
        {40, 33, JCS_YCbCr, 2, 2, 60, 1, 0, 2, 0, CONTENT_SMOOTH},
        {24, 24, JCS_GRAYSCALE, 1, 1, 50, 1, 0, 1, 0, CONTENT_SMOOTH},
        {20, 20, JCS_YCbCr, 2, 2, 100, 0, 0, 0, 0, CONTENT_NOISE},
        {34, 18, JCS_YCbCr, 2, 2, 75, 0, 0, 0, 900, CONTENT_EDGES},
        {64, 64, JCS_YCbCr, 2, 2, 75, 1, 0, 0, 0, CONTENT_FLAT},
        {16, 16, JCS_YCbCr, 1, 1, 1, 0, 0, 0, 0, CONTENT_SMOOTH},
        {16, 64, JCS_YCbCr, 1, 1, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
    };
    spk_rng rng = {77, 1, 0};
    if (argc != 2)
        return 2;
    for (unsigned i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        size_t n;
        unsigned char *image = encode_variant(&seeds[i], &rng, &n);
        if (i == 5) /* fill bytes before a stuffed one */
            memcpy(image + n - 300, "\0\xFF\xFF\xFF\xFF\0\xFF\xFF\0", 9);
        if (i + 1 == sizeof seeds / sizeof *seeds) /* fill bytes where a marker should be */
            memset(image + n - 40, 0xFF, 40);
        save(argv[1], "jpeg", i, image, n);
        save(argv[1], "transcode", i, image, n);
        free(image);
    }
    for (unsigned i = 0; i < SCRIPTS; i++) { /* those of transcode are coef-jpeg-N */
        jpeg_variant v = variant_of(&scripts[i], i % LAYOUTS);
        size_t n;
        v.width = v.height = 30 + i;
        v.restart = i % 3 == 1 ? 2 : 0;
        unsigned char *image = encode_scans(&v, scripts[i].scan, scripts[i].scans, &rng, &n);
        save(argv[1], "jpeg", i + (unsigned)(sizeof seeds / sizeof *seeds), image, n);
        free(image);
    }
    return 0;
}
