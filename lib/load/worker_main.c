/* shardpack-worker: the program that a loader starts as its worker processes. Not for people. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "load/spawn.h"
#include "load/worker.h"

/* Whatever the trainer had open without close-on-exec. */
static void close_from(int first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
#endif
    DIR *d = opendir("/proc/self/fd");
    if (!d)
        return;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        int fd = atoi(e->d_name);
        if (fd >= first && fd != dirfd(d))
            close(fd);
    }
    closedir(d);
}

/* Ctrl-C at a terminal goes to the whole process group: the trainer decides what it means. */
static void set_signals(void)
{
    sigset_t none;
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int main(int argc, char **argv)
{
    set_signals();
    if (argc != 4 || fcntl(SPK_WORKER_SOCKET, F_GETFD) < 0 || fcntl(SPK_WORKER_MEMORY, F_GETFD) < 0) {
        fprintf(stderr, "shardpack-worker: started by the shardpack library, not by hand\n");
        return 2;
    }
    int flags = atoi(argv[3]), watched = flags & SPK_WORKER_WATCHES;
    /* Even a worker that is stopped ends so; but the signal comes when the *thread* ends that started it, and other
     * threads than the main one may well do so before the trainer. The watch sees a trainer that is gone already. */
    if (flags & SPK_WORKER_OF_MAIN)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_from(watched ? SPK_WORKER_TRAINER + 1 : SPK_WORKER_MEMORY + 1);
    if (fcntl(STDERR_FILENO, F_GETFD) < 0 && errno == EBADF) /* so that no shard gets the number of stderr */
        (void)open("/dev/null", O_WRONLY);
    spk_worker_setup setup = {.socket = SPK_WORKER_SOCKET,
                              .memory = SPK_WORKER_MEMORY,
                              .trainer_fd = watched ? SPK_WORKER_TRAINER : -1,
                              .trainer = (pid_t)atol(argv[2]),
                              .number = (uint32_t)strtoul(argv[1], NULL, 10)};
    return spk_worker_run(&setup);
}
