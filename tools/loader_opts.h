/* Options of the loader that stream and bench share, under the names of the library: their rows, and the library's
 * structs made from their values. A command's values begin with a loader_values, its table holds loader_rows.h. */
#ifndef TOOLS_LOADER_OPTS_H
#define TOOLS_LOADER_OPTS_H

#include <shardpack/loader.h>

#include "opts.h"

typedef struct loader_values {
    uint64_t batch_size, seed, epoch, limit, max_errors, echo;
    uint64_t rank, world_size, chunk, lane_groups, lane_buffer;
    uint64_t prefetch, size, resize;
    int shuffle, tail, on_error, image;
    int interpolation, dtype, layout, fast, exif;
    double timeout, hflip;
    const char *mean, *std, *fields, *image_field, *only;
} loader_values;

extern const char *const loader_image_words[], *const loader_tail_words[], *const loader_error_words[];
extern const char *const loader_interpolation_words[], *const loader_dtype_words[], *const loader_layout_words[];

#define LOADER_COLUMNS_MAX 64

/* What a loader is opened with. It points into itself: not to be copied. */
typedef struct loader_setup {
    spk_loader_options options;
    spk_column columns[LOADER_COLUMNS_MAX];
    size_t count;
    char *names; /* of the fields */
    uint64_t *indices;
} loader_setup;

/* Defaults that are not zero. */
void loader_init(loader_values *v);
/* Makes the setup: image (unless none), label, index, valid, the fields, and the key if `keys`. Returns the exit
 * status, after a message; the setup is freed by the caller in either case. */
int loader_make(loader_setup *s, const opts *o, spk_dataset *dataset, int keys);
void loader_free(loader_setup *s);
/* What a column is called in output. */
const char *loader_column_name(const spk_column *column);

#define LOADER_AT(member) .offset = offsetof(loader_values, member)
#define LOADER_MOST (UINT64_C(1) << 24) /* the library's bound of what has no smaller one */

#endif
