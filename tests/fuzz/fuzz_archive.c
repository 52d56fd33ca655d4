/* A tar archive as a source. Whatever lists must lie inside of the file, and have paths below the source. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pack/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path, const spk_archive_member *m)
{
    if (strlen(path) != m->path_n || path[0] == '/' || (m->path_n == 0 && m->kind == SPK_ARCHIVE_FILE))
        abort();
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && memcmp(p, "..", 2) == 0) || (p[n] && !p[n + 1]))
            abort();
        p += n + (p[n] == '/');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spk_archive *a = NULL;
    spk_error err;
    spk_error_clear(&err);
    int fd = memfd_create("archive", MFD_CLOEXEC);
    if (fd < 0 || (size > 0 && write(fd, data, size) != (ssize_t)size))
        abort();
    spk_status status = spk_archive_list(&a, fd, "x.tar", 0, NULL, NULL, &err);
    if ((status == SPK_OK) != (a != NULL) || (status < 0 && strncmp(err.text, "x.tar: ", 7) != 0))
        abort();
    for (size_t i = 0; a && i < a->members_n; i++) {
        const spk_archive_member *m = &a->members[i];
        const char *path = (const char *)a->paths.data + m->path;
        check_path(path, m);
        if (m->kind != SPK_ARCHIVE_FILE)
            continue;
        if (m->offset > size || m->size > size - m->offset)
            abort();
        spk_archive_prefix(a, "x.tar", path, m->offset, &err);
    }
    spk_archive_free(a);
    close(fd);
    return 0;
}
