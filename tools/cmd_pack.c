/* shardpack pack: options, progress, the call. */
#include "cmd_pack.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "out.h"

extern const opt pack_options[]; /* cmd_pack_options.c */

static const opt_conflict conflicts[] = {
    {"seed", "no-shuffle"},
    {"quiet", "verbose"},
    {0},
};

static const operand operands[] = {
    {.name = "SRC",
     .help = "Folder with the files to pack, or a tar archive of it (not compressed).",
     .complete = COMPLETE_FILE},
    {.name = "DST",
     .help = "Folder of the dataset; made if it is missing. It must not lie inside of SRC.",
     .complete = COMPLETE_FOLDER},
    {0},
};

static const example examples[] = {
    {"shardpack pack photos/ photos.shards", "Pack a folder with one sub-folder per class."},
    {"shardpack pack ILSVRC2012_img_train.tar imagenet", "Pack ImageNet as it ships, a tar with a tar per class."},
    {"shardpack pack --split train=0.9,val=0.1 photos/ out", "Make two datasets, out/train and out/val."},
    {"shardpack pack --list captions.csv --on-bad skip images/ out",
     "Pack the files that a list names, with its captions, and leave out what cannot be decoded."},
    {0},
};

void pack_watch_start(pack_watch *w, int quiet, int verbose)
{
    *w = (pack_watch){.quiet = quiet, .verbose = verbose, .phase = SPK_PACK_SCAN, .phase_started = out_now()};
    progress_start(&w->progress, quiet);
}

static void enter_phase(pack_watch *w, spk_pack_phase phase)
{
    static const char *const names[] = {"scanning", "packing", "publishing"};
    char time[32];
    double now = out_now();
    if (w->verbose && (unsigned)w->phase < 3)
        cli_note("%s took %s", names[w->phase], out_time(time, sizeof time, now - w->phase_started));
    w->phase = phase;
    w->phase_started = now;
}

int pack_on_progress(void *watch, const spk_pack_progress *p)
{
    pack_watch *w = watch;
    progress_now now = {.what = "scanning", .units = "files", .done = p->files};
    if (p->phase != w->phase)
        enter_phase(w, p->phase);
    if (p->phase == SPK_PACK_BUILD)
        now = (progress_now){.what = "packing",
                             .units = "samples",
                             .done = p->samples,
                             .total = p->samples_total,
                             .bytes = p->bytes,
                             .bytes_total = p->bytes_total,
                             .bytes_before = p->bytes_resumed};
    else if (p->phase == SPK_PACK_PUBLISH)
        now = (progress_now){.what = "publishing"};
    progress_show(&w->progress, &now);
    return cli_interrupted();
}

void pack_on_note(void *watch, const char *text)
{
    const pack_watch *w = watch;
    if (!w->quiet)
        cli_note("%s", text);
}

