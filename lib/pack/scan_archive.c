/* From the members of an archive to files and class names, by the rules of the folder walk: the result is that of the
 * unpacked tree. The places of the members' data go into the files' stamps, which all are the archive's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pack/filter.h"
#include "pack/names.h"
#include "pack/scan.h"

static int on_members(void *ctx, uint64_t members)
{
    const spk_scan *s = ctx;
    return s->hooks && s->hooks->on_files ? s->hooks->on_files(s->hooks->ctx, members) : 0;
}

static const char *path_of(const spk_scan *s, const spk_archive_member *m)
{
    return (const char *)s->in->archive->paths.data + m->path;
}

static const char *member_path(const void *ctx, uint32_t id)
{
    const spk_scan *s = ctx;
    return path_of(s, &s->in->archive->members[id]);
}

static const char *class_name(const void *ctx, uint32_t id)
{
    const spk_scan *s = ctx;
    return s->classes[id];
}

static const char *file_path(const void *ctx, uint32_t id)
{
    const spk_input *in = ctx;
    return spk_input_str(in, in->files[id].path);
}

spk_status spk_scan_open_archive(spk_scan *s, spk_error *err)
{
    struct stat st;
    if (fstat(s->src_fd, &st) != 0 || !S_ISREG(st.st_mode))
        return SPK_OK; /* a folder; the walk says what is wrong with it */
    return spk_archive_list(&s->in->archive, s->src_fd, s->src, spk_stamp_of(&st), on_members, s, err);
}

static spk_status add(spk_scan *s, const spk_archive_member *m, spk_error *err)
{
    const struct stat st = {.st_size = (off_t)m->size};
    spk_status status = spk_scan_add(s, path_of(s, m), m->path_n, &st, err);
    if (status < 0)
        spk_error_prefix(err, "%s", s->src);
    else
        s->in->files[s->in->files_n - 1].stamp = (int64_t)m->offset;
    return status;
}

static spk_status add_class(spk_scan *s, spk_intern *classes, const char *path, size_t n, spk_error *err)
{
    uint32_t other = 0;
    if (s->classes_n > 0 && strncmp(s->classes[s->classes_n - 1], path, n) == 0 && !s->classes[s->classes_n - 1][n])
        return SPK_OK;
    SPK_TRY(spk_grow(&s->classes, &s->classes_cap, s->classes_n + 1, sizeof *s->classes, err));
    char *name = strndup(path, n);
    if (!name)
        return spk_error_nomem(err, n + 1);
    s->classes[s->classes_n] = name;
    spk_status status = spk_intern_put(classes, name, (uint32_t)s->classes_n, &other, err);
    if (status == SPK_OK && other == s->classes_n)
        s->classes_n++;
    else
        free(name);
    return status;
}

/* Looks at the folders above a member, and at itself if it is one. */
static spk_status look_above(spk_scan *s, spk_intern *classes, const spk_archive_member *m, bool *junk, bool *excluded,
                             spk_error *err)
{
    const char *path = path_of(s, m);
    for (size_t from = 0; from < m->path_n && !*junk;) {
        size_t end = from + strcspn(path + from, "/");
        if (path[end] == '\0' && m->kind != SPK_ARCHIVE_FOLDER)
            break;
        *junk = end - from == 8 && memcmp(path + from, "__MACOSX", 8) == 0;
        *excluded = !*junk && !spk_filter_folder(s->o, path, end, from);
        if (*excluded)
            return SPK_OK;
        if (from == 0 && !*junk)
            SPK_TRY(add_class(s, classes, path, end, err));
        from = end + (path[end] == '/');
    }
    return SPK_OK;
}

static spk_status take_file(spk_scan *s, spk_intern *files, const spk_archive_member *m, size_t base, spk_error *err)
{
    spk_input *in = s->in;
    const char *path = path_of(s, m);
    uint32_t other = 0, id = (uint32_t)in->files_n;
    if (!spk_filter_file(s->o, path, m->path_n, base)) {
        in->excluded++;
        return SPK_OK;
    }
    SPK_TRY(add(s, m, err));
    SPK_TRY(spk_intern_put(files, file_path(in, id), id, &other, err));
    if (other != id) {
        (void)spk_error_set(err, SPK_E_FORMAT, "is in the archive twice, its data at bytes %llu and %llu",
                            (unsigned long long)in->files[other].stamp, (unsigned long long)m->offset);
        spk_input_prefix(in, s->src, &in->files[id], err);
        return SPK_E_FORMAT;
    }
    if (base == 0 && strcmp(spk_field_kind(in->fields[in->files[id].field]), "image") == 0)
        s->root_image = true;
    return SPK_OK;
}

