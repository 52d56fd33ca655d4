/* Appending frames, index and seek table to a file. Digests are made in memory, so nothing is read back. Confined. */
#include "shard/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "shard/format.h"
#include "shard/seek_table.h"

struct spk_shard_writer {
    int fd;
    char *name;
    spk_index_writer *index;
    spk_seek_entry *entries;
    size_t entries_n, entries_cap;
    uint64_t bytes;  /* written */
    uint64_t framed; /* of them in complete frames */
    uint64_t tar_bytes;
    uint64_t samples;
    int finished;
};

void spk_shard_writer_free(spk_shard_writer *w)
{
    if (!w)
        return;
    free(w->name);
    spk_index_writer_free(w->index);
    free(w->entries);
    free(w);
}

spk_status spk_shard_writer_new(spk_shard_writer **out, int fd, const char *name, spk_error *err)
{
    *out = NULL;
    spk_shard_writer *w = calloc(1, sizeof *w);
    if (!w)
        return spk_error_nomem(err, sizeof *w);
    w->fd = fd;
    w->name = strdup(name);
    spk_status st = w->name ? spk_index_writer_new(&w->index, err) : spk_error_nomem(err, strlen(name) + 1);
    if (st < 0) {
        spk_shard_writer_free(w);
        return st;
    }
    *out = w;
    return SPK_OK;
}

spk_status spk_shard_writer_bytes(void *writer, const void *p, size_t n, spk_error *err)
{
    spk_shard_writer *w = writer;
    const char *at = p;
    while (n > 0) {
        ssize_t put = write(w->fd, at, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            int e = errno;
            return spk_error_sys(err, e, "%s: cannot write at byte %llu", w->name, (unsigned long long)w->bytes);
        }
        at += put;
        n -= (size_t)put;
        w->bytes += (uint64_t)put;
    }
    return SPK_OK;
}

static spk_status add_entry(spk_shard_writer *w, spk_seek_entry entry, spk_error *err)
{
    if (w->entries_n == SPK_FRAMES_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "a shard holds at most %u frames", SPK_FRAMES_MAX);
    SPK_TRY(spk_grow(&w->entries, &w->entries_cap, w->entries_n + 1, sizeof *w->entries, err));
    w->entries[w->entries_n++] = entry;
    return SPK_OK;
}

static spk_status add_frame(spk_shard_writer *w, const spk_frame_info *info, const spk_index_part *part, spk_error *err)
{
    if (info->bytes != w->bytes - w->framed)
        return spk_error_set(err, SPK_E_STATE, "%llu bytes were written for a frame of %llu",
                             (unsigned long long)(w->bytes - w->framed), (unsigned long long)info->bytes);
    if (info->content > SPK_FRAME_CONTENT_MAX || info->bytes > SPK_FRAME_BYTES_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "frame of %llu bytes: at most %u fit one frame",
                             (unsigned long long)info->content, SPK_FRAME_CONTENT_MAX);
    SPK_TRY(spk_index_writer_add(w->index, part, info->digest, err));
    SPK_TRY(add_entry(w, (spk_seek_entry){(uint32_t)info->bytes, (uint32_t)info->content, info->checksum}, err));
    w->framed = w->bytes;
    w->tar_bytes += info->content;
    w->samples += spk_index_part_samples(part);
    return SPK_OK;
}

spk_status spk_shard_writer_frame(spk_shard_writer *w, const spk_frame_info *info, const spk_index_part *part,
                                  spk_error *err)
{
    spk_status st = add_frame(w, info, part, err);
    if (st < 0)
        spk_error_prefix(err, "%s: frame %zu", w->name, w->entries_n);
    return st;
}

/* Index and seek table as they go to the file. */
static spk_status make_tail(spk_shard_writer *w, spk_buf *tail, spk_error *err)
{
    SPK_TRY(spk_index_writer_finish(w->index, w->tar_bytes, tail, err));
    SPK_TRY(add_entry(w, (spk_seek_entry){(uint32_t)tail->len, 0, SPK_SEEK_EMPTY_CHECKSUM}, err));
    return spk_seek_table_encode(tail, w->entries, w->entries_n, err);
}

spk_status spk_shard_writer_finish(spk_shard_writer *w, spk_shard_info *out, spk_error *err)
{
    if (w->finished || w->bytes != w->framed)
        return spk_error_set(err, SPK_E_STATE, "%s: %s", w->name,
                             w->finished ? "already finished" : "finished inside a frame");
    w->finished = 1;
    spk_buf tail = {0};
    memset(out, 0, sizeof *out);
    out->samples = w->samples;
    out->frames = w->entries_n;
    out->tar_bytes = w->tar_bytes;
    out->index_offset = w->bytes;
    spk_status st = make_tail(w, &tail, err);
    if (st == SPK_OK)
        st = spk_sha256_once(tail.data, tail.len, out->tail_sha256, err);
    if (st < 0)
        spk_error_prefix(err, "%s", w->name);
    else
        st = spk_shard_writer_bytes(w, tail.data, tail.len, err);
    if (st == SPK_OK)
        out->bytes = w->bytes;
    spk_buf_free(&tail);
    return st;
}
