/* The parts of shardpack pack: options (cmd_pack.c), what is said about the result (cmd_pack_report.c). The rows and
 * words here are those of shardpack repack, too. */
#ifndef TOOLS_CMD_PACK_H
#define TOOLS_CMD_PACK_H

#include <shardpack/pack.h>

#include "opts.h"
#include "progress.h"

typedef struct pack_values {
    uint64_t shard_size, shard_samples, frame_size, frame_samples;
    int frames; /* FRAMES_* */
    int64_t level;
    uint64_t jobs;
    int shuffle;
    uint64_t seed;
    const char *prefix, *list, *split;
    opts_list include, exclude;
    uint64_t limit, max_pixels;
    int check, on_bad, labels, stem, jpeg, allow_unrestorable;
    int follow_symlinks, force, dry_run;
    int json, quiet, verbose;
} pack_values;

enum { FRAMES_MANY, FRAMES_SINGLE };

extern const char *const pack_jpeg_words[]; /* as spk_jpeg_mode */

/* clang-format off */
#define PACK_RUN_ROWS(type)                                                                                            \
    {.name = "jobs", .kind = OPT_U64, .letter = 'j', .arg = "N", .offset = offsetof(type, jobs),                       \
     .def = "the CPU quota", .min = 1, .max = 1024, .help = "Threads. Does not change the result."},                   \
    {.name = "force", .kind = OPT_FLAG, .letter = 'f', .offset = offsetof(type, force),                                \
     .help = "Pack anew if DST holds another dataset, or an interrupted run that does not match."}

#define PACK_OUTPUT_ROWS(type)                                                                                         \
    {.name = "json", .kind = OPT_FLAG, .offset = offsetof(type, json), .help = "Print the result as one JSON object."},\
    {.name = "quiet", .kind = OPT_FLAG, .letter = 'q', .offset = offsetof(type, quiet),                                \
     .help = "No progress, notes or summary."}
/* clang-format on */

#define PACK_NAME_MAX 64 /* characters of a prefix, or of a split's name */

/* Progress and notes of a run. */
typedef struct pack_watch {
    int quiet, verbose;
    progress progress;
    spk_pack_phase phase;
    double phase_started;
} pack_watch;
void pack_watch_start(pack_watch *w, int quiet, int verbose);
int pack_on_progress(void *watch, const spk_pack_progress *p);
void pack_on_note(void *watch, const char *text);

typedef struct pack_job {
    const char *done, *would; /* what was done: "packed", "would pack" */
    const char *src, *dst;
    const pack_values *values;
    const spk_split *splits;
    size_t split_count;
    double seconds;
} pack_job;

/* Splits of "train=0.9,val=0.1" into an array of PACK_SPLITS_MAX; names point into text, which is changed. Returns how
 * many, or -1 with the reason. */
#define PACK_SPLITS_MAX 64
int pack_parse_splits(char *text, spk_split *out, char *why, size_t why_size);

/* The result, for people or as JSON. Returns the exit status. */
int pack_report(const pack_job *job, const spk_pack_result *r);

#endif
