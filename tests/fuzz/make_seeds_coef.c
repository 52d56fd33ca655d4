/* Writes the seed files of the fuzz targets coef and transcode: make_seeds_coef OUT makes OUT/coef/ and OUT/transcode/.
 * With a second folder also the vectors of format-spec/jpeg-vectors there: NAME.blob with NAME.jpg. */
#include <sys/stat.h>

#include <zstd.h>

#include "../unit/jpeg_variants.h"
#include "image/transcode.h"

static void save(const char *out, unsigned number, const char *name, const void *data, size_t n)
{
    char path[4096];
    const unsigned char head[6] = {(unsigned char)(number * 17), (unsigned char)(number * 29),    100, 200,
                                   (unsigned char)(number % 3),  (unsigned char)(number % 4 == 3)};
    snprintf(path, sizeof path, "%s/%s-%u", out, name, number);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(head, 1, 6, file) != 6 || fwrite(data, 1, n, file) != n || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static void save_vector(const char *out, unsigned number, const char *end, const void *data, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/good-%u.%s", out, number, end);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, n, file) != n || fclose(file) != 0) {
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
        {19, 17, JCS_YCbCr, 1, 1, 95, 0, 0, 0, 0, CONTENT_SMOOTH},
        {18, 11, JCS_RGB, 1, 1, 75, 0, 0, 0, 0, CONTENT_SMOOTH},
        {33, 25, JCS_GRAYSCALE, 1, 1, 75, 0, 0, 0, 0, CONTENT_SMOOTH},
        {40, 33, JCS_YCbCr, 2, 2, 60, 1, 0, 2, 0, CONTENT_SMOOTH},
        {20, 20, JCS_YCbCr, 2, 2, 100, 0, 0, 0, 0, CONTENT_NOISE},
        {34, 18, JCS_YCbCr, 2, 2, 75, 0, 0, 0, 900, CONTENT_EDGES},
        {40, 33, JCS_YCbCr, 2, 2, 60, 0, 1, 0, 0, CONTENT_SMOOTH},
        {19, 35, JCS_YCbCr, 2, 1, 85, 0, 1, 2, 0, CONTENT_NOISE},
        {33, 25, JCS_GRAYSCALE, 1, 1, 75, 0, 1, 5, 0, CONTENT_SMOOTH},
        {21, 37, JCS_YCbCr, 1, 2, 75, 0, 0, 3, 0, CONTENT_SMOOTH}, /* one scan for each component */
    };
    static const jpeg_scan_info in_turn[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    char path[4096];
    static unsigned char content[1 << 20];
    spk_rng rng = {78, 1, 0};
    spk_error err;
    spk_transcoder *t;
    spk_transcode_result result;
    spk_buf blob = {0};
    if (argc < 2 || spk_transcoder_new(&t, &err) < 0)
        return 2;
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", argv[1], i ? "transcode" : "coef");
        mkdir(path, 0777);
    }
    for (unsigned i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        size_t n;
        unsigned char *image = encode_scans(&seeds[i], i == 12 ? in_turn : NULL, i == 12 ? 3 : 0, &rng, &n);
        if (spk_transcode(t, image, n, 1 << 20, &blob, &result, &err) < 0)
            return 1;
        if (argc == 3) {
            save_vector(argv[2], i, "jpg", image, n);
            save_vector(argv[2], i, "blob", blob.data, blob.len);
        }
        save(argv[1], i, "transcode/coef-jpeg", image, n);
        free(image);
        if (i % 3 == 0)
            save(argv[1], i, "coef/blob", blob.data, blob.len);
        save(argv[1], i, "coef/content", content, ZSTD_decompress(content, sizeof content, blob.data, blob.len));
    }
    spk_buf_free(&blob);
    spk_transcoder_free(t);
    return 0;
}
