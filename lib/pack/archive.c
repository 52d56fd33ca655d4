/* Lists tar archives. libarchive parses the headers (ustar, pax, GNU); its reads go through callbacks that take little
 * behind each skip, so an archive is listed without reading its data. What libarchive says is checked against the file:
 * the first bytes of each member must be those at the place noted for it, and the next header must follow its data.
 *
 * libarchive converts pax names to the locale's charset, and in a UTF-8 locale composes their accents. Under the C
 * locale it leaves names alone as soon as they hold a byte that is not ASCII; so each of its calls runs under a C
 * locale that is this thread's alone.
 */
#include "pack/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "pack/input_intern.h"
#include "pack/names.h"

#define BLOCK 512u
#define DEPTH_MAX 8u
#define MEMBERS_MAX 0x7FFFFFFFu
#define TICK 1024      /* members between two ticks */
#define READ_MIN 4096u /* behind a skip: the next header and a little data */
#define READ_MAX 65536u
#define PROBE 64u

typedef struct lister {
    spk_archive *a;
    const char *src;
    locale_t c;
    spk_archive_tick tick;
    void *tick_ctx;
    /* of the part being listed */
    struct archive *reader;
    spk_archive_part part; /* a copy: a->parts moves */
    uint32_t number;
    uint64_t at;       /* where the next read begins, in the part */
    size_t step;       /* its size */
    int sys_errno;     /* of a read that failed */
    bool cut;          /* the file ended before the part did */
    uint64_t next;     /* where the next header must be; 0: not known */
    spk_intern links;  /* members by path, filled once a hard link comes */
    size_t linked;     /* first member of the part */
    bool links_wanted; /* links is in use */
    uint8_t buf[READ_MAX];
} lister;

static const char *member_path(const void *ctx, uint32_t id)
{
    const spk_archive *a = ctx;
    return (const char *)a->paths.data + a->members[id].path;
}

/* Up to n bytes of the part; 0 at its end, -1 with l->sys_errno or l->cut set. */
static ssize_t read_at(lister *l, void *out, size_t n, uint64_t at)
{
    ssize_t got = 0;
    if (at >= l->part.size)
        return 0;
    n = n < l->part.size - at ? n : (size_t)(l->part.size - at);
    do
        got = pread(l->a->fd, out, n, (off_t)(l->part.offset + at));
    while (got < 0 && errno == EINTR);
    if (got < 0)
        l->sys_errno = errno;
    l->cut = l->cut || got == 0;
    return got > 0 ? got : -1;
}

static la_ssize_t on_read(struct archive *reader, void *ctx, const void **out)
{
    lister *l = ctx;
    ssize_t got = read_at(l, l->buf, l->step, l->at);
    if (got < 0) {
        archive_set_error(reader, l->sys_errno ? l->sys_errno : EIO, "read failed");
        return ARCHIVE_FATAL;
    }
    *out = l->buf;
    l->at += (uint64_t)got;
    l->step = l->step * 2 < READ_MAX ? l->step * 2 : READ_MAX;
    return got;
}

static la_int64_t on_skip(struct archive *reader, void *ctx, la_int64_t request)
{
    lister *l = ctx;
    (void)reader;
    uint64_t left = l->part.size - l->at, n = (uint64_t)request < left ? (uint64_t)request : left;
    l->at += n;
    l->step = READ_MIN;
    return (la_int64_t)n;
}

static spk_status not_tar(const lister *l, const char *why, spk_error *err)
{
    return spk_error_set(err, SPK_E_INVALID, "%s a tar archive%s%s", l->part.name_n ? "not" : "neither a folder nor",
                         why ? ": " : "", why ? why : "");
}

/* Why read_at failed. */
static spk_status unread(const lister *l, spk_error *err)
{
    if (l->sys_errno)
        return spk_error_sys(err, l->sys_errno, "read");
    return spk_error_set(err, SPK_E_CHANGED, "became shorter while it was read");
}

/* Why libarchive's call failed. */
static spk_status failed(lister *l, spk_error *err)
{
    const char *text = archive_error_string(l->reader);
    if (l->sys_errno || l->cut)
        return unread(l, err);
    if (archive_errno(l->reader) == ENOMEM)
        return spk_error_nomem(err, 0);
    int64_t at = archive_read_header_position(l->reader);
    uint64_t where = l->part.offset + (at > 0 ? (uint64_t)at : 0);
    if (at <= 0)
        return not_tar(l, text, err);
    return spk_error_at(err, SPK_E_FORMAT, where, "damaged or truncated at byte %llu: %s", (unsigned long long)where,
                        text ? text : "no reason given");
}

