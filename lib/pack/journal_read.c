/* Parser of the journal. A line that is cut short or damaged ends it: everything behind is written again. */
#include "pack/journal_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/hash.h"

#define SUM_CHARS 17 /* a tab and 16 hex digits */

/* Takes fields off a line, tab by tab. */
typedef struct fields {
    char *p;
    bool ok;
} fields;

static char *take(fields *f)
{
    char *p = f->p;
    if (!p) {
        f->ok = false;
        return NULL;
    }
    char *tab = strchr(p, '\t');
    if (tab)
        *tab = '\0';
    f->p = tab ? tab + 1 : NULL;
    return p;
}

static uint64_t take_number(fields *f)
{
    const char *s = take(f);
    size_t n = s ? strlen(s) : 0;
    if (n == 0 || n > 20 || strspn(s, "0123456789") != n) {
        f->ok = false;
        return 0;
    }
    return strtoull(s, NULL, 10);
}

static void take_digest(fields *f, uint8_t out[32])
{
    const char *s = take(f);
    if (!s || !spk_unhex(out, 32, s, strlen(s)))
        f->ok = false;
}

/* Cuts LF and checksum off a line of n bytes; false if it is not whole. */
static bool check_line(char *line, size_t n)
{
    uint8_t raw[8];
    if (n < SUM_CHARS + 2 || line[n - 1] != '\n' || memchr(line, '\0', n))
        return false;
    size_t body = n - 1 - SUM_CHARS;
    if (line[body] != '\t' || !spk_unhex(raw, sizeof raw, line + body + 1, 16))
        return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof raw; i++)
        sum = sum << 8 | raw[i];
    if (sum != XXH64(line, body, 0))
        return false;
    line[body] = '\0';
    return true;
}

static void read_head(char *line, const spk_pack_plan_digest *want, spk_journal_seen *seen)
{
    fields f = {.p = line, .ok = true};
    spk_pack_plan_digest got = {0};
    const char *magic = take(&f);
    if (!magic || strcmp(magic, SPK_JOURNAL_MAGIC) != 0) {
        seen->versions_differ = true; /* whole, but of a form that we do not know */
        return;
    }
    take_digest(&f, got.options);
    take_digest(&f, got.versions);
    take_digest(&f, got.input);
    take_digest(&f, got.stamps);
    seen->options_differ = memcmp(got.options, want->options, 32) != 0;
    /* A change of --check alone is one of options. */
    seen->versions_differ = memcmp(got.versions, want->versions, 32) != 0 &&
                            (!seen->options_differ || memcmp(got.versions, want->versions_other, 32) != 0);
    seen->input_differs = memcmp(got.input, want->input, 32) != 0;
    /* Times say nothing new about other files. */
    seen->stamps_differ = !seen->input_differs && memcmp(got.stamps, want->stamps, 32) != 0;
    seen->matches =
        f.ok && !seen->options_differ && !seen->versions_differ && !seen->input_differs && !seen->stamps_differ;
}

static bool read_shard(fields *f, uint64_t *number, spk_shard_info *info, spk_tally *tally)
{
    *number = take_number(f);
    info->samples = take_number(f);
    info->frames = take_number(f);
    info->bytes = take_number(f);
    info->tar_bytes = take_number(f);
    info->index_offset = take_number(f);
    take_digest(f, info->tail_sha256);
    for (size_t i = 0; i < spk_tally_numbers(tally) && f->ok; i++)
        spk_tally_set(tally, i, take_number(f));
    return f->ok && !f->p;
}

/* What the loop keeps between lines. */
typedef struct reading {
    const spk_journal_hooks *hooks;
    spk_journal_seen *seen;
    spk_tally tally;
    bool pending_bad;
} reading;

/* False at a line that makes no sense. */
static bool read_record(reading *r, char *line, uint64_t end, spk_status *status, spk_error *err)
{
    fields f = {.p = line, .ok = true};
    const char *what = take(&f);
    if (what && strcmp(what, "bad") == 0 && f.p) {
        r->pending_bad = true;
        *status = spk_buf_printf(&r->tally.bad_lines, err, "%s\n", f.p);
        return *status == SPK_OK;
    }
    if (what && strcmp(what, "shard") == 0) {
        spk_shard_info info = {0};
        uint64_t number = 0;
        if (r->seen->matches) {
            if (!read_shard(&f, &number, &info, &r->tally))
                return false;
            *status = r->hooks->on_shard(r->hooks->ctx, number, &info, &r->tally, err);
        } else { /* another plan: other counts, of which only the first is of interest */
            number = take_number(&f);
            info.samples = take_number(&f);
        }
        spk_tally_reset(&r->tally);
        r->pending_bad = false;
        r->seen->shards += info.samples > 0;
    } else if (what && strcmp(what, "publish") == 0 && !r->pending_bad) {
        uint64_t split = take_number(&f);
        const char *fingerprint = take(&f);
        if (!f.ok || f.p || strlen(fingerprint) != 64)
            return false;
        if (r->seen->matches)
            *status = r->hooks->on_publish(r->hooks->ctx, split, fingerprint, err);
    } else {
        return false;
    }
    r->seen->whole = end;
    return *status == SPK_OK;
}

static spk_status read_lines(FILE *file, const char *name, const spk_pack_plan_digest *digest, reading *r,
                             spk_error *err)
{
    char *line = NULL;
    size_t cap = 0;
    uint64_t at = 0;
    spk_status status = SPK_OK;
    ssize_t n;
    for (bool head = true; (n = getline(&line, &cap, file)) > 0; head = false) {
        at += (uint64_t)n;
        if (!check_line(line, (size_t)n))
            break;
        if (head) {
            read_head(line, digest, r->seen);
            r->seen->whole = at;
        } else if (!read_record(r, line, at, &status, err)) {
            break;
        }
    }
    if (status == SPK_OK && ferror(file))
        status = spk_error_sys(err, errno, "%s", name);
    free(line);
    return status;
}

spk_status spk_journal_read(int fd, const char *name, const spk_pack_plan_digest *digest, size_t fields_n,
                            const spk_journal_hooks *hooks, spk_journal_seen *seen, spk_error *err)
{
    reading r = {.hooks = hooks, .seen = seen};
    memset(seen, 0, sizeof *seen);
    SPK_TRY(spk_tally_init(&r.tally, fields_n, err));
    int copy = dup(fd);
    FILE *file = copy >= 0 ? fdopen(copy, "r") : NULL;
    spk_status status = SPK_OK;
    if (!file) {
        status = spk_error_sys(err, errno, "%s", name);
        if (copy >= 0)
            close(copy);
    } else {
        status = read_lines(file, name, digest, &r, err);
        fclose(file);
    }
    spk_tally_free(&r.tally);
    return status;
}
