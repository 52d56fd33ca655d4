/* O_NOFOLLOW looks at the last component only. openat2(2) of Linux 5.6 looks at all of them in one call; where the
 * kernel lacks it, or a sandbox forbids it, the components are opened one by one. */
#define _GNU_SOURCE /* O_PATH, syscall */
#include "pack/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_openat2
#include <linux/openat2.h>

static int open_at_once(int dirfd, const char *path, int flags)
{
    struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
}
#else
static int open_at_once(int dirfd, const char *path, int flags)
{
    (void)dirfd, (void)path, (void)flags;
    errno = ENOSYS;
    return -1;
}
#endif

static int open_folder(int dirfd, const char *name)
{
    struct stat st;
    int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOTDIR)
        errno = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
    return fd;
}

static int open_step_by_step(int dirfd, const char *path, int flags)
{
    char name[NAME_MAX + 1];
    int at = dirfd;
    for (const char *slash; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        size_t n = (size_t)(slash - path);
        int next = -1;
        if (n < sizeof name) {
            memcpy(name, path, n);
            name[n] = '\0';
            next = open_folder(at, name);
        } else {
            errno = ENAMETOOLONG;
        }
        int e = errno;
        if (at != dirfd)
            close(at);
        errno = e;
        if (next < 0)
            return -1;
        at = next;
    }
    int fd = openat(at, path, flags | O_NOFOLLOW), e = errno;
    if (at != dirfd)
        close(at);
    errno = e;
    return fd;
}

int spk_open_beneath(int dirfd, const char *path, int flags)
{
    int fd = open_at_once(dirfd, path, flags);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL && errno != E2BIG && errno != EAGAIN))
        return fd;
    return open_step_by_step(dirfd, path, flags);
}