static spk_status check_start(lister *l, spk_error *err)
{
    ssize_t got = read_at(l, l->buf, BLOCK, 0);
    if (got < 0)
        return unread(l, err);
    const char *name = spk_archive_compression(l->buf, (size_t)got);
    if (name && l->part.name_n == 0)
        return spk_error_set(err, SPK_E_UNSUPPORTED,
                             "compressed archives (this is %s) cannot be read at random: unpack it first", name);
    return name || l->part.size < BLOCK ? not_tar(l, name, err) : SPK_OK;
}

/* The end marker (two blocks of zeros; the first is enough) and zeros up to the end must follow: without it the archive
 * was cut between two members, and what follows it nobody would see. */
static spk_status check_end(lister *l, spk_error *err)
{
    uint64_t end = (uint64_t)archive_read_header_position(l->reader), at = end, from = l->part.offset;
    if (end + BLOCK > l->part.size)
        return spk_error_at(err, SPK_E_FORMAT, from + l->part.size,
                            "truncated: ends at byte %llu without an end marker",
                            (unsigned long long)(from + l->part.size));
    while (at < l->part.size) {
        ssize_t got = read_at(l, l->buf, sizeof l->buf, at);
        if (got < 0)
            return unread(l, err);
        for (size_t i = 0; i < (size_t)got; i++) {
            if (l->buf[i] == 0)
                continue;
            uint64_t bad = from + at + i;
            if (at + i < end + BLOCK)
                return spk_error_at(err, SPK_E_FORMAT, bad, "damaged at byte %llu: no end marker",
                                    (unsigned long long)bad);
            return spk_error_at(err, SPK_E_FORMAT, bad,
                                "data behind the end marker, at byte %llu: unpack archives that were joined",
                                (unsigned long long)bad);
        }
        at += (uint64_t)got;
    }
    return SPK_OK;
}

/* m->offset from where libarchive stands, proven by the bytes that it gives. */
static spk_status locate(lister *l, struct archive_entry *e, spk_archive_member *m, spk_error *err)
{
    int64_t consumed = archive_filter_bytes(l->reader, 0), size = archive_entry_size(e), hole = 0;
    uint8_t probe[PROBE];
    const void *data = NULL;
    size_t n = 0;
    if (size < 0 || consumed < 0 || archive_entry_sparse_count(e) > 0)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "a sparse file cannot be read in place: unpack the archive first");
    m->size = (uint64_t)size;
    m->offset = l->part.offset + (uint64_t)consumed;
    if ((uint64_t)consumed > l->part.size || m->size > l->part.size - (uint64_t)consumed)
        return spk_error_at(err, SPK_E_FORMAT, l->part.offset + l->part.size,
                            "truncated: its %llu bytes begin at byte %llu, the archive ends at byte %llu",
                            (unsigned long long)m->size, (unsigned long long)m->offset,
                            (unsigned long long)(l->part.offset + l->part.size));
    l->next = ((uint64_t)consumed + m->size + BLOCK - 1) / BLOCK * BLOCK;
    if (size == 0)
        return SPK_OK;
    if (archive_read_data_block(l->reader, &data, &n, &hole) != ARCHIVE_OK || n == 0)
        return failed(l, err);
    n = n < PROBE ? n : PROBE;
    n = n < m->size ? n : (size_t)m->size;
    for (size_t have = 0; have < n;) {
        ssize_t got = read_at(l, probe + have, n - have, (uint64_t)consumed + have);
        if (got <= 0)
            return unread(l, err);
        have += (size_t)got;
    }
    if (hole != 0 || memcmp(probe, data, n) != 0)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "its data is not stored in place: unpack the archive first");
    return SPK_OK;
}

/* Below the folder that an inner archive stands for. */
static spk_status join(const lister *l, const char *path, char out[SPK_SCAN_PATH_MAX + 1], size_t *n, const char **why)
{
    char plain[SPK_SCAN_PATH_MAX + 1];
    size_t prefix = l->part.name_n ? l->part.name_n - 4 : 0;
    *why = path ? spk_name_plain(path, plain, n) : "its name cannot be read";
    if (!*why && (prefix ? prefix + 1 : 0) + *n > SPK_SCAN_PATH_MAX)
        *why = "longer than 4095 bytes";
    if (*why)
        return SPK_E_FORMAT;
    if (prefix) {
        memcpy(out, l->a->names.data + l->part.name, prefix);
        out[prefix++] = '/';
    }
    memcpy(out + prefix, plain, *n + 1);
    *n += prefix;
    return SPK_OK;
}

static spk_status add_link(lister *l, uint32_t id, spk_error *err)
{
    uint32_t other = 0;
    if (l->a->members[id].path_n == 0)
        return SPK_OK;
    return spk_intern_put(&l->links, member_path(l->a, id), id, &other, err);
}

