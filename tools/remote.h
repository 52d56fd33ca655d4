/* Options of every command that opens a dataset, for datasets by URL. The values struct of a command has a member
 * `remote`, its table the rows REMOTE_ROWS(type). */
#ifndef TOOLS_REMOTE_H
#define TOOLS_REMOTE_H

#include <shardpack/dataset.h>

#include "opts.h"

typedef struct remote_values {
    opts_list mirrors;
    const char *cache_dir;
    uint64_t cache_limit;
    double deadline;
} remote_values;

/* The library's options from them. They point into the values. */
spk_dataset_options remote_options(const remote_values *v);

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
