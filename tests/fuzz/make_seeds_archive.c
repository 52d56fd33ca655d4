/* Writes the first inputs of the fuzz target archive: make_seeds_archive OUT makes OUT/archive/NAME. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>

#define ROOM 65536

static struct archive *begin(int format, void *data, size_t *n)
{
    struct archive *a = archive_write_new();
    archive_write_set_format(a, format);
    archive_write_set_bytes_per_block(a, 512);
    archive_write_open_memory(a, data, ROOM, n);
    return a;
}

static void put(struct archive *a, const char *path, unsigned type, const char *link, const void *data, size_t n)
{
    struct archive_entry *e = archive_entry_new();
    archive_entry_copy_pathname(e, path);
    archive_entry_set_mode(e, type | 0644);
    archive_entry_set_size(e, (la_int64_t)n);
    if (link && type == AE_IFLNK)
        archive_entry_copy_symlink(e, link);
    else if (link)
        archive_entry_copy_hardlink(e, link);
    if (archive_write_header(a, e) < ARCHIVE_WARN || archive_write_data(a, data, n) != (la_ssize_t)n) {
        fprintf(stderr, "%s: %s\n", path, archive_error_string(a));
        exit(1);
    }
    archive_entry_free(e);
}

static void save(const char *out, const char *name, const void *data, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/archive", out);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/archive/%s", out, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int format;
    } kinds[] = {{"ustar", ARCHIVE_FORMAT_TAR_USTAR},
                 {"pax", ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE},
                 {"gnu", ARCHIVE_FORMAT_TAR_GNUTAR}};
    static char inner[ROOM], outer[ROOM], name[131];
    size_t n = 0, inner_n = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: make_seeds_archive OUT\n");
        return 2;
    }
    mkdir(argv[1], 0777);
    memset(name, 'n', sizeof name - 1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct archive *a = begin(kinds[i].format, inner, &inner_n);
        put(a, "./a.jpg", AE_IFREG, NULL, "one", 3);
        put(a, "h.jpg", AE_IFREG, "a.jpg", NULL, 0);
        archive_write_free(a);
        name[60] = i == 0 ? '/' : 'n'; /* ustar has no name that long without a slash */
        a = begin(kinds[i].format, outer, &n);
        put(a, "d/", AE_IFDIR, NULL, NULL, 0);
        put(a, "d/in.tar", AE_IFREG, NULL, inner, inner_n);
        put(a, name, AE_IFREG, NULL, "two", 3);
        put(a, "s", AE_IFLNK, "d", NULL, 0);
        archive_write_free(a);
        save(argv[1], kinds[i].name, outer, n);
    }
    return 0;
}
