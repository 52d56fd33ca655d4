/* Samples named by a list: one row is one sample of one file, in the list's order. */
#include "pack/list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "pack/filter.h"
#include "pack/names.h"
#include "pack/scan.h"

typedef struct reader {
    spk_scan *s;
    spk_list_row row;  /* the current one */
    spk_intern paths;  /* numbers of files: which are named already */
    spk_intern above;  /* numbers of the folders that lead to them */
    uint64_t *folders; /* their paths in the input's arena */
    size_t folders_n, folders_cap;
    spk_intern labels; /* numbers of class names, in the order of their coming; until the end a sample's label */
    spk_list_label kind;
    uint64_t kind_row; /* the row that decided what labels are */
} reader;

static const char *file_path(const void *ctx, uint32_t id)
{
    const spk_input *in = ctx;
    return spk_input_str(in, in->files[id].path);
}

static const char *folder_path(const void *ctx, uint32_t id)
{
    const reader *r = ctx;
    return spk_input_str(r->s->in, r->folders[id]);
}

static const char *class_name(const void *ctx, uint32_t id)
{
    const spk_scan *s = ctx;
    return s->classes[id];
}

static ssize_t fill(void *ctx, void *buf, size_t n)
{
    ssize_t got = 0;
    do
        got = read(*(int *)ctx, buf, n);
    while (got < 0 && errno == EINTR);
    return got;
}

static spk_status plain_path(const char *path, char out[SPK_SCAN_PATH_MAX + 1], size_t *n, spk_error *err)
{
    const char *why = spk_name_plain(path, out, n);
    return why ? spk_error_set(err, SPK_E_FORMAT, "path \"%.300s\": %s", path, why) : SPK_OK;
}

static spk_status label_of(reader *r, int32_t *out, spk_error *err)
{
    const spk_list_row *row = &r->row;
    spk_scan *s = r->s;
    *out = -1;
    if (row->label == SPK_LABEL_NONE || s->o->labels == SPK_LABELS_NONE) {
        s->in->unlabelled += s->o->labels != SPK_LABELS_NONE;
        return SPK_OK;
    }
    if (r->kind == SPK_LABEL_NONE) {
        r->kind = row->label;
        r->kind_row = row->number;
    }
    if (r->kind != row->label)
        return spk_error_set(err, SPK_E_FORMAT, "the label is a %s, that of row %llu is a %s",
                             row->label == SPK_LABEL_TEXT ? "name" : "number", (unsigned long long)r->kind_row,
                             r->kind == SPK_LABEL_TEXT ? "name" : "number");
    *out = row->label_number;
    if (row->label == SPK_LABEL_NUMBER)
        return SPK_OK;
    uint32_t known = spk_intern_find(&r->labels, row->label_text), put = 0;
    if (known == SPK_INTERN_NONE) {
        SPK_TRY(spk_grow(&s->classes, &s->classes_cap, s->classes_n + 1, sizeof *s->classes, err));
        known = (uint32_t)s->classes_n;
        s->classes[known] = strdup(row->label_text);
        if (!s->classes[known])
            return spk_error_nomem(err, strlen(row->label_text) + 1);
        s->classes_n++;
        SPK_TRY(spk_intern_put(&r->labels, s->classes[known], known, &put, err));
    }
    *out = (int32_t)known;
    return SPK_OK;
}

/* The row's file, now the last in the input, becomes a sample. */
static spk_status add_sample(reader *r, size_t n, spk_error *err)
{
    spk_input *in = r->s->in;
    char key[SPK_KEY_MAX + 1];
    const spk_input_file *f = &in->files[in->files_n - 1];
    const char *path = spk_input_str(in, f->path), *field = in->fields[f->field];
    SPK_TRY(spk_grow(&in->samples, &in->samples_cap, in->samples_n + 1, sizeof *in->samples, err));
    spk_input_sample sample = {.first = in->files_n - 1, .files = 1};
    SPK_TRY(label_of(r, &sample.label, err));
    if ((sample.label >= 0 && strcmp(field, "cls") == 0) || (r->row.json && strcmp(field, "json") == 0))
        return spk_error_set(err, SPK_E_FORMAT, "path \"%.300s\": the row itself makes a \"%s\" field for this sample",
                             path, field);
    SPK_TRY(spk_name_key(path, spk_name_stem(path, n, r->s->o->stem), SPK_KEY_PLAIN, key, err));
    SPK_TRY(spk_scan_text(in, key, strlen(key), &sample.key, err));
    if (r->row.json) {
        SPK_TRY(spk_scan_text(in, r->row.json, strlen(r->row.json), &sample.json, err));
        sample.json++;
    }
    in->samples[in->samples_n++] = sample;
    return SPK_OK;
}

