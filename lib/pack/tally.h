/* What has been packed: counts that add up from frame to shard to split. Confined. */
#ifndef SPK_PACK_TALLY_H
#define SPK_PACK_TALLY_H

#include "base/buf.h"
#include "dataset/manifest.h"
#include "image/check.h"
#include "image/transcode.h"

/* How a member is stored. */
typedef enum spk_form { SPK_FORM_IDENTITY = 0, SPK_FORM_COEFFICIENTS = 1, SPK_FORM_PIXELS = 2 } spk_form;
#define SPK_FORMS 3
/* Name of its encoding; the form of an encoding, SPK_FORMS for one that the packer does not know. */
const char *spk_form_name(spk_form form);
spk_form spk_form_of(const char *encoding);

/* Members of a field in one form. */
typedef struct spk_tally_form {
    uint64_t samples, bytes, original; /* bytes: as stored; original: as readers give them */
} spk_tally_form;

typedef struct spk_tally_field {
    spk_tally_form forms[SPK_FORMS];
} spk_tally_field;

typedef struct spk_tally {
    uint64_t samples;                     /* stored */
    uint64_t files;                       /* source files stored */
    uint64_t payload;                     /* their bytes, as readers give them */
    uint64_t bad;                         /* bad files found */
    uint64_t skipped_samples;             /* left out because of one */
    uint64_t jpeg[SPK_TRANSCODE_RESULTS]; /* with --jpeg fast: images by what came of them */
    uint64_t jpeg_pixels;                 /* those of which only the pixels are kept; in no other count */
    spk_image_stat images;
    spk_tally_field *fields; /* by number in the plan */
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
#define SPK_TALLY_PER_FIELD (sizeof(spk_tally_field) / sizeof(uint64_t))
static inline size_t spk_tally_numbers(const spk_tally *t)
{
    return SPK_TALLY_FIXED + t->fields_n * SPK_TALLY_PER_FIELD;
}
uint64_t spk_tally_get(const spk_tally *t, size_t i);
void spk_tally_set(spk_tally *t, size_t i, uint64_t value);

#endif