static bool is_inner(const char *path, size_t n)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (n < 4 || strcasecmp(path + n - 4, ".tar") != 0 || base + 4 >= path + n || spk_name_is_junk(base))
        return false;
    for (const char *p = strstr(path, "__MACOSX/"); p; p = strstr(p + 1, "__MACOSX/"))
        if (p == path || p[-1] == '/')
            return false;
    return true;
}

/* What the link's target, an earlier member, is. */
static spk_status resolve(lister *l, const char *target, spk_archive_member *m, spk_error *err)
{
    char path[SPK_SCAN_PATH_MAX + 1];
    const char *why = NULL;
    size_t n = 0;
    for (; !l->links_wanted && l->linked < l->a->members_n; l->linked++)
        SPK_TRY(add_link(l, (uint32_t)l->linked, err));
    l->links_wanted = true;
    uint32_t id = SPK_INTERN_NONE;
    if (join(l, target, path, &n, &why) == SPK_OK) {
        if (is_inner(path, n))
            return spk_error_set(err, SPK_E_UNSUPPORTED, "a hard link to an archive");
        id = spk_intern_find(&l->links, path);
    }
    if (id == SPK_INTERN_NONE || l->a->members[id].kind == SPK_ARCHIVE_FOLDER)
        return spk_error_set(err, SPK_E_FORMAT, "a hard link to \"%.300s\", which is no file before it", target);
    m->kind = l->a->members[id].kind;
    m->offset = l->a->members[id].offset;
    m->size = l->a->members[id].size;
    return SPK_OK;
}

/* The member, a tar, becomes a folder, and a part to be listed later. */
static spk_status add_part(lister *l, const char *path, spk_archive_member *m, size_t *n, spk_error *err)
{
    spk_archive *a = l->a;
    spk_archive_part part = {m->offset, m->size, a->names.len, (uint32_t)*n, l->number, l->part.depth + 1};
    if (part.depth > DEPTH_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "archives in archives more than %u deep", DEPTH_MAX);
    SPK_TRY(spk_buf_append(&a->names, path, *n + 1, err));
    SPK_TRY(spk_grow(&a->parts, &a->parts_cap, a->parts_n + 1, sizeof *a->parts, err));
    a->parts[a->parts_n++] = part;
    m->kind = SPK_ARCHIVE_FOLDER;
    *n -= 4;
    return SPK_OK;
}

static spk_status kind_of(struct archive_entry *e, spk_archive_kind *out, spk_error *err)
{
    switch (archive_entry_filetype(e)) {
    case AE_IFREG:
        *out = SPK_ARCHIVE_FILE;
        return SPK_OK;
    case AE_IFDIR:
        *out = SPK_ARCHIVE_FOLDER;
        return SPK_OK;
    case AE_IFLNK:
        *out = SPK_ARCHIVE_SYMLINK;
        return SPK_OK;
    case 0:
        return spk_error_set(err, SPK_E_UNSUPPORTED, "of a kind that is not known (part of a file in many volumes?)");
    default:
        *out = SPK_ARCHIVE_SPECIAL;
        return SPK_OK;
    }
}

static spk_status describe(lister *l, struct archive_entry *e, const char *path, size_t *n, spk_archive_member *m,
                           spk_error *err)
{
    const char *target = archive_entry_hardlink(e);
    if (target && archive_entry_size(e) == 0) {
        SPK_TRY(resolve(l, target, m, err));
        if (m->kind == SPK_ARCHIVE_FILE && is_inner(path, *n))
            return spk_error_set(err, SPK_E_UNSUPPORTED, "a hard link to an archive");
        return SPK_OK;
    }
    if (target) /* as pax may: with data of its own */
        m->kind = SPK_ARCHIVE_FILE;
    else
        SPK_TRY(kind_of(e, &m->kind, err));
    if (m->kind != SPK_ARCHIVE_FILE)
        return SPK_OK;
    SPK_TRY(locate(l, e, m, err));
    return is_inner(path, *n) ? add_part(l, path, m, n, err) : SPK_OK;
}

static spk_status take(lister *l, struct archive_entry *e, spk_error *err)
{
    spk_archive *a = l->a;
    spk_archive_member m = {.path = a->paths.len};
    char path[SPK_SCAN_PATH_MAX + 1] = "";
    const char *name = archive_entry_pathname(e), *why = NULL;
    size_t n = 0;
    spk_status status = join(l, name, path, &n, &why);
    bool file = archive_entry_hardlink(e) || archive_entry_filetype(e) == AE_IFREG;
    if (status < 0 && file) {
        (void)spk_error_set(err, SPK_E_FORMAT, "%s", why);
    } else if (status < 0) {
        path[n = 0] = '\0'; /* it is only counted */
        status = kind_of(e, &m.kind, err);
    } else {
        status = describe(l, e, path, &n, &m, err);
    }
    if (status < 0) {
        spk_error_prefix(err, "%.300s", name ? name : "member without a name");
        return status;
    }
    m.path_n = (uint32_t)n;
    if (a->members_n >= MEMBERS_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "more than %u members", MEMBERS_MAX);
    SPK_TRY(spk_buf_append(&a->paths, path, n, err));
    SPK_TRY(spk_buf_append(&a->paths, "", 1, err));
    SPK_TRY(spk_grow(&a->members, &a->members_cap, a->members_n + 1, sizeof *a->members, err));
    a->members[a->members_n] = m;
    return l->links_wanted ? add_link(l, (uint32_t)a->members_n++, err) : (a->members_n++, SPK_OK);
}

