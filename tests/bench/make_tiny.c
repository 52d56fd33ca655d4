/* Makes a tree of many tiny files, or more of them in a tree made before:
 *
 *     make_tiny DIR FOLDERS FROM TO SIZE
 *
 * Folders DIR/c0000 and on, in each the files FROM to TO - 1, named f000000.jpg and on, of SIZE pseudo-random bytes (so
 * that they compress as little as images do). The same arguments make the same files. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_MAX_BYTES 4096

struct job {
    long folders, from, to, size;
};

static int complain(const char *what)
{
    fprintf(stderr, "make_tiny: %s: %s\n", what, strerror(errno));
    return -1;
}

/* splitmix64: one 64-bit step per eight bytes. */
static void fill(unsigned char *data, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        memcpy(data + i, &z, n - i < 8 ? n - i : 8);
    }
}

static int write_file(int folder, const char *name, const unsigned char *data, size_t n)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return complain(name);
    ssize_t put = write(fd, data, n);
    if (close(fd) || put < 0)
        return complain(name);
    if ((size_t)put != n) {
        errno = ENOSPC;
        return complain(name);
    }
    return 0;
}

static int fill_folder(int folder, long number, const struct job *job)
{
    unsigned char data[SIZE_MAX_BYTES];
    char name[32];
    for (long i = job->from; i < job->to; i++) {
        fill(data, (size_t)job->size, ((uint64_t)number << 32) + (uint64_t)i);
        snprintf(name, sizeof name, "f%06ld.jpg", i);
        if (write_file(folder, name, data, (size_t)job->size))
            return -1;
    }
    return 0;
}

static int make_tree(const char *dir, const struct job *job)
{
    char name[32];
    if (mkdir(dir, 0755) && errno != EEXIST)
        return complain(dir);
    int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return complain(dir);
    int failed = 0;
    for (long i = 0; i < job->folders && !failed; i++) {
        snprintf(name, sizeof name, "c%04ld", i);
        if (mkdirat(root, name, 0755) && errno != EEXIST) {
            failed = complain(name);
            break;
        }
        int folder = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0) {
            failed = complain(name);
            break;
        }
        failed = fill_folder(folder, i, job);
        close(folder);
    }
    close(root);
    return failed;
}

/* A number from 0 to max; -1 if text is none. */
static long number(const char *text, long max)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || end == text || *end || value < 0 || value > max ? -1 : value;
}

int main(int argc, char **argv)
{
    struct job job = {-1, -1, -1, -1};
    if (argc == 6) {
        job.folders = number(argv[2], 10000);
        job.from = number(argv[3], 1000000);
        job.to = number(argv[4], 1000000);
        job.size = number(argv[5], SIZE_MAX_BYTES);
    }
    if (job.folders < 0 || job.from < 0 || job.to < 0 || job.size < 0) {
        fprintf(stderr, "usage: make_tiny DIR FOLDERS FROM TO SIZE\n");
        return 2;
    }
    return make_tree(argv[1], &job) ? 1 : 0;
}
