/* Renders images as a loader's worker does, for comparison with another implementation.
 *
 * Each line of standard input is one request:
 *     CROP RESIZE WIDTH HEIGHT FILTER CHANNELS TYPE ORDER NORMALIZE HFLIP VFLIP EXIF FAST INDEX PATH
 * with the enumerators' numbers of image/render.h. The answer is a line "ok BYTES X Y W H HFLIP VFLIP" (the crop in the
 * oriented image) and BYTES raw bytes, or "error TEXT". Seed 1, epoch 0, repeat 0. mean and std are ImageNet's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/render.h"

static unsigned char *read_file(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    unsigned char *data = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        *n = (size_t)ftell(file);
        rewind(file);
        data = malloc(*n ? *n : 1);
        if (data && fread(data, 1, *n, file) != *n) {
            free(data);
            data = NULL;
        }
    }
    if (file)
        fclose(file);
    return data;
}

static int parse(const char *line, spk_image_params *p, unsigned long long *index, char path[4096])
{
    unsigned v[8];
    int exif, fast, normalize;
    *p = (spk_image_params){.scale = {0.08, 1}, .ratio = {3.0 / 4, 4.0 / 3}};
    if (sscanf(line, "%u %u %u %u %u %u %u %u %d %lf %lf %d %d %llu %4095[^\n]", &v[0], &v[1], &v[2], &v[3], &v[4],
               &v[5], &v[6], &v[7], &normalize, &p->hflip, &p->vflip, &exif, &fast, index, path) != 15)
        return 0;
    p->crop = (spk_crop_kind)v[0];
    p->resize = v[1];
    p->filter = (spk_filter)v[4];
    p->exif_orientation = exif != 0;
    p->fast = fast != 0;
    p->format = (spk_pixel_format){.type = (spk_pixel_type)v[6],
                                   .order = (spk_pixel_order)v[7],
                                   .width = v[2],
                                   .height = v[3],
                                   .channels = v[5],
                                   .normalize = normalize != 0,
                                   .mean = {0.485f, 0.456f, 0.406f},
                                   .std = {0.229f, 0.224f, 0.225f}};
    return 1;
}

static void answer(const spk_image_params *p, unsigned long long index, const char *path)
{
    spk_renderer *renderer = NULL;
    spk_geometry g;
    spk_error err;
    spk_draw_key key = {1, 0, 0, index};
    size_t n = 0, bytes = 0;
    unsigned char *out = NULL, *data = read_file(path, &n);

    spk_error_clear(&err);
    if (!data) {
        printf("error cannot read %s\n", path);
    } else if (spk_renderer_new(&renderer, p, &err) < 0) {
        printf("error %s\n", err.text);
    } else {
        bytes = spk_pixel_bytes(&p->format);
        out = malloc(bytes);
        memset(out, 0xAA, bytes);
        if (spk_renderer_run(renderer, data, n, &key, NULL, out, &g, &err) < 0) {
            printf("error %s\n", err.text);
        } else {
            printf("ok %zu %u %u %u %u %d %d\n", bytes, g.crop.x, g.crop.y, g.crop.w, g.crop.h, g.hflip, g.vflip);
            fwrite(out, 1, bytes, stdout);
        }
    }
    fflush(stdout);
    spk_renderer_free(renderer);
    free(out);
    free(data);
}

int main(void)
{
    char line[8192], path[4096];
    spk_image_params params;
    unsigned long long index;
    while (fgets(line, sizeof line, stdin)) {
        if (!parse(line, &params, &index, path)) {
            fprintf(stderr, "bad request: %s", line);
            return 2;
        }
        answer(&params, index, path);
    }
    return 0;
}
