/* From options to samples: walk or list, group, make keys unique, order, label, cut, check sizes. Everything here is
 * sorted by bytes, so the result is the same whatever the file system, the locale or the run.
 */
#include "pack/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "pack/names.h"
#include "pack/scan.h"

#define TICK 1024 /* entries between two calls of the hook */

spk_status spk_scan_tick(spk_scan *s, spk_error *err)
{
    if (s->ticks++ % TICK == 0 && s->hooks && s->hooks->on_files && s->hooks->on_files(s->hooks->ctx, s->in->files_n))
        return spk_error_set(err, SPK_E_CANCELLED, "cancelled after %zu files", s->in->files_n);
    return SPK_OK;
}

spk_status spk_scan_text(spk_input *in, const char *s, size_t n, uint64_t *out, spk_error *err)
{
    *out = in->paths.len;
    SPK_TRY(spk_buf_reserve(&in->paths, n + 1, err));
    memcpy(in->paths.data + in->paths.len, s, n);
    in->paths.data[in->paths.len + n] = '\0';
    in->paths.len += n + 1;
    return SPK_OK;
}

static const char *field_name(const void *ctx, uint32_t id)
{
    const spk_input *in = ctx;
    return in->fields[id];
}

spk_status spk_scan_field(spk_scan *s, const char *name, uint32_t *out, spk_error *err)
{
    spk_input *in = s->in;
    if (s->last_field < in->fields_n && strcmp(in->fields[s->last_field], name) == 0) {
        *out = s->last_field;
        return SPK_OK;
    }
    uint32_t known = spk_intern_find(&s->fields, name), put = 0;
    if (known == SPK_INTERN_NONE) {
        if (in->fields_n >= SPK_SCAN_FIELDS_MAX)
            return spk_error_set(err, SPK_E_LIMIT, "more than %u different file name extensions", SPK_SCAN_FIELDS_MAX);
        SPK_TRY(spk_grow(&in->fields, &in->fields_cap, in->fields_n + 1, sizeof *in->fields, err));
        char *copy = strdup(name);
        if (!copy)
            return spk_error_nomem(err, strlen(name) + 1);
        known = (uint32_t)in->fields_n;
        in->fields[in->fields_n++] = copy;
        SPK_TRY(spk_intern_put(&s->fields, copy, known, &put, err));
    }
    s->last_field = known;
    *out = known;
    return SPK_OK;
}

int64_t spk_stamp_of(const struct stat *st)
{
    int64_t m = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    int64_t c = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
    return m > c ? m : c;
}

spk_status spk_scan_around(spk_scan *s, const char *path, size_t n, const struct stat *st, spk_error *err)
{
    spk_input *in = s->in;
    int64_t stamp = spk_stamp_of(st);
    if (stamp <= in->around)
        return SPK_OK;
    in->around = stamp;
    in->around_path.len = 0;
    SPK_TRY(spk_buf_append(&in->around_path, path, n, err));
    return spk_buf_append(&in->around_path, "", 1, err);
}

void spk_input_prefix(const spk_input *in, const char *src, const spk_input_file *f, spk_error *err)
{
    const char *path = spk_input_str(in, f->path);
    if (in->archive)
        spk_archive_prefix(in->archive, src, path, (uint64_t)f->stamp, err);
    else
        spk_error_prefix(err, "%s/%s", src, path);
}

spk_status spk_scan_add(spk_scan *s, const char *path, size_t n, const struct stat *st, spk_error *err)
{
    spk_input *in = s->in;
    char field[SPK_FIELD_MAX + 1];
    if (st->st_size < 0 || (uint64_t)st->st_size > SPK_SCAN_FILE_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "%s%s%s: %lld bytes: larger than the limit of %llu bytes for one sample",
                             in->archive ? "" : s->src, in->archive ? "" : "/", path, (long long)st->st_size,
                             (unsigned long long)SPK_SCAN_FILE_MAX);
    if (in->files_n >= SPK_SCAN_SAMPLES_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "more than %u files", SPK_SCAN_SAMPLES_MAX);
    SPK_TRY(spk_grow(&in->files, &in->files_cap, in->files_n + 1, sizeof *in->files, err));
    spk_input_file *f = &in->files[in->files_n];
    *f = (spk_input_file){.size = (uint64_t)st->st_size, .stamp = spk_stamp_of(st)};
    spk_name_field(path, n, spk_name_stem(path, n, s->o->stem), field);
    SPK_TRY(spk_scan_field(s, field, &f->field, err));
    SPK_TRY(spk_scan_text(in, path, n, &f->path, err));
    in->files_n++;
    return SPK_OK;
}

/* One sample fits one frame, with what the packer adds and the end marker. */
static spk_status check_sizes(const spk_input *in, spk_error *err)
{
    for (size_t i = 0; i < in->samples_n; i++) {
        const spk_input_sample *s = &in->samples[i];
        uint64_t sum = SPK_TAR_END;
        for (uint32_t f = 0; f < s->files; f++)
            sum += spk_tar_member_bytes(in->files[s->first + f].size);
        if (s->label >= 0)
            sum += spk_tar_member_bytes(10);
        if (s->json)
            sum += spk_tar_member_bytes(strlen(spk_input_str(in, s->json - 1)));
        if (sum > SPK_FRAME_CONTENT_MAX)
            return spk_error_set(err, SPK_E_LIMIT,
                                 "sample \"%s\": %llu bytes in %u files with tar headers: larger than "
                                 "the limit of %u bytes for one sample",
                                 spk_input_str(in, s->key), (unsigned long long)sum, s->files, SPK_FRAME_CONTENT_MAX);
    }
    return SPK_OK;
}

