/* First touch of memory that is going to be page-locked: the kernel clears each page, and several threads do that
 * faster than the one that locks. The threads end before the call does. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "load/pinned.h"

#define THREADS_MAX 16u
#define PART_MIN ((uint64_t)8 << 20) /* bytes that are worth a thread */

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

typedef struct part {
    uint8_t *base;
    uint64_t bytes;
    int sys_errno;
} part;

/* Older kernels do not know the advice: a write to each page does the same, but a shortage would be a signal. */
static void *touch(void *user)
{
    part *p = user;
    int done = -1;
    do
        done = madvise(p->base, (size_t)p->bytes, MADV_POPULATE_WRITE);
    while (done != 0 && (errno == EINTR || errno == EAGAIN));
    p->sys_errno = done == 0 ? 0 : errno;
    if (p->sys_errno != EINVAL)
        return NULL;
    p->sys_errno = 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint64_t at = 0; at < p->bytes; at += page)
        atomic_fetch_or_explicit((_Atomic uint8_t *)(p->base + at), 0, memory_order_relaxed);
    return NULL;
}

spk_status spk_populate(uint8_t *base, uint64_t bytes, unsigned threads, spk_error *err)
{
    part parts[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    bool started[THREADS_MAX] = {false};
    sigset_t all, before;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = 0;
    if (threads > bytes / PART_MIN)
        threads = (unsigned)(bytes / PART_MIN);
    threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    sigfillset(&all); /* signals are for the threads of the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < threads; i++) {
        uint64_t end = i + 1 == threads ? bytes : bytes / threads * (i + 1) / page * page;
        parts[i] = (part){.base = base + at, .bytes = end - at};
        at = end;
        started[i] = i + 1 < threads && pthread_create(&ids[i], NULL, touch, &parts[i]) == 0;
        if (!started[i])
            (void)touch(&parts[i]);
    }
    int bad = 0;
    for (unsigned i = 0; i < threads; i++) {
        if (started[i])
            pthread_join(ids[i], NULL);
        bad = bad ? bad : parts[i].sys_errno;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad == 0
               ? SPK_OK
               : spk_error_sys(err, bad, "bringing %llu bytes for the slots into memory", (unsigned long long)bytes);
}
