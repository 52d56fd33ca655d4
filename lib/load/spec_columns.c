/* Columns of a batch: what may be asked of the dataset, and where each lies in a slot: fixed columns one behind the
 * other on borders of 64 bytes, then a byte per row for its state. Values of variable columns go into the arena. */
#include "load/spec_columns.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "dataset/dataset.h"
#include "load/fill_image.h"
#include "shard/tar.h"

#define SLOT_MAX ((uint64_t)1 << 42)
#define ARENA_LEAST ((uint64_t)64 << 20)
#define ARENA_MAX ((uint64_t)64 << 30)
#define KEY_ROOM ((uint64_t)128) /* a key and its rounding */

bool spk_spec_has_field(const spk_dataset *d, const char *name)
{
    for (size_t i = 0; i < d->manifest.fields_n; i++)
        if (strcmp(d->manifest.fields[i].name, name) == 0)
            return true;
    return d->manifest.samples == 0;
}

/* Names the fields that there are: one is misspelled, or of another dataset. */
static spk_status no_field(const spk_dataset *d, const char *field, spk_error *err)
{
    char have[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < d->manifest.fields_n && used < sizeof have; i++)
        used += (size_t)snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "", d->manifest.fields[i].name);
    return spk_error_set(err, SPK_E_INVALID, "field \"%s\": no sample of the dataset has it; there are %s%s", field,
                         have, used < sizeof have ? "" : "...");
}

static spk_status set_field(spk_load_column *c, const spk_dataset *d, const char *field, spk_error *err)
{
    const char *problem = spk_field_problem(field, strlen(field));
    if (problem)
        return spk_error_set(err, SPK_E_INVALID, "field \"%s\" %s", field, problem);
    if (!c->optional && !spk_spec_has_field(d, field))
        return no_field(d, field, err);
    memcpy(c->field, field, strlen(field) + 1);
    return SPK_OK;
}

static void image_defaults(spk_image_options *i)
{
    i->size = sizeof *i;
    i->height = i->height ? i->height : 224;
    i->width = i->width ? i->width : 224;
    i->resize = i->resize ? i->resize : 256;
    if (i->scale[0] == 0 && i->scale[1] == 0) {
        i->scale[0] = 0.08;
        i->scale[1] = 1;
    }
    if (i->ratio[0] == 0 && i->ratio[1] == 0) {
        i->ratio[0] = 3.0 / 4.0;
        i->ratio[1] = 4.0 / 3.0;
    }
    i->channels = i->channels ? i->channels : 3;
    i->max_pixels = i->max_pixels ? i->max_pixels : 178956970;
}

/* earlier: whether an image column stands before this one. */
static spk_status image_column(spk_load_column *c, const spk_dataset *d, const spk_column *from, bool earlier,
                               spk_error *err)
{
    SPK_TRY(spk_options_copy(&c->image, sizeof c->image, &from->image, err));
    image_defaults(&c->image);
    SPK_TRY(spk_image_options_check(&c->image, err));
    for (int i = 0; i < 3 && !c->image.normalize; i++)
        if (c->image.mean[i] != 0 || (c->image.std[i] != 0 && c->image.std[i] != 1))
            return spk_error_set(err, SPK_E_INVALID, "mean of %g, std of %g: normalize is not set",
                                 (double)c->image.mean[i], (double)c->image.std[i]);
    if (c->image.paired && !earlier)
        return spk_error_set(err, SPK_E_INVALID, "paired: must stand behind an image column to be paired with");
    c->dtype = (uint32_t)c->image.dtype;
    if (from->field)
        return set_field(c, d, from->field, err);
    for (size_t i = 0; spk_image_fields[i]; i++)
        if (spk_spec_has_field(d, spk_image_fields[i]))
            return SPK_OK;
    return spk_error_set(err, SPK_E_INVALID, "no sample of the dataset has an image (fields jpg, png)");
}

static spk_status bytes_field(spk_load_column *c, const spk_dataset *d, const spk_column *from, spk_error *err)
{
    if (!from->field)
        return spk_error_set(err, SPK_E_INVALID, "field: must be given for a column of bytes");
    return set_field(c, d, from->field, err);
}

static spk_status one_column(spk_load_spec *s, const spk_dataset *d, const spk_column *from, spk_error *err)
{
    bool earlier = false;
    for (uint32_t i = 0; i < s->columns_n; i++)
        earlier = earlier || s->columns[i].kind == SPK_COLUMN_IMAGE;
    spk_load_column *c = &s->columns[s->columns_n];
    c->kind = (uint32_t)from->kind;
    c->optional = from->optional != 0;
    c->dtype = SPK_UINT8;
    switch (from->kind) {
    case SPK_COLUMN_IMAGE:
        c->optional = 0;
        return image_column(c, d, from, earlier, err);
    case SPK_COLUMN_LABEL:
        c->dtype = SPK_INT64;
        if (from->field)
            return set_field(c, d, from->field, err);
        memcpy(c->field, "cls", sizeof "cls");
        return SPK_OK;
    case SPK_COLUMN_INDEX:
        c->dtype = SPK_INT64;
        return SPK_OK;
    case SPK_COLUMN_VALID:
        return SPK_OK;
    case SPK_COLUMN_KEY:
        s->has_arena = 1;
        return SPK_OK;
    case SPK_COLUMN_ORIGINAL:
        c->dtype = SPK_INT64;
        return bytes_field(c, d, from, err);
    case SPK_COLUMN_BYTES:
    case SPK_COLUMN_STORED:
        s->has_arena = 1;
        return bytes_field(c, d, from, err);
    default:
        return spk_error_set(err, SPK_E_INVALID, "kind of %d: must be %d to %d", (int)from->kind, SPK_COLUMN_IMAGE,
                             SPK_COLUMN_ORIGINAL);
    }
}

