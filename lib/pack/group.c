/* Files with the same stem become a sample. Files whose fields collide (a.jpg, a.JPG) become samples of their own, with
 * keys that carry a hash of the whole path, so that a file that comes later never changes the key of another.
 * `extra` of a file is the length of its stem while this runs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "pack/group_sort.h"
#include "pack/names.h"
#include "pack/scan.h"

static uint64_t stem_piece(const void *ctx, const void *record, size_t depth)
{
    const spk_input_file *f = record;
    return spk_sort_piece(spk_input_str(ctx, f->path), f->extra, depth);
}

static bool same_stem(const spk_input *in, const spk_input_file *a, const spk_input_file *b)
{
    return a->extra == b->extra && memcmp(spk_input_str(in, a->path), spk_input_str(in, b->path), a->extra) == 0;
}

static bool is_exact(const spk_input *in, const spk_input_file *f)
{
    const char *path = spk_input_str(in, f->path);
    return spk_name_is_exact(path, strlen(path), f->extra, in->fields[f->field]);
}

static spk_status add_sample(spk_input *in, size_t first, size_t files, bool moved, spk_error *err)
{
    char key[SPK_KEY_MAX + 1];
    const char *path = spk_input_str(in, in->files[first].path);
    if (files > SPK_MEMBERS_MAX - 1)
        return spk_error_set(err, SPK_E_LIMIT, "%.*s.*: %zu files of one sample: more than the limit of %u",
                             (int)in->files[first].extra, path, files, SPK_MEMBERS_MAX - 1);
    if (in->samples_n >= SPK_SCAN_SAMPLES_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "more than %u samples", SPK_SCAN_SAMPLES_MAX);
    SPK_TRY(moved ? spk_name_key(path, strlen(path), SPK_KEY_MOVED, key, err)
                  : spk_name_key(path, in->files[first].extra, SPK_KEY_PLAIN, key, err));
    SPK_TRY(spk_grow(&in->samples, &in->samples_cap, in->samples_n + 1, sizeof *in->samples, err));
    spk_input_sample *s = &in->samples[in->samples_n];
    *s = (spk_input_sample){.first = first, .files = (uint32_t)files, .label = -1};
    SPK_TRY(spk_scan_text(in, key, strlen(key), &s->key, err));
    in->samples_n++;
    return SPK_OK;
}

/* Within a group: files that moved out last, then by field, exact spelling first. `sample` tells who moved. */
static bool before(const spk_input *in, const spk_input_file *a, const spk_input_file *b)
{
    if (a->sample != b->sample)
        return a->sample < b->sample;
    int order = a->field == b->field ? 0 : strcmp(in->fields[a->field], in->fields[b->field]);
    if (order == 0)
        order = (int)is_exact(in, b) - (int)is_exact(in, a);
    if (order == 0)
        order = strcmp(spk_input_str(in, a->path), spk_input_str(in, b->path));
    return order < 0;
}

static void sift(const spk_input *in, spk_input_file *f, size_t i, size_t n)
{
    for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && before(in, &f[child], &f[child + 1]))
            child++;
        if (!before(in, &f[i], &f[child]))
            return;
        spk_input_file t = f[i];
        f[i] = f[child];
        f[child] = t;
        i = child;
    }
}

/* Heapsort: groups are small, but a folder of a.000001, a.000002, ... is one large group. */
static void sort_group(const spk_input *in, spk_input_file *f, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(in, f, i, n);
    for (size_t end = n; end-- > 1;) {
        spk_input_file t = f[0];
        f[0] = f[end];
        f[end] = t;
        sift(in, f, 0, end);
    }
}

/* Marks files whose field is taken. Returns how many stay. */
static size_t mark_moved(const spk_input *in, spk_input_file *f, size_t n)
{
    size_t stay = 0;
    for (size_t i = 0, end = 0; i < n; i = end) {
        for (end = i + 1; end < n && f[end].field == f[i].field; end++)
            f[end].sample = 1;
        f[i].sample = end - i > 1 && !is_exact(in, &f[i]);
        stay += f[i].sample == 0;
    }
    return stay;
}

static spk_status make_group(spk_input *in, size_t first, size_t n, spk_error *err)
{
    spk_input_file *f = in->files + first;
    if (n == 1)
        return add_sample(in, first, 1, false, err);
    for (size_t i = 0; i < n; i++)
        f[i].sample = 0;
    sort_group(in, f, n);
    size_t stay = mark_moved(in, f, n);
    if (stay < n)
        sort_group(in, f, n);
    if (stay > 0)
        SPK_TRY(add_sample(in, first, stay, false, err));
    for (size_t i = stay; i < n; i++)
        SPK_TRY(add_sample(in, first + i, 1, true, err));
    return SPK_OK;
}

spk_status spk_group_files(spk_scan *s, spk_error *err)
{
    spk_input *in = s->in;
    for (size_t i = 0; i < in->files_n; i++) {
        const char *path = spk_input_str(in, in->files[i].path);
        in->files[i].extra = (uint32_t)spk_name_stem(path, strlen(path), s->o->stem);
    }
    spk_sort sort = {in->files, sizeof *in->files, offsetof(spk_input_file, sample), stem_piece, in};
    spk_group_sort(&sort, in->files_n);
    for (size_t i = 0, end = 0; i < in->files_n; i = end) {
        end = i + 1;
        while (end < in->files_n && same_stem(in, &in->files[i], &in->files[end]))
            end++;
        SPK_TRY(make_group(in, i, end - i, err));
    }
    return SPK_OK;
}
