/* Private to the scan: its state, and the steps from files to samples. Confined. */
#ifndef SPK_PACK_SCAN_H
#define SPK_PACK_SCAN_H

#include <sys/stat.h>

#include "pack/input.h"
#include "pack/input_intern.h"
#include "pack/names.h"
#include "shard/format.h"
#include "shard/tar.h"

#define SPK_SCAN_FIELDS_MAX 65536u /* different fields */
#define SPK_SCAN_SAMPLES_MAX 0x7FFFFFFFu
/* Most bytes of a file: header, padded data and end marker must fit one frame. */
#define SPK_SCAN_FILE_MAX ((uint64_t)(SPK_FRAME_CONTENT_MAX - SPK_TAR_END - SPK_TAR_BLOCK))

typedef struct spk_scan {
    spk_input *in;
    int src_fd;
    const char *src;
    const spk_pack_options *o;
    uint64_t target_dev, target_ino;
    const spk_input_hooks *hooks;
    uint64_t ticks; /* entries seen, for the hook */
    spk_intern fields;
    uint32_t last_field;
    char **classes; /* raw names of the first-level folders */
    size_t classes_n, classes_cap;
    bool root_image;    /* an image lies directly in the source */
    spk_intern members; /* numbers of the archive's members, when it is read through a list */
} spk_scan;

/* Appends a regular file; path is relative and not yet in the arena. LIMIT if it is too large for a sample. */
SPK_CHECK spk_status spk_scan_add(spk_scan *s, const char *path, size_t n, const struct stat *st, spk_error *err);
/* The larger of mtime and ctime, ns. */
int64_t spk_stamp_of(const struct stat *st);
/* Notes the times of a folder that leads to files (n bytes of path; 0: the source): who renames or replaces one
 * changes what lies below and no file's own time. */
SPK_CHECK spk_status spk_scan_around(spk_scan *s, const char *path, size_t n, const struct stat *st, spk_error *err);
/* Calls the hook every 1024 calls. */
SPK_CHECK spk_status spk_scan_tick(spk_scan *s, spk_error *err);
/* The number of a field name, new or known. */
SPK_CHECK spk_status spk_scan_field(spk_scan *s, const char *name, uint32_t *out, spk_error *err);

/* Copies a string with its NUL into the arena. */
SPK_CHECK spk_status spk_scan_text(spk_input *in, const char *s, size_t n, uint64_t *out, spk_error *err);

/* Walks the folder tree into files and class names. */
SPK_CHECK spk_status spk_scan_tree(spk_scan *s, spk_error *err);
/* The same for the archive that the source is. */
SPK_CHECK spk_status spk_scan_archive(spk_scan *s, spk_error *err);
/* Finds the archive's members, for the two steps here and above. */
SPK_CHECK spk_status spk_scan_open_archive(spk_scan *s, spk_error *err);
/* Appends the member of that path as spk_scan_add does. NOT_FOUND, INVALID. */
SPK_CHECK spk_status spk_scan_named_member(spk_scan *s, const char *path, spk_error *err);
/* Reads the list into files, samples and class names. */
SPK_CHECK spk_status spk_scan_list(spk_scan *s, spk_error *err);

/* Sorts the files of a tree by stem and makes samples of them, in the order of the files. */
SPK_CHECK spk_status spk_group_files(spk_scan *s, spk_error *err);
/* Gives twins that differ in case only their hash form, and refuses keys that are still equal. */
SPK_CHECK spk_status spk_group_unique(spk_scan *s, spk_error *err);
/* Sorts samples by key. */
void spk_group_sort_samples(spk_input *in);
/* Class names and labels of a tree. */
SPK_CHECK spk_status spk_group_labels(spk_scan *s, spk_error *err);
/* Notes about what seldom is meant so. */
void spk_scan_hints(const spk_scan *s);
/* Turns raw class names into the input's classes; takes them. */
SPK_CHECK spk_status spk_group_classes(spk_scan *s, spk_error *err);

#endif
