/* Safe placing of files: every component is opened without following links, data goes to a temporary name in the same
 * folder, and the final name is taken by a rename that refuses to replace. */
#define _GNU_SOURCE /* renameat2 */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* ---- paths seen ---- */

/* 128 bits of FNV-1a with two offsets: a collision would only refuse a file, never misplace one. */
static void hash_path(const char *path, uint64_t out[2])
{
    uint64_t a = UINT64_C(0xcbf29ce484222325), b = UINT64_C(0x84222325cbf29ce4);
    for (const unsigned char *s = (const unsigned char *)path; *s; s++) {
        a = (a ^ *s) * UINT64_C(0x100000001b3);
        b = (b ^ *s) * UINT64_C(0x9e3779b97f4a7c15);
        b ^= b >> 29;
    }
    out[0] = a | 1; /* 0 marks a free place */
    out[1] = b;
}

/* Adds h to a table with room; 1 if it was there. */
static int insert(uint64_t (*table)[2], size_t size, const uint64_t h[2])
{
    for (size_t i = (size_t)h[1] & (size - 1);; i = (i + 1) & (size - 1)) {
        if (table[i][0] == 0) {
            table[i][0] = h[0];
            table[i][1] = h[1];
            return 0;
        }
        if (table[i][0] == h[0] && table[i][1] == h[1])
            return 1;
    }
}

/* 0 new, 1 seen before, -1 out of memory. */
static int see(place *p, const char *path)
{
    uint64_t h[2];
    if (2 * p->seen_count >= p->seen_size) {
        size_t size = p->seen_size ? 2 * p->seen_size : 1024;
        uint64_t(*grown)[2] = calloc(size, sizeof *grown);
        if (!grown)
            return -1;
        for (size_t i = 0; i < p->seen_size; i++)
            if (p->seen[i][0])
                insert(grown, size, p->seen[i]);
        free(p->seen);
        p->seen = grown;
        p->seen_size = size;
    }
    hash_path(path, h);
    if (insert(p->seen, p->seen_size, h))
        return 1;
    p->seen_count++;
    return 0;
}

/* ---- folders ---- */

int place_open(place *p, const char *root, int force)
{
    memset(p, 0, sizeof *p);
    p->root = root;
    p->force = force;
    p->parent_fd = -1;
    if (mkdir(root, 0777) != 0 && errno != EEXIST) {
        p->root_fd = -1;
        return cli_error("%s: cannot be made: %s", root, strerror(errno));
    }
    p->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return p->root_fd < 0 ? cli_error("%s: %s", root, strerror(errno)) : CLI_OK;
}

void place_close(place *p)
{
    if (p->parent_fd >= 0)
        close(p->parent_fd);
    if (p->root_fd >= 0)
        close(p->root_fd);
    free(p->parent);
    free(p->seen);
    p->parent_fd = p->root_fd = -1;
    p->parent = NULL;
    p->seen = NULL;
}

/* Why a path may not be used, or NULL. */
static const char *refuse_path(const char *path)
{
    if (!*path)
        return "is empty";
    if (*path == '/')
        return "is absolute";
    for (const char *s = path;; s++) {
        size_t n = strcspn(s, "/");
        if (n == 0)
            return "has an empty component";
        if (n == 1 && *s == '.')
            return "has a component \".\"";
        if (n == 2 && s[0] == '.' && s[1] == '.')
            return "has a component \"..\"";
        s += n;
        if (!*s)
            return NULL;
    }
}

