/* Where the loader meets image/. */
#include "load/fill_image.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/coef.h"

const char *const spk_image_fields[] = {"jpg", "png", NULL};

struct spk_fill_images {
    spk_renderer *renderers[SPK_COLUMNS_MAX]; /* NULL: not an image */
    bool paired[SPK_COLUMNS_MAX];
    uint64_t last[SPK_COLUMNS_MAX]; /* 1 + the sample whose image was rendered last; 0: none, or that failed */
    uint32_t first;                 /* image column */
    spk_geometry geometry;
    spk_coef_reader *coef; /* made when first used */
    spk_buf restored;
};

/* The enumerations have the same values on both sides; a value that is out of range stays so. */
static spk_image_params params_of(const spk_image_options *o)
{
    spk_image_params p;
    memset(&p, 0, sizeof p);
    p.crop = (spk_crop_kind)o->transform;
    p.resize = o->resize;
    memcpy(p.scale, o->scale, sizeof p.scale);
    memcpy(p.ratio, o->ratio, sizeof p.ratio);
    p.hflip = o->hflip;
    p.vflip = o->vflip;
    p.filter = (spk_filter)o->interpolation;
    p.format.type = (spk_pixel_type)o->dtype;
    p.format.order = (spk_pixel_order)o->layout;
    p.format.width = o->width;
    p.format.height = o->height;
    p.format.channels = o->channels;
    p.format.normalize = o->normalize != 0;
    memcpy(p.format.mean, o->mean, sizeof p.format.mean);
    memcpy(p.format.std, o->std, sizeof p.format.std);
    p.exif_orientation = o->exif_orientation != 0;
    p.fast = o->fast != 0;
    p.max_pixels = o->max_pixels;
    return p;
}

static_assert((int)SPK_RANDOM_RESIZED_CROP == (int)SPK_CROP_RANDOM, "same values");
static_assert((int)SPK_RESIZE_CENTER_CROP == (int)SPK_CROP_CENTRE, "same values");
static_assert((int)SPK_RESIZE_EXACT == (int)SPK_CROP_NONE, "same values");
static_assert((int)SPK_BILINEAR == (int)SPK_FILTER_BILINEAR, "same values");
static_assert((int)SPK_BICUBIC == (int)SPK_FILTER_BICUBIC, "same values");
static_assert((int)SPK_NEAREST == (int)SPK_FILTER_NEAREST, "same values");
static_assert((int)SPK_UINT8 == (int)SPK_PIXEL_UINT8, "same values");
static_assert((int)SPK_FLOAT16 == (int)SPK_PIXEL_FLOAT16, "same values");
static_assert((int)SPK_FLOAT32 == (int)SPK_PIXEL_FLOAT32, "same values");
static_assert((int)SPK_NHWC == (int)SPK_PIXEL_NHWC && (int)SPK_NCHW == (int)SPK_PIXEL_NCHW, "same values");

spk_status spk_image_options_check(const spk_image_options *o, spk_error *err)
{
    spk_image_params p = params_of(o);
    return spk_image_params_check(&p, err);
}

spk_status spk_fill_images_new(spk_fill_images **out, const spk_load_spec *spec, spk_error *err)
{
    spk_status status = SPK_OK;
    *out = NULL;
    spk_fill_images *f = calloc(1, sizeof *f);
    if (!f)
        return spk_error_nomem(err, sizeof *f);
    f->first = UINT32_MAX;
    for (uint32_t i = 0; i < spec->columns_n && status == SPK_OK; i++) {
        if (spec->columns[i].kind != SPK_COLUMN_IMAGE)
            continue;
        f->first = f->first == UINT32_MAX ? i : f->first;
        f->paired[i] = spec->columns[i].image.paired != 0;
        spk_image_params p = params_of(&spec->columns[i].image);
        status = spk_renderer_new(&f->renderers[i], &p, err);
    }
    if (status < 0)
        spk_fill_images_free(f);
    else
        *out = f;
    return status;
}

void spk_fill_images_free(spk_fill_images *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < SPK_COLUMNS_MAX; i++)
        spk_renderer_free(f->renderers[i]);
    spk_coef_reader_free(f->coef);
    spk_buf_free(&f->restored);
    free(f);
}

spk_status spk_fill_restore(spk_fill_images *f, const void *stored, size_t n, const uint8_t **out, size_t *size,
                            spk_error *err)
{
    f->restored.len = 0;
    if (!f->coef)
        SPK_TRY(spk_coef_reader_new(&f->coef, err));
    SPK_TRY(spk_coef_open(f->coef, stored, n, err));
    SPK_TRY(spk_coef_restore(f->coef, &f->restored, err));
    *out = f->restored.data;
    *size = f->restored.len;
    return SPK_OK;
}

spk_status spk_fill_image(spk_fill_images *f, uint32_t column, const spk_draw_key *key, const void *data, size_t n,
                          uint8_t *out, spk_error *err)
{
    spk_renderer *r = f->renderers[column];
    uint64_t last = f->last[column];
    f->last[column] = 0;
    if (key->repeat > 0 && last == key->index + 1)
        spk_renderer_repeat(r);
    SPK_TRY(spk_renderer_run(r, data, n, key, f->paired[column] ? &f->geometry : NULL, out,
                             column == f->first ? &f->geometry : NULL, err));
    f->last[column] = key->index + 1;
    return SPK_OK;
}
