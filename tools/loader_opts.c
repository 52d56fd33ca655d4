/* The loader's options from the command line. Ranges that depend on each other are the library's to check; its messages
 * name the options alike. */
#include "loader_opts.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "only.h"

enum { IMAGE_AUTO, IMAGE_TRAIN, IMAGE_EVAL, IMAGE_WHOLE, IMAGE_NONE };

const char *const loader_image_words[] = {"auto", "train", "eval", "whole", "none", NULL};
const char *const loader_tail_words[] = {"drop", "pad", "keep", NULL};                     /* as spk_tail from 1 */
const char *const loader_error_words[] = {"fail", "substitute", NULL};                     /* as spk_on_error */
const char *const loader_interpolation_words[] = {"bilinear", "bicubic", "nearest", NULL}; /* as spk_interpolation */
const char *const loader_dtype_words[] = {"uint8", "float16", "float32", NULL};            /* as spk_dtype */
const char *const loader_layout_words[] = {"nhwc", "nchw", NULL};                          /* as spk_layout */

void loader_init(loader_values *v)
{
    v->batch_size = 256;
    v->shuffle = 1;
    v->timeout = 120;
}

/* "0.5" or "0.5,0.4,0.3". 0 or -1. */
static int parse_three(const char *text, float out[3])
{
    char *end;
    int n = 0;
    for (const char *s = text;; s = end + 1) {
        if (n == 3 || !strchr("0123456789.-", *s) || !*s)
            return -1;
        out[n++] = strtof(s, &end);
        if (end == s || (*end && *end != ','))
            return -1;
        if (!*end)
            break;
    }
    if (n == 1)
        out[1] = out[2] = out[0];
    return n == 2 ? -1 : 0;
}

static int set_normalize(spk_image_options *i, const opts *o)
{
    const loader_values *v = o->values;
    const char *name = o->command->name;
    for (int k = 0; k < 3; k++)
        i->std[k] = 1;
    if (!v->mean && !v->std)
        return CLI_OK;
    if (v->dtype == SPK_UINT8)
        return cli_usage(name, "--mean and --std need --dtype float16 or float32");
    if (v->mean && parse_three(v->mean, i->mean))
        return cli_usage(name, "--mean %s: expected a number, or three separated by commas", v->mean);
    if (v->std && parse_three(v->std, i->std))
        return cli_usage(name, "--std %s: expected a number, or three separated by commas", v->std);
    i->normalize = 1;
    return CLI_OK;
}

/* Has the dataset what an image column without a field takes? */
static int has_images(const spk_dataset *d)
{
    for (size_t i = 0; i < spk_dataset_field_count(d); i++) {
        spk_field_stat f;
        if (spk_dataset_get_field(d, i, &f, NULL) == SPK_OK && strcmp(f.kind, "image") == 0 &&
            (strcmp(f.name, "jpg") == 0 || strcmp(f.name, "png") == 0))
            return 1;
    }
    return 0;
}

/* Options that would change nothing are refused, since who gives them expects that they do. */
static int check_used(const opts *o, int how)
{
    static const char *const of_images[] = {"image-field", "size", "resize", "hflip", "interpolation", "dtype",
                                            "layout",      "mean", "std",    "fast",  "exif",          NULL};
    const loader_values *v = o->values;
    const char *name = o->command->name;
    for (size_t i = 0; how == IMAGE_NONE && of_images[i]; i++)
        if (opts_given(o, of_images[i]))
            return v->image == IMAGE_NONE
                       ? cli_usage(name, "--image=none and --%s exclude each other", of_images[i])
                       : cli_error("--%s: the dataset has no images (fields jpg, png)", of_images[i]);
    if (v->resize && how != IMAGE_EVAL)
        return cli_usage(name, "--resize is for --image=eval");
    if (v->max_errors && v->on_error == SPK_ON_ERROR_FAIL)
        return cli_usage(name, "--max-errors is for --on-error=substitute");
    if (!v->shuffle && (v->lane_groups || v->lane_buffer))
        return cli_usage(name, "--no-shuffle and --lane-%s exclude each other", v->lane_groups ? "groups" : "buffer");
    return CLI_OK;
}

static int add_image(loader_setup *s, const opts *o, const spk_dataset *d)
{
    static const spk_transform transforms[] = {[IMAGE_TRAIN] = SPK_RANDOM_RESIZED_CROP,
                                               [IMAGE_EVAL] = SPK_RESIZE_CENTER_CROP,
                                               [IMAGE_WHOLE] = SPK_RESIZE_EXACT};
    const loader_values *v = o->values;
    int how = v->image;
    if (how == IMAGE_AUTO)
        how = !v->image_field && !has_images(d) ? IMAGE_NONE : v->shuffle ? IMAGE_TRAIN : IMAGE_EVAL;
    int rc = check_used(o, how);
    if (rc != CLI_OK || how == IMAGE_NONE)
        return rc;
    uint32_t size = v->size ? (uint32_t)v->size : 224;
    spk_column *c = &s->columns[s->count++];
    *c = (spk_column){.kind = SPK_COLUMN_IMAGE, .field = v->image_field};
    c->image = (spk_image_options){.size = sizeof c->image,
                                   .transform = transforms[how],
                                   .height = size,
                                   .width = size,
                                   .resize = v->resize ? (uint32_t)v->resize : (uint32_t)((uint64_t)size * 8 / 7),
                                   .hflip = v->hflip,
                                   .interpolation = (spk_interpolation)v->interpolation,
                                   .dtype = (spk_dtype)v->dtype,
                                   .layout = (spk_layout)v->layout,
                                   .exif_orientation = v->exif,
                                   .fast = v->fast};
    return set_normalize(&c->image, o);
}

