/* Memory of the workers, from /proc: what their heaps and stacks hold. The ring is shared and counted elsewhere. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define WORKER_NAME "shardpack-worke" /* the kernel keeps 15 characters */

static int is_worker(long pid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%ld/comm", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    int read = fgets(name, sizeof name, f) != NULL;
    fclose(f);
    name[strcspn(name, "\n")] = 0;
    return read && strcmp(name, WORKER_NAME) == 0;
}

static uint64_t anonymous_memory(long pid)
{
    char path[64], line[128];
    uint64_t kib = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "RssAnon:", 8) == 0)
            kib = strtoull(line + 8, NULL, 10);
    if (f)
        fclose(f);
    return kib * 1024;
}

static uint64_t largest_of_list(FILE *children)
{
    uint64_t most = 0;
    for (long pid; fscanf(children, "%ld", &pid) == 1;) {
        uint64_t bytes = is_worker(pid) ? anonymous_memory(pid) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

uint64_t bench_worker_memory(void)
{
    uint64_t most = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300];
        snprintf(path, sizeof path, "/proc/self/task/%s/children", e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (!f)
            continue;
        uint64_t bytes = largest_of_list(f);
        most = bytes > most ? bytes : most;
        fclose(f);
    }
    if (d)
        closedir(d);
    return most;
}
