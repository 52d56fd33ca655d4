/* The packer: turns an image folder or a list of files into a dataset. Behaviour: README.md and format-spec/. */
#ifndef SHARDPACK_PACK_H
#define SHARDPACK_PACK_H

#include <shardpack/dataset.h>
#include <shardpack/error.h>
#include <shardpack/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum spk_check { SPK_CHECK_DECODE = 0, SPK_CHECK_HEADER = 1, SPK_CHECK_NONE = 2 } spk_check;
typedef enum spk_on_bad { SPK_ON_BAD_FAIL = 0, SPK_ON_BAD_SKIP = 1, SPK_ON_BAD_KEEP = 2 } spk_on_bad;
typedef enum spk_labels { SPK_LABELS_AUTO = 0, SPK_LABELS_FOLDERS = 1, SPK_LABELS_NONE = 2 } spk_labels;
typedef enum spk_stem { SPK_STEM_LAST_DOT = 0, SPK_STEM_FIRST_DOT = 1 } spk_stem;

/* How JPEG images are stored. FAST: as coefficients, which take less room and decode faster; readers give
 * back the file, byte for byte. */
typedef enum spk_jpeg_mode { SPK_JPEG_KEEP = 0, SPK_JPEG_FAST = 1 } spk_jpeg_mode;

typedef enum spk_pack_phase {
    SPK_PACK_SCAN = 0,  /* files found so far; total unknown (0) */
    SPK_PACK_BUILD = 1, /* samples and source bytes packed */
    SPK_PACK_PUBLISH = 2
} spk_pack_phase;

typedef struct spk_pack_progress {
    spk_pack_phase phase;
    int reserved;
    uint64_t files;   /* scanned (SCAN) */
    uint64_t samples; /* done */
    uint64_t samples_total;
    uint64_t bytes; /* source bytes done */
    uint64_t bytes_total;
    uint64_t bytes_resumed; /* of bytes: taken over from an earlier, interrupted run */
    uint64_t bytes_out;     /* of finished frames */
    uint64_t bad;           /* bad files so far */
} spk_pack_progress;

/* A split: name and share. Shares of all splits add up to 1. */
typedef struct spk_split {
    const char *name; /* [a-z0-9_-]+, becomes a folder of the target */
    double share;
} spk_split;

/* Zero is the default of every member but size. Pointers are borrowed for the call. */
typedef struct spk_pack_options {
    size_t size;            /* sizeof(spk_pack_options) */
    uint64_t shard_size;    /* source bytes per shard; 0: 256 MiB */
    uint64_t shard_samples; /* samples per shard at most; 0: no limit */
    uint64_t frame_size;    /* tar bytes per frame; 0: 1 MiB */
    uint64_t frame_samples; /* samples per frame at most; 0: 64 */
    int single_frame;       /* nonzero: one data frame per shard */
    int has_level;          /* nonzero: level is given; else it is chosen per frame by what the frame holds */
    int level;              /* zstd level */
    int jobs;               /* threads; 0: the CPU quota. Never changes the bytes */
    int no_shuffle;         /* keep the order of the keys, or of the list */
    int reserved;
    uint64_t seed;              /* of the shuffle */
    const char *prefix;         /* of shard names, [A-Za-z0-9_]+; NULL: "shard", or the split's name */
    const char *list;           /* CSV, TSV or JSON Lines file (by its extension) naming the samples; "-": stdin as JSON
                                   Lines; NULL: walk the source folder */
    const char *const *include; /* globs on the path relative to the source; none: all */
    size_t include_count;
    const char *const *exclude;
    size_t exclude_count;
    uint64_t limit; /* at most this many samples; 0: all */
    const spk_split *splits;
    size_t split_count;
    spk_check check;
    spk_on_bad on_bad;
    spk_labels labels;
    spk_stem stem;
    int follow_symlinks;
    int force;   /* discard an interrupted run that does not match; pack anew beside a finished dataset */
    int dry_run; /* scan and plan only */
    int reserved2;
    uint64_t max_pixels; /* of one image; 0: 178,956,970 (the limit at which Pillow warns twice over) */
    /* Called from the calling thread about ten times a second; nonzero cancels. May be NULL. */
    int (*on_progress)(void *user, const spk_pack_progress *progress);
    /* Something worth telling that is no error (one line of text); from the calling thread. May be NULL. */
    void (*on_note)(void *user, const char *text);
    void *user;
    spk_jpeg_mode jpeg;
    int allow_unrestorable; /* with SPK_JPEG_FAST: nonzero: also images whose file could not be made anew, as the
                               coefficients of a file with the same pixels; the original is lost */
} spk_pack_options;

