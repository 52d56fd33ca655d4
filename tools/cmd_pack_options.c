/* The options of shardpack pack, and the one whose value has a grammar of its own: --split. */
#include <stdlib.h>
#include <string.h>

#include "cmd_pack.h"

extern const opt pack_options[];

const char *const pack_jpeg_words[] = {"keep", "fast", NULL};
static const char *const frames_words[] = {"many", "single", NULL};
static const char *const check_words[] = {"decode", "header", "none", NULL}; /* as spk_check */
static const char *const bad_words[] = {"fail", "skip", "keep", NULL};       /* as spk_on_bad */
static const char *const label_words[] = {"auto", "folders", "none", NULL};  /* as spk_labels */
static const char *const stem_words[] = {"last", "first", NULL};             /* as spk_stem */

#define AT(member) .offset = offsetof(pack_values, member)
#define MIB (UINT64_C(1) << 20)

const opt pack_options[] = {
    {.help = "What is packed"},
    {.name = "include",
     .kind = OPT_LIST,
     .arg = "GLOB",
     AT(include),
     .help = "Only files that match; * also matches /. A pattern without / is compared with the file name, one with / "
             "with the path below SRC. May be repeated."},
    {.name = "exclude",
     .kind = OPT_LIST,
     .arg = "GLOB",
     AT(exclude),
     .help = "No files or folders that match. May be repeated."},
    {.name = "list",
     .kind = OPT_STRING,
     .letter = 'l',
     .arg = "FILE",
     AT(list),
     .complete = COMPLETE_FILE,
     .help = "Pack the files that a .csv, .tsv or .jsonl file names, one sample per row: column path, if there is one "
             "label, and any others as the field json. - reads JSON Lines from standard input."},
    {.name = "limit", .kind = OPT_U64, .arg = "N", AT(limit), .min = 1, .help = "At most N samples."},
    {.name = "follow-symlinks",
     .kind = OPT_FLAG,
     AT(follow_symlinks),
     .help = "Pack what symbolic links point to; they are skipped otherwise."},
    {.name = "labels",
     .kind = OPT_ENUM,
     .arg = "FROM",
     AT(labels),
     .def = "auto",
     .values = label_words,
     .help =
         "Labels from the sub-folders of SRC: auto takes them unless images lie in SRC itself, or all samples have a "
         "cls file."},
    {.name = "stem",
     .kind = OPT_ENUM,
     .arg = "DOT",
     AT(stem),
     .def = "last",
     .values = stem_words,
     .help = "Where the extension of a file name begins: at its last or its first dot."},
    {.name = "split",
     .kind = OPT_STRING,
     .arg = "NAME=SHARE,...",
     AT(split),
     .help =
         "Make several datasets in DST, such as train=0.9,val=0.1. A sample's place follows from its path alone, so "
         "it does not change when files are added. The shares add up to 1."},

    {.help = "Checks"},
    {.name = "check",
     .kind = OPT_ENUM,
     .arg = "HOW",
     AT(check),
     .def = "decode",
     .values = check_words,
     .help = "How JPEG and PNG images are checked: decoded completely, by their header, or not at all. Of other "
             "image formats only the header is looked at."},
    {.name = "on-bad",
     .kind = OPT_ENUM,
     .arg = "WHAT",
     AT(on_bad),
     .def = "fail",
     .values = bad_words,
     .help = "What happens with a sample that has a bad image. All are listed in DST/bad-files.tsv."},
    {.name = "jpeg",
     .kind = OPT_ENUM,
     .arg = "HOW",
     AT(jpeg),
     .def = "keep",
     .values = pack_jpeg_words,
     .help = "How JPEG files are stored: as they are, or fast: as their coefficients, which takes less "
             "room and is decoded by the loader 3 times as fast as by libjpeg-turbo, to the same pixels. All "
             "commands and readers of shardpack give "
             "the files back byte for byte; to other tools they are blobs. Each is tried at once; what does not come "
             "back exactly, or would not be smaller, stays as it is."},
    {.name = "allow-unrestorable",
     .kind = OPT_FLAG,
     AT(allow_unrestorable),
     .help = "With --jpeg=fast, store also those that cannot be made anew byte for byte as the coefficients of another "
             "JPEG file with the same pixels and metadata. Readers then give that file; the original is lost."},
    {.name = "max-pixels",
     .kind = OPT_U64,
     .arg = "N",
     AT(max_pixels),
     .min = 1,
     .def = "178956970",
     .help = "An image with more pixels is bad."},

    {.help = "Order and layout"},
    {.name = "shuffle",
     .kind = OPT_FLAG,
     .negatable = 1,
     AT(shuffle),
     .def = "on",
     .help = "Shuffle all samples. Otherwise they are sorted by key, or stay in the order of the list."},
    {.name = "seed", .kind = OPT_U64, .arg = "N", AT(seed), .def = "0", .help = "Seed of the shuffle."},
    {.name = "shard-size",
     .kind = OPT_SIZE,
     .arg = "SIZE",
     AT(shard_size),
     .def = "256MiB",
     .min = 1,
     .max = MIB << 30,
     .help = "Bytes of source files per shard."},
    {.name = "shard-samples",
     .kind = OPT_U64,
     .arg = "N",
     AT(shard_samples),
     .min = 1,
     .max = UINT32_MAX,
     .help = "Samples per shard at most."},
    {.name = "frame-size",
     .kind = OPT_SIZE,
     .arg = "SIZE",
     AT(frame_size),
     .def = "1MiB",
     .min = 1024,
     .max = 1023 * MIB,
     .help = "Bytes per frame, the piece that is read at once."},
    {.name = "frame-samples",
     .kind = OPT_U64,
     .arg = "N",
     AT(frame_samples),
     .def = "64",
     .min = 1,
     .max = UINT32_MAX,
     .help = "Samples per frame at most."},
    {.name = "frames",
     .kind = OPT_ENUM,
     .arg = "HOW",
     AT(frames),
     .def = "many",
     .values = frames_words,
     .help = "Frames per shard; single is for readers that stop after the first, such as Python 3.14's "
             "tarfile in stream mode."},
    {.name = "level",
     .kind = OPT_INT,
     .arg = "N",
     AT(level),
     .min = -100,
     .max = 22,
     .def = "by content",
     .help = "Level of zstd. By default it is low for what is compressed already."},
    {.name = "prefix",
     .kind = OPT_STRING,
     .arg = "WORD",
     AT(prefix),
     .def = "shard, or the split",
     .help = "Begin of the shards' names."},

    {.help = "Running"},
    PACK_RUN_ROWS(pack_values),
    {.name = "dry-run",
     .kind = OPT_FLAG,
     .letter = 'n',
     AT(dry_run),
     .help = "Look and plan only; no image is checked, nothing is written."},
    PACK_OUTPUT_ROWS(pack_values),
    {.name = "verbose", .kind = OPT_FLAG, .letter = 'v', AT(verbose), .help = "Say more, and list every bad file."},
    {0},
};