static int check_values(const opts *o)
{
    const pack_values *v = o->values;
    if (v->frames == FRAMES_SINGLE && (opts_given(o, "frame-size") || opts_given(o, "frame-samples")))
        return cli_usage("pack", "--frames=single and --frame-size or --frame-samples exclude each other");
    if (v->check == SPK_CHECK_NONE && opts_given(o, "on-bad"))
        return cli_usage("pack", "--check=none and --on-bad exclude each other: without a check no file is bad");
    if (v->frames == FRAMES_SINGLE && v->jpeg == SPK_JPEG_FAST)
        return cli_usage("pack", "--frames=single and --jpeg=fast exclude each other");
    if (v->allow_unrestorable && v->jpeg != SPK_JPEG_FAST)
        return cli_usage("pack", "--allow-unrestorable is for --jpeg=fast");
    if (v->prefix && v->prefix[strspn(v->prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")])
        return cli_usage("pack", "--prefix %s: only the characters A-Z a-z 0-9 _ are possible", v->prefix);
    if (v->prefix && strlen(v->prefix) > PACK_NAME_MAX)
        return cli_usage("pack", "--prefix %s: longer than %d characters", v->prefix, PACK_NAME_MAX);
    return CLI_OK;
}

static void fill(spk_pack_options *p, const opts *o)
{
    const pack_values *v = o->values;
    p->shard_size = v->shard_size;
    p->shard_samples = v->shard_samples;
    p->frame_size = v->frame_size;
    p->frame_samples = v->frame_samples;
    p->single_frame = v->frames == FRAMES_SINGLE;
    p->has_level = opts_given(o, "level");
    p->level = (int)v->level;
    p->jobs = (int)v->jobs;
    p->no_shuffle = !v->shuffle;
    p->seed = v->seed;
    p->prefix = v->prefix;
    p->list = v->list;
    p->include = v->include.items;
    p->include_count = v->include.count;
    p->exclude = v->exclude.items;
    p->exclude_count = v->exclude.count;
    p->limit = v->limit;
    p->max_pixels = v->max_pixels;
    p->check = (spk_check)v->check;
    p->on_bad = (spk_on_bad)v->on_bad;
    p->labels = (spk_labels)v->labels;
    p->stem = (spk_stem)v->stem;
    p->jpeg = (spk_jpeg_mode)v->jpeg;
    p->allow_unrestorable = v->allow_unrestorable;
    p->follow_symlinks = v->follow_symlinks;
    p->force = v->force;
    p->dry_run = v->dry_run;
}

static int pack(const opts *o, spk_pack_options *p)
{
    pack_job job = {.done = "packed",
                    .would = "would pack",
                    .src = o->operands[0],
                    .dst = o->operands[1],
                    .values = o->values,
                    .splits = p->splits,
                    .split_count = p->split_count};
    pack_watch watch;
    spk_pack_result result;
    spk_error err;
    memset(&result, 0, sizeof result);
    spk_error_clear(&err);
    p->on_progress = pack_on_progress;
    p->on_note = pack_on_note;
    p->user = &watch;
    cli_catch_signals();
    pack_watch_start(&watch, job.values->quiet, job.values->verbose);
    double started = out_now();
    spk_status st = spk_pack(job.src, job.dst, p, &result, &err);
    progress_end(&watch.progress);
    job.seconds = out_now() - started;
    if (st < 0) {
        int rc = cli_fail(&err, "run the same command again to resume");
        if (result.bad > 0 && !job.values->quiet)
            cli_note("--on-bad=skip leaves such samples out, --on-bad=keep packs them as they are; all of them are "
                     "then listed in %s/bad-files.tsv",
                     job.dst);
        return rc;
    }
    return pack_report(&job, &result);
}

static int run(const opts *o)
{
    const pack_values *v = o->values;
    spk_split splits[PACK_SPLITS_MAX];
    spk_pack_options p = {.size = sizeof p};
    char why[256], *text = NULL;
    int rc = check_values(o);
    if (rc != CLI_OK)
        return rc;
    fill(&p, o);
    if (v->split) {
        if (!(text = strdup(v->split)))
            return cli_no_memory();
        int n = pack_parse_splits(text, splits, why, sizeof why);
        if (n < 0)
            rc = cli_usage("pack", "--split %s: %s", v->split, why);
        p.splits = splits;
        p.split_count = n < 0 ? 0 : (size_t)n;
    }
    if (rc == CLI_OK)
        rc = pack(o, &p);
    free(text);
    return rc;
}

static void init(void *values)
{
    pack_values *v = values;
    v->shuffle = 1;
}

const command cmd_pack = {
    .name = "pack",
    .summary = "pack a folder or tar archive into a dataset",
    .synopsis = "[OPTION]... SRC DST",
    .description =
        "Packs the files below SRC. Files that differ only in their extension are one sample, so an image, its caption "
        "and its metadata stay together. If SRC holds sub-folders and no images of its own, each sub-folder is a "
        "class, and each sample gets its number as the field cls.\n\n"
        "The same files, options and versions give the same bytes, whatever --jobs. A run that was interrupted goes on "
        "where it stopped when the same command is given again. A finished dataset is replaced in one step; its old "
        "shards stay until \"shardpack prune\".\n\n"
        "A tar archive is packed as if it were unpacked, without unpacking it. A .tar inside of it, as in ImageNet's "
        "ILSVRC2012_img_train.tar, is a folder of that name. So the shards of webdataset, put into one archive, are "
        "packed with --stem=first; their cls files stay the labels.\n\n"
        "Each image is decoded to see that it is sound; see --check and --on-bad.",
    .options = pack_options,
    .conflicts = conflicts,
    .operands = operands,
    .min_operands = 2,
    .max_operands = 2,
    .examples = examples,
    .failure = "if a file was bad (with --on-bad=fail) or could not be read or written. DST then holds what it held "
               "before, and the work done so far in DST/.shardpack.",
    .values_size = sizeof(pack_values),
    .init = init,
    .run = run,
};