/* Cuts to the limit, drops the files that are no longer named, and lets each file know its sample. */
static void link_files(spk_input *in, uint64_t limit)
{
    bool cut = limit > 0 && in->samples_n > limit;
    if (cut)
        in->samples_n = (size_t)limit;
    for (size_t i = 0; i < in->files_n; i++) {
        in->files[i].sample = UINT64_MAX;
        in->files[i].extra = 0;
    }
    for (size_t i = 0; i < in->samples_n; i++)
        for (uint32_t f = 0; f < in->samples[i].files; f++)
            in->files[in->samples[i].first + f].sample = i;
    size_t kept = 0;
    for (size_t i = 0; cut && i < in->files_n; i++) {
        spk_input_file f = in->files[i];
        if (f.sample == UINT64_MAX)
            continue;
        if (in->samples[f.sample].first == i)
            in->samples[f.sample].first = kept;
        in->files[kept++] = f;
    }
    if (cut)
        in->files_n = kept;
}

static int compare_fields(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Numbers fields by name, not by which file came first; fields that only cut files had go. */
static spk_status order_fields(spk_input *in, spk_error *err)
{
    char **sorted = calloc(in->fields_n + 1, sizeof *sorted);
    uint32_t *map = calloc(in->fields_n + 1, sizeof *map);
    size_t used = 0;
    if (!sorted || !map) {
        free(sorted);
        free(map);
        return spk_error_nomem(err, in->fields_n * sizeof *sorted);
    }
    for (size_t i = 0; i < in->files_n; i++)
        map[in->files[i].field] = 1;
    for (size_t i = 0; i < in->fields_n; i++)
        if (map[i])
            sorted[used++] = in->fields[i];
        else
            free(in->fields[i]);
    char **old = in->fields;
    qsort(sorted, used, sizeof *sorted, compare_fields);
    for (size_t i = 0; i < in->fields_n; i++) {
        const char *const *at = map[i] ? bsearch(&old[i], sorted, used, sizeof *sorted, compare_fields) : NULL;
        map[i] = at ? (uint32_t)(at - (const char *const *)sorted) : 0;
    }
    for (size_t i = 0; i < in->files_n; i++)
        in->files[i].field = map[in->files[i].field];
    in->fields = sorted;
    in->fields_cap = in->fields_n + 1;
    in->fields_n = used;
    free(old);
    free(map);
    return SPK_OK;
}

/* Says what was there instead. */
static spk_status nothing(const spk_scan *s, spk_error *err)
{
    const spk_input *in = s->in;
    const struct {
        uint64_t n;
        const char *what;
    } found[] = {{in->empty_folders, "empty folders"},
                 {in->junk, "system files (such as .DS_Store)"},
                 {in->other_skipped, "links and special files"},
                 {in->excluded, "files not selected"},
                 {in->excluded_folders, "folders not selected"}};
    char text[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < SPK_ARRAY_SIZE(found); i++)
        if (found[i].n > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s: %llu", used ? ", " : "; ", found[i].what,
                                     (unsigned long long)found[i].n);
    return spk_error_set(err, SPK_E_INVALID, "%s: no files to pack%s", s->o->list ? s->o->list : s->src, text);
}

static spk_status run(spk_scan *s, spk_error *err)
{
    spk_input *in = s->in;
    in->list = s->o->list != NULL;
    SPK_TRY(spk_scan_open_archive(s, err));
    SPK_TRY(in->list ? spk_scan_list(s, err) : in->archive ? spk_scan_archive(s, err) : spk_scan_tree(s, err));
    if (in->files_n == 0)
        return nothing(s, err);
    if (!in->list)
        SPK_TRY(spk_group_files(s, err));
    SPK_TRY(spk_group_unique(s, err));
    if (!in->list) {
        spk_group_sort_samples(in);
        SPK_TRY(spk_group_labels(s, err));
    }
    link_files(in, s->o->limit);
    SPK_TRY(order_fields(in, err));
    if (s->hooks && s->hooks->on_files && s->hooks->on_files(s->hooks->ctx, in->files_n))
        return spk_error_set(err, SPK_E_CANCELLED, "cancelled after %zu files", in->files_n);
    SPK_TRY(check_sizes(in, err));
    spk_scan_hints(s);
    return SPK_OK;
}

spk_status spk_input_scan(spk_input *in, int src_fd, const char *src, const spk_pack_options *o, uint64_t target_dev,
                          uint64_t target_ino, const spk_input_hooks *hooks, spk_error *err)
{
    *in = (spk_input){0};
    spk_scan s = {.in = in,
                  .src_fd = src_fd,
                  .src = src,
                  .o = o,
                  .target_dev = target_dev,
                  .target_ino = target_ino,
                  .hooks = hooks,
                  .fields = {.str = field_name, .ctx = in}};
    spk_status status = run(&s, err);
    for (size_t i = 0; i < s.classes_n; i++)
        free(s.classes[i]);
    free(s.classes);
    spk_intern_free(&s.fields);
    spk_intern_free(&s.members);
    if (in->archive)
        spk_archive_forget(in->archive);
    if (status < 0)
        spk_input_free(in);
    return status;
}

void spk_input_free(spk_input *in)
{
    spk_buf_free(&in->paths);
    spk_buf_free(&in->around_path);
    free(in->files);
    free(in->samples);
    for (size_t i = 0; i < in->fields_n; i++)
        free(in->fields[i]);
    free(in->fields);
    for (size_t i = 0; i < in->classes_n; i++)
        free(in->classes[i]);
    free(in->classes);
    spk_archive_free(in->archive);
    spk_dataset_close(in->dataset);
    free(in->cuts);
    *in = (spk_input){0};
}
