/* Classes of a folder tree: the names of its first-level folders in the order of their bytes; a sample's label is the
 * number of the folder that it lies in. A sample keeps a label of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "pack/scan.h"

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y); /* as unsigned bytes, in any locale */
}

/* Like strcmp(name, the first n bytes of path). */
static int compare_prefix(const char *name, const char *path, size_t n)
{
    int order = strncmp(name, path, n);
    return order != 0 ? order : name[n] != '\0';
}

static int32_t find_class(const spk_scan *s, const char *path, size_t n, int32_t guess)
{
    if (guess >= 0 && compare_prefix(s->classes[guess], path, n) == 0)
        return guess;
    size_t low = 0, high = s->classes_n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = compare_prefix(s->classes[mid], path, n);
        if (order == 0)
            return (int32_t)mid;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return -1;
}

static bool has_field(const spk_input *in, const spk_input_sample *sample, uint32_t field)
{
    for (uint32_t i = 0; field != SPK_INTERN_NONE && i < sample->files; i++)
        if (in->files[sample->first + i].field == field)
            return true;
    return false;
}

/* As in shards of webdataset, a folder or an archive of which says nothing of the label. */
static bool all_have_labels(const spk_scan *s)
{
    const spk_input *in = s->in;
    uint32_t own = spk_intern_find(&s->fields, "cls");
    size_t i = 0;
    while (i < in->samples_n && has_field(in, &in->samples[i], own))
        i++;
    return i == in->samples_n;
}

static void label_samples(spk_scan *s)
{
    spk_input *in = s->in;
    uint32_t own = spk_intern_find(&s->fields, "cls");
    int32_t guess = -1;
    for (size_t i = 0; i < in->samples_n; i++) {
        spk_input_sample *sample = &in->samples[i];
        const char *path = spk_input_str(in, in->files[sample->first].path);
        const char *slash = strchr(path, '/');
        if (has_field(in, sample, own))
            continue;
        int32_t label = slash ? find_class(s, path, (size_t)(slash - path), guess) : -1;
        sample->label = label;
        in->unlabelled += label < 0;
        guess = label;
    }
}

spk_status spk_group_classes(spk_scan *s, spk_error *err)
{
    for (size_t i = 0; i < s->classes_n; i++) {
        size_t n = strlen(s->classes[i]);
        char *escaped = malloc(3 * n + 1);
        if (!escaped)
            return spk_error_nomem(err, 3 * n + 1);
        size_t len = spk_utf8_percent(escaped, 3 * n + 1, s->classes[i], n);
        if (len == n) {
            free(escaped);
            continue;
        }
        free(s->classes[i]);
        s->classes[i] = escaped;
    }
    s->in->classes = s->classes;
    s->in->classes_n = s->classes_n;
    s->classes = NULL;
    s->classes_n = s->classes_cap = 0;
    return SPK_OK;
}

spk_status spk_group_labels(spk_scan *s, spk_error *err)
{
    bool wanted = s->o->labels == SPK_LABELS_FOLDERS ||
                  (s->o->labels == SPK_LABELS_AUTO && !s->root_image && s->classes_n > 0 && !all_have_labels(s));
    if (!wanted)
        return SPK_OK;
    if (s->classes_n > INT32_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "%zu classes: more than the limit of %d", s->classes_n, INT32_MAX);
    if (s->classes_n > 0)
        qsort(s->classes, s->classes_n, sizeof *s->classes, compare_names);
    label_samples(s);
    return spk_group_classes(s, err);
}
