/* /proc/self/cgroup, the folder that it names, and those above it. */
#include "base/cgroup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool spk_file_number(const char *path, const char *key, uint64_t *out)
{
    char line[256];
    bool found = false;
    size_t n = strlen(key);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (!found && fgets(line, sizeof line, f))
        if (strncmp(line, key, n) == 0)
            found = sscanf(line + n, "%" SCNu64, out) == 1;
    fclose(f);
    return found;
}

bool spk_cgroup_number(const spk_cgroup *c, const char *file, const char *key, uint64_t *out)
{
    char path[2048], want[64];
    snprintf(path, sizeof path, "%s%s/%s", c->mount, c->path, file);
    snprintf(want, sizeof want, "%s%s", key, *key ? " " : "");
    return spk_file_number(path, want, out);
}

bool spk_cgroup_line(const spk_cgroup *c, const char *file, char *out, size_t cap)
{
    char path[2048];
    snprintf(path, sizeof path, "%s%s/%s", c->mount, c->path, file);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool read = fgets(out, (int)cap, f) != NULL;
    fclose(f);
    if (read)
        out[strcspn(out, "\n")] = '\0';
    return read;
}

bool spk_cgroup_up(spk_cgroup *c)
{
    char *slash = strrchr(c->path, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

/* True if the controller is one of a list such as "cpu,memory". */
static bool is_in(const char *controller, const char *list)
{
    const size_t n = strlen(controller);
    for (const char *at = strstr(list, controller); at; at = strstr(at + 1, controller))
        if ((at == list || at[-1] == ',') && (at[n] == '\0' || at[n] == ','))
            return true;
    return false;
}

static bool parse_line(char *line, spk_cgroup *out, const char *controller, const char *cgroups)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return false;
    *path++ = '\0';
    controllers++;
    bool v2 = *controllers == '\0';
    if (!v2 && !is_in(controller, controllers))
        return false;
    out->v2 = v2;
    snprintf(out->mount, sizeof out->mount, "%s%s%s", cgroups, v2 ? "" : "/", v2 ? "" : controller);
    snprintf(out->path, sizeof out->path, "%s", strcmp(path, "/") == 0 ? "" : path);
    return true;
}

bool spk_cgroup_find(spk_cgroup *out, const char *controller, const char *proc, const char *cgroups)
{
    char path[512], line[1200];
    bool found = false;
    snprintf(path, sizeof path, "%s/self/cgroup", proc ? proc : "/proc");
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (fgets(line, sizeof line, f)) {
        spk_cgroup c;
        /* With both versions mounted a controller belongs to one of them, and v1's line names it. */
        if (parse_line(line, &c, controller, cgroups ? cgroups : "/sys/fs/cgroup") && (!found || !c.v2)) {
            *out = c;
            found = true;
        }
    }
    fclose(f);
    return found;
}

/* Quota over period of one folder (cpu.max; cpu.cfs_quota_us and cpu.cfs_period_us), 0 if it sets none. */
static double folder_cpus(const spk_cgroup *c)
{
    char text[128];
    double quota = 0, period = 0;
    if (c->v2) {
        if (!spk_cgroup_line(c, "cpu.max", text, sizeof text) || sscanf(text, "%lf %lf", &quota, &period) != 2)
            return 0;
    } else {
        if (!spk_cgroup_line(c, "cpu.cfs_quota_us", text, sizeof text) || sscanf(text, "%lf", &quota) != 1)
            return 0;
        if (!spk_cgroup_line(c, "cpu.cfs_period_us", text, sizeof text) || sscanf(text, "%lf", &period) != 1)
            return 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

double spk_cgroup_cpus(const char *proc, const char *cgroups)
{
    spk_cgroup c;
    double best = 0;
    if (!spk_cgroup_find(&c, "cpu", proc, cgroups))
        return 0;
    do {
        double cpus = folder_cpus(&c);
        if (cpus > 0 && (best == 0 || cpus < best))
            best = cpus;
    } while (spk_cgroup_up(&c));
    return best;
}
