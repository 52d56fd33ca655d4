/* Counts of a frame, a shard or a split. */
#include "pack/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "coef/coef.h"
#include "shard/format.h"

_Static_assert(sizeof(spk_image_stat) == (10 + SPK_IMAGE_BUCKETS) * sizeof(uint64_t), "only 64-bit numbers");

static const char *const form_names[SPK_FORMS] = {SPK_IDENTITY, SPK_COEF_NAME, SPK_COEF_PIXELS_NAME};

const char *spk_form_name(spk_form form)
{
    return form_names[form];
}

spk_form spk_form_of(const char *encoding)
{
    unsigned form = 0;
    while (form < SPK_FORMS && strcmp(form_names[form], encoding) != 0)
        form++;
    return (spk_form)form;
}

spk_status spk_tally_init(spk_tally *t, size_t fields_n, spk_error *err)
{
    memset(t, 0, sizeof *t);
    t->fields = calloc(fields_n ? fields_n : 1, sizeof *t->fields);
    if (!t->fields)
        return spk_error_nomem(err, fields_n * sizeof *t->fields);
    t->fields_n = fields_n;
    return SPK_OK;
}

void spk_tally_reset(spk_tally *t)
{
    spk_tally_field *fields = t->fields;
    size_t n = t->fields_n;
    spk_buf lines = t->bad_lines;
    memset(t, 0, sizeof *t);
    if (n > 0)
        memset(fields, 0, n * sizeof *fields);
    t->fields = fields;
    t->fields_n = n;
    lines.len = 0;
    t->bad_lines = lines;
}

void spk_tally_free(spk_tally *t)
{
    free(t->fields);
    spk_buf_free(&t->bad_lines);
    memset(t, 0, sizeof *t);
}

static void widen(uint64_t *min, uint64_t *max, uint64_t low, uint64_t high, int first)
{
    if (first || low < *min)
        *min = low;
    if (first || high > *max)
        *max = high;
}

static void merge_images(spk_image_stat *into, const spk_image_stat *from)
{
    if (from->count == 0)
        return;
    int first = into->count == 0;
    widen(&into->min_width, &into->max_width, from->min_width, from->max_width, first);
    widen(&into->min_height, &into->max_height, from->min_height, from->max_height, first);
    into->count += from->count;
    into->jpeg += from->jpeg;
    into->png += from->png;
    into->other += from->other;
    into->sum_width += from->sum_width;
    into->sum_height += from->sum_height;
    for (int i = 0; i < SPK_IMAGE_BUCKETS; i++)
        into->longer_side[i] += from->longer_side[i];
}

spk_status spk_tally_merge(spk_tally *into, const spk_tally *from, spk_error *err)
{
    into->samples += from->samples;
    into->files += from->files;
    into->payload += from->payload;
    into->jpeg_pixels += from->jpeg_pixels;
    into->bad += from->bad;
    into->skipped_samples += from->skipped_samples;
    for (size_t i = 0; i < SPK_TRANSCODE_RESULTS; i++)
        into->jpeg[i] += from->jpeg[i];
    merge_images(&into->images, &from->images);
    for (size_t i = 0; i < from->fields_n && i < into->fields_n; i++)
        for (size_t k = 0; k < SPK_FORMS; k++) {
            into->fields[i].forms[k].samples += from->fields[i].forms[k].samples;
            into->fields[i].forms[k].bytes += from->fields[i].forms[k].bytes;
            into->fields[i].forms[k].original += from->fields[i].forms[k].original;
        }
    return spk_buf_append(&into->bad_lines, from->bad_lines.data, from->bad_lines.len, err);
}

void spk_tally_image(spk_tally *t, const spk_image_info *image)
{
    spk_image_stat one = {.count = 1,
                          .jpeg = image->kind == SPK_IMAGE_JPEG,
                          .png = image->kind == SPK_IMAGE_PNG,
                          .other = image->kind != SPK_IMAGE_JPEG && image->kind != SPK_IMAGE_PNG,
                          .min_width = image->width,
                          .max_width = image->width,
                          .sum_width = image->width,
                          .min_height = image->height,
                          .max_height = image->height,
                          .sum_height = image->height};
    uint64_t side = image->width > image->height ? image->width : image->height;
    int bucket = 0;
    while (bucket < SPK_IMAGE_BUCKETS - 1 && side > (uint64_t)1 << bucket)
        bucket++;
    one.longer_side[bucket] = 1;
    merge_images(&t->images, &one);
}

spk_status spk_tally_bad(spk_tally *t, const char *path, const char *action, const char *reason, spk_error *err)
{
    size_t n = strlen(path), cap = 3 * n + 1;
    t->bad++;
    SPK_TRY(spk_buf_reserve(&t->bad_lines, cap, err));
    t->bad_lines.len += spk_utf8_percent((char *)t->bad_lines.data + t->bad_lines.len, cap, path, n);
    return spk_buf_printf(&t->bad_lines, err, "\t%s\t%s\n", action, reason);
}

static uint64_t *number_at(spk_tally *t, size_t i)
{
    static const size_t at[SPK_TALLY_FIXED - SPK_IMAGE_BUCKETS] = {
        offsetof(spk_tally, samples),           offsetof(spk_tally, files),
        offsetof(spk_tally, payload),           offsetof(spk_tally, bad),
        offsetof(spk_tally, jpeg_pixels),       offsetof(spk_tally, skipped_samples),
        offsetof(spk_tally, jpeg[0]),           offsetof(spk_tally, jpeg[1]),
        offsetof(spk_tally, jpeg[2]),           offsetof(spk_tally, jpeg[3]),
        offsetof(spk_tally, jpeg[4]),           offsetof(spk_tally, images.count),
        offsetof(spk_tally, images.jpeg),       offsetof(spk_tally, images.png),
        offsetof(spk_tally, images.other),      offsetof(spk_tally, images.min_width),
        offsetof(spk_tally, images.max_width),  offsetof(spk_tally, images.sum_width),
        offsetof(spk_tally, images.min_height), offsetof(spk_tally, images.max_height),
        offsetof(spk_tally, images.sum_height)};
    if (i < SPK_ARRAY_SIZE(at))
        return (uint64_t *)(void *)((unsigned char *)t + at[i]);
    if (i < SPK_TALLY_FIXED)
        return &t->images.longer_side[i - SPK_ARRAY_SIZE(at)];
    return (uint64_t *)(void *)t->fields + (i - SPK_TALLY_FIXED);
}

uint64_t spk_tally_get(const spk_tally *t, size_t i)
{
    spk_tally copy = *t; /* shares the arrays, which are only read */
    return *number_at(&copy, i);
}

void spk_tally_set(spk_tally *t, size_t i, uint64_t value)
{
    *number_at(t, i) = value;
}
