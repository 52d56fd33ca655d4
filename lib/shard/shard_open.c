/* Opening a shard: from the end of the file to the seek table, the index frame and its parsed form. No data frame is
 * touched. Confined while it runs. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "shard/format.h"
#include "shard/shard_impl.h"

const char *spk_source_base_name(const spk_source *source)
{
    const char *name = spk_source_name(source), *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

void spk_shard_close(spk_shard *shard)
{
    if (!shard)
        return;
    if (shard->owns_source)
        spk_source_close(shard->source); /* first: it may look at the offsets */
    else if (shard->source)
        spk_source_units(shard->source, NULL, NULL, 0);
    spk_index_free(shard->index);
    free(shard->entries);
    free(shard->offsets);
    free(shard->tar_offsets);
    free(shard);
}

/* The bytes of the file from `offset` on; whole tail or a part of it. */
typedef struct tail {
    spk_buf buf;
    uint64_t offset;
} tail;

/* Makes the tail reach back to byte `from`. */
static spk_status tail_reach(tail *t, spk_shard *s, uint64_t from, spk_error *err)
{
    if (from >= t->offset)
        return SPK_OK;
    size_t more = (size_t)(t->offset - from);
    SPK_TRY(spk_buf_reserve(&t->buf, more, err));
    memmove(t->buf.data + more, t->buf.data, t->buf.len);
    SPK_TRY(spk_source_pread(s->source, t->buf.data, more, from, err));
    t->buf.len += more;
    t->offset = from;
    return SPK_OK;
}

/* The tail of a remote shard: one request, checked before it is looked at. */
static spk_status fetch_tail(tail *t, spk_shard *s, const spk_shard_expect *expect, spk_error *err)
{
    const spk_source_check check = {expect->tail_sha256, sizeof expect->tail_sha256, expect->frames};
    size_t n = (size_t)(s->bytes - expect->index_offset);
    SPK_TRY(spk_buf_reserve(&t->buf, n, err));
    spk_status st = spk_source_pread_checked(s->source, t->buf.data, n, expect->index_offset, &check, err);
    if (st < 0) {
        spk_error_prefix(err, "index and seek table (from byte %llu)", (unsigned long long)expect->index_offset);
        return st;
    }
    t->buf.len = n;
    t->offset = expect->index_offset;
    return SPK_OK;
}

/* Most bytes that index and seek table can have. */
static uint64_t tail_max(uint64_t frames)
{
    return SPK_SKIP_HEADER + SPK_INDEX_FIXED + SPK_INDEX_PER_FRAME * frames + SPK_FRAME_BYTES_MAX +
           spk_seek_table_bytes(frames + 1);
}

/* What the shard table says of the file, before any of it is parsed. */
static spk_status check_expected(tail *t, spk_shard *s, const spk_shard_expect *expect, spk_error *err)
{
    if (expect->bytes != s->bytes)
        return spk_error_set(err, SPK_E_FORMAT, "has %llu bytes, the shard table says %llu",
                             (unsigned long long)s->bytes, (unsigned long long)expect->bytes);
    if (expect->index_offset >= s->bytes)
        return spk_error_set(err, SPK_E_FORMAT, "index at byte %llu of %llu in the shard table",
                             (unsigned long long)expect->index_offset, (unsigned long long)s->bytes);
    if (s->bytes - expect->index_offset > tail_max(expect->frames))
        return spk_error_set(
            err, SPK_E_LIMIT, "%llu bytes from its index on in the shard table, at most %llu are possible",
            (unsigned long long)(s->bytes - expect->index_offset), (unsigned long long)tail_max(expect->frames));
    if (spk_source_is_remote(s->source))
        return fetch_tail(t, s, expect, err);
    SPK_TRY(tail_reach(t, s, expect->index_offset, err));
    uint8_t digest[SPK_SHA256_BYTES];
    SPK_TRY(spk_sha256_once(t->buf.data, t->buf.len, digest, err));
    if (memcmp(digest, expect->tail_sha256, sizeof digest) != 0)
        return spk_error_at(err, SPK_E_CHECKSUM, t->offset,
                            "index and seek table (from byte %llu) do not match their SHA-256 in the shard table",
                            (unsigned long long)t->offset);
    return SPK_OK;
}

