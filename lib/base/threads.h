/* Starting threads of the library. */
#ifndef SPK_BASE_THREADS_H
#define SPK_BASE_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread that leaves the process's signals to the others. */
bool spk_thread_start(pthread_t *out, void *(*run)(void *arg), void *arg);
/* A condition for waits until a time of CLOCK_MONOTONIC. */
void spk_cond_init_monotonic(pthread_cond_t *cond);

#endif
