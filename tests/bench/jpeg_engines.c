/* Our JPEG decoders beside libjpeg-turbo, all behind the same interface, in one thread.
 *
 *     jpeg_engines ROUNDS LIST [progressive]
 *
 * LIST holds paths, each ended by a NUL byte; all files are read into memory first, and made progressive if it says so.
 * In each round every image is decoded by all in turn, whole and a random crop (area 0.08 to 1, as RandomResizedCrop
 * takes it), to RGB rows that go nowhere. Prints {"images": N, "own": N, "fast": N, "bytes": N, "fast_bytes": N,
 * "pack": S, "whole": [[ours, libjpeg, fast],
 * ...], "crop": [...]}: CPU seconds of each round; how many images ours decoded without libjpeg's help; how many are
 * stored as coefficients (--jpeg fast, the third way; the others are in its figures as they are), the bytes of all
 * images before and after, and the CPU seconds that storing them took. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "image/decoder.h"
#include "image/transcode.h"
#include "image/transform.h"
#include "jpeg_progressive.h"

struct file {
    unsigned char *data;
    size_t size;
    spk_buf fast; /* as coefficients; empty: not possible */
};

struct files {
    struct file *items;
    size_t count, capacity;
};

struct round {
    double whole[3], crop[3]; /* ours, libjpeg, ours on stored coefficients */
};

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns 0, or -1 with errno set; one byte more is allocated. */
static int read_file(const char *path, struct file *out)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        return -1;
    long size = fseek(in, 0, SEEK_END) == 0 ? ftell(in) : -1;
    unsigned char *data = size >= 0 ? malloc((size_t)size + 1) : NULL;
    rewind(in);
    int failed = !data || fread(data, 1, (size_t)size, in) != (size_t)size;
    fclose(in);
    if (failed)
        free(data);
    else
        *out = (struct file){data, (size_t)size, {0}};
    return failed ? -1 : 0;
}

static void rescan(struct file *f)
{
    size_t size = 0;
    unsigned char *made = make_progressive(f->data, f->size, &size);
    free(f->data);
    *f = (struct file){made, size, {0}};
}

static int load(struct files *all, const char *list_path, int progressive)
{
    struct file list = {0};
    if (read_file(list_path, &list))
        return -1;
    list.data[list.size] = 0;
    int failed = 0;
    for (size_t at = 0; at < list.size && !failed; at += strlen((char *)list.data + at) + 1) {
        if (all->count == all->capacity) {
            size_t capacity = all->capacity ? 2 * all->capacity : 1024;
            struct file *items = realloc(all->items, capacity * sizeof *items);
            failed = items == NULL;
            all->items = items ? items : all->items;
            all->capacity = items ? capacity : all->capacity;
        }
        failed = failed || read_file((char *)list.data + at, &all->items[all->count]);
        if (!failed && progressive)
            rescan(&all->items[all->count]);
        all->count += !failed;
    }
    free(list.data);
    return failed ? -1 : 0;
}

static void on_row(void *ctx, const uint8_t *row)
{
    *(unsigned *)ctx += row[0];
}

/* CPU seconds; -1 if the image cannot be decoded. part NULL: the whole image, whose size goes to *info. */
static double decode(spk_decoder *d, const void *data, size_t size, const spk_rect *part, spk_jpeg_engine engine,
                     spk_decoder_info *info)
{
    unsigned sum = 0;
    spk_error err;
    double start = cpu_now();
    spk_decoder_use(d, engine);
    if (spk_decoder_open(d, data, size, 0, info, &err) < 0)
        return -1;
    spk_decode_job job = {{0, 0, info->width, info->height}, 1, 3, on_row, &sum, false};
    if (part)
        job.part = *part;
    return spk_decoder_run(d, &job, &err) < 0 ? -1 : cpu_now() - start;
}

