/* Everything wrong with one shard: tail, then each frame by SHA-256, checksum and tar, and what its members stand for.
 * One pass over the file through buffers that are used again; a piece is hashed while it is in the cache. A bad frame
 * does not end the run. Confined. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "coef/coef.h"
#include "shard/format.h"
#include "shard/shard_impl.h"

#define PIECE ((size_t)64 << 10) /* stays in the second level cache for its digest */

struct verify {
    spk_source *source;
    const spk_shard_verify_hooks *hooks;
    spk_shard *shard;
    int as_expected; /* the shard */
    spk_sha256 *sha;
    spk_frame_reader *decoder;
    spk_buf compressed;
    uint8_t *out;
    size_t out_cap;
    spk_coef_reader *coef; /* made for the first field stored so */
    spk_buf restored;
};

/* Errors that end the run; all others are problems of the shard. */
static int is_fatal(spk_status st)
{
    return st == SPK_E_NOMEM || st == SPK_E_CANCELLED;
}

/* Hands a failure to the caller as a problem, or back if the run must end. */
static spk_status problem(const struct verify *v, spk_status st, spk_error *found, spk_error *err)
{
    if (st >= 0)
        return SPK_OK;
    if (is_fatal(st)) {
        if (err)
            *err = *found;
        return st;
    }
    v->hooks->on_problem(v->hooks->ctx, found);
    return SPK_OK;
}

static spk_status count_bytes(const struct verify *v, uint64_t n, spk_error *err)
{
    if (v->hooks->on_bytes && v->hooks->on_bytes(v->hooks->ctx, n) != 0)
        return spk_error_set(err, SPK_E_CANCELLED, "cancelled");
    return SPK_OK;
}

/* Reads n bytes piece by piece into the running digest. */
static spk_status read_hashed(struct verify *v, uint64_t offset, size_t n, uint8_t *to, spk_error *err)
{
    for (size_t done = 0; done < n;) {
        size_t k = n - done < PIECE ? n - done : PIECE;
        SPK_TRY(spk_source_pread(v->source, to + done, k, offset + done, err));
        spk_sha256_update(v->sha, to + done, k);
        SPK_TRY(count_bytes(v, k, err));
        done += k;
    }
    return SPK_OK;
}

static spk_status read_remote(struct verify *v, uint64_t f, spk_error *err)
{
    size_t n = v->shard->entries[f].bytes;
    const spk_source_check check = {v->shard->index->digests[f], SPK_FRAME_DIGEST, f};
    SPK_TRY(spk_source_pread_checked(v->source, v->compressed.data, n, v->shard->offsets[f], &check, err));
    return count_bytes(v, n, err);
}

static spk_status make_out(struct verify *v, size_t want, spk_error *err)
{
    if (want <= v->out_cap)
        return SPK_OK;
    free(v->out);
    v->out_cap = 0;
    v->out = malloc(want);
    if (!v->out)
        return spk_error_nomem(err, want);
    v->out_cap = want;
    return SPK_OK;
}

static spk_status verify_frame(struct verify *v, uint64_t f, spk_error *err)
{
    const spk_seek_entry *e = &v->shard->entries[f];
    uint8_t digest[SPK_SHA256_BYTES];
    v->compressed.len = 0;
    spk_status st = spk_buf_reserve(&v->compressed, e->bytes, err);
    if (st == SPK_OK)
        st = make_out(v, e->content, err);
    bool remote = spk_source_is_remote(v->source); /* then reading compares the digest */
    if (st == SPK_OK && remote)
        st = read_remote(v, f, err);
    if (st == SPK_OK && !remote) {
        spk_sha256_init(v->sha);
        st = read_hashed(v, v->shard->offsets[f], e->bytes, v->compressed.data, err);
        spk_sha256_final(v->sha, digest);
    }
    if (st < 0) {
        spk_error_prefix(err, "%s: frame %llu", v->shard->name, (unsigned long long)f);
        return st;
    }
    return spk_shard_decode_frame(v->shard, v->decoder, f, v->compressed.data, remote ? NULL : digest, v->out, err);
}

static spk_status restore(struct verify *v, const spk_index_member *m, const uint8_t *stored, spk_error *err)
{
    v->restored.len = 0;
    if (!v->coef)
        SPK_TRY(spk_coef_reader_new(&v->coef, err));
    SPK_TRY(spk_coef_open(v->coef, stored, (size_t)m->size, err));
    SPK_TRY(spk_coef_restore(v->coef, &v->restored, err));
    if (v->restored.len != m->original)
        return spk_error_set(err, SPK_E_FORMAT, "the file made anew has %zu bytes, the index says %llu",
                             v->restored.len, (unsigned long long)m->original);
    return SPK_OK;
}

