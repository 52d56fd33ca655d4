/* Comparing the target's manifests with the plan. */
#include "pack/existing.h"

#include <errno.h>
#include <fcntl.h>
#include <shardpack/dataset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "dataset/manifest.h"
#include "pack/describe.h"

typedef enum found { FOUND_NONE, FOUND_SAME, FOUND_DAMAGED, FOUND_NEWER, FOUND_OTHER } found;

typedef struct comparison {
    const spk_existing_want *want;
    char plan[SPK_SHA256_HEX];
    int64_t stamp;      /* the newest of the source */
    const char *newest; /* whose it is, below the source; "": its own */
} comparison;

/* Files, and the folders above them: a folder that is renamed or replaced puts other files under their names. */
static void find_newest(comparison *c)
{
    const spk_input *in = c->want->in;
    c->newest = "";
    if (in->archive) {
        c->stamp = in->archive->stamp;
        return;
    }
    if (in->dataset) { /* its manifest is part of the plan */
        c->stamp = 0;
        return;
    }
    c->stamp = in->around;
    if (in->around_path.len > 0)
        c->newest = (const char *)in->around_path.data;
    for (size_t i = 0; i < in->files_n; i++)
        if (in->files[i].stamp >= c->stamp) {
            c->stamp = in->files[i].stamp;
            c->newest = spk_input_str(in, in->files[i].path);
        }
}

/* A shard of another size stays where it is, so the one that packing would make could not take its place. */
static spk_status look_at_shards(const spk_target_folder *f, const spk_dataset *d, found *out, spk_error *err)
{
    spk_dataset_stat stat;
    spk_dataset_get_stat(d, &stat);
    for (uint64_t i = 0; i < stat.shards; i++) {
        spk_shard_row row;
        struct stat st;
        SPK_TRY(spk_dataset_get_shard(d, i, &row, err));
        if (fstatat(f->fd, row.path, &st, 0) != 0)
            *out = FOUND_DAMAGED;
        else if ((uint64_t)st.st_size != row.bytes)
            return spk_error_set(err, SPK_E_EXISTS,
                                 "%s/%s: has %llu bytes, by the dataset's table it has %llu; if it is damaged, remove "
                                 "it, and packing makes it anew",
                                 f->name, row.path, (unsigned long long)st.st_size, (unsigned long long)row.bytes);
    }
    return SPK_OK;
}

static void add_result(spk_pack_result *r, const spk_dataset *d, const spk_described *about, bool first)
{
    spk_dataset_stat s;
    spk_dataset_get_stat(d, &s);
    r->samples += s.samples;
    r->files += about->files;
    r->classes = spk_dataset_class_count(d);
    r->shards += s.shards;
    r->frames += s.frames;
    r->bytes_in += s.payload_bytes;
    r->bytes_out += s.bytes;
    r->bad += about->bad;
    r->bad_skipped_samples += about->skipped_samples;
    if (first)
        snprintf(r->fingerprint, sizeof r->fingerprint, "%s", spk_dataset_fingerprint(d));
}

static spk_status refuse(const spk_target_folder *f, const spk_manifest *m, const comparison *c, bool newer,
                         spk_error *err)
{
    const char *src = c->want->src;
    (void)spk_error_set(err, SPK_E_EXISTS, "already holds a dataset (%llu samples, fingerprint %.8s), %s%s%s%s%s",
                        (unsigned long long)m->samples, m->fingerprint,
                        newer ? "and source files changed after packing (newest: "
                              : "packed with other files, options or versions",
                        newer ? src : "", newer && c->newest[0] ? "/" : "", newer ? c->newest : "",
                        newer ? "); --force packs anew beside it" : "; --force packs anew beside it");
    spk_error_prefix(err, "%s", f->name);
    return SPK_E_EXISTS;
}

