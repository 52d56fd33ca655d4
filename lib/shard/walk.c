/* What is left of a file whose index or seek table is of no use: frame by frame from the start, as far as the frames
 * themselves say where they end. For messages only; nothing is delivered from here. Confined. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "shard/format.h"
#include "shard/shard_impl.h"
#include "shard/tar.h"

#define WINDOW ((size_t)4 << 20)

struct walk {
    spk_source *source;
    const spk_shard_verify_hooks *hooks;
    spk_frame_reader *decoder;
    uint64_t size;
    uint64_t at; /* next frame */
    uint64_t window_at;
    spk_buf window;
    uint8_t *out;
    size_t out_cap;
    uint64_t frames, samples;
    int end_marker;
};

static const uint8_t *here(const struct walk *w)
{
    return w->window.data + (w->at - w->window_at);
}

static size_t there(const struct walk *w)
{
    return w->window.len - (size_t)(w->at - w->window_at);
}

/* Makes `want` bytes from w->at on, or what is left of the file, stand in the window. */
static spk_status reach(struct walk *w, uint64_t want, spk_error *err)
{
    if (want > w->size - w->at)
        want = w->size - w->at;
    if (w->at >= w->window_at && w->at + want <= w->window_at + w->window.len)
        return SPK_OK;
    if (want < WINDOW)
        want = w->size - w->at < WINDOW ? w->size - w->at : WINDOW;
    w->window.len = 0;
    w->window_at = w->at;
    SPK_TRY(spk_buf_reserve(&w->window, (size_t)want, err));
    SPK_TRY(spk_source_pread(w->source, w->window.data, (size_t)want, w->at, err));
    w->window.len = (size_t)want;
    return SPK_OK;
}

/* Counts the samples of a frame's tar bytes. */
static spk_status count_samples(struct walk *w, uint64_t content, spk_error *err)
{
    char key[SPK_NAME_MAX + 1] = "";
    for (uint64_t off = 0; off + SPK_TAR_BLOCK <= content;) {
        spk_tar_entry e;
        spk_status st = spk_tar_parse(w->out + off, &e, err);
        if (st < 0) {
            spk_error_prefix(err, "byte %llu of its content", (unsigned long long)off);
            return st;
        }
        if (st == SPK_END) {
            w->end_marker = 1;
            return SPK_OK;
        }
        if (e.size > content - off || spk_tar_member_bytes(e.size) > content - off)
            return spk_error_set(err, SPK_E_FORMAT, "member \"%s\" runs over the frame's end", e.name);
        off += spk_tar_member_bytes(e.size);
        *strchr(e.name, '.') = '\0'; /* spk_tar_parse made sure that there is one */
        w->samples += strcmp(key, e.name) != 0;
        memcpy(key, e.name, sizeof key);
    }
    return SPK_OK;
}

static spk_status make_out(struct walk *w, uint64_t content, spk_error *err)
{
    if (content <= w->out_cap)
        return SPK_OK;
    free(w->out);
    w->out_cap = 0;
    w->out = malloc((size_t)content);
    if (!w->out)
        return spk_error_nomem(err, (size_t)content);
    w->out_cap = (size_t)content;
    return SPK_OK;
}

/* The zstd frame at w->at: its size into *bytes; an error with *bytes set is one of the content only. */
static spk_status walk_frame(struct walk *w, uint64_t *bytes, spk_error *err)
{
    size_t n = 0;
    uint64_t content = 0;
    for (uint64_t want = WINDOW;; want *= 4) {
        SPK_TRY(reach(w, want < SPK_FRAME_BYTES_MAX ? want : SPK_FRAME_BYTES_MAX, err));
        spk_status st = spk_frame_probe(here(w), there(w), &n, &content, err);
        if (st < 0)
            return st;
        if (st == SPK_OK)
            break;
        if (there(w) == w->size - w->at)
            return spk_error_set(err, SPK_E_FORMAT, "cut: the file ends inside it");
        if (want >= SPK_FRAME_BYTES_MAX)
            return spk_error_set(err, SPK_E_LIMIT, "longer than %u bytes", SPK_FRAME_BYTES_MAX);
    }
    *bytes = n;
    if (content > SPK_FRAME_CONTENT_MAX || content > spk_frame_content_bound(n))
        return spk_error_set(err, SPK_E_LIMIT, "content of %llu bytes", (unsigned long long)content);
    SPK_TRY(make_out(w, content, err));
    SPK_TRY(spk_frame_decode(w->decoder, here(w), n, w->out, (size_t)content, err));
    return count_samples(w, content, err);
}

