/* Sending to a server. S3 checks each body against the digest that its signature covers; what a plain web server stored
 * is read back. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "dataset/mirror.h"

static spk_status differs(const spk_dest *t, const char *name, uint64_t have, uint64_t want, spk_error *err)
{
    if (have != want)
        return spk_error_set(err, SPK_E_EXISTS,
                             "%s/%s: is there and differs, %" PRIu64 " bytes where there should be %" PRIu64
                             "; it is not overwritten",
                             t->shown, name, have, want);
    return spk_error_set(err, SPK_E_EXISTS, "%s/%s: is there and differs in its content; it is not overwritten",
                         t->shown, name);
}

static spk_shard_expect expect_of(const spk_catalog_row *row)
{
    spk_shard_expect e = {row->samples, row->frames, row->bytes, row->tar_bytes, row->index_offset, {0}};
    memcpy(e.tail_sha256, row->tail_sha256, sizeof e.tail_sha256);
    return e;
}

/* Reads a shard back, all of it or its tail. */
static spk_status check_there(spk_dest *t, const spk_dataset *d, uint64_t number, bool all, bool *good, spk_error *err)
{
    const spk_catalog_row *row = &d->catalog.rows[number];
    const spk_shard_expect expect = expect_of(row);
    const spk_net_object object = {.size = row->bytes};
    spk_source *source = NULL;
    spk_shard *shard = NULL;
    SPK_TRY(spk_net_open(t->net, spk_catalog_path(&d->catalog, (size_t)number), &object, &source, err));
    if (all) {
        spk_status st = spk_mirror_check(source, &expect, good, err);
        spk_source_close(source);
        return st;
    }
    spk_status st = spk_shard_open_source(&shard, source, &expect, NULL, err);
    *good = st == SPK_OK;
    spk_shard_close(shard);
    return st;
}

spk_status spk_net_look(spk_dest *t, spk_put *put, const spk_dataset *d, uint64_t number, bool *there, spk_error *err)
{
    const spk_catalog_row *row = &d->catalog.rows[number];
    const char *name = spk_catalog_path(&d->catalog, (size_t)number);
    spk_put_head head;
    char hex[SPK_SHA256_HEX];
    bool good = true;
    SPK_TRY(spk_put_look(put, name, &head, err));
    *there = head.exists;
    if (!head.exists)
        return SPK_OK;
    spk_hex(hex, row->tail_sha256, sizeof row->tail_sha256);
    if (head.size != row->bytes || (head.digest[0] && strcmp(head.digest, hex) != 0))
        return differs(t, name, head.size, row->bytes, err);
    if (strcmp(head.digest, hex) != 0)
        SPK_TRY(check_there(t, d, number, true, &good, err));
    return good ? SPK_OK : differs(t, name, row->bytes, row->bytes, err);
}

spk_status spk_net_send(spk_dest *t, spk_put *put, spk_feed *feed, spk_error *err)
{
    const spk_put_body body = {spk_feed_next, spk_feed_rewind, feed, feed->expect.bytes};
    const char *name = spk_catalog_path(&feed->dataset->catalog, (size_t)feed->number);
    char hex[SPK_SHA256_HEX];
    bool good = true;
    spk_hex(hex, feed->expect.tail_sha256, sizeof feed->expect.tail_sha256);
    spk_error failed;
    bool there = false;
    spk_error_clear(&failed);
    spk_status st = spk_put_object(put, name, &body, hex, false, &failed);
    if (st == SPK_E_EXISTS || st == SPK_E_NOT_FOUND) { /* somebody else sent it, or we did and the answer was lost */
        SPK_TRY(spk_net_look(t, put, feed->dataset, feed->number, &there, err));
        if (there)
            return SPK_OK;
    }
    if (st < 0) {
        if (err)
            *err = failed;
        return st;
    }
    SPK_TRY(check_there(t, feed->dataset, feed->number, !spk_put_is_s3(put), &good, err));
    return good ? SPK_OK
                : spk_error_set(err, SPK_E_CHECKSUM, "%s/%s: what arrived there is not what was sent", t->shown, name);
}

