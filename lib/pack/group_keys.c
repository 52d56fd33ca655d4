/* Keys must differ even when case is folded, because a dataset may be unpacked on a file system that folds it.
 * The top bit of a sample's file count marks a twin while this runs.
 */
#include <string.h>

#include "base/error.h"
#include "pack/group_sort.h"
#include "pack/names.h"
#include "pack/scan.h"

#define TWIN 0x80000000u

static const char *key_of(const void *ctx, uint32_t id)
{
    const spk_input *in = ctx;
    return spk_input_str(in, in->samples[id].key);
}

static const char *first_path(const spk_input *in, const spk_input_sample *s)
{
    return spk_input_str(in, in->files[s->first].path);
}

static bool has_upper(const char *key)
{
    for (; *key != '\0'; key++)
        if (*key >= 'A' && *key <= 'Z')
            return true;
    return false;
}

/* Whether every key is the stem of its files as it is, in lower case. Those differ in a tree, where files with the same
 * stem became one sample or got other keys. Common, and much cheaper to see than that all keys differ. */
static bool all_plain(const spk_input *in)
{
    for (size_t i = 0; i < in->samples_n; i++) {
        const char *key = key_of(in, (uint32_t)i);
        size_t n = strlen(key);
        const spk_input_file *f = &in->files[in->samples[i].first];
        if (f->extra != n || memcmp(spk_input_str(in, f->path), key, n) != 0 || has_upper(key))
            return false;
    }
    return true;
}

/* Every member of a set of folded twins that are not all spelled alike is marked; equal spelling is left to the
 * duplicate check, which names both. */
static spk_status mark_twins(spk_input *in, bool *any, spk_error *err)
{
    spk_intern keys = {.str = key_of, .ctx = in, .fold = true};
    spk_status status = spk_intern_reserve(&keys, in->samples_n, err);
    for (size_t i = 0; status == SPK_OK && i < in->samples_n; i++) {
        uint32_t other = 0;
        const char *key = key_of(in, (uint32_t)i);
        status = spk_intern_put(&keys, key, (uint32_t)i, &other, err);
        if (status != SPK_OK || other == i)
            continue;
        *any = true;
        if (strcmp(key, key_of(in, other)) != 0) {
            in->samples[i].files |= TWIN;
            in->samples[other].files |= TWIN;
        }
    }
    spk_intern_free(&keys);
    return status;
}

static spk_status rekey(spk_scan *s, spk_input_sample *sample, spk_error *err)
{
    char key[SPK_KEY_MAX + 1];
    spk_input *in = s->in;
    const char *path = first_path(in, sample), *old = spk_input_str(in, sample->key);
    size_t stem = spk_name_stem(path, strlen(path), s->o->stem);
    sample->files &= ~TWIN;
    if (!has_upper(old) || strlen(old) != stem || memcmp(old, path, stem) != 0)
        return SPK_OK; /* lower-case, or with a hash already */
    SPK_TRY(spk_name_key(path, stem, SPK_KEY_HASHED, key, err));
    return spk_scan_text(in, key, strlen(key), &sample->key, err);
}

static spk_status refuse_duplicates(const spk_input *in, spk_error *err)
{
    spk_intern keys = {.str = key_of, .ctx = in, .fold = true};
    spk_status status = spk_intern_reserve(&keys, in->samples_n, err);
    for (size_t i = 0; status == SPK_OK && i < in->samples_n; i++) {
        uint32_t other = 0;
        status = spk_intern_put(&keys, key_of(in, (uint32_t)i), (uint32_t)i, &other, err);
        if (status == SPK_OK && other != i)
            status = spk_error_set(err, SPK_E_FORMAT, "duplicate key \"%s\": from \"%s\" and from \"%s\"",
                                   key_of(in, (uint32_t)i), first_path(in, &in->samples[other]),
                                   first_path(in, &in->samples[i]));
    }
    spk_intern_free(&keys);
    return status;
}

spk_status spk_group_unique(spk_scan *s, spk_error *err)
{
    spk_input *in = s->in;
    bool twins = false;
    if (!in->list && all_plain(in))
        return SPK_OK;
    SPK_TRY(mark_twins(in, &twins, err));
    for (size_t i = 0; twins && i < in->samples_n; i++)
        if (in->samples[i].files & TWIN)
            SPK_TRY(rekey(s, &in->samples[i], err));
    return twins ? refuse_duplicates(in, err) : SPK_OK;
}

static uint64_t key_piece(const void *ctx, const void *record, size_t depth)
{
    const spk_input_sample *s = record;
    const char *key = spk_input_str(ctx, s->key);
    return spk_sort_piece(key, strlen(key), depth);
}

/* Plain keys are, as their files were sorted by stem. */
static bool are_sorted(const spk_input *in)
{
    for (size_t i = 1; i < in->samples_n; i++)
        if (strcmp(key_of(in, (uint32_t)(i - 1)), key_of(in, (uint32_t)i)) > 0)
            return false;
    return true;
}

/* A tree has no json members yet, so their place serves as the sort's cache. */
void spk_group_sort_samples(spk_input *in)
{
    if (are_sorted(in))
        return;
    spk_sort sort = {in->samples, sizeof *in->samples, offsetof(spk_input_sample, json), key_piece, in};
    spk_group_sort(&sort, in->samples_n);
    for (size_t i = 0; i < in->samples_n; i++)
        in->samples[i].json = 0;
}
