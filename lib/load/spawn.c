/* posix_spawn of the worker program, pidfds, and waiting. The trainer's signal handlers, mask and SIGCHLD are left as
 * they are; a trainer that ignores SIGCHLD has its children reaped by the kernel, which counts as an unknown end. */
#define _GNU_SOURCE
#include "load/spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cpu.h"
#include "base/error.h"
#include "dataset/dataset.h"

#define PROGRAM "shardpack-worker"
#ifndef P_PIDFD
#define P_PIDFD 3 /* linux/wait.h */
#endif

extern char **environ;

int spk_pidfd_open(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0); /* always close-on-exec */
#else
    (void)pid;
    return -1;
#endif
}

int spk_fd_move(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 10), cause = errno;
    close(fd);
    errno = cause;
    return high;
}

/* Looks for the program in the folders around the file `object`; adds the places to `tried`. */
static spk_status look_around(const char *object, char **out, spk_buf *tried, spk_error *err)
{
    static const char *const places[] = {"/", "/../libexec/shardpack/", "/../../libexec/shardpack/"};
    const char *slash = object ? strrchr(object, '/') : NULL;
    for (size_t i = 0; slash && !*out && i < sizeof places / sizeof places[0]; i++) {
        spk_buf path = {0};
        spk_status status = spk_buf_printf(&path, err, "%.*s%s" PROGRAM, (int)(slash - object), object, places[i]);
        bool there = status == SPK_OK && access((const char *)path.data, X_OK) == 0;
        if (there)
            status = spk_path_absolute(out, (const char *)path.data, err);
        else if (status == SPK_OK)
            status = spk_buf_printf(tried, err, "%s%s", tried->len > 0 ? ", " : "", (const char *)path.data);
        spk_buf_free(&path);
        SPK_TRY(status);
    }
    return SPK_OK;
}

spk_status spk_worker_find(char **out, const char *option, spk_error *err)
{
    spk_buf tried = {0};
    Dl_info info;
    char self[4096];
    static const char anchor = 0; /* lies in the library, or in the program if that was linked with it statically */
    *out = NULL;
    const char *given = option ? option : secure_getenv("SHARDPACK_WORKER");
    if (given && *given)
        return spk_path_absolute(out, given, err);
    spk_status status = SPK_OK;
    if (dladdr(&anchor, &info) != 0)
        status = look_around(info.dli_fname, out, &tried, err);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    if (status == SPK_OK && !*out)
        status = look_around(self, out, &tried, err);
    if (status == SPK_OK && !*out)
        status = spk_error_set(err, SPK_E_NOT_FOUND,
                               "the program " PROGRAM " is in none of: %s; set SHARDPACK_WORKER to its path",
                               tried.data ? (const char *)tried.data : "-");
    spk_buf_free(&tried);
    return status;
}

static int add_actions(posix_spawn_file_actions_t *a, const spk_spawn *how)
{
    int e = posix_spawn_file_actions_addopen(a, 0, "/dev/null", O_RDONLY, 0);
    if (e == 0)
        e = posix_spawn_file_actions_addopen(a, 1, "/dev/null", O_WRONLY, 0);
    if (e == 0)
        e = posix_spawn_file_actions_adddup2(a, how->socket, SPK_WORKER_SOCKET);
    if (e == 0)
        e = posix_spawn_file_actions_adddup2(a, how->memory, SPK_WORKER_MEMORY);
    if (e == 0 && how->trainer >= 0)
        e = posix_spawn_file_actions_adddup2(a, how->trainer, SPK_WORKER_TRAINER);
    return e;
}

/* All signals blocked and at their defaults: the worker unblocks them when it has said which it ignores. */
static int add_signals(posix_spawnattr_t *a)
{
    sigset_t all;
    sigfillset(&all);
    int e = posix_spawnattr_setsigmask(a, &all);
    if (e == 0)
        e = posix_spawnattr_setsigdefault(a, &all);
    if (e == 0)
        e = posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return e;
}