int pack_parse_splits(char *text, spk_split *out, char *why, size_t why_size)
{
    double sum = 0;
    int n = 0;
    for (char *item = text, *next; item; item = next) {
        char *eq, *end;
        if ((next = strchr(item, ',')))
            *next++ = 0;
        eq = strchr(item, '=');
        if (!eq || eq == item || n == PACK_SPLITS_MAX) {
            snprintf(why, why_size, n == PACK_SPLITS_MAX ? "more than 64 splits" : "expected NAME=SHARE,NAME=SHARE");
            return -1;
        }
        *eq = 0;
        if (item[strspn(item, "abcdefghijklmnopqrstuvwxyz0123456789_-")] || *item == '-') {
            snprintf(why, why_size, "a name has only the characters a-z 0-9 _ and, not first, -");
            return -1;
        }
        if (strlen(item) > PACK_NAME_MAX) {
            snprintf(why, why_size, "a name has at most %d characters", PACK_NAME_MAX);
            return -1;
        }
        out[n].name = item;
        out[n].share = strtod(eq + 1, &end);
        if (!strchr("0123456789.", eq[1]) || strpbrk(eq + 1, "xX") || *end || end == eq + 1 ||
            !(out[n].share > 0 && out[n].share <= 1)) {
            snprintf(why, why_size, "the share of %s must be above 0 and at most 1", item);
            return -1;
        }
        for (int k = 0; k < n; k++)
            if (strcmp(out[k].name, item) == 0) {
                snprintf(why, why_size, "%s is named twice", item);
                return -1;
            }
        sum += out[n++].share;
    }
    if (sum < 1 - 1e-6 || sum > 1 + 1e-6) {
        snprintf(why, why_size, "the shares add up to %.9g, not 1", sum);
        return -1;
    }
    return n;
}