/* No sample needs to have a field, but some sample must. */
static int check_field(const spk_dataset *d, const char *name)
{
    char have[512] = "";
    size_t n = spk_dataset_field_count(d), used = 0;
    for (size_t i = 0; i < n; i++) {
        spk_field_stat f;
        if (spk_dataset_get_field(d, i, &f, NULL) < 0)
            break;
        if (strcmp(f.name, name) == 0)
            return CLI_OK;
        if (used < sizeof have)
            used += (size_t)snprintf(have + used, sizeof have - used, "%s%s", used ? ", " : "", f.name);
    }
    return cli_error("--fields %s: no sample of the dataset has it; there are %s", name, have);
}

static int add_fields(loader_setup *s, const opts *o, const spk_dataset *d)
{
    const loader_values *v = o->values;
    char *rest = NULL;
    if (!v->fields)
        return CLI_OK;
    s->names = strdup(v->fields);
    if (!s->names)
        return cli_no_memory();
    for (char *name = strtok_r(s->names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (s->count + 1 >= LOADER_COLUMNS_MAX)
            return cli_usage(o->command->name, "--fields: too many, a batch has at most %d columns",
                             LOADER_COLUMNS_MAX);
        int rc = check_field(d, name);
        if (rc != CLI_OK)
            return rc;
        s->columns[s->count++] = (spk_column){.kind = SPK_COLUMN_BYTES, .field = name, .optional = 1};
    }
    return CLI_OK;
}

static void on_note(void *user, const char *text)
{
    (void)user;
    cli_note("%s", text);
}

/* So that a signal ends a wait, too. */
static int on_wait(void *user)
{
    (void)user;
    return cli_interrupted();
}

static void set_options(spk_loader_options *p, const opts *o)
{
    const loader_values *v = o->values;
    *p = (spk_loader_options){.size = sizeof *p,
                              .batch_size = (uint32_t)v->batch_size,
                              .rank = (uint32_t)v->rank,
                              .world_size = (uint32_t)v->world_size,
                              .prefetch = (uint32_t)v->prefetch,
                              .shuffle = v->shuffle,
                              .seed = v->seed,
                              .epoch = (uint32_t)v->epoch,
                              .chunk = (uint32_t)v->chunk,
                              .lane_groups = (uint32_t)v->lane_groups,
                              .lane_buffer = (uint32_t)v->lane_buffer,
                              .echo = (uint32_t)v->echo,
                              .limit = v->limit,
                              .tail = opts_given(o, "tail") ? (spk_tail)(v->tail + 1) : SPK_TAIL_DEFAULT,
                              .on_error = (spk_on_error)v->on_error,
                              .max_errors = v->max_errors,
                              .timeout = v->timeout > 0 ? v->timeout : -1,
                              .on_note = on_note,
                              .on_wait = on_wait};
}

int loader_make(loader_setup *s, const opts *o, spk_dataset *dataset, int keys)
{
    const loader_values *v = o->values;
    memset(s, 0, sizeof *s);
    set_options(&s->options, o);
    int rc = add_image(s, o, dataset);
    s->columns[s->count++].kind = SPK_COLUMN_LABEL;
    s->columns[s->count++].kind = SPK_COLUMN_INDEX;
    s->columns[s->count++].kind = SPK_COLUMN_VALID;
    if (rc == CLI_OK)
        rc = add_fields(s, o, dataset);
    if (rc == CLI_OK && v->only)
        rc = only_read(v->only, dataset, &s->indices, &s->options.index_count);
    s->options.indices = s->indices;
    if (keys)
        s->columns[s->count++].kind = SPK_COLUMN_KEY;
    s->options.columns = s->columns;
    s->options.column_count = s->count;
    return rc;
}

void loader_free(loader_setup *s)
{
    free(s->names);
    free(s->indices);
    s->names = NULL;
    s->indices = NULL;
}

const char *loader_column_name(const spk_column *column)
{
    switch (column->kind) {
    case SPK_COLUMN_IMAGE:
        return "image";
    case SPK_COLUMN_LABEL:
        return "label";
    case SPK_COLUMN_INDEX:
        return "index";
    case SPK_COLUMN_VALID:
        return "mask";
    case SPK_COLUMN_KEY:
        return "key";
    case SPK_COLUMN_BYTES:
    case SPK_COLUMN_STORED:
    case SPK_COLUMN_ORIGINAL:
        return column->field;
    }
    return "?";
}
