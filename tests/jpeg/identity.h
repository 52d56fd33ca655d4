/* Shared by the parts of the identity check (identity.c): kinds of files, and the comparison of one file. */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdbool.h>
#include <stdio.h> /* before jpeglib.h, which needs size_t and FILE */

#include <jpeglib.h>

#include "base/rng.h"
#include "image/rect.h"
#include "image/transcode.h"

/* ---- kinds.c ---- */

/* How a file is made from a picture. */
typedef struct kind {
    const char *name;
    int quality;          /* 0: the file as it is */
    J_COLOR_SPACE colour; /* JCS_UNKNOWN: YCbCr, gray if the picture is */
    int h, v;             /* sampling of the first component; 0: that of the picture's own file */
    int chroma_h;         /* of the second; 0: 1 */
    bool optimize, progressive, arithmetic;
    const struct scan_list *scans; /* NULL: libjpeg's own, if progressive */
    bool restart;                  /* a marker every 1 to 40 MCUs, or every 1 to 3 rows of them */
    bool wide;                     /* quantisation tables of 16 bits */
    bool ours;                     /* our decoder must do it without libjpeg, and it must have a stored form */
    bool stored;                   /* it must have a stored form, whoever decodes the file */
} kind;

extern const kind all_kinds[];
extern const size_t kinds_n;
/* The first kinds_sized of them are also made in all sizes. */
extern const kind sized_kinds[];
extern const size_t sized_kinds_n;

/* 8-bit RGB. */
typedef struct picture {
    uint8_t *rgb;
    uint32_t width, height;
    bool gray;
    int h, v; /* sampling of the file that it comes from */
} picture;

/* A file of malloc, or NULL if this libjpeg cannot write the kind. `part` lies in the picture. */
unsigned char *make_file(const picture *p, spk_rect part, const kind *k, spk_rng *rng, size_t *n);

/* ---- compare.c ---- */

typedef struct tally {
    uint64_t images, damaged, pixels, crops, wrong; /* wrong: images with a fault */
    uint64_t own;                                   /* images that our decoder did */
    uint64_t results[SPK_TRANSCODE_RESULTS];
    uint64_t bytes, stored_bytes; /* of files that have a stored form */
} tally;

typedef struct comparer comparer;
comparer *comparer_new(void);
void comparer_free(comparer *c);
/* The file against libjpeg-turbo, called directly: whole and `crops` parts, with vectors and without, from the file and
 * from its stored form, which must give the file back. Of `k` (NULL: anything may be) counts whether it must not be
 * left to libjpeg, must have a stored form. Faults go to stderr, headed by `what`. False if there was any. */
bool compare_file(comparer *c, const uint8_t *data, size_t n, uint32_t crops, const kind *k, spk_rng *rng,
                  const char *what, tally *t);
/* The picture of the file that was compared last, borrowed; rgb NULL if there is none. */
picture compared_picture(const comparer *c);

#endif
