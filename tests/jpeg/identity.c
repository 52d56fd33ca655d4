/* JPEG of every kind, decoded by us and by libjpeg-turbo: identity [-n COUNT] [-j JOBS] [-c CROPS] [-s STEP] [-e]
 * FOLDER
 *
 * At most COUNT photographs of FOLDER, evenly picked, each as it is and made anew in another kind (-e: in every kind);
 * then small ones in all sizes from 1 x 1 to 70 x 70, every STEPth. Whole and CROPS parts of each, with vectors and
 * without, from the file and from its stored form, which must give the file back. Prints a table and "N passed, N
 * failed"; what is wrong is said on stderr, and the file kept in the folder that IDENTITY_FINDINGS names. */
#include "identity.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 64
#define KINDS_MAX 64
#define SIDE_MAX 70u

typedef struct options {
    const char *folder, *kinds;
    size_t count, jobs;
    uint32_t crops, step;
    bool every;
} options;

static struct {
    char **path;
    size_t n, cap;
} found;

static int on_path(const char *path, const struct stat *st, int type, struct FTW *at)
{
    const char *end = strrchr(path, '.');
    (void)at;
    if (type != FTW_F || st->st_size < 4 || !end || (strcasecmp(end, ".jpg") && strcasecmp(end, ".jpeg")))
        return 0;
    if (found.n == found.cap) {
        found.cap = 2 * found.cap + 1024;
        found.path = realloc(found.path, found.cap * sizeof *found.path);
    }
    if (!found.path)
        return -1;
    found.path[found.n] = strdup(path);
    return found.path[found.n++] ? 0 : -1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static uint8_t *read_file(const char *path, size_t *n)
{
    struct stat st;
    FILE *file = fopen(path, "rb");
    uint8_t *data = file && fstat(fileno(file), &st) == 0 ? malloc((size_t)st.st_size) : NULL;
    *n = data ? fread(data, 1, (size_t)st.st_size, file) : 0;
    if (file)
        fclose(file);
    if (!data || *n != (size_t)st.st_size) {
        perror(path);
        exit(1);
    }
    return data;
}

/* Of a job. */
typedef struct worker {
    const options *o;
    comparer *comparer;
    tally *tallies;
    picture picture; /* the last one of SIDE_MAX or more; its pixels are its own */
    size_t cap;
} worker;

static void keep_finding(const uint8_t *data, size_t n, const char *what)
{
    const char *folder = getenv("IDENTITY_FINDINGS"), *last = strrchr(what, '/');
    char path[4096];
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%s.jpg", folder, last ? last + 1 : what);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, n, file) != n)
        perror(path);
    if (file)
        fclose(file);
}

static void try_file(worker *w, const uint8_t *data, size_t n, const kind *k, spk_rng *rng, const char *what, tally *t)
{
    if (!compare_file(w->comparer, data, n, w->o->crops, k, rng, what, t))
        keep_finding(data, n, what);
}

static void try_kind(worker *w, const kind *k, spk_rect part, const char *name, spk_rng *rng, tally *t)
{
    char what[4096];
    size_t n;
    unsigned char *data = make_file(&w->picture, part, k, rng, &n);
    if (!data)
        return;
    snprintf(what, sizeof what, "%s, %s", name, k->name);
    /* libjpeg repeats chroma of one or two columns instead of smoothing it: those are left to it. */
    bool narrow = part.w <= 4 && (k->h ? k->h : w->picture.h) == 2;
    try_file(w, data, n, narrow ? NULL : k, rng, what, t);
    free(data);
}

/* The picture of the file that was compared, unless it is small; sampled in a way that we know. */
static bool take_picture(worker *w)
{
    picture p = compared_picture(w->comparer);
    size_t bytes = 3 * (size_t)p.width * p.height;
    if (!p.rgb || p.width < SIDE_MAX || p.height < SIDE_MAX)
        return false;
    if (bytes > w->cap) {
        free(w->picture.rgb);
        w->picture.rgb = malloc(bytes);
        w->cap = bytes;
    }
    if (!w->picture.rgb)
        exit(1);
    memcpy(w->picture.rgb, p.rgb, bytes);
    p.rgb = w->picture.rgb;
    w->picture = p;
    if (p.h < 1 || p.h > 2 || p.v < 1 || p.v > 2)
        w->picture.h = w->picture.v = 2;
    return true;
}

static void try_photograph(worker *w, size_t number)
{
    const char *path = found.path[number * found.n / w->o->count];
    spk_rng rng = {number, 1, 0};
    size_t n;
    uint8_t *data = read_file(path, &n);
    try_file(w, data, n, NULL, &rng, path, &w->tallies[0]);
    free(data);
    if (!take_picture(w))
        return;
    spk_rect whole = {0, 0, w->picture.width, w->picture.height};
    size_t chosen[KINDS_MAX], n_chosen = 0;
    for (size_t k = 1; k < kinds_n; k++)
        if (strstr(all_kinds[k].name, w->o->kinds))
            chosen[n_chosen++] = k;
    for (size_t i = 0, k; i < n_chosen; i++)
        if (k = chosen[i], w->o->every || i == number % n_chosen)
            try_kind(w, &all_kinds[k], whole, path, &rng, &w->tallies[k]);
}

/* A part of the job's last photograph in each kind. */
static void try_size(worker *w, uint32_t width, uint32_t height)
{
    spk_rng rng = {width * 1000 + height, 1, 0};
    spk_rect part = {0, 0, width, height};
    char name[64];
    part.x = (uint32_t)spk_rng_below(&rng, w->picture.width - width + 1);
    part.y = (uint32_t)spk_rng_below(&rng, w->picture.height - height + 1);
    snprintf(name, sizeof name, "%u x %u", width, height);
    for (size_t k = 0; k < sized_kinds_n; k++)
        try_kind(w, &sized_kinds[k], part, name, &rng, &w->tallies[kinds_n + k]);
}

static void work(const options *o, size_t job, tally *tallies)
{
    worker w = {o, comparer_new(), tallies, {0}, 0};
    for (size_t i = job; i < o->count; i += o->jobs)
        try_photograph(&w, i);
    for (uint32_t i = (uint32_t)job * o->step; w.picture.rgb && i < SIDE_MAX * SIDE_MAX;
         i += (uint32_t)o->jobs * o->step)
        try_size(&w, 1 + i % SIDE_MAX, 1 + i / SIDE_MAX);
    free(w.picture.rgb);
    comparer_free(w.comparer);
}

static void add(tally *sum, const tally *t)
{
    sum->images += t->images;
    sum->damaged += t->damaged;
    sum->pixels += t->pixels;
    sum->crops += t->crops;
    sum->wrong += t->wrong;
    sum->own += t->own;
    for (size_t i = 0; i < SPK_TRANSCODE_RESULTS; i++)
        sum->results[i] += t->results[i];
    sum->bytes += t->bytes;
    sum->stored_bytes += t->stored_bytes;
}

static void print_row(const char *name, const tally *t)
{
    const uint64_t *r = t->results;
    uint64_t damaged = r[SPK_TRANSCODE_DAMAGED] + t->damaged;
    printf("%-20s %7" PRIu64 " %15" PRIu64 " %8" PRIu64 " %7" PRIu64 " %7" PRIu64 " | ", name, t->images, t->pixels,
           t->crops, t->wrong, t->own);
    printf("%7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " ", r[SPK_TRANSCODED],
           r[SPK_TRANSCODE_NO_GAIN], r[SPK_TRANSCODE_OTHER], damaged, r[SPK_TRANSCODE_UNEQUAL]);
    if (t->bytes > 0)
        printf("%6.1f %%", 100 * (double)t->stored_bytes / (double)t->bytes);
    printf("\n");
}

/* Number of files with a fault. `own`: without libjpeg; `stored`: and restored byte for byte; the others stay as they
 * are; `size`: of the stored forms, larger ones included, in parts of their files. */
static uint64_t report(const options *o, const tally *tallies)
{
    tally sum = {0};
    printf("%-20s %7s %15s %8s %7s %7s | %7s %7s %7s %7s %7s %8s\n", "kind", "files", "pixels compared", "crops",
           "wrong", "own", "stored", "no gain", "other", "damaged", "unequal", "size");
    for (size_t k = 0; k < kinds_n + sized_kinds_n; k++) {
        tally t = {0};
        for (size_t job = 0; job < o->jobs; job++)
            add(&t, &tallies[job * KINDS_MAX + k]);
        if (t.images > 0)
            print_row(k < kinds_n ? all_kinds[k].name : sized_kinds[k - kinds_n].name, &t);
        add(&sum, &t);
    }
    print_row("all", &sum);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", sum.images - sum.wrong, sum.wrong);
    return sum.images > 0 ? sum.wrong : 1;
}

static bool read_options(options *o, int argc, char **argv)
{
    *o =
        (options){.count = SIZE_MAX, .jobs = (size_t)sysconf(_SC_NPROCESSORS_ONLN), .crops = 6, .step = 1, .kinds = ""};
    for (int c; (c = getopt(argc, argv, "n:j:c:s:ek:")) != -1;) {
        unsigned long value = optarg ? strtoul(optarg, NULL, 10) : 0;
        if (c == 'n')
            o->count = value;
        else if (c == 'j')
            o->jobs = value;
        else if (c == 'c')
            o->crops = (uint32_t)value;
        else if (c == 's')
            o->step = (uint32_t)value;
        else if (c == 'k')
            o->kinds = optarg;
        else if (c == 'e')
            o->every = true;
        else
            return false;
    }
    if (optind + 1 != argc || o->step < 1 || o->jobs < 1)
        return false;
    o->folder = argv[optind];
    o->jobs = o->jobs > JOBS_MAX ? JOBS_MAX : o->jobs;
    return true;
}

int main(int argc, char **argv)
{
    options o;
    if (!read_options(&o, argc, argv)) {
        fprintf(stderr, "usage: identity [-n COUNT] [-e] [-k PART] [-s STEP] [-c CROPS] [-j JOBS] FOLDER\n");
        return 2;
    }
    if (nftw(o.folder, on_path, 16, 0) != 0 || found.n == 0) {
        fprintf(stderr, "%s: no JPEG files\n", o.folder);
        return 1;
    }
    qsort(found.path, found.n, sizeof *found.path, by_name);
    o.count = o.count > found.n ? found.n : o.count;
    size_t bytes = o.jobs * KINDS_MAX * sizeof(tally);
    tally *tallies = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tallies == MAP_FAILED)
        return 1;
    fflush(NULL);
    for (size_t job = 0; job < o.jobs; job++)
        if (fork() == 0) {
            work(&o, job, tallies + job * KINDS_MAX);
            _exit(0);
        }
    bool good = true;
    for (int status; wait(&status) > 0;)
        if (status != 0) {
            fprintf(stderr, "a process ended with status %d\n", status);
            good = false;
        }
    return report(&o, tallies) == 0 && good ? 0 : 1;
}