static spk_status take_member(spk_scan *s, spk_intern *classes, spk_intern *files, const spk_archive_member *m,
                              spk_error *err)
{
    bool junk = false, excluded = false;
    const char *path = path_of(s, m), *slash = strrchr(path, '/');
    size_t base = slash ? (size_t)(slash + 1 - path) : 0;
    SPK_TRY(look_above(s, classes, m, &junk, &excluded, err));
    if (m->kind == SPK_ARCHIVE_FOLDER)
        return SPK_OK;
    if (!excluded && (junk || spk_name_is_junk(path + base)))
        s->in->junk++;
    else if (excluded)
        s->in->excluded++;
    else if (m->kind == SPK_ARCHIVE_SYMLINK && s->o->follow_symlinks)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "%s: %s: a symlink in an archive cannot be followed", s->src,
                             path);
    else if (m->kind != SPK_ARCHIVE_FILE)
        s->in->other_skipped++;
    else
        return take_file(s, files, m, base, err);
    return SPK_OK;
}

/* "tar cf train.tar train" puts the class folders one level too deep. */
static void note_single_folder(const spk_scan *s)
{
    const spk_input *in = s->in;
    if (s->classes_n != 1 || s->root_image || s->o->labels == SPK_LABELS_NONE || !s->hooks || !s->hooks->on_note)
        return;
    for (size_t i = 0; i < in->files_n; i++) {
        const char *slash = strchr(spk_input_str(in, in->files[i].path), '/');
        if (!slash || !strchr(slash + 1, '/'))
            return;
    }
    s->hooks->on_note(s->hooks->ctx, "everything in the archive lies in one folder, so there is one class; \"tar -C "
                                     "FOLDER -cf FILE .\" makes an archive with a class per sub-folder");
}

spk_status spk_scan_archive(spk_scan *s, spk_error *err)
{
    const spk_archive *a = s->in->archive;
    spk_intern classes = {.str = class_name, .ctx = s}, files = {.str = file_path, .ctx = s->in};
    spk_status status = SPK_OK;
    for (size_t i = 0; i < a->members_n && status == SPK_OK; i++) {
        status = spk_scan_tick(s, err);
        if (status == SPK_OK)
            status = take_member(s, &classes, &files, &a->members[i], err);
    }
    if (status == SPK_OK)
        note_single_folder(s);
    spk_intern_free(&classes);
    spk_intern_free(&files);
    return status;
}

/* The last of several members of one name is the one that unpacking leaves, but which one the list means is unknown. */
static spk_status index_members(spk_scan *s, spk_error *err)
{
    const spk_archive *a = s->in->archive;
    s->members = (spk_intern){.str = member_path, .ctx = s};
    for (size_t i = 0; i < a->members_n; i++) {
        const spk_archive_member *m = &a->members[i];
        uint32_t other = 0;
        if (m->path_n == 0)
            continue;
        SPK_TRY(spk_intern_put(&s->members, path_of(s, m), (uint32_t)i, &other, err));
        if (other != i && (m->kind != SPK_ARCHIVE_FOLDER || a->members[other].kind != SPK_ARCHIVE_FOLDER))
            return spk_error_set(err, SPK_E_FORMAT, "%s: path \"%.300s\": is in the archive twice", s->src,
                                 path_of(s, m));
    }
    return SPK_OK;
}

spk_status spk_scan_named_member(spk_scan *s, const char *path, spk_error *err)
{
    if (!s->members.str)
        SPK_TRY(index_members(s, err));
    uint32_t id = spk_intern_find(&s->members, path);
    if (id == SPK_INTERN_NONE)
        return spk_error_set(err, SPK_E_NOT_FOUND, "path \"%.300s\": %s has no such member", path, s->src);
    const spk_archive_member *m = &s->in->archive->members[id];
    if (m->kind != SPK_ARCHIVE_FILE)
        return spk_error_set(err, SPK_E_INVALID, "path \"%.300s\": %s", path,
                             m->kind == SPK_ARCHIVE_SYMLINK  ? "is a symlink"
                             : m->kind == SPK_ARCHIVE_FOLDER ? "is a folder"
                                                             : "is not a regular file");
    return add(s, m, err);
}