typedef struct spk_pack_result {
    uint64_t samples; /* in the dataset(s) */
    uint64_t files;   /* source files stored */
    uint64_t classes;
    uint64_t shards;
    uint64_t frames;
    uint64_t bytes_in;  /* source bytes stored */
    uint64_t bytes_out; /* shard bytes */
    uint64_t bad;       /* bad files found (also listed in DST/bad-files.tsv) */
    uint64_t bad_skipped_samples;
    uint64_t junk;             /* system junk files skipped */
    uint64_t other_skipped;    /* sockets, devices, and links not followed */
    uint64_t excluded;         /* files, by include and exclude */
    uint64_t excluded_folders; /* by exclude, whatever is in them; in an archive their files count one by one */
    uint64_t shards_resumed;   /* taken over from an interrupted run */
    int up_to_date;            /* nonzero: the target already held exactly this; nothing was done */
    int reserved;
    uint64_t jpeg_fast;    /* JPEG images stored as coefficients, of which the file comes back byte for byte */
    uint64_t jpeg_other;   /* with SPK_JPEG_FAST: stored as they are: of a kind that has no such form */
    uint64_t jpeg_damaged; /* ... libjpeg warns of something */
    uint64_t jpeg_unequal; /* ... the file or its pixels would not have come back exactly */
    uint64_t jpeg_no_gain; /* ... the stored form is larger; with several scans: by more than a 32nd */
    uint64_t jpeg_pixels;  /* stored as coefficients, the file's own bytes lost (allow_unrestorable) */
    char fingerprint[65];  /* of the dataset; of the first split if there are several; empty on dry_run */
} spk_pack_result;

/* Packs the folder src, or the tar archive src as if it were unpacked, into the folder dst (made if missing; its parent
 * must exist). Atomic: dst's manifest names the old dataset or the new one. After any error or kill, the same call
 * again goes on where it stopped. Errors: NOT_FOUND, INVALID, IO, PERMISSION, FORMAT (bad image with SPK_ON_BAD_FAIL,
 * bad list, damaged archive), UNSUPPORTED (compressed archive), CHANGED, EXISTS, BUSY, LIMIT, CANCELLED, NOMEM. *result
 * is filled as far as things went, also on error. */
SPK_API SPK_CHECK spk_status spk_pack(const char *src, const char *dst, const spk_pack_options *options,
                                      spk_pack_result *result, spk_error *err);

/* Zero is the default of every member but size. */
typedef struct spk_repack_options {
    size_t size; /* sizeof(spk_repack_options) */
    spk_jpeg_mode jpeg;
    int allow_unrestorable; /* as in spk_pack_options; with SPK_JPEG_KEEP: in place of files that are lost others with
                               the same pixels are stored */
    int jobs;
    int force;
    int dry_run;
    int reserved;
    const spk_dataset_options *dataset; /* how the dataset is opened; may be NULL */
    int (*on_progress)(void *user, const spk_pack_progress *progress);
    void (*on_note)(void *user, const char *text);
    void *user;
} spk_repack_options;

/* Makes from a dataset (folder or URL) one in the folder dst with its JPEG images in the other form. Everything else
 * stays: samples, their shards and frames, names, labels, settings. The shards are those that packing the same files
 * with that form gives. Atomic and resumable like spk_pack, with its errors and those of spk_dataset_open. UNSUPPORTED:
 * with SPK_JPEG_KEEP, if files are lost and others in their place are not allowed. */
SPK_API SPK_CHECK spk_status spk_repack(const char *dataset, const char *dst, const spk_repack_options *options,
                                        spk_pack_result *result, spk_error *err);

#ifdef __cplusplus
}
#endif

#endif
