/* Sorting the lines of the report. A tab sorts before every byte of an escaped path, so whole lines compare like paths.
 */
#include "pack/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static const char header[] = "#path\taction\treason\n";

typedef struct line {
    const char *p;
    size_t n;
} line;

static int compare(const void *a, const void *b)
{
    const line *x = a, *y = b;
    int c = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

spk_status spk_report_encode(spk_buf *out, const spk_buf *lines, spk_error *err)
{
    line *sorted = NULL;
    size_t n = 0, cap = 0;
    const char *p = (const char *)lines->data, *end = p ? p + lines->len : p;
    spk_status status = SPK_OK;
    while (p < end && status == SPK_OK) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        size_t k = lf ? (size_t)(lf - p) + 1 : (size_t)(end - p);
        status = spk_grow(&sorted, &cap, n + 1, sizeof *sorted, err);
        if (status == SPK_OK)
            sorted[n++] = (line){p, k};
        p += k;
    }
    if (status == SPK_OK && n > 1)
        qsort(sorted, n, sizeof *sorted, compare);
    if (status == SPK_OK)
        status = spk_buf_append(out, header, sizeof header - 1, err);
    for (size_t i = 0; i < n && status == SPK_OK; i++)
        status = spk_buf_append(out, sorted[i].p, sorted[i].n, err);
    free(sorted);
    return status;
}

spk_status spk_report_check(int dirfd, const char *folder, spk_error *err)
{
    char head[sizeof header - 1];
    int fd = openat(dirfd, SPK_BAD_FILES_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return SPK_OK;
    bool ours = fd >= 0 && pread(fd, head, sizeof head, 0) == sizeof head && memcmp(head, header, sizeof head) == 0;
    if (fd >= 0)
        close(fd);
    return ours ? SPK_OK
                : spk_error_set(err, SPK_E_EXISTS,
                                "%s/%s: is not a list of bad files that shardpack wrote; move it away", folder,
                                SPK_BAD_FILES_NAME);
}