/* SPK_END behind the last member. */
static spk_status next(lister *l, spk_error *err)
{
    struct archive_entry *e = NULL;
    uint64_t want = l->next;
    l->next = 0;
    int r = archive_read_next_header(l->reader, &e);
    if (r == ARCHIVE_EOF || r == ARCHIVE_OK || r == ARCHIVE_WARN) {
        int64_t at = archive_read_header_position(l->reader);
        if (want != 0 && (uint64_t)at != want)
            return spk_error_at(err, SPK_E_UNSUPPORTED, l->part.offset + (uint64_t)at,
                                "the member before byte %llu is not stored in place: unpack the archive first",
                                (unsigned long long)(l->part.offset + (uint64_t)at));
    }
    if (r == ARCHIVE_EOF)
        return l->sys_errno || l->cut ? failed(l, err) : SPK_END;
    const char *text = archive_error_string(l->reader);
    /* Names that are not ASCII come with a warning, and as they are. Any other warning is about damage. */
    bool fine = r == ARCHIVE_OK || (r == ARCHIVE_WARN && text && strstr(text, "can't be converted"));
    return fine ? take(l, e, err) : failed(l, err);
}

static spk_status open_part(lister *l, spk_error *err)
{
    l->at = l->next = 0;
    l->step = READ_MIN;
    l->linked = l->a->members_n;
    l->links_wanted = false;
    SPK_TRY(check_start(l, err));
    l->reader = archive_read_new();
    if (!l->reader)
        return spk_error_nomem(err, 0);
    archive_read_support_format_tar(l->reader);
    archive_read_set_read_callback(l->reader, on_read);
    archive_read_set_skip_callback(l->reader, on_skip);
    archive_read_set_callback_data(l->reader, l);
    return archive_read_open1(l->reader) == ARCHIVE_OK ? SPK_OK : failed(l, err);
}

static spk_status list_part(lister *l, spk_error *err)
{
    spk_status status = open_part(l, err);
    for (uint64_t i = 0; status == SPK_OK; i++) {
        if (i % TICK == 0 && l->tick && l->tick(l->tick_ctx, l->a->members_n) != 0)
            return spk_error_set(err, SPK_E_CANCELLED, "cancelled after %zu members", l->a->members_n);
        locale_t before = uselocale(l->c);
        status = next(l, err);
        uselocale(before);
    }
    return status == SPK_END ? check_end(l, err) : status;
}

spk_status spk_archive_list(spk_archive **out, int fd, const char *src, int64_t stamp, spk_archive_tick tick, void *ctx,
                            spk_error *err)
{
    struct stat st;
    spk_status status = SPK_OK;
    spk_archive *a = calloc(1, sizeof *a);
    lister *l = calloc(1, sizeof *l);
    locale_t c = newlocale(LC_CTYPE_MASK, "C", (locale_t)0);
    if (!a || !l || !c) {
        status = spk_error_nomem(err, sizeof *l);
        goto out;
    }
    *l = (lister){.a = a, .src = src, .c = c, .tick = tick, .tick_ctx = ctx, .links = {.str = member_path, .ctx = a}};
    a->fd = fd;
    a->stamp = stamp;
    if (fstat(fd, &st) != 0) {
        status = spk_error_sys(err, errno, "%s", src);
        goto out;
    }
    a->size = (uint64_t)st.st_size;
    status = spk_grow(&a->parts, &a->parts_cap, 1, sizeof *a->parts, err);
    if (status == SPK_OK)
        a->parts[a->parts_n++] = (spk_archive_part){.size = a->size};
    for (; status == SPK_OK && l->number < a->parts_n; l->number++) {
        l->part = a->parts[l->number];
        status = list_part(l, err);
        archive_read_free(l->reader);
        l->reader = NULL;
        spk_intern_free(&l->links);
        l->links = (spk_intern){.str = member_path, .ctx = a};
        if (status < 0 && status != SPK_E_CANCELLED)
            spk_archive_prefix_part(a, src, l->number, err);
    }
out:
    if (c)
        freelocale(c);
    free(l);
    if (status < 0) {
        spk_archive_free(a);
        a = NULL;
    }
    *out = a;
    return status;
}
