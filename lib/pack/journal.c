/* The journal's writing side, and opening it; the lines of an earlier run are read by journal_read.c. */
#include "pack/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/hash.h"
#include "pack/journal_read.h"

struct spk_journal {
    int fd;
    char *name; /* for messages */
    pthread_mutex_t lock;
    spk_buf text; /* guarded by lock: the record being written */
};

/* Ends the line that begins at text[from] with its checksum. */
static spk_status end_line(spk_buf *text, size_t from, spk_error *err)
{
    uint64_t sum = XXH64(text->data + from, text->len - from, 0);
    return spk_buf_printf(text, err, "\t%016" PRIx64 "\n", sum);
}

static spk_status write_out(spk_journal *j, spk_error *err)
{
    for (size_t done = 0; done < j->text.len;) {
        ssize_t n = write(j->fd, j->text.data + done, j->text.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return spk_error_sys(err, errno, "%s", j->name);
        done += (size_t)n;
    }
    j->text.len = 0;
    if (fdatasync(j->fd) != 0)
        return spk_error_sys(err, errno, "%s", j->name);
    return SPK_OK;
}

static spk_status begin(spk_journal *j, const spk_pack_plan_digest *d, spk_error *err)
{
    char hex[4][SPK_SHA256_HEX];
    spk_hex(hex[0], d->options, 32);
    spk_hex(hex[1], d->versions, 32);
    spk_hex(hex[2], d->input, 32);
    spk_hex(hex[3], d->stamps, 32);
    if (ftruncate(j->fd, 0) != 0)
        return spk_error_sys(err, errno, "%s", j->name);
    j->text.len = 0;
    SPK_TRY(spk_buf_printf(&j->text, err, SPK_JOURNAL_MAGIC "\t%s\t%s\t%s\t%s", hex[0], hex[1], hex[2], hex[3]));
    SPK_TRY(end_line(&j->text, 0, err));
    return write_out(j, err);
}

static spk_status refuse(const char *name, const spk_journal_seen *seen, spk_error *err)
{
    const char *const parts[] = {seen->options_differ ? ", options" : "", seen->versions_differ ? ", versions" : "",
                                 seen->input_differs ? ", files" : "", seen->stamps_differ ? ", times of files" : ""};
    char list[64];
    snprintf(list, sizeof list, "%s%s%s%s", parts[0], parts[1], parts[2], parts[3]);
    return spk_error_set(err, SPK_E_CHANGED,
                         "an interrupted run with other input, options or versions is in %s "
                         "(%" PRIu64 " shards done; changed: %s); --force discards it",
                         name, seen->shards, list[0] ? list + 2 : "its journal");
}

spk_status spk_journal_open(spk_journal **out, int work_fd, const char *name, const spk_pack_plan_digest *digest,
                            size_t fields_n, bool force, const spk_journal_hooks *hooks, bool *fresh, spk_error *err)
{
    spk_journal_seen seen = {0};
    spk_status status = SPK_OK;
    *out = NULL;
    spk_journal *j = calloc(1, sizeof *j);
    if (!j)
        return spk_error_nomem(err, sizeof *j);
    j->fd = -1;
    pthread_mutex_init(&j->lock, NULL);
    size_t cap = strlen(name) + sizeof "/" SPK_JOURNAL_NAME;
    j->name = malloc(cap);
    if (!j->name) {
        status = spk_error_nomem(err, cap);
        goto out;
    }
    snprintf(j->name, cap, "%s/%s", name, SPK_JOURNAL_NAME);
    j->fd = openat(work_fd, SPK_JOURNAL_NAME, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (j->fd < 0) {
        status = spk_error_sys(err, errno, "%s", j->name);
        goto out;
    }
    status = spk_journal_read(j->fd, j->name, digest, fields_n, hooks, &seen, err);
    if (status < 0)
        goto out;
    if (!seen.matches && seen.shards > 0 && !force) {
        status = refuse(name, &seen, err);
        goto out;
    }
    *fresh = !seen.matches || seen.shards == 0;
    if (!seen.matches)
        status = begin(j, digest, err);
    else if (ftruncate(j->fd, (off_t)seen.whole) != 0)
        status = spk_error_sys(err, errno, "%s", j->name);
out:
    if (status < 0)
        spk_journal_close(j);
    else
        *out = j;
    return status;
}

static spk_status put_bad_lines(spk_buf *text, const spk_buf *lines, spk_error *err)
{
    const char *p = (const char *)lines->data, *end = p ? p + lines->len : p;
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        size_t from = text->len, n = lf ? (size_t)(lf - p) : (size_t)(end - p);
        SPK_TRY(spk_buf_append(text, "bad\t", 4, err));
        SPK_TRY(spk_buf_append(text, p, n, err));
        SPK_TRY(end_line(text, from, err));
        p += n + 1;
    }
    return SPK_OK;
}

static spk_status put_shard(spk_buf *text, uint64_t number, const spk_shard_info *i, const spk_tally *tally,
                            spk_error *err)
{
    char tail[SPK_SHA256_HEX];
    SPK_TRY(put_bad_lines(text, &tally->bad_lines, err));
    size_t from = text->len;
    spk_hex(tail, i->tail_sha256, 32);
    SPK_TRY(spk_buf_printf(text, err,
                           "shard\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s",
                           number, i->samples, i->frames, i->bytes, i->tar_bytes, i->index_offset, tail));
    for (size_t k = 0; k < spk_tally_numbers(tally); k++)
        SPK_TRY(spk_buf_printf(text, err, "\t%" PRIu64, spk_tally_get(tally, k)));
    return end_line(text, from, err);
}

spk_status spk_journal_shard(spk_journal *j, uint64_t number, const spk_shard_info *info, const spk_tally *tally,
                             spk_error *err)
{
    pthread_mutex_lock(&j->lock);
    j->text.len = 0;
    spk_status status = put_shard(&j->text, number, info, tally, err);
    if (status == SPK_OK)
        status = write_out(j, err);
    pthread_mutex_unlock(&j->lock);
    return status;
}

spk_status spk_journal_publish(spk_journal *j, uint64_t split, const char *fingerprint, spk_error *err)
{
    j->text.len = 0;
    SPK_TRY(spk_buf_printf(&j->text, err, "publish\t%" PRIu64 "\t%s", split, fingerprint));
    SPK_TRY(end_line(&j->text, 0, err));
    return write_out(j, err);
}

void spk_journal_close(spk_journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    pthread_mutex_destroy(&j->lock);
    spk_buf_free(&j->text);
    free(j->name);
    free(j);
}
