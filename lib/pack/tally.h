/* What has been packed: counts that add up from frame to shard to split. Confined. */
#ifndef SPK_PACK_TALLY_H
#define SPK_PACK_TALLY_H

#include "base/buf.h"
#include "dataset/manifest.h"
#include "image/check.h"
#include "image/transcode.h"

typedef struct spk_tally {
    uint64_t samples;                     /* stored */
    uint64_t files;                       /* source files stored */
    uint64_t payload;                     /* bytes of their data as it is stored */
    uint64_t source;                      /* their bytes */
    uint64_t bad;                         /* bad files found */
    uint64_t skipped_samples;             /* left out because of one */
    uint64_t jpeg[SPK_TRANSCODE_RESULTS]; /* with --jpeg fast: images by what came of them */
    spk_image_stat images;
    uint64_t *fields; /* samples that have the field, by its number in the plan */
    size_t fields_n;
    spk_buf bad_lines; /* "path TAB action TAB reason LF" each, names percent-escaped */
} spk_tally;

SPK_CHECK spk_status spk_tally_init(spk_tally *t, size_t fields_n, spk_error *err);
void spk_tally_reset(spk_tally *t);
void spk_tally_free(spk_tally *t);
/* Both have the same number of fields. */
SPK_CHECK spk_status spk_tally_merge(spk_tally *into, const spk_tally *from, spk_error *err);
void spk_tally_image(spk_tally *t, const spk_image_info *image);
/* action: "skipped" or "kept". */
SPK_CHECK spk_status spk_tally_bad(spk_tally *t, const char *path, const char *action, const char *reason,
                                   spk_error *err);

/* The numbers (all but bad_lines) as a flat array of spk_tally_numbers(t) values, for the journal. */
#define SPK_TALLY_FIXED (6 + SPK_TRANSCODE_RESULTS + 10 + SPK_IMAGE_BUCKETS)
static inline size_t spk_tally_numbers(const spk_tally *t)
{
    return SPK_TALLY_FIXED + t->fields_n;
}
uint64_t spk_tally_get(const spk_tally *t, size_t i);
void spk_tally_set(spk_tally *t, size_t i, uint64_t value);

#endif
