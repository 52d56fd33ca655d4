/* What decides the bytes, as SHA-256 digests. Every value goes in with a fixed width or its length, so that no two
 * different inputs give the same text. Order of the fields here is part of the resume check: change it freely, a
 * resumed run of another version is refused anyway. */
#include "pack/plan.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "image/check.h"
#include "shard/frame.h"

typedef struct feed {
    spk_sha256 *h;
    size_t n;
    uint8_t data[8192];
} feed;

static void flush(feed *f)
{
    spk_sha256_update(f->h, f->data, f->n);
    f->n = 0;
}

static void feed_bytes(feed *f, const void *p, size_t n)
{
    if (n > sizeof f->data - f->n)
        flush(f);
    if (n > sizeof f->data) {
        spk_sha256_update(f->h, p, n);
        return;
    }
    memcpy(f->data + f->n, p, n);
    f->n += n;
}

static void feed_u64(feed *f, uint64_t v)
{
    uint8_t raw[8];
    spk_le64_store(raw, v);
    feed_bytes(f, raw, sizeof raw);
}

static void feed_text(feed *f, const char *s)
{
    feed_u64(f, s ? strlen(s) : UINT64_MAX);
    if (s)
        feed_bytes(f, s, strlen(s));
}

static void feed_end(feed *f, uint8_t out[32])
{
    flush(f);
    spk_sha256_final(f->h, out);
    spk_sha256_init(f->h);
}

static void feed_options(feed *f, const spk_pack_options *o)
{
    const uint64_t numbers[] = {o->shard_size,
                                o->shard_samples,
                                o->frame_size,
                                o->frame_samples,
                                (uint64_t)(o->single_frame != 0),
                                (uint64_t)(o->has_level != 0),
                                (uint64_t)(int64_t)o->level,
                                (uint64_t)(o->no_shuffle != 0),
                                o->seed,
                                o->limit,
                                (uint64_t)o->check,
                                (uint64_t)o->on_bad,
                                (uint64_t)o->labels,
                                (uint64_t)o->stem,
                                (uint64_t)(o->follow_symlinks != 0),
                                o->max_pixels,
                                (uint64_t)o->jpeg,
                                (uint64_t)(o->allow_unrestorable != 0),
                                (uint64_t)(o->list != NULL),
                                o->include_count,
                                o->exclude_count,
                                o->split_count};
    for (size_t i = 0; i < SPK_ARRAY_SIZE(numbers); i++)
        feed_u64(f, numbers[i]);
    feed_text(f, o->prefix);
    for (size_t i = 0; i < o->include_count; i++)
        feed_text(f, o->include[i]);
    for (size_t i = 0; i < o->exclude_count; i++)
        feed_text(f, o->exclude[i]);
    for (size_t i = 0; i < o->split_count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, &o->splits[i].share, sizeof bits);
        feed_text(f, o->splits[i].name);
        feed_u64(f, bits);
    }
}

static void feed_versions(feed *f, bool checked)
{
    feed_text(f, "shardpack 1.0");
    feed_text(f, spk_version());
    feed_text(f, spk_zstd_version());
    if (checked) {
        feed_text(f, spk_jpeg_version());
        feed_text(f, spk_png_version());
    }
}

static void feed_input(feed *f, const spk_input *in)
{
    if (in->dataset) { /* the manifest answers for all of it */
        feed_text(f, "dataset");
        feed_text(f, spk_dataset_manifest(in->dataset));
        return;
    }
    feed_u64(f, in->fields_n);
    for (size_t i = 0; i < in->fields_n; i++)
        feed_text(f, in->fields[i]);
    feed_u64(f, in->classes_n);
    for (size_t i = 0; i < in->classes_n; i++)
        feed_text(f, in->classes[i]);
    feed_u64(f, in->samples_n);
    for (size_t i = 0; i < in->samples_n; i++) {
        const spk_input_sample *s = &in->samples[i];
        feed_text(f, spk_input_str(in, s->key));
        feed_u64(f, (uint64_t)(int64_t)s->label);
        feed_text(f, s->json ? spk_input_str(in, s->json - 1) : NULL);
        feed_u64(f, s->files);
        for (uint32_t k = 0; k < s->files; k++) {
            const spk_input_file *file = &in->files[s->first + k];
            feed_text(f, spk_input_str(in, file->path));
            feed_u64(f, file->size);
            feed_u64(f, file->field);
        }
    }
}

spk_status spk_pack_plan_digest_make(spk_pack_plan_digest *out, const spk_input *in, const spk_pack_options *o,
                                     spk_error *err)
{
    feed f = {0};
    SPK_TRY(spk_sha256_new(&f.h, err));
    spk_sha256_init(f.h);
    feed_options(&f, o);
    feed_end(&f, out->options);
    bool images = o->check != SPK_CHECK_NONE || o->jpeg != SPK_JPEG_KEEP;
    feed_versions(&f, images);
    feed_end(&f, out->versions);
    feed_versions(&f, !images);
    feed_end(&f, out->versions_other);
    feed_input(&f, in);
    feed_end(&f, out->input);
    for (size_t i = 0; i < in->samples_n && !in->dataset; i++)
        for (uint32_t k = 0; k < in->samples[i].files; k++)
            feed_u64(&f, (uint64_t)spk_input_stamp(in, &in->files[in->samples[i].first + k]));
    if (in->archive)
        feed_u64(&f, in->archive->size);
    feed_end(&f, out->stamps);
    feed_bytes(&f, out->options, sizeof out->options);
    feed_bytes(&f, out->versions, sizeof out->versions);
    feed_bytes(&f, out->input, sizeof out->input);
    feed_end(&f, out->plan);
    spk_sha256_free(f.h);
    return SPK_OK;
}