spk_status spk_spec_columns(spk_load_spec *s, const spk_dataset *dataset, const spk_loader_options *o, spk_error *err)
{
    const spk_column standard[2] = {
        {.kind = SPK_COLUMN_IMAGE,
         .image = {.size = sizeof standard[0].image,
                   .transform = o->shuffle ? SPK_RANDOM_RESIZED_CROP : SPK_RESIZE_CENTER_CROP}},
        {.kind = SPK_COLUMN_LABEL}};
    const spk_column *columns = o->columns ? o->columns : standard;
    size_t n = o->columns ? o->column_count : 2;
    if (n < 1 || n > SPK_COLUMNS_MAX)
        return spk_error_set(err, SPK_E_INVALID, "column_count of %zu: must be 1 to %u", n, SPK_COLUMNS_MAX);
    for (size_t i = 0; i < n; i++, s->columns_n++) {
        spk_status st = one_column(s, dataset, &columns[i], err);
        if (st < 0) {
            spk_error_prefix(err, "column %zu", i);
            return st;
        }
    }
    return SPK_OK;
}

static void set_shape(spk_load_column *c, uint64_t batch)
{
    const spk_image_options *i = &c->image;
    c->ndim = 1;
    c->shape[0] = batch;
    switch (c->kind) {
    case SPK_COLUMN_IMAGE:
        c->ndim = 4;
        c->shape[1] = i->layout == SPK_NCHW ? i->channels : i->height;
        c->shape[2] = i->layout == SPK_NCHW ? i->height : i->width;
        c->shape[3] = i->layout == SPK_NCHW ? i->width : i->channels;
        c->row_bytes = (uint64_t)i->height * i->width * i->channels;
        c->row_bytes *= i->dtype == SPK_FLOAT32 ? 4 : i->dtype == SPK_FLOAT16 ? 2 : 1;
        break;
    case SPK_COLUMN_VALID:
        c->row_bytes = 1;
        break;
    case SPK_COLUMN_LABEL:
    case SPK_COLUMN_INDEX:
    case SPK_COLUMN_ORIGINAL:
        c->row_bytes = 8;
        break;
    default:
        c->row_bytes = 16;
    }
}

/* Mean bytes of a sample in that shard where it is largest: shards need not be alike. */
static uint64_t largest_mean(const spk_dataset *d)
{
    uint64_t most = 0;
    for (size_t i = 0; i < d->catalog.n; i++) {
        const spk_catalog_row *row = &d->catalog.rows[i];
        uint64_t mean = row->samples > 0 ? row->tar_bytes / row->samples : 0;
        most = mean > most ? mean : most;
    }
    return most;
}

static uint64_t arena_size(const spk_load_spec *s, const spk_dataset *d)
{
    uint64_t bytes = ARENA_LEAST;
    bool payload = false;
    for (uint32_t i = 0; i < s->columns_n; i++) {
        if (s->columns[i].kind == SPK_COLUMN_KEY)
            bytes += KEY_ROOM * s->batch_size;
        payload = payload || (s->columns[i].kind != SPK_COLUMN_KEY && spk_column_is_variable(s->columns[i].kind));
    }
    if (payload) { /* a sample has at most 1 GiB, a batch 2^20 of them */
        uint64_t values = 8 * s->batch_size * largest_mean(d);
        bytes += values < ARENA_MAX ? values : ARENA_MAX;
    }
    bytes = (bytes + SPK_SLOT_ALIGN - 1) / SPK_SLOT_ALIGN * SPK_SLOT_ALIGN;
    return bytes < ARENA_MAX ? bytes : ARENA_MAX;
}

spk_status spk_spec_layout(spk_load_spec *s, const spk_dataset *dataset, spk_error *err)
{
    uint64_t at = 0; /* at most 64 columns of 2^20 rows of 2^32 bytes: no overflow */
    for (uint32_t i = 0; i < s->columns_n; i++) {
        spk_load_column *c = &s->columns[i];
        set_shape(c, s->batch_size);
        c->offset = at;
        at += (c->row_bytes * s->batch_size + SPK_COLUMN_ALIGN - 1) / SPK_COLUMN_ALIGN * SPK_COLUMN_ALIGN;
    }
    s->rows_offset = at;
    at += s->batch_size;
    s->slot_bytes = (at + SPK_SLOT_ALIGN - 1) / SPK_SLOT_ALIGN * SPK_SLOT_ALIGN;
    if (s->slot_bytes > SLOT_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "batch_size of %u: its columns need %llu bytes, the limit is %llu",
                             s->batch_size, (unsigned long long)s->slot_bytes, (unsigned long long)SLOT_MAX);
    s->arena_bytes = s->has_arena ? arena_size(s, dataset) : 0;
    return SPK_OK;
}
