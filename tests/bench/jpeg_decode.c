/* The yardstick of `pack --check decode`: how fast libjpeg-turbo alone decodes the same files.
 *
 *     jpeg_decode THREADS LIST
 *
 * LIST holds paths, each ended by a NUL byte. All files are read into memory first, untimed. Then THREADS threads take
 * them one after the other and decode every pixel into a buffer of the whole image, as RGB (CMYK as it is), with the
 * library's default settings. Prints {"images": N, "bytes": N, "pixels": N, "not_jpeg": N, "failed": N, "seconds": S}.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h> /* before jpeglib.h, which needs size_t and FILE */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#define THREADS_MAX 256

struct file {
    unsigned char *data;
    size_t size;
};

struct work {
    struct file *files; /* read-only while threads run */
    size_t count, capacity;
    atomic_size_t next; /* shared: the first file nobody has taken */
};

/* One per thread; read by main after the thread has ended. */
struct result {
    struct work *work;
    unsigned long long images, bytes, pixels, not_jpeg, failed;
    int out_of_memory;
};

struct error_exit {
    struct jpeg_error_mgr base; /* first: libjpeg hands out a pointer to it */
    jmp_buf jump;
};

struct pixels {
    unsigned char *data;
    size_t capacity;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void on_error(j_common_ptr info)
{
    longjmp(((struct error_exit *)(void *)info->err)->jump, 1);
}

static void on_message(j_common_ptr info)
{
    (void)info;
}

static int reserve(struct pixels *out, size_t n)
{
    if (n <= out->capacity)
        return 0;
    unsigned char *data = realloc(out->data, n);
    if (!data)
        return -1;
    out->data = data;
    out->capacity = n;
    return 0;
}

/* Returns the number of pixels, 0 if the file cannot be decoded, -1 without memory. */
static long long decode(const struct file *file, struct pixels *out)
{
    struct jpeg_decompress_struct info;
    struct error_exit err;
    info.err = jpeg_std_error(&err.base);
    err.base.error_exit = on_error;
    err.base.output_message = on_message;
    if (setjmp(err.jump)) {
        jpeg_destroy_decompress(&info);
        return 0;
    }
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, file->data, (unsigned long)file->size);
    jpeg_read_header(&info, TRUE);
    if (info.jpeg_color_space != JCS_CMYK && info.jpeg_color_space != JCS_YCCK)
        info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    size_t stride = (size_t)info.output_width * (size_t)info.output_components;
    if (reserve(out, stride * info.output_height)) {
        jpeg_destroy_decompress(&info);
        return -1;
    }
    while (info.output_scanline < info.output_height) {
        JSAMPROW rows[4];
        for (unsigned i = 0; i < 4; i++) {
            JDIMENSION y = info.output_scanline + i;
            rows[i] = out->data + stride * (y < info.output_height ? y : info.output_height - 1);
        }
        jpeg_read_scanlines(&info, rows, 4);
    }
    long long count = (long long)info.output_width * (long long)info.output_height;
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return count;
}

static void *decode_files(void *arg)
{
    struct result *result = arg;
    struct work *work = result->work;
    struct pixels out = {0};
    size_t i;
    while ((i = atomic_fetch_add(&work->next, 1)) < work->count && !result->out_of_memory) {
        const struct file *file = &work->files[i];
        if (file->size < 2 || file->data[0] != 0xff || file->data[1] != 0xd8) {
            result->not_jpeg++;
            continue;
        }
        long long count = decode(file, &out);
        if (count > 0) {
            result->images++;
            result->bytes += file->size;
            result->pixels += (unsigned long long)count;
        } else if (count == 0) {
            result->failed++;
        } else {
            result->out_of_memory = 1;
        }
    }
    free(out.data);
    return NULL;
}

/* Reads a whole file; returns 0, or -1 with errno set. */
static int read_file(const char *path, struct file *out)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        return -1;
    int failed = -1;
    unsigned char *data = NULL;
    if (fseek(in, 0, SEEK_END))
        goto out;
    long size = ftell(in);
    if (size < 0 || fseek(in, 0, SEEK_SET))
        goto out;
    data = malloc((size_t)size + 1);
    if (!data || fread(data, 1, (size_t)size, in) != (size_t)size)
        goto out;
    *out = (struct file){data, (size_t)size};
    data = NULL;
    failed = 0;
out:
    free(data);
    fclose(in);
    return failed;
}

static int add_file(struct work *work, const char *path)
{
    if (work->count == work->capacity) {
        size_t capacity = work->capacity ? 2 * work->capacity : 1024;
        struct file *files = realloc(work->files, capacity * sizeof *files);
        if (!files)
            return -1;
        work->files = files;
        work->capacity = capacity;
    }
    if (read_file(path, &work->files[work->count]))
        return -1;
    work->count++;
    return 0;
}

static int load(struct work *work, const char *list_path)
{
    struct file list = {0};
    if (read_file(list_path, &list)) {
        fprintf(stderr, "jpeg_decode: %s: %s\n", list_path, strerror(errno));
        return -1;
    }
    list.data[list.size] = 0; /* read_file keeps room for it */
    const char *text = (const char *)list.data;
    int failed = 0;
    for (size_t at = 0; at < list.size && !failed; at += strlen(text + at) + 1) {
        failed = add_file(work, text + at);
        if (failed)
            fprintf(stderr, "jpeg_decode: %s: %s\n", text + at, strerror(errno));
    }
    free(list.data);
    return failed;
}

/* Decodes everything with `threads` threads, sums up and prints; returns the exit status. */
static int decode_all(struct work *work, int threads)
{
    struct result results[THREADS_MAX] = {{0}};
    pthread_t ids[THREADS_MAX];
    struct result sum = {0};
    double start = now();
    int started = 0;
    for (; started < threads; started++) {
        results[started].work = work;
        if (pthread_create(&ids[started], NULL, decode_files, &results[started]))
            break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(ids[i], NULL);
        sum.images += results[i].images;
        sum.bytes += results[i].bytes;
        sum.pixels += results[i].pixels;
        sum.not_jpeg += results[i].not_jpeg;
        sum.failed += results[i].failed;
        sum.out_of_memory |= results[i].out_of_memory;
    }
    double seconds = now() - start;
    if (started < threads || sum.out_of_memory) {
        fprintf(stderr, "jpeg_decode: %s\n", sum.out_of_memory ? "out of memory" : "cannot start threads");
        return 1;
    }
    printf("{\"images\": %llu, \"bytes\": %llu, \"pixels\": %llu, \"not_jpeg\": %llu, \"failed\": %llu, "
           "\"seconds\": %.6f}\n",
           sum.images, sum.bytes, sum.pixels, sum.not_jpeg, sum.failed, seconds);
    return 0;
}

int main(int argc, char **argv)
{
    int threads = argc == 3 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > THREADS_MAX) {
        fprintf(stderr, "usage: jpeg_decode THREADS LIST\n");
        return 2;
    }
    struct work work = {0};
    int status = load(&work, argv[2]) ? 1 : decode_all(&work, threads);
    for (size_t i = 0; i < work.count; i++)
        free(work.files[i].data);
    free(work.files);
    return status;
}
