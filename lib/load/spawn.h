/* Starting, ending and reaping worker processes. Only processes started here are ever signalled or waited for. */
#ifndef SPK_LOAD_SPAWN_H
#define SPK_LOAD_SPAWN_H

#include <shardpack/error.h>
#include <stdbool.h>
#include <sys/types.h>

/* Descriptors that a worker finds; nothing else is open in it but 0 to 2. */
enum { SPK_WORKER_SOCKET = 3, SPK_WORKER_MEMORY = 4, SPK_WORKER_TRAINER = 5 };

/* The worker's third argument, a sum of these. */
enum {
    SPK_WORKER_WATCHES = 1, /* SPK_WORKER_TRAINER is open */
    SPK_WORKER_OF_MAIN = 2  /* the trainer's main thread has started it: they end together */
};

/* A child. pidfd is -1 where the kernel has none. */
typedef struct spk_process {
    pid_t pid; /* 0: none */
    int pidfd;
} spk_process;

typedef struct spk_exit {
    bool known; /* false: somebody else reaped it, as happens where SIGCHLD is ignored */
    bool signalled;
    int value; /* signal or exit status */
} spk_exit;

/* The worker program (malloc'ed, absolute: a worker may be replaced after the trainer has changed its folder):
 * `option`, else the variable SHARDPACK_WORKER, else beside the library or the running program, or in libexec/shardpack
 * above it. NOT_FOUND lists where it looked. */
SPK_CHECK spk_status spk_worker_find(char **out, const char *option, spk_error *err);

typedef struct spk_spawn {
    const char *program;
    uint32_t number;
    int socket, memory;
    int trainer; /* pidfd of this process, -1 if there are none */
} spk_spawn;
SPK_CHECK spk_status spk_process_start(spk_process *out, const spk_spawn *how, spk_error *err);
void spk_process_kill(const spk_process *p);
/* Waits up to ms for its end and reaps it; false if it is still there. Afterwards *p is empty. */
bool spk_process_wait(spk_process *p, int ms, spk_exit *how);
/* Forgets the process without touching it (in a forked child of the trainer). */
void spk_process_forget(spk_process *p);
/* "killed by signal 9 (Killed)", "ended with status 3" */
void spk_exit_describe(const spk_exit *how, char *text, size_t cap);

/* pidfd_open; -1 where the kernel has none. */
int spk_pidfd_open(pid_t pid);
/* Moves a descriptor above those that a worker uses, close-on-exec; closes the old one. -1 with errno. */
int spk_fd_move(int fd);

#endif