/* A body that is in memory. */
typedef struct text_body {
    const void *data;
    size_t n;
    bool given;
} text_body;

static spk_status text_next(void *ctx, const uint8_t **p, size_t *n, spk_error *err)
{
    text_body *t = ctx;
    (void)err;
    *p = t->data;
    *n = t->given ? 0 : t->n;
    t->given = true;
    return SPK_OK;
}

static spk_status text_rewind(void *ctx, spk_error *err)
{
    (void)err;
    ((text_body *)ctx)->given = false;
    return SPK_OK;
}

static spk_status send_text(spk_put *put, const char *name, const void *data, size_t n, const char *digest,
                            bool replace, spk_error *err)
{
    text_body text = {data, n, false};
    const spk_put_body body = {text_next, text_rewind, &text, n};
    return spk_put_object(put, name, &body, digest, replace, err);
}

/* Reads a small object back and compares. */
static spk_status same_there(spk_dest *t, const char *name, const void *data, size_t n, bool *same, spk_error *err)
{
    char *text = NULL;
    size_t have = 0;
    spk_net_vote vote;
    SPK_TRY(spk_net_fetch(t->net, name, (uint64_t)n + 1, 0, &text, &have, &vote, err));
    *same = have == n && memcmp(text, data, n) == 0;
    free(text);
    return SPK_OK;
}

spk_status spk_net_publish(spk_dest *t, spk_put *put, const spk_dataset *d, const spk_buf *table, spk_error *err)
{
    spk_put_head head;
    const char *name = d->manifest.table_name;
    char hex[SPK_SHA256_HEX];
    bool same = false;
    spk_hex(hex, d->manifest.table_sha256, sizeof d->manifest.table_sha256);
    SPK_TRY(spk_put_look(put, name, &head, err));
    if (head.exists && head.size != table->len)
        return differs(t, name, head.size, table->len, err);
    spk_status st = head.exists ? SPK_OK : send_text(put, name, table->data, table->len, hex, false, err);
    if (st < 0 && st != SPK_E_EXISTS) /* which may be ours, of which the answer was lost */
        return st;
    SPK_TRY(same_there(t, name, table->data, table->len, &same, err));
    if (!same)
        return differs(t, name, table->len, table->len, err);
    SPK_TRY(send_text(put, SPK_MANIFEST_NAME, d->text, strlen(d->text), NULL, true, err));
    SPK_TRY(same_there(t, SPK_MANIFEST_NAME, d->text, strlen(d->text), &same, err));
    return same ? SPK_OK
                : spk_error_set(err, SPK_E_CHECKSUM, "%s/" SPK_MANIFEST_NAME ": what is there is not what was sent",
                                t->shown);
}

typedef struct old_names {
    spk_kept kept;
    char **names;
    size_t n, cap;
    spk_mirror_result *result;
} old_names;

static spk_status take_old(void *ctx, const char *name, uint64_t size, spk_error *err)
{
    old_names *o = ctx;
    if ((!spk_is_shard_name(name) && !spk_is_table_name(name)) || spk_kept_has(&o->kept, name))
        return SPK_OK;
    SPK_TRY(spk_grow(&o->names, &o->cap, o->n + 1, sizeof *o->names, err));
    o->names[o->n] = strdup(name);
    if (!o->names[o->n])
        return spk_error_nomem(err, strlen(name));
    o->n++;
    o->result->pruned_files++;
    o->result->pruned_bytes += size;
    return SPK_OK;
}

spk_status spk_net_prune(spk_dest *t, spk_put *put, const spk_dataset *d, spk_mirror_result *result, spk_error *err)
{
    old_names old = {.result = result};
    (void)t;
    spk_status st = spk_kept_make(&old.kept, d, err);
    if (st == SPK_OK)
        st = spk_put_list(put, take_old, &old, err);
    for (size_t i = 0; i < old.n && st == SPK_OK; i++)
        st = spk_put_remove(put, old.names[i], err);
    for (size_t i = 0; i < old.n; i++)
        free(old.names[i]);
    free(old.names);
    spk_kept_free(&old.kept);
    return st;
}
