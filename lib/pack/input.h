/* What is to be packed: files found by a folder walk or named by a list, then grouped into samples. Deterministic: the
 * result depends on names, sizes and list order only, never on directory order, locale or the number of threads.
 */
#ifndef SPK_PACK_INPUT_H
#define SPK_PACK_INPUT_H

#include <shardpack/dataset.h>
#include <shardpack/pack.h>
#include <stdbool.h>

#include "base/buf.h"
#include "pack/archive.h"

/* A source file. 40 bytes; its path is in `paths`. */
typedef struct spk_input_file {
    uint64_t path; /* offset in input->paths, NUL-terminated, relative to the source */
    uint64_t size;
    int64_t stamp;   /* larger of mtime and ctime, ns; in an archive: offset of its data (spk_input_stamp knows) */
    uint32_t field;  /* number in input->fields */
    uint32_t extra;  /* scratch: grouping; 0 afterwards */
    uint64_t sample; /* that it belongs to; scratch before */
} spk_input_file;

/* A sample: files [first, first + files) in the order of their fields, plus the members that the packer makes. */
typedef struct spk_input_sample {
    uint64_t key;   /* offset in input->paths (keys live in the same arena), NUL-terminated */
    uint64_t first; /* number of its first file */
    uint32_t files;
    int32_t label; /* >= 0: a "cls" member with this number is made; -1: none */
    uint64_t json; /* 1 + offset in input->paths of a "json" member's text, 0: none */
} spk_input_sample;

/* Where the sample of a dataset lies. */
#define SPK_CUT_FRAME 1u /* begins a frame */
#define SPK_CUT_SHARD 2u /* begins a shard */

typedef struct spk_input {
    spk_buf paths;
    spk_input_file *files;
    size_t files_n, files_cap;
    spk_input_sample *samples; /* sorted by key; with a list: in the list's order */
    size_t samples_n, samples_cap;
    char **fields; /* field names; field_kinds in parallel */
    size_t fields_n, fields_cap;
    char **classes; /* percent-escaped, sorted by raw bytes; index = label */
    size_t classes_n;
    bool list;
    spk_archive *archive; /* the source is this archive; NULL: a folder, or a dataset */
    spk_dataset *dataset; /* the source is this dataset, its samples are in its order, and members are files whose path
                             is empty if the packer made them; NULL: it is none */
    uint8_t *cuts;        /* of a dataset, by sample: SPK_CUT_ bits */
    size_t cuts_cap;
    uint64_t gone; /* of a dataset: files of which only the pixels are there */
    uint64_t junk, other_skipped, excluded, excluded_folders, empty_folders;
    uint64_t unlabelled; /* samples outside any class folder, in a class tree; rows without a label */
    int64_t around;      /* newest stamp of the folders that lead to the files, the source included; archives: 0 */
    spk_buf around_path; /* of that folder, with NUL; "" is the source */
} spk_input;

typedef struct spk_input_hooks {
    /* Now and then with the files found so far; nonzero cancels. May be NULL. */
    int (*on_files)(void *ctx, uint64_t files);
    void (*on_note)(void *ctx, const char *text); /* may be NULL */
    void *ctx;
} spk_input_hooks;

/* Scans src, a folder or an archive (open at src_fd, named src in messages), by the options: list, include, exclude,
 * follow_symlinks, labels, stem, limit. skip_dev/skip_ino: a folder to leave out (the target, when it lies inside the
 * source: INVALID). */
SPK_CHECK spk_status spk_input_scan(spk_input *in, int src_fd, const char *src, const spk_pack_options *o,
                                    uint64_t target_dev, uint64_t target_ino, const spk_input_hooks *hooks,
                                    spk_error *err);
/* The same of a dataset: reads the indexes of all shards. Takes the dataset, also on errors. */
SPK_CHECK spk_status spk_input_scan_dataset(spk_input *in, spk_dataset *taken, const char *src,
                                            const spk_input_hooks *hooks, spk_error *err);

void spk_input_free(spk_input *in);

static inline const char *spk_input_str(const spk_input *in, uint64_t offset)
{
    return (const char *)in->paths.data + offset;
}

static inline int64_t spk_input_stamp(const spk_input *in, const spk_input_file *f)
{
    return in->archive ? in->archive->stamp : f->stamp;
}

/* Whether a member is not a file of the source but made by a packer; file NULL: by this one. */
static inline bool spk_input_made(const spk_input *in, const spk_input_file *file)
{
    return !file || (in->dataset && spk_input_str(in, file->path)[0] == '\0');
}

/* Puts where a file lies in front of the error: "SRC/path", in an archive "SRC: inner.tar: member". */
void spk_input_prefix(const spk_input *in, const char *src, const spk_input_file *f, spk_error *err);

/* Kind of a field by its name: "image", "label", "text", "json", "bytes". */
const char *spk_field_kind(const char *field);
/* Nonzero if bytes of this field hardly shrink (jpg, png, webp, gif, mp4, gz, zst, ...). */
bool spk_field_is_compressed(const char *field);

/* Share of [0,1) that a stem path falls on, for splits: see format-spec/dataset.md section 6. Negative: out of memory.
 */
double spk_split_position(const char *stem, size_t n);

#endif
