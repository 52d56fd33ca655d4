/* Datasets by URL: the options of every command that opens a dataset, and what a loader tells of its mirrors and its
 * cache. The values struct of a command has a member `remote`, its table the rows REMOTE_ROWS(type). */
#ifndef TOOLS_REMOTE_H
#define TOOLS_REMOTE_H

#include <jansson.h>
#include <shardpack/loader.h>

#include "opts.h"

typedef struct remote_values {
    opts_list mirrors;
    const char *cache_dir;
    uint64_t cache_limit;
    double deadline;
} remote_values;

/* The library's options from them. They point into the values. */
spk_dataset_options remote_options(const remote_values *v);

#define REMOTE_MIRRORS_MAX 16

/* The figures of a loader that reads from URLs. count 0: it reads a folder. */
typedef struct remote_report {
    spk_mirror_stats mirrors[REMOTE_MIRRORS_MAX];
    char *urls[REMOTE_MIRRORS_MAX]; /* own copies: the figures outlive the dataset */
    size_t count;
    uint64_t cache_hits, cache_hit_bytes, cache_misses;
} remote_report;

/* Takes the figures; what does not fit into memory is left out. Free it also if count is 0. */
void remote_report_take(remote_report *r, const spk_loader *loader);
void remote_report_free(remote_report *r);
/* A line for each mirror and one for the cache: `line` is called with each. */
void remote_report_print(const remote_report *r, void (*line)(const char *text));
/* Sets "mirrors" and "cache" of the object; nothing if count is 0. */
void remote_report_json(const remote_report *r, json_t *object);

/* clang-format off */
#define REMOTE_ROWS(type)                                                                                              \
    {.help = "Datasets by URL"},                                                                                       \
    {.name = "mirror", .kind = OPT_LIST, .arg = "URL", .offset = offsetof(type, remote.mirrors),                       \
     .help = "Another place that holds the same files; may be given several times. What fails or lies is fetched "     \
             "from another one."},                                                                                     \
    {.name = "cache-dir", .kind = OPT_STRING, .arg = "FOLDER", .offset = offsetof(type, remote.cache_dir),             \
     .def = "SHARDPACK_CACHE_DIR, or none", .complete = COMPLETE_FOLDER,                                               \
     .help = "Keep what was read there, for all processes of this machine."},                                          \
    {.name = "cache-limit", .kind = OPT_SIZE, .arg = "SIZE", .offset = offsetof(type, remote.cache_limit),             \
     .def = "SHARDPACK_CACHE_LIMIT, or 90 % of what is free",                                                          \
     .help = "The cache never takes more; what was not used for longest goes first."},                                 \
    {.name = "deadline", .kind = OPT_DOUBLE, .arg = "SECONDS", .offset = offsetof(type, remote.deadline),              \
     .def = "SHARDPACK_DEADLINE, or 60", .max = 1000000,                                                               \
     .help = "Give up on a read after so long, with all retries on all mirrors."}
/* clang-format on */

#endif
