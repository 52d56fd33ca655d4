/* Writes the seed files of the fuzz target coef: make_seeds_coef OUT makes OUT/coef/. With a second folder also the
 * vectors of format-spec/jpeg-vectors there: NAME.blob with NAME.jpg. */
#include <sys/stat.h>

#include <zstd.h>

#include "../unit/jpeg_variants.h"
#include "image/transcode.h"

static void save(const char *out, unsigned number, const char *kind, const void *data, size_t n)
{
    char path[4096];
    const unsigned char head[6] = {(unsigned char)(number * 17), (unsigned char)(number * 29),    100, 200,
                                   (unsigned char)(number % 3),  (unsigned char)(number % 4 == 3)};
    snprintf(path, sizeof path, "%s/coef/%s-%u", out, kind, number);
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
    };
    char path[4096];
    static unsigned char content[1 << 20];
    spk_rng rng = {78, 1, 0};
    spk_error err;
    spk_transcoder *t;
    spk_transcode_result result;
    spk_buf blob = {0};
    if (argc < 2 || spk_transcoder_new(&t, &err) < 0)
        return 2;
    snprintf(path, sizeof path, "%s/coef", argv[1]);
    mkdir(path, 0777);
    for (unsigned i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        size_t n;
        unsigned char *image = encode_variant(&seeds[i], &rng, &n);
        if (spk_transcode(t, image, n, 1 << 20, &blob, &result, &err) < 0)
            return 1;
        if (argc == 3) {
            save_vector(argv[2], i, "jpg", image, n);
            save_vector(argv[2], i, "blob", blob.data, blob.len);
        }
        free(image);
        if (i % 3 == 0)
            save(argv[1], i, "blob", blob.data, blob.len);
        save(argv[1], i, "content", content, ZSTD_decompress(content, sizeof content, blob.data, blob.len));
    }
    spk_buf_free(&blob);
    spk_transcoder_free(t);
    return 0;
}
