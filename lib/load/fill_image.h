/* Image columns: the loader's options in terms of image/, and one renderer for each column. */
#ifndef SPK_LOAD_FILL_IMAGE_H
#define SPK_LOAD_FILL_IMAGE_H

#include "image/render.h"
#include "load/spec.h"

/* Fields that an image column without a field takes, the first that a sample has; ends with NULL. */
extern const char *const spk_image_fields[];

/* INVALID names the option and its range. */
SPK_CHECK spk_status spk_image_options_check(const spk_image_options *o, spk_error *err);

/* The renderers of all image columns. Confined. */
typedef struct spk_fill_images spk_fill_images;

SPK_CHECK spk_status spk_fill_images_new(spk_fill_images **out, const spk_load_spec *spec, spk_error *err);
/* The file that a field stored as jpeg_coefficients was made from; borrowed until the next call. */
SPK_CHECK spk_status spk_fill_restore(spk_fill_images *f, const void *stored, size_t n, const uint8_t **out,
                                      size_t *size, spk_error *err);
void spk_fill_images_free(spk_fill_images *f);
/* Column `column` of a row: decodes n bytes and writes the column's row_bytes at out; a repeat of the sample before
 * (key) uses what was read of it. The first image column's crop and
 * flips are kept for those paired with it, so columns of a row are filled in their order. After an error what out holds
 * is undefined. */
SPK_CHECK spk_status spk_fill_image(spk_fill_images *f, uint32_t column, const spk_draw_key *key, const void *data,
                                    size_t n, uint8_t *out, spk_error *err);

#endif
