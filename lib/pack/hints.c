/* Notes about sources that are packed as asked, but seldom as meant: seen before hours of packing, not in training. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pack/scan.h"

#define NAMES_SHOWN 4

static bool is_one_of(const char *name, const char *const *words)
{
    while (*words && strcasecmp(name, *words) != 0)
        words++;
    return *words != NULL;
}

static void note(const spk_scan *s, const char *text)
{
    s->hooks->on_note(s->hooks->ctx, text);
}

/* SRC/train/cat/1.jpg, SRC/images/1.jpg and SRC/masks/1.png: the folders in SRC are parts, and became classes. */
static void look_at_classes(const spk_scan *s)
{
    static const char *const parts[] = {"train", "training", "val",    "valid", "validation",  "test",
                                        "dev",   "images",   "labels", "masks", "annotations", NULL};
    const spk_input *in = s->in;
    char names[128] = "", text[320];
    size_t used = 0;
    if (s->o->labels != SPK_LABELS_AUTO || in->list || in->classes_n == 0)
        return;
    for (size_t i = 0; i < in->classes_n; i++) {
        if (!is_one_of(in->classes[i], parts))
            return;
        if (i < NAMES_SHOWN)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", in->classes[i]);
    }
    snprintf(text, sizeof text,
             "the classes are %s%s: if these folders are parts of a dataset, pack each by itself, or give --labels "
             "none; --labels folders keeps them as classes",
             names, in->classes_n > NAMES_SHOWN ? ", ..." : "");
    note(s, text);
}

/* Among samples with images, those without one. kinds: of the fields, whether they are images. */
static void look_at_samples(const spk_scan *s, const bool *kinds)
{
    const spk_input *in = s->in;
    const char *first = NULL;
    size_t without = 0;
    char text[320];
    for (size_t i = 0; i < in->samples_n; i++) {
        const spk_input_sample *sample = &in->samples[i];
        uint32_t f = 0;
        while (f < sample->files && !kinds[in->files[sample->first + f].field])
            f++;
        if (f < sample->files)
            continue;
        if (without++ == 0)
            first = spk_input_str(in, sample->key);
    }
    if (without == 0 || without == in->samples_n)
        return;
    snprintf(text, sizeof text,
             "samples without an image: %zu of %zu, the first is \"%s\"; a loader of images stops at them, --include "
             "and --exclude choose what is packed",
             without, in->samples_n, first);
    note(s, text);
}

/* A file beside the class folders, or a row that lacks its label, is easily overlooked. */
static void look_at_labels(const spk_scan *s)
{
    const spk_input *in = s->in;
    char text[160];
    if (in->unlabelled == 0 || in->unlabelled >= in->samples_n)
        return;
    snprintf(text, sizeof text, "samples without a label: %llu of %zu; %s", (unsigned long long)in->unlabelled,
             in->samples_n, in->list ? "their rows have none" : "their files lie outside of the class folders");
    note(s, text);
}

static void look_at_archives(const spk_scan *s)
{
    static const char *const archives[] = {"tar", "tgz", "zip", NULL};
    const spk_input *in = s->in;
    size_t n = 0;
    char text[320];
    for (size_t i = 0; i < in->files_n; i++)
        n += is_one_of(in->fields[in->files[i].field], archives);
    if (n == 0)
        return;
    snprintf(text, sizeof text,
             "archives among the files: %zu, packed as they are: only a tar archive that is SRC, and those in it, are "
             "looked into (\"tar -C SRC -cf all.tar .\" makes one)",
             n);
    note(s, text);
}

void spk_scan_hints(const spk_scan *s)
{
    const spk_input *in = s->in;
    bool *kinds = calloc(in->fields_n + 1, sizeof *kinds);
    if (s->hooks && s->hooks->on_note && kinds) {
        for (size_t i = 0; i < in->fields_n; i++)
            kinds[i] = strcmp(spk_field_kind(in->fields[i]), "image") == 0;
        look_at_classes(s);
        look_at_labels(s);
        look_at_samples(s, kinds);
        look_at_archives(s);
    }
    free(kinds);
}
