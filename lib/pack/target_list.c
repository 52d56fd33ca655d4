/* Names in the work folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pack/target.h"

int64_t spk_target_work_file(const char *name, bool *done)
{
    size_t digits = strspn(name, "0123456789");
    if (digits < 6 || digits > 10)
        return -1;
    *done = strcmp(name + digits, ".done") == 0;
    if (!*done && strcmp(name + digits, ".part") != 0)
        return -1;
    return (int64_t)strtoll(name, NULL, 10);
}

spk_status spk_target_list(int fd, const char *name, void (*on_name)(void *ctx, const char *entry), void *ctx,
                           spk_error *err)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir) {
        spk_status status = spk_error_sys(err, errno, "%s", name);
        if (copy >= 0)
            close(copy);
        return status;
    }
    errno = 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL; errno = 0)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            on_name(ctx, e->d_name);
    spk_status status = errno == 0 ? SPK_OK : spk_error_sys(err, errno, "%s", name);
    closedir(dir);
    return status;
}
