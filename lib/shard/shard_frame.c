/* One data frame from file to checked tar bytes: digest, checksums, then every tar header, all padding and the end
 * marker against the index. Read-shareable: all state is the caller's. */
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "shard/shard_impl.h"
#include "shard/tar.h"

static bool zeros(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Why the header at block is not the expected one. */
static spk_status header_problem(const uint8_t *block, const char *key, const char *field, uint64_t size,
                                 spk_error *err)
{
    spk_tar_entry e;
    spk_status st = spk_tar_parse(block, &e, err);
    if (st < 0)
        return st;
    if (st == SPK_END)
        return spk_error_set(err, SPK_E_FORMAT, "end marker instead of a header");
    size_t k = strlen(key);
    if (strncmp(e.name, key, k) != 0 || e.name[k] != '.' || strcmp(e.name + k + 1, field) != 0)
        return spk_error_set(err, SPK_E_FORMAT, "the header names \"%s\"", e.name);
    return spk_error_set(err, SPK_E_FORMAT, "the header says %llu bytes, the index %llu", (unsigned long long)e.size,
                         (unsigned long long)size);
}

static spk_status check_member(const spk_shard *s, const spk_index_sample *sample, const spk_index_member *m,
                               const uint8_t *data, spk_error *err)
{
    const spk_index_field *f = &s->index->fields[m->field];
    const char *key = s->index->strings + sample->key;
    char room[SPK_FIELD_MAX + 1];
    const char *field = spk_tar_field(room, f->name, f->encoding);
    uint8_t want[SPK_TAR_BLOCK];
    if (!field)
        return spk_error_set(err, SPK_E_FORMAT, "field \"%s\" in the encoding \"%s\": the name is too long", f->name,
                             f->encoding);
    spk_tar_header_unchecked(want, key, sample->key_len, field, strlen(field), m->size);
    spk_status st = SPK_OK;
    if (memcmp(want, data - SPK_TAR_BLOCK, SPK_TAR_BLOCK) != 0)
        st = header_problem(data - SPK_TAR_BLOCK, key, field, m->size, err);
    else if (!zeros(data + m->size, (size_t)(spk_tar_member_bytes(m->size) - SPK_TAR_BLOCK - m->size)))
        st = spk_error_set(err, SPK_E_FORMAT, "padding behind its data is not zero");
    if (st < 0)
        spk_error_prefix(err, "member \"%s.%s\" at tar byte %llu", key, field,
                         (unsigned long long)(m->offset - SPK_TAR_BLOCK));
    return st;
}

static spk_status check_tar(const spk_shard *s, uint64_t f, const uint8_t *tar, spk_error *err)
{
    const spk_index *x = s->index;
    uint64_t base = s->tar_offsets[f];
    for (uint64_t i = x->frame_first[f]; i < x->frame_first[f + 1]; i++) {
        const spk_index_sample *sample = &x->samples[i];
        for (uint64_t j = sample->first; j < sample->first + sample->members; j++) {
            const spk_index_member *m = &x->members[j];
            spk_status st = check_member(s, sample, m, tar + (m->offset - base), err);
            if (st < 0) {
                spk_error_prefix(err, "sample %llu", (unsigned long long)i);
                return st;
            }
        }
    }
    if (f + 1 == s->frames && !zeros(tar + (s->entries[f].content - SPK_TAR_END), SPK_TAR_END))
        return spk_error_set(err, SPK_E_FORMAT, "no end marker at tar byte %llu",
                             (unsigned long long)(s->tar_offsets[f + 1] - SPK_TAR_END));
    return SPK_OK;
}

static spk_status decode(const spk_shard *s, spk_frame_reader *decoder, uint64_t f, const uint8_t *p,
                         const uint8_t *digest, uint8_t *out, spk_error *err)
{
    const spk_seek_entry *e = &s->entries[f];
    unsigned long long at = s->offsets[f];
    if (digest && memcmp(digest, s->index->digests[f], SPK_FRAME_DIGEST) != 0)
        return spk_error_set(err, SPK_E_CHECKSUM, "SHA-256 mismatch at byte %llu", at);
    spk_status st = spk_frame_decode(decoder, p, e->bytes, out, e->content, err);
    if (st == SPK_E_CHECKSUM)
        return spk_error_set(err, SPK_E_CHECKSUM, "checksum mismatch at byte %llu", at);
    if (st < 0) {
        spk_error_prefix(err, "at byte %llu", at);
        return st;
    }
    uint32_t checksum = spk_le32_load(p + e->bytes - 4);
    if (checksum != e->checksum)
        return spk_error_set(err, SPK_E_CHECKSUM, "checksum %08x at byte %llu, the seek table says %08x", checksum, at,
                             e->checksum);
    return check_tar(s, f, out, err);
}

spk_status spk_shard_decode_frame(const spk_shard *shard, spk_frame_reader *decoder, uint64_t f, const uint8_t *p,
                                  const uint8_t *digest, uint8_t *out, spk_error *err)
{
    spk_status st = decode(shard, decoder, f, p, digest, out, err);
    if (st < 0) {
        spk_error_prefix(err, "%s: frame %llu", shard->name, (unsigned long long)f);
        if (err)
            err->offset = (int64_t)shard->offsets[f];
    }
    return st;
}

/* The compressed bytes of a frame; *checked: they match their digest. */
static spk_status fetch(const spk_shard *shard, uint64_t f, int digest, uint8_t *out, bool *checked, spk_error *err)
{
    size_t bytes = shard->entries[f].bytes;
    *checked = digest || shard->verify_full || spk_source_is_remote(shard->source);
    if (!*checked)
        return spk_source_pread(shard->source, out, bytes, shard->offsets[f], err);
    const spk_source_check check = {shard->index->digests[f], SPK_FRAME_DIGEST, f};
    return spk_source_pread_checked(shard->source, out, bytes, shard->offsets[f], &check, err);
}

spk_status spk_shard_read_frame(const spk_shard *shard, spk_frame_reader *decoder, uint64_t f, int digest,
                                spk_buf *scratch, uint8_t *out, spk_error *err)
{
    size_t bytes = shard->entries[f].bytes;
    bool checked = false, again = true;
    scratch->len = 0;
    spk_status st = spk_buf_reserve(scratch, bytes, err);
    while (st == SPK_OK && again) {
        st = fetch(shard, f, digest, scratch->data, &checked, err);
        if (st < 0)
            break;
        st = spk_shard_decode_frame(shard, decoder, f, scratch->data, NULL, out, err);
        again = st < 0 && spk_source_reject(shard->source, shard->offsets[f], bytes, f); /* a damaged copy in a cache */
        if (!again)
            return st;
        st = SPK_OK;
    }
    spk_error_prefix(err, "%s: frame %llu", shard->name, (unsigned long long)f);
    return st;
}