/* One image in all ways; whoever comes first changes from image to image. */
static int measure(spk_decoder *d, const struct file *file, uint64_t index, uint32_t number, struct round *r,
                   size_t *own)
{
    static const double scale[2] = {0.08, 1.0}, ratio[2] = {3.0 / 4.0, 4.0 / 3.0};
    spk_decoder_info info;
    for (uint32_t turn = 0; turn < 3; turn++) {
        uint32_t way = (turn + (uint32_t)index + number) % 3;
        bool fast = way == 2 && file->fast.len > 0;
        const void *data = fast ? file->fast.data : file->data;
        size_t size = fast ? file->fast.len : file->size;
        spk_jpeg_engine engine = way == 1 ? SPK_JPEG_LIBJPEG : SPK_JPEG_OWN;
        double whole = decode(d, data, size, NULL, engine, &info);
        if (whole < 0)
            return -1;
        *own += way == 0 && spk_decoder_did_own(d);
        spk_rect part = spk_random_crop(info.width, info.height, scale, ratio, &(spk_draw_key){1, number, 0, index});
        r->whole[way] += whole;
        r->crop[way] += decode(d, data, size, &part, engine, &info);
    }
    return 0;
}

static int transcode(struct files *all, double *seconds)
{
    spk_error err;
    spk_transcoder *t = NULL;
    double start = cpu_now();
    int failed = spk_transcoder_new(&t, &err) < 0;
    for (size_t i = 0; i < all->count && !failed; i++) {
        struct file *f = &all->items[i];
        spk_transcode_result result = SPK_TRANSCODED;
        failed = spk_transcode(t, f->data, f->size, 0, &f->fast, &result, &err) < 0;
        if (result != SPK_TRANSCODED)
            f->fast.len = 0;
    }
    *seconds = cpu_now() - start;
    spk_transcoder_free(t);
    return failed;
}

static void print_figures(const char *name, const struct round *rounds, int n, size_t offset)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < n; i++) {
        double f[3];
        memcpy(f, (const char *)&rounds[i] + offset, sizeof f);
        printf("%s[%.6f, %.6f, %.6f]", i ? ", " : "", f[0], f[1], f[2]);
    }
    printf("]");
}

static int run(struct files *all, int rounds)
{
    spk_error err;
    spk_decoder *d;
    struct round *r = calloc((size_t)rounds, sizeof *r);
    size_t own = 0, images = 0, fast = 0, bytes = 0, fast_bytes = 0;
    double seconds = 0;
    if (!r || transcode(all, &seconds) || spk_decoder_new(&d, &err) < 0) {
        free(r);
        return -1;
    }
    for (int number = 0; number < rounds; number++)
        for (size_t i = 0; i < all->count; i++)
            images += measure(d, &all->items[i], i, (uint32_t)number, &r[number], &own) == 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct file *f = &all->items[i];
        fast += f->fast.len > 0;
        bytes += f->size;
        fast_bytes += f->fast.len > 0 ? f->fast.len : f->size;
    }
    printf("{\"images\": %zu, \"own\": %zu, \"fast\": %zu, \"bytes\": %zu, \"fast_bytes\": %zu, \"pack\": %.6f, ",
           images / (size_t)rounds, own / (size_t)rounds, fast, bytes, fast_bytes, seconds);
    print_figures("whole", r, rounds, offsetof(struct round, whole));
    printf(", ");
    print_figures("crop", r, rounds, offsetof(struct round, crop));
    printf("}\n");
    spk_decoder_free(d);
    free(r);
    return 0;
}

int main(int argc, char **argv)
{
    int rounds = argc == 3 || argc == 4 ? atoi(argv[1]) : 0;
    if (rounds < 1) {
        fprintf(stderr, "usage: jpeg_engines ROUNDS LIST [progressive]\n");
        return 2;
    }
    struct files all = {0};
    int failed = load(&all, argv[2], argc == 4);
    if (failed)
        fprintf(stderr, "jpeg_engines: %s: %s\n", argv[2], strerror(errno));
    failed = failed || run(&all, rounds);
    for (size_t i = 0; i < all.count; i++)
        free(all.items[i].data);
    for (size_t i = 0; i < all.count; i++)
        spk_buf_free(&all.items[i].fast);
    free(all.items);
    return failed ? 1 : 0;
}