/* A skippable frame: its size, and a problem if it is a seek table with something behind it. */
static void walk_skippable(struct walk *w, const char *name, uint64_t *bytes)
{
    *bytes = SPK_SKIP_HEADER + (uint64_t)spk_le32_load(here(w) + 4);
    if (spk_le32_load(here(w)) != SPK_SEEK_FRAME_MAGIC || *bytes >= w->size - w->at)
        return;
    spk_error found;
    spk_error_at(&found, SPK_E_FORMAT, w->at + *bytes,
                 "%s: a seek table ends at byte %llu, but %llu bytes follow (padding, or another shard)", name,
                 (unsigned long long)(w->at + *bytes), (unsigned long long)(w->size - w->at - *bytes));
    w->hooks->on_problem(w->hooks->ctx, &found);
}

/* One step; SPK_END where the walk cannot go on. */
static spk_status step(struct walk *w, const char *name, spk_error *err)
{
    spk_error found;
    spk_error_clear(&found);
    uint64_t bytes = 0, frame = w->frames;
    spk_status st = reach(w, SPK_SKIP_HEADER, &found);
    if (st == SPK_OK && there(w) >= SPK_SKIP_HEADER && (spk_le32_load(here(w)) & 0xFFFFFFF0u) == 0x184D2A50u) {
        walk_skippable(w, name, &bytes);
    } else if (st == SPK_OK) {
        st = walk_frame(w, &bytes, &found);
        w->frames += st == SPK_OK;
    }
    if (st == SPK_E_NOMEM) {
        if (err)
            *err = found;
        return st;
    }
    if (st < 0) {
        spk_error_prefix(&found, "%s: frame %llu at byte %llu", name, (unsigned long long)frame,
                         (unsigned long long)w->at);
        found.offset = (int64_t)w->at;
        w->hooks->on_problem(w->hooks->ctx, &found);
    }
    if (bytes == 0 || bytes > w->size - w->at)
        return SPK_END;
    if (w->hooks->on_bytes && w->hooks->on_bytes(w->hooks->ctx, bytes) != 0)
        return spk_error_set(err, SPK_E_CANCELLED, "cancelled");
    w->at += bytes;
    return SPK_OK;
}

spk_status spk_shard_walk(spk_source *source, const spk_shard_verify_hooks *hooks, spk_error *err)
{
    struct walk w = {.source = source, .hooks = hooks, .size = spk_source_size(source)};
    const char *name = spk_source_base_name(source);
    spk_status st = spk_frame_reader_new(&w.decoder, err);
    while (st == SPK_OK && w.at < w.size)
        st = step(&w, name, err);
    if (st >= 0) {
        spk_error found;
        spk_error_at(&found, SPK_E_FORMAT, w.at,
                     "%s: without its index: %llu good frames with %llu samples up to byte %llu of %llu, %s", name,
                     (unsigned long long)w.frames, (unsigned long long)w.samples, (unsigned long long)w.at,
                     (unsigned long long)w.size, w.end_marker ? "with the tar's end marker" : "no end marker");
        hooks->on_problem(hooks->ctx, &found);
        st = SPK_OK;
    }
    spk_frame_reader_free(w.decoder);
    spk_buf_free(&w.window);
    free(w.out);
    return st;
}
