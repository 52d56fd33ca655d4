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

typedef enum found { FOUND_NONE, FOUND_SAME, FOUND_DAMAGED, FOUND_OTHER } found;

static int64_t newest(const spk_input *in)
{
    int64_t stamp = INT64_MIN;
    for (size_t i = 0; i < in->files_n; i++)
        if (in->files[i].stamp > stamp)
            stamp = in->files[i].stamp;
    return stamp;
}

static bool shards_are_there(const spk_dataset *d, int fd)
{
    spk_dataset_stat stat;
    spk_dataset_get_stat(d, &stat);
    for (uint64_t i = 0; i < stat.shards; i++) {
        spk_shard_row row;
        struct stat st;
        if (spk_dataset_get_shard(d, i, &row, NULL) < 0 || fstatat(fd, row.path, &st, 0) != 0 ||
            (uint64_t)st.st_size != row.bytes)
            return false;
    }
    return true;
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

static spk_status refuse(const spk_target_folder *f, const spk_manifest *m, spk_error *err)
{
    return spk_error_set(err, SPK_E_EXISTS,
                         "%s: already holds a dataset (%llu samples, fingerprint %.8s); --force packs anew beside it",
                         f->name, (unsigned long long)m->samples, m->fingerprint);
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
static spk_status look(const spk_target_folder *f, const char *plan, int64_t stamp, spk_manifest *m,
                       spk_described *about, found *out, spk_error *err)
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
    bool same = spk_describe_read(m->pack, about) && strcmp(about->plan, plan) == 0 && stamp <= written;
    *out = same ? FOUND_SAME : FOUND_OTHER;
    return SPK_OK;
}

static spk_status check_one(spk_target *t, size_t i, const char *plan, int64_t stamp, found *out,
                            spk_pack_result *result, spk_error *err)
{
    const spk_target_folder *f = spk_target_dataset(t, i);
    spk_manifest m = {0};
    spk_described about;
    spk_dataset *d = NULL;
    spk_status status = look(f, plan, stamp, &m, &about, out, err);
    if (status == SPK_OK && *out == FOUND_OTHER)
        status = refuse(f, &m, err);
    if (status == SPK_OK && *out == FOUND_SAME) {
        if (spk_dataset_open(&d, f->name, NULL, NULL) < 0 || !shards_are_there(d, f->fd))
            *out = FOUND_DAMAGED;
        else
            add_result(result, d, &about, i == 0);
        spk_dataset_close(d);
    }
    spk_manifest_free(&m);
    return status;
}

spk_status spk_existing_check(spk_target *t, const spk_input *in, const spk_pack_plan_digest *digest, bool *up_to_date,
                              spk_pack_result *result, spk_error *err)
{
    char plan[SPK_SHA256_HEX];
    spk_pack_result sum = *result;
    int64_t stamp = newest(in);
    *up_to_date = true;
    spk_hex(plan, digest->plan, 32);
    for (size_t i = 0; i < spk_target_datasets(t); i++) {
        found one = FOUND_NONE;
        SPK_TRY(check_one(t, i, plan, stamp, &one, &sum, err));
        *up_to_date = *up_to_date && one == FOUND_SAME;
    }
    if (*up_to_date)
        *result = sum;
    return SPK_OK;
}