/* Data frames must be what a frame of ours can be; the index frame is last and holds no tar bytes. */
static spk_status check_entries(const spk_shard *s, spk_error *err)
{
    for (size_t i = 0; i < s->frames; i++) {
        const spk_seek_entry *e = &s->entries[i];
        if (e->content == 0 || e->content % SPK_TAR_BLOCK != 0)
            return spk_error_set(err, SPK_E_FORMAT,
                                 "seek table: entry %zu: content of %u bytes is no run of tar members", i, e->content);
        if (e->content > SPK_FRAME_CONTENT_MAX || e->bytes > SPK_FRAME_BYTES_MAX)
            return spk_error_set(err, SPK_E_LIMIT, "seek table: entry %zu: frame of %u bytes, content %u; at most %u",
                                 i, e->bytes, e->content, SPK_FRAME_CONTENT_MAX);
        if (e->content > spk_frame_content_bound(e->bytes))
            return spk_error_set(err, SPK_E_FORMAT, "seek table: entry %zu: %u bytes cannot hold %u", i, e->bytes,
                                 e->content);
    }
    const spk_seek_entry *last = &s->entries[s->frames];
    if (last->content != 0 || last->checksum != SPK_SEEK_EMPTY_CHECKSUM)
        return spk_error_set(err, SPK_E_FORMAT,
                             "seek table: its last entry is no shard index (content %u, checksum %08x)", last->content,
                             last->checksum);
    return SPK_OK;
}

/* Who takes a tar archive for a shard is told that, and not what is missing at its end. */
static bool is_plain_tar(const spk_shard *s)
{
    uint8_t block[SPK_TAR_BLOCK];
    return s->bytes >= sizeof block && spk_source_pread(s->source, block, sizeof block, 0, NULL) == SPK_OK &&
           memcmp(block + 257, "ustar", 5) == 0;
}

static spk_status read_seek_table(tail *t, spk_shard *s, spk_error *err)
{
    if (s->bytes < spk_seek_table_bytes(2))
        return spk_error_set(err, SPK_E_FORMAT, "%llu bytes are too few for a shard", (unsigned long long)s->bytes);
    uint64_t entries = 0;
    SPK_TRY(tail_reach(t, s, s->bytes - SPK_SEEK_FOOTER, err));
    spk_status st = spk_seek_footer_parse(t->buf.data + t->buf.len - SPK_SEEK_FOOTER, s->bytes, &entries, err);
    if (st == SPK_E_FORMAT && is_plain_tar(s))
        return spk_error_set(err, SPK_E_FORMAT,
                             "a plain tar archive, no shard; `shardpack pack` makes a dataset of it");
    SPK_TRY(st);
    if (entries < 2)
        return spk_error_set(err, SPK_E_FORMAT, "seek table: %llu entries: a shard has a data frame and an index",
                             (unsigned long long)entries);
    size_t table = (size_t)spk_seek_table_bytes(entries), n = 0;
    SPK_TRY(tail_reach(t, s, s->bytes - table, err));
    SPK_TRY(spk_seek_table_parse(t->buf.data + t->buf.len - table, table, s->bytes, &s->entries, &n, err));
    s->frames = n - 1;
    SPK_TRY(check_entries(s, err));
    s->index_offset = s->bytes - table - s->entries[s->frames].bytes;
    return SPK_OK;
}

static spk_status make_offsets(spk_shard *s, spk_error *err)
{
    s->offsets = malloc((s->frames + 1) * sizeof *s->offsets);
    s->tar_offsets = malloc((s->frames + 1) * sizeof *s->tar_offsets);
    if (!s->offsets || !s->tar_offsets)
        return spk_error_nomem(err, (s->frames + 1) * 16);
    uint64_t at = 0, tar = 0;
    for (size_t i = 0; i < s->frames; i++) {
        s->offsets[i] = at;
        s->tar_offsets[i] = tar;
        at += s->entries[i].bytes;
        tar += s->entries[i].content;
    }
    s->offsets[s->frames] = at;
    s->tar_offsets[s->frames] = tar;
    return SPK_OK;
}

static spk_status read_index(tail *t, spk_shard *s, spk_error *err)
{
    SPK_TRY(tail_reach(t, s, s->index_offset, err));
    uint32_t *contents = malloc(s->frames * sizeof *contents);
    if (!contents)
        return spk_error_nomem(err, s->frames * sizeof *contents);
    for (size_t i = 0; i < s->frames; i++)
        contents[i] = s->entries[i].content;
    const uint8_t *p = t->buf.data + (s->index_offset - t->offset);
    spk_status st = spk_index_parse(&s->index, p, s->entries[s->frames].bytes, contents, s->frames, err);
    free(contents);
    return st;
}