static spk_status read_manifest(const spk_target_folder *f, int fd, off_t size, spk_manifest *m, spk_error *err)
{
    if (size > (off_t)SPK_MANIFEST_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "%lld bytes, at most %u are possible", (long long)size,
                             SPK_MANIFEST_MAX);
    char *text = malloc((size_t)size + 1);
    if (!text)
        return spk_error_nomem(err, (size_t)size);
    ssize_t got = pread(fd, text, (size_t)size, 0);
    spk_status status = got == size ? spk_manifest_parse(m, text, (size_t)size, err)
                                    : spk_error_sys(err, got < 0 ? errno : EIO, "%s", f->name);
    free(text);
    return status;
}

/* m is filled unless there is no manifest. */
static spk_status look(const spk_target_folder *f, const comparison *c, spk_manifest *m, spk_described *about,
                       found *out, spk_error *err)
{
    struct stat st;
    *out = FOUND_NONE;
    int fd = f->fd < 0 ? -1 : openat(f->fd, SPK_MANIFEST_NAME, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return f->fd < 0 || errno == ENOENT ? SPK_OK : spk_error_sys(err, errno, "%s/%s", f->name, SPK_MANIFEST_NAME);
    spk_status status = SPK_OK;
    if (fstat(fd, &st) != 0)
        status = spk_error_sys(err, errno, "%s/%s", f->name, SPK_MANIFEST_NAME);
    else if ((status = read_manifest(f, fd, st.st_size, m, err)) < 0)
        spk_error_prefix(err, "%s/%s: not a manifest of ours, --force replaces it", f->name, SPK_MANIFEST_NAME);
    close(fd);
    if (status < 0)
        return status;
    int64_t written = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    bool same = spk_describe_read(m->pack, about) && strcmp(about->plan, c->plan) == 0;
    *out = same && c->stamp <= written ? FOUND_SAME : same ? FOUND_NEWER : FOUND_OTHER;
    return SPK_OK;
}

static spk_status check_one(spk_target *t, size_t i, const comparison *c, found *out, spk_pack_result *result,
                            spk_error *err)
{
    const spk_target_folder *f = spk_target_dataset(t, i);
    spk_manifest m = {0};
    spk_described about;
    spk_dataset *d = NULL;
    spk_status status = look(f, c, &m, &about, out, c->want->force ? NULL : err);
    if (c->want->force && status < 0)
        status = SPK_OK; /* it is replaced, whatever it is */
    if (status == SPK_OK && (*out == FOUND_OTHER || *out == FOUND_NEWER) && !c->want->force)
        status = refuse(f, &m, c, *out == FOUND_NEWER, err);
    if (status == SPK_OK && *out == FOUND_SAME) {
        if (spk_dataset_open(&d, f->name, NULL, NULL) < 0)
            *out = FOUND_DAMAGED;
        else
            status = look_at_shards(f, d, out, err);
        if (status == SPK_OK && *out == FOUND_SAME)
            add_result(result, d, &about, i == 0);
        spk_dataset_close(d);
    }
    spk_manifest_free(&m);
    return status;
}

spk_status spk_existing_check(spk_target *t, const spk_existing_want *want, bool *up_to_date, spk_pack_result *result,
                              spk_error *err)
{
    comparison c = {.want = want};
    spk_pack_result sum = *result;
    *up_to_date = !want->force;
    spk_hex(c.plan, want->digest->plan, 32);
    find_newest(&c);
    for (size_t i = 0; i < spk_target_datasets(t); i++) {
        found one = FOUND_NONE;
        SPK_TRY(check_one(t, i, &c, &one, &sum, err));
        *up_to_date = *up_to_date && one == FOUND_SAME;
    }
    if (*up_to_date)
        *result = sum;
    return SPK_OK;
}

spk_status spk_existing_manifests(spk_target *t, bool *any, spk_error *err)
{
    *any = false;
    for (size_t i = 0; i < spk_target_datasets(t); i++) {
        const spk_target_folder *f = spk_target_dataset(t, i);
        struct stat st;
        if (f->fd < 0 || fstatat(f->fd, SPK_MANIFEST_NAME, &st, 0) != 0)
            continue;
        if (!S_ISREG(st.st_mode))
            return spk_error_set(err, SPK_E_EXISTS, "%s/%s: is not a regular file; move it away", f->name,
                                 SPK_MANIFEST_NAME);
        *any = true;
    }
    return SPK_OK;
}
