/* Reads /proc/PID/stat, /proc/PID/smaps_rollup and /proc/self/fd. */
#include "children.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Fills in pid and cpu; 0 if it is no child of ours, or none of that name. */
static int read_stat(const char *pid, const char *name, struct child *out)
{
    char path[300], text[1024], comm[16];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    int parent = 0;
    unsigned long user = 0, system = 0;
    if (!open || !close ||
        sscanf(close + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &parent, &user, &system) != 3)
        return 0;
    *close = '\0';
    snprintf(comm, sizeof comm, "%.15s", name);
    if (parent != getpid() || strncmp(open + 1, comm, strlen(comm)) != 0)
        return 0;
    *out = (struct child){.pid = atoi(pid), .cpu = (double)(user + system) / (double)sysconf(_SC_CLK_TCK)};
    return 1;
}

static void read_memory(const char *pid, struct child *out)
{
    char path[300], line[256];
    uint64_t kb = 0;
    snprintf(path, sizeof path, "/proc/%s/smaps_rollup", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "Rss: %" SCNu64, &kb) == 1)
            out->rss = kb << 10;
        else if (sscanf(line, "Pss: %" SCNu64, &kb) == 1)
            out->pss = kb << 10;
        else if (sscanf(line, "Anonymous: %" SCNu64, &kb) == 1)
            out->anonymous = kb << 10;
    }
    fclose(f);
}

int children_list(const char *name, int with_memory, struct child out[CHILDREN_MAX])
{
    int n = 0;
    DIR *d = opendir("/proc");
    if (!d)
        return 0;
    for (const struct dirent *e = readdir(d); e && n < CHILDREN_MAX; e = readdir(d)) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || !read_stat(e->d_name, name, &out[n]))
            continue;
        if (with_memory)
            read_memory(e->d_name, &out[n]);
        n++;
    }
    closedir(d);
    return n;
}

double own_cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

uint64_t own_anonymous(void)
{
    struct child self = {0};
    read_memory("self", &self);
    return self.anonymous;
}

int own_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    if (!d)
        return -1;
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return n - 1; /* less the one that lists them */
}
