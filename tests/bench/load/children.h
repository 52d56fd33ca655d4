/* The processes that a process started, as /proc shows them. Linux. */
#ifndef BENCH_CHILDREN_H
#define BENCH_CHILDREN_H

#include <stdint.h>

#define CHILDREN_MAX 256

struct child {
    int pid;
    double cpu;         /* seconds so far, user and system */
    uint64_t rss;       /* bytes resident, shared ones included */
    uint64_t pss;       /* shared ones divided by those who share them */
    uint64_t anonymous; /* heap and stacks: what nobody else has */
};

/* Children of this process whose name starts with `name` (15 characters count); returns how many, at most
 * CHILDREN_MAX. Memory is only looked up if asked for: it costs the child's page tables. */
int children_list(const char *name, int with_memory, struct child out[CHILDREN_MAX]);
/* CPU seconds of this process. */
double own_cpu(void);
/* Its heap and stacks, bytes. */
uint64_t own_anonymous(void);
int own_descriptors(void);

#endif