spk_status spk_process_start(spk_process *out, const spk_spawn *how, spk_error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char name[] = PROGRAM, number[16], trainer[32], watched[8];
    char *argv[] = {name, number, trainer, watched, NULL};
    pid_t pid = 0;

    *out = (spk_process){.pid = 0, .pidfd = -1};
    snprintf(number, sizeof number, "%u", how->number);
    snprintf(trainer, sizeof trainer, "%ld", (long)getpid());
    int flags =
        (how->trainer >= 0 ? SPK_WORKER_WATCHES : 0) + (syscall(SYS_gettid) == getpid() ? SPK_WORKER_OF_MAIN : 0);
    snprintf(watched, sizeof watched, "%d", flags);
    int e = posix_spawn_file_actions_init(&actions);
    if (e != 0)
        return spk_error_sys(err, e, "posix_spawn");
    e = posix_spawnattr_init(&attributes);
    if (e == 0) {
        e = add_actions(&actions, how);
        if (e == 0)
            e = add_signals(&attributes);
        if (e == 0)
            e = posix_spawn(&pid, how->program, &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (e != 0)
        return spk_error_sys(err, e, "cannot start the worker program %s", how->program);
    out->pid = pid;
    int fd = spk_pidfd_open(pid);
    out->pidfd = fd >= 0 ? spk_fd_move(fd) : -1;
    return SPK_OK;
}

void spk_process_kill(const spk_process *p)
{
    if (p->pid <= 0)
        return;
#ifdef SYS_pidfd_send_signal
    if (p->pidfd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
        return;
    }
#endif
    /* The number is ours as long as nobody has reaped it. */
    siginfo_t info;
    memset(&info, 0, sizeof info);
    if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
        kill(p->pid, SIGKILL);
}

void spk_process_forget(spk_process *p)
{
    if (p->pidfd >= 0)
        close(p->pidfd);
    *p = (spk_process){.pid = 0, .pidfd = -1};
}

/* 1: reaped or gone, 0: still running. */
static int reap(const spk_process *p, spk_exit *how)
{
    siginfo_t info;
    int r = -1;
    memset(&info, 0, sizeof info);
    do {
        r = -1;
        if (p->pidfd >= 0)
            r = waitid((idtype_t)P_PIDFD, (id_t)p->pidfd, &info, WEXITED | WNOHANG);
        if (p->pidfd < 0 || (r != 0 && errno == EINVAL)) /* Linux 5.3 has pidfds, but waits for them since 5.4 */
            r = waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG);
    } while (r != 0 && errno == EINTR);
    if (r == 0 && info.si_pid == 0)
        return 0;
    how->known = r == 0;
    how->signalled = info.si_code != CLD_EXITED;
    how->value = info.si_status;
    return 1;
}

bool spk_process_wait(spk_process *p, int ms, spk_exit *how)
{
    memset(how, 0, sizeof *how);
    if (p->pid <= 0)
        return true;
    struct pollfd watch = {.fd = p->pidfd, .events = POLLIN};
    uint64_t start = spk_now_ns(); /* signals cut single waits short */
    for (;;) {
        int ended = p->pidfd < 0 || poll(&watch, 1, 0) == 1;
        if (ended && reap(p, how) == 1)
            break;
        if (spk_now_ns() - start >= (uint64_t)ms * 1000000u)
            return false;
        if (p->pidfd >= 0)
            (void)poll(&watch, 1, 5);
        else
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    spk_process_forget(p);
    return true;
}

void spk_exit_describe(const spk_exit *how, char *text, size_t cap)
{
    if (!how->known)
        snprintf(text, cap, "ended (the trainer's SIGCHLD setting hides how)");
    else if (how->signalled)
        snprintf(text, cap, "killed by signal %d (%s)", how->value, strsignal(how->value));
    else
        snprintf(text, cap, "ended with status %d", how->value);
}
