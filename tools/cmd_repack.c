/* shardpack repack: a packed dataset with its JPEG images in the other form. */
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "cmd_pack.h"
#include "out.h"
#include "remote.h"
#include "target.h"

typedef struct repack_values {
    int jpeg, allow_unrestorable;
    uint64_t jobs;
    int force, dry_run;
    int json, quiet, verbose;
    remote_values remote;
} repack_values;

#define AT(member) .offset = offsetof(repack_values, member)

static const opt options[] = {
    {.name = "jpeg",
     .kind = OPT_ENUM,
     .arg = "HOW",
     AT(jpeg),
     .values = pack_jpeg_words,
     .help = "How JPEG files are stored in DST: as they are, or fast, as in \"shardpack pack\". Must be given."},
    {.name = "allow-unrestorable",
     .kind = OPT_FLAG,
     AT(allow_unrestorable),
     .help = "With --jpeg=fast as in \"shardpack pack\". With --jpeg=keep: where the file of an image was lost in that "
             "way, store the other file with its pixels; without this that is an error."},
    PACK_RUN_ROWS(repack_values),
    {.name = "dry-run",
     .kind = OPT_FLAG,
     .letter = 'n',
     AT(dry_run),
     .help = "Read the indexes and plan only; nothing is written."},
    PACK_OUTPUT_ROWS(repack_values),
    {.name = "verbose", .kind = OPT_FLAG, .letter = 'v', AT(verbose), .help = "Say more."},
    REMOTE_ROWS(repack_values),
    {0},
};

static const opt_conflict conflicts[] = {{"quiet", "verbose"}, {0}};

static const operand operands[] = {
    {.name = "DATASET", .help = "Folder or manifest of a dataset, or a URL of these.", .complete = COMPLETE_FILE},
    {.name = "DST",
     .help = "Folder of the new dataset; made if it is missing. It must not lie inside of DATASET.",
     .complete = COMPLETE_FOLDER},
    {0},
};

static const example examples[] = {
    {"shardpack repack --jpeg fast photos.shards photos.fast", "Make a dataset smaller and faster to decode."},
    {"shardpack repack --jpeg keep photos.fast photos.shards", "Get the shards back that were there before."},
    {0},
};

static int run(const opts *o)
{
    const repack_values *v = o->values;
    const pack_values shown = {
        .jpeg = v->jpeg, .dry_run = v->dry_run, .json = v->json, .quiet = v->quiet, .verbose = v->verbose};
    pack_job job = {
        .done = "repacked", .would = "would repack", .src = o->operands[0], .dst = o->operands[1], .values = &shown};
    const spk_dataset_options dataset = remote_options(&v->remote);
    pack_watch watch;
    spk_repack_options p = {.size = sizeof p,
                            .jpeg = (spk_jpeg_mode)v->jpeg,
                            .allow_unrestorable = v->allow_unrestorable,
                            .jobs = (int)v->jobs,
                            .force = v->force,
                            .dry_run = v->dry_run,
                            .dataset = &dataset,
                            .on_progress = pack_on_progress,
                            .on_note = pack_on_note,
                            .user = &watch};
    spk_pack_result result;
    spk_error err;
    if (!opts_given(o, "jpeg"))
        return cli_usage("repack", "--jpeg=keep or --jpeg=fast must be given");
    memset(&result, 0, sizeof result);
    spk_error_clear(&err);
    cli_catch_signals();
    pack_watch_start(&watch, v->quiet, v->verbose);
    double started = out_now();
    spk_status st = spk_repack(job.src, job.dst, &p, &result, &err);
    progress_end(&watch.progress);
    job.seconds = out_now() - started;
    return st < 0 ? cli_fail(&err, "run the same command again to resume") : pack_report(&job, &result);
}

const command cmd_repack = {
    .name = "repack",
    .summary = "store a dataset's JPEG images to decode faster, or as files again",
    .synopsis = "[OPTION]... --jpeg HOW DATASET DST",
    .description =
        "Makes a new dataset from a packed one, without the files it was packed from. Samples, their order, shards and "
        "frames, names, labels, classes and settings stay; only the form of the JPEG images changes. So the shards are "
        "those that packing the same files with that --jpeg makes, byte for byte, and going there and back gives the "
        "same shards again. (The manifest differs in one line, the digest of the plan.)\n\n"
        "Every frame is checked before it is used, and each image is tried as in \"shardpack pack\". A run that was "
        "interrupted goes on where it stopped when the same command is given again. DATASET is not changed.",
    .options = options,
    .conflicts = conflicts,
    .operands = operands,
    .min_operands = 2,
    .max_operands = 2,
    .examples = examples,
    .failure = "if something in DATASET is damaged, or something could not be read or written. DST then holds what it "
               "held before, and the work done so far in DST/.shardpack.",
    .values_size = sizeof(repack_values),
    .run = run,
};