/* Makes the file of each member anew that is stored in an encoding: digests say that a blob is the one that was packed,
 * not that it is one. */
static spk_status verify_stored(struct verify *v, uint64_t f, spk_error *err)
{
    const spk_index *x = v->shard->index;
    spk_error found;
    for (uint64_t i = x->frame_first[f]; i < x->frame_first[f + 1]; i++)
        for (uint64_t j = x->samples[i].first; j < x->samples[i].first + x->samples[i].members; j++) {
            const spk_index_member *m = &x->members[j];
            const spk_index_field *field = &x->fields[m->field];
            if (!spk_coef_is(field->encoding))
                continue;
            spk_error_clear(&found);
            spk_status st = restore(v, m, v->out + (m->offset - v->shard->tar_offsets[f]), &found);
            if (st < 0 && !is_fatal(st)) {
                spk_error_prefix(&found, "%s: frame %llu: sample \"%s\": field \"%s\" as %s", v->shard->name,
                                 (unsigned long long)f, x->strings + x->samples[i].key, field->name, field->encoding);
                found.offset = (int64_t)v->shard->offsets[f];
            }
            SPK_TRY(problem(v, st, &found, err));
        }
    return SPK_OK;
}

static spk_status verify_keys(struct verify *v, spk_error *err)
{
    if (!v->hooks->on_key)
        return SPK_OK;
    const spk_index *x = v->shard->index;
    for (uint64_t i = 0; i < x->samples_n; i++) {
        spk_error found;
        spk_error_clear(&found);
        spk_status st =
            v->hooks->on_key(v->hooks->ctx, x->strings + x->samples[i].key, x->samples[i].key_len, i, &found);
        SPK_TRY(problem(v, st, &found, err));
    }
    return SPK_OK;
}

/* Opens the shard as the table promises it; failing that, as it is, so that the rest can be looked at. */
static spk_status open_tail(struct verify *v, const spk_shard_expect *expect, spk_error *err)
{
    spk_error first, second;
    spk_error_clear(&first);
    spk_error_clear(&second);
    spk_status st = spk_shard_open_borrowed(&v->shard, v->source, expect, &first);
    v->as_expected = st == SPK_OK;
    if (st == SPK_OK)
        return SPK_OK;
    SPK_TRY(problem(v, st, &first, err));
    if (expect) {
        st = spk_shard_open_borrowed(&v->shard, v->source, NULL, &second);
        if (st == SPK_OK)
            return SPK_OK;
        if (is_fatal(st) || strcmp(first.text, second.text) != 0)
            SPK_TRY(problem(v, st, &second, err));
    }
    return spk_shard_walk(v->source, v->hooks, err);
}

static spk_status verify_open(struct verify *v, spk_error *err)
{
    spk_error found;
    SPK_TRY(spk_sha256_new(&v->sha, err));
    SPK_TRY(spk_frame_reader_new(&v->decoder, err));
    for (uint64_t f = 0; f < v->shard->frames; f++) {
        spk_error_clear(&found);
        spk_status st = verify_frame(v, f, &found);
        SPK_TRY(problem(v, st, &found, err));
        if (st == SPK_OK)
            SPK_TRY(verify_stored(v, f, err));
    }
    /* Index and seek table were checked by opening. */
    SPK_TRY(count_bytes(v, v->shard->bytes - v->shard->index_offset, err));
    SPK_TRY(verify_keys(v, err));
    return v->as_expected && v->hooks->on_shard ? v->hooks->on_shard(v->hooks->ctx, v->shard, err) : SPK_OK;
}

spk_status spk_shard_verify(spk_source *source, const spk_shard_expect *expect, const spk_shard_verify_hooks *hooks,
                            uint64_t *samples, spk_error *err)
{
    struct verify v = {.source = source, .hooks = hooks};
    *samples = 0;
    spk_status st = open_tail(&v, expect, err);
    if (st == SPK_OK && v.shard) {
        *samples = v.shard->index->samples_n;
        st = verify_open(&v, err);
    }
    spk_sha256_free(v.sha);
    spk_frame_reader_free(v.decoder);
    spk_buf_free(&v.compressed);
    free(v.out);
    spk_coef_reader_free(v.coef);
    spk_buf_free(&v.restored);
    spk_shard_close(v.shard);
    return st;
}
