/* Ranges of the image options. */
#include <math.h>

#include "base/error.h"
#include "image/render.h"

static spk_status check_range(const char *name, const double v[2], bool positive, spk_error *err)
{
    if (!isfinite(v[0]) || !isfinite(v[1]) || v[0] > v[1] || v[0] < 0 || (positive && v[0] <= 0))
        return spk_error_set(err, SPK_E_INVALID, "%s: %g to %g, but both must be %s and in order", name, v[0], v[1],
                             positive ? "positive" : "at least 0");
    return SPK_OK;
}

static spk_status check_probability(const char *name, double p, spk_error *err)
{
    if (!(p >= 0 && p <= 1))
        return spk_error_set(err, SPK_E_INVALID, "%s: %g is not between 0 and 1", name, p);
    return SPK_OK;
}

static spk_status check_format(const spk_pixel_format *f, spk_error *err)
{
    if (f->width - 1 >= SPK_IMAGE_SIDE_MAX || f->height - 1 >= SPK_IMAGE_SIDE_MAX)
        return spk_error_set(err, SPK_E_INVALID, "height, width: %u x %u, but each must be 1 to %u", f->height,
                             f->width, SPK_IMAGE_SIDE_MAX);
    if (f->channels != 1 && f->channels != 3)
        return spk_error_set(err, SPK_E_INVALID, "channels: %u, but must be 1 or 3", f->channels);
    if ((unsigned)f->type > SPK_PIXEL_FLOAT32)
        return spk_error_set(err, SPK_E_INVALID, "dtype: %d, but must be uint8, float16 or float32", (int)f->type);
    if ((unsigned)f->order > SPK_PIXEL_NCHW)
        return spk_error_set(err, SPK_E_INVALID, "layout: %d, but must be NHWC or NCHW", (int)f->order);
    if (!f->normalize)
        return SPK_OK;
    if (f->type == SPK_PIXEL_UINT8)
        return spk_error_set(err, SPK_E_INVALID, "normalize: not with uint8");
    for (uint32_t c = 0; c < f->channels; c++)
        if (!isfinite(f->mean[c]) || !isfinite(f->std[c]) || f->std[c] <= 0)
            return spk_error_set(err, SPK_E_INVALID, "mean, std: %g, %g for channel %u, but std must be positive",
                                 (double)f->mean[c], (double)f->std[c], c);
    return SPK_OK;
}

spk_status spk_image_params_check(const spk_image_params *p, spk_error *err)
{
    if ((unsigned)p->crop > SPK_CROP_NONE)
        return spk_error_set(err, SPK_E_INVALID, "transform: %d is unknown", (int)p->crop);
    if ((unsigned)p->filter > SPK_FILTER_NEAREST)
        return spk_error_set(err, SPK_E_INVALID, "interpolation: %d is unknown", (int)p->filter);
    if (p->crop == SPK_CROP_CENTRE && p->resize - 1 >= SPK_IMAGE_SIDE_MAX)
        return spk_error_set(err, SPK_E_INVALID, "resize: %u, but must be 1 to %u", p->resize, SPK_IMAGE_SIDE_MAX);
    if (p->crop == SPK_CROP_RANDOM) {
        SPK_TRY(check_range("scale", p->scale, false, err));
        SPK_TRY(check_range("ratio", p->ratio, true, err));
    }
    SPK_TRY(check_probability("hflip", p->hflip, err));
    SPK_TRY(check_probability("vflip", p->vflip, err));
    return check_format(&p->format, err);
}