/* Opens the folder `name` below fd, making it if it is missing. */
static int enter(int fd, const char *name)
{
    if (mkdirat(fd, name, 0777) != 0 && errno != EEXIST)
        return -1;
    return openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Makes p->parent_fd the folder of a path of n bytes (0: the root). -1 with errno. */
static int enter_parent(place *p, const char *path, size_t n)
{
    if (p->parent && strlen(p->parent) == n && memcmp(p->parent, path, n) == 0)
        return 0;
    free(p->parent);
    p->parent = NULL;
    char *copy = malloc(n + 1);
    int fd = dup(p->root_fd);
    if (copy) {
        memcpy(copy, path, n);
        copy[n] = 0;
    }
    for (char *s = copy; fd >= 0 && s && *s;) {
        char *slash = strchr(s, '/');
        if (slash)
            *slash = 0;
        int below = enter(fd, s), reason = errno;
        close(fd);
        errno = reason;
        fd = below;
        if (!slash)
            break;
        *slash = '/';
        s = slash + 1;
    }
    if (!copy || fd < 0) {
        int reason = copy ? errno : ENOMEM;
        if (fd >= 0)
            close(fd);
        free(copy);
        errno = reason;
        return -1;
    }
    if (p->parent_fd >= 0)
        close(p->parent_fd);
    p->parent_fd = fd;
    p->parent = copy;
    return 0;
}

/* ---- files ---- */

static int write_all(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t done = write(fd, data, n < (1u << 30) ? n : (1u << 30));
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        data += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Gives the temporary file its final name; without force never in place of something. -1 with errno. */
static int take_name(int dir, const char *temporary, const char *name, int force)
{
    struct stat st;
    if (force)
        return renameat(dir, temporary, dir, name);
    if (renameat2(dir, temporary, dir, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* A file system without that: a hard link refuses as well. */
    if (linkat(dir, temporary, dir, name, 0) == 0)
        return unlinkat(dir, temporary, 0);
    if (errno == EEXIST)
        return -1;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return renameat(dir, temporary, dir, name);
}

/* Another process may have left a file of the same name when it was killed: then the next one. */
static int open_temporary(int dir, char *name, size_t size)
{
    int fd = -1;
    for (int i = 0; i < 100 && fd < 0; i++) {
        snprintf(name, size, ".shardpack-%ld-%d.tmp", (long)getpid(), i);
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* Writes the file `name` of folder dir. -1 with errno; nothing is left behind then. */
static int put_file(int dir, const char *name, const void *data, size_t n, int force)
{
    char temporary[64];
    int fd = open_temporary(dir, temporary, sizeof temporary);
    if (fd < 0)
        return -1;
    int rc = write_all(fd, data, n), reason = errno;
    if (close(fd) != 0 && rc == 0) {
        rc = -1;
        reason = errno;
    }
    if (rc == 0 && (rc = take_name(dir, temporary, name, force)) != 0)
        reason = errno;
    if (rc != 0)
        unlinkat(dir, temporary, 0);
    errno = reason;
    return rc;
}

static int complain(const char *root, const char *path)
{
    const char *slash = root && *root && root[strlen(root) - 1] != '/' ? "/" : "";
    if (errno == EEXIST)
        return cli_error("%s%s%s: exists already; --force overwrites it", root, slash, path);
    if (errno == ELOOP || errno == ENOTDIR)
        return cli_error("%s%s%s: a component of the path is a symbolic link or no folder", root, slash, path);
    return cli_error("%s%s%s: %s", root, slash, path, strerror(errno));
}

int place_write(place *p, const char *path, const void *data, size_t n)
{
    const char *why = refuse_path(path);
    if (why)
        return cli_error("%s: refused to write \"%s\": the path %s", p->root, path, why);
    int seen = see(p, path);
    if (seen)
        return seen < 0 ? cli_no_memory()
                        : cli_error("%s: two files of the dataset have the path \"%s\"", p->root, path);
    const char *name = strrchr(path, '/');
    size_t parent = name ? (size_t)(name - path) : 0;
    if (enter_parent(p, path, parent) != 0 || put_file(p->parent_fd, name ? name + 1 : path, data, n, p->force) != 0)
        return complain(p->root, path);
    return CLI_OK;
}

/* A device or a pipe is written to as it is. */
static int put_special(const char *path, const void *data, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), rc = CLI_OK;
    if (fd < 0 || write_all(fd, data, n) != 0)
        rc = cli_error("%s: %s", path, strerror(errno));
    if (fd >= 0 && close(fd) != 0 && rc == CLI_OK)
        rc = cli_error("%s: %s", path, strerror(errno));
    return rc;
}

int place_file(const char *path, const void *data, size_t n, int force)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return put_special(path, data, n);
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!folder)
        return cli_no_memory();
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = CLI_OK;
    if (dir < 0)
        rc = cli_error("%s: %s", folder, strerror(errno));
    else if (put_file(dir, slash ? slash + 1 : path, data, n, force) != 0)
        rc = complain("", path);
    if (dir >= 0)
        close(dir);
    free(folder);
    return rc;
}