static spk_status check_counts(const spk_shard *s, const spk_shard_expect *e, spk_error *err)
{
    const struct {
        const char *what;
        uint64_t found, expected;
    } counts[] = {{"samples", s->index->samples_n, e->samples},
                  {"frames", s->frames, e->frames},
                  {"tar bytes", s->index->tar_bytes, e->tar_bytes},
                  {"bytes before its index", s->index_offset, e->index_offset}};
    for (size_t i = 0; i < SPK_ARRAY_SIZE(counts); i++)
        if (counts[i].found != counts[i].expected)
            return spk_error_set(err, SPK_E_FORMAT, "has %llu %s, the shard table says %llu",
                                 (unsigned long long)counts[i].found, counts[i].what,
                                 (unsigned long long)counts[i].expected);
    return SPK_OK;
}

static spk_status load(spk_shard *s, tail *t, const spk_shard_expect *expect, spk_error *err)
{
    if (expect)
        SPK_TRY(check_expected(t, s, expect, err));
    SPK_TRY(read_seek_table(t, s, err));
    SPK_TRY(make_offsets(s, err));
    SPK_TRY(read_index(t, s, err));
    return expect ? check_counts(s, expect, err) : SPK_OK;
}

spk_status spk_shard_open_borrowed(spk_shard **out, spk_source *source, const spk_shard_expect *expect, spk_error *err)
{
    *out = NULL;
    spk_shard *s = calloc(1, sizeof *s);
    if (!s)
        return spk_error_nomem(err, sizeof *s);
    s->source = source;
    s->name = spk_source_base_name(source);
    s->bytes = spk_source_size(source);
    tail t = {{0}, s->bytes};
    spk_status st = load(s, &t, expect, err);
    spk_buf_free(&t.buf);
    if (st < 0) {
        spk_error_prefix(err, "%s", s->name);
        spk_shard_close(s);
        return st;
    }
    spk_source_units(source, s->offsets, (const uint8_t(*)[16])s->index->digests, s->frames);
    *out = s;
    return SPK_OK;
}

/* Accepts a smaller struct of an older caller and a larger one whose unknown part is zero. */
static spk_status read_options(const spk_shard_options *options, spk_shard_options *out, spk_error *err)
{
    spk_shard_options o = {0};
    *out = o;
    if (!options)
        return SPK_OK;
    if (options->size < sizeof options->size || options->size > 4096)
        return spk_error_set(err, SPK_E_INVALID, "spk_shard_options: size %zu is not set right", options->size);
    const unsigned char *raw = (const unsigned char *)options;
    for (size_t i = sizeof o; i < options->size; i++)
        if (raw[i] != 0)
            return spk_error_set(err, SPK_E_INVALID, "spk_shard_options: an option is unknown to this library");
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    if (o.reserved != 0 || o.reserved2 != 0)
        return spk_error_set(err, SPK_E_INVALID, "spk_shard_options: reserved is not 0");
    *out = o;
    return SPK_OK;
}

spk_status spk_shard_open_source(spk_shard **out, spk_source *source_taken, const spk_shard_expect *expect,
                                 const spk_shard_options *options, spk_error *err)
{
    *out = NULL;
    spk_shard_options o;
    spk_status st = read_options(options, &o, err);
    if (st == SPK_OK)
        st = spk_shard_open_borrowed(out, source_taken, expect, err);
    if (st < 0) {
        spk_source_close(source_taken);
        return st;
    }
    (*out)->owns_source = 1;
    (*out)->verify_full = o.verify_full != 0;
    return SPK_OK;
}

spk_status spk_shard_open(spk_shard **out, const char *path, const spk_shard_options *options, spk_error *err)
{
    *out = NULL;
    spk_source *source = NULL;
    spk_shard_options o;
    SPK_TRY(read_options(options, &o, err));
    const spk_source_options remote = {o.deadline, o.plain_credentials, o.on_wait, o.user};
    SPK_TRY(spk_source_open_with(&source, path, &remote, err));
    return spk_shard_open_source(out, source, NULL, options, err);
}