/* A folder on the way to a row's file, for the first time. What cannot be looked at is told for the file itself. */
static spk_status take_folder(reader *r, const char *path, const char *folder, size_t n, spk_error *err)
{
    spk_scan *s = r->s;
    struct stat st;
    uint32_t put = 0;
    if (fstatat(s->src_fd, n ? folder : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return SPK_OK;
    if (S_ISLNK(st.st_mode) && !s->o->follow_symlinks)
        return spk_error_set(err, SPK_E_INVALID,
                             "path \"%.300s\": \"%.300s\" is a symlink, and --follow-symlinks is not given", path,
                             folder);
    if (S_ISLNK(st.st_mode) && fstatat(s->src_fd, folder, &st, 0) < 0)
        return SPK_OK;
    SPK_TRY(spk_grow(&r->folders, &r->folders_cap, r->folders_n + 1, sizeof *r->folders, err));
    SPK_TRY(spk_scan_text(s->in, folder, n, &r->folders[r->folders_n], err));
    SPK_TRY(spk_intern_put(&r->above, folder, (uint32_t)r->folders_n++, &put, err));
    return spk_scan_around(s, folder, n, &st, err);
}

static spk_status look_above(reader *r, const char *path, spk_error *err)
{
    char folder[SPK_SCAN_PATH_MAX + 1] = "";
    size_t n = 0;
    for (const char *slash = path; slash; slash = strchr(path + n + 1, '/')) {
        memcpy(folder + n, path + n, (size_t)(slash - path) - n);
        n = (size_t)(slash - path);
        folder[n] = '\0';
        if (spk_intern_find(&r->above, folder) == SPK_INTERN_NONE)
            SPK_TRY(take_folder(r, path, folder, n, err));
    }
    return SPK_OK;
}

static spk_status add_file(reader *r, const char *path, size_t n, spk_error *err)
{
    spk_scan *s = r->s;
    struct stat st;
    SPK_TRY(look_above(r, path, err));
    if (fstatat(s->src_fd, path, &st, s->o->follow_symlinks ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return spk_error_sys(err, errno, "path \"%.300s\"", path);
    if (!S_ISREG(st.st_mode))
        return spk_error_set(err, SPK_E_INVALID, "path \"%.300s\": %s", path,
                             S_ISLNK(st.st_mode)   ? "is a symlink, and --follow-symlinks is not given"
                             : S_ISDIR(st.st_mode) ? "is a folder"
                                                   : "is not a regular file");
    return spk_scan_add(s, path, n, &st, err);
}

static spk_status take_row(reader *r, spk_error *err)
{
    spk_scan *s = r->s;
    char path[SPK_SCAN_PATH_MAX + 1];
    size_t n = 0;
    uint32_t other = 0, id = (uint32_t)s->in->files_n;
    SPK_TRY(plain_path(r->row.path, path, &n, err));
    const char *slash = strrchr(path, '/');
    if (!spk_filter_file(s->o, path, n, slash ? (size_t)(slash + 1 - path) : 0)) {
        s->in->excluded++;
        return SPK_OK;
    }
    SPK_TRY(s->in->archive ? spk_scan_named_member(s, path, err) : add_file(r, path, n, err));
    SPK_TRY(spk_intern_put(&r->paths, file_path(s->in, id), id, &other, err));
    if (other != id)
        return spk_error_set(err, SPK_E_FORMAT, "path \"%.300s\": named before, in row %llu", path,
                             (unsigned long long)s->in->files[other].sample);
    s->in->files[id].sample = r->row.number; /* until samples are numbered */
    return add_sample(r, n, err);
}

typedef struct rank {
    const char *name;
    uint32_t old;
} rank;

static int compare_ranks(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Numbers the class names by their bytes instead of by their coming. */
static spk_status order_classes(spk_scan *s, spk_error *err)
{
    rank *ranks = calloc(s->classes_n + 1, sizeof *ranks);
    int32_t *map = calloc(s->classes_n + 1, sizeof *map);
    spk_status status = SPK_OK;
    if (!ranks || !map) {
        status = spk_error_nomem(err, s->classes_n * sizeof *ranks);
        goto out;
    }
    for (uint32_t i = 0; i < s->classes_n; i++)
        ranks[i] = (rank){s->classes[i], i};
    qsort(ranks, s->classes_n, sizeof *ranks, compare_ranks);
    for (size_t i = 0; i < s->classes_n; i++)
        map[ranks[i].old] = (int32_t)i;
    for (size_t i = 0; i < s->in->samples_n; i++)
        if (s->in->samples[i].label >= 0)
            s->in->samples[i].label = map[s->in->samples[i].label];
    for (size_t i = 0; i < s->classes_n; i++)
        memcpy(&s->classes[i], &ranks[i].name, sizeof s->classes[i]);
    status = spk_group_classes(s, err);
out:
    free(ranks);
    free(map);
    return status;
}

static spk_status read_rows(reader *r, spk_list *list, spk_error *err)
{
    spk_status status = SPK_OK;
    while ((status = spk_list_next(list, &r->row, err)) == SPK_OK) {
        SPK_TRY(spk_scan_tick(r->s, err));
        status = take_row(r, err);
        if (status < 0) {
            spk_error_prefix(err, "row %llu", (unsigned long long)r->row.number);
            return status;
        }
    }
    return status < 0 ? status : SPK_OK;
}

spk_status spk_scan_list(spk_scan *s, spk_error *err)
{
    reader r = {.s = s, .paths = {.str = file_path, .ctx = s->in}, .labels = {.str = class_name, .ctx = s}};
    r.above = (spk_intern){.str = folder_path, .ctx = &r};
    const char *name = s->o->list;
    spk_list_format format = SPK_LIST_CSV;
    spk_list *list = NULL;
    SPK_TRY(spk_list_format_of(name, &format, err));
    bool is_stdin = strcmp(name, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return spk_error_sys(err, errno, "%s", name);
    spk_status status = spk_list_new(&list, format, fill, &fd, err);
    if (status == SPK_OK)
        status = read_rows(&r, list, err);
    if (status < 0 && status != SPK_E_CANCELLED)
        spk_error_prefix(err, "%s", is_stdin ? "standard input" : name);
    if (status == SPK_OK && r.kind == SPK_LABEL_TEXT)
        status = order_classes(s, err);
    spk_list_free(list);
    spk_intern_free(&r.paths);
    spk_intern_free(&r.above);
    free(r.folders);
    spk_intern_free(&r.labels);
    if (!is_stdin)
        close(fd);
    return status;
}
