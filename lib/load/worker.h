/* The life of a worker process: says hello, runs one packet after another, ends with its trainer. */
#ifndef SPK_LOAD_WORKER_H
#define SPK_LOAD_WORKER_H

#include <stdint.h>
#include <sys/types.h>

/* Descriptors and numbers that the trainer gave (spawn.h). trainer_fd: the trainer's pidfd, -1 if there is none: then
 * the parent's number is looked at now and then. */
typedef struct spk_worker_setup {
    int socket, memory, trainer_fd;
    pid_t trainer;
    uint32_t number;
} spk_worker_setup;

/* Returns the exit status when the trainer has closed the socket. Ends the process at once when the trainer is gone,
 * whoever else holds the socket, even in the middle of a batch. */
int spk_worker_run(const spk_worker_setup *setup);

#endif
