/* pack/archive: members and places of tar archives in every dialect, inner archives, links, and what is refused. */
#include "check_main.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/mman.h>

#include "pack/archive.h"

#define ROOM (1u << 20)

typedef struct maker {
    struct archive *a;
    size_t n;
    uint8_t data[ROOM];
} maker;

static spk_archive *arc;
static spk_error err;
static int fd = -1;

static void setup(void)
{
    spk_error_clear(&err);
}

static void teardown(void)
{
    spk_archive_free(arc);
    close(fd);
}

static maker *begin(int format)
{
    maker *m = calloc(1, sizeof *m);
    m->a = archive_write_new();
    archive_write_set_format(m->a, format);
    archive_write_set_bytes_per_block(m->a, 512);
    ck_assert_int_eq(archive_write_open_memory(m->a, m->data, sizeof m->data, &m->n), ARCHIVE_OK);
    return m;
}

static void put_entry(maker *m, const char *path, unsigned type, const char *link, const void *data, size_t n)
{
    struct archive_entry *e = archive_entry_new();
    archive_entry_copy_pathname(e, path);
    archive_entry_set_mode(e, type | 0644);
    if (link && type == AE_IFLNK)
        archive_entry_copy_symlink(e, link);
    else if (link)
        archive_entry_copy_hardlink(e, link);
    archive_entry_set_size(e, (la_int64_t)n);
    ck_assert_msg(archive_write_header(m->a, e) >= ARCHIVE_WARN, "%s: %s", path, archive_error_string(m->a));
    if (n > 0)
        ck_assert_int_eq(archive_write_data(m->a, data, n), (la_ssize_t)n);
    archive_entry_free(e);
}

/* The content is the path. */
static void put(maker *m, const char *path)
{
    put_entry(m, path, AE_IFREG, NULL, path, strlen(path));
}

static void end(maker *m)
{
    ck_assert_int_eq(archive_write_free(m->a), ARCHIVE_OK);
    m->a = NULL;
}

/* Puts a finished archive into another one, and frees it. */
static void put_inner(maker *m, const char *path, maker *inner)
{
    end(inner);
    put_entry(m, path, AE_IFREG, NULL, inner->data, inner->n);
    free(inner);
}

static spk_status list_bytes(const void *data, size_t n)
{
    close(fd);
    fd = memfd_create("x.tar", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, data, n), (ssize_t)n);
    spk_archive_free(arc);
    return spk_archive_list(&arc, fd, "x.tar", 5, NULL, NULL, &err);
}

static spk_status list(maker *m)
{
    end(m);
    spk_status status = list_bytes(m->data, m->n);
    free(m);
    return status;
}

/* "path " for each member, files with '=' and what lies at their place, folders with '/', others with '@' or '?'. */
static const char *members(void)
{
    static char out[16384];
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < arc->members_n; i++) {
        const spk_archive_member *m = &arc->members[i];
        const char *path = (const char *)arc->paths.data + m->path;
        char data[4096] = "";
        ck_assert_uint_eq(strlen(path), m->path_n);
        if (m->kind == SPK_ARCHIVE_FILE)
            ck_assert_int_eq(pread(fd, data, m->size, (off_t)m->offset), (ssize_t)m->size);
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%c%s ", path, "=/@?"[m->kind], data);
    }
    return out;
}

START_TEST(plain)
{
    maker *m = begin(ARCHIVE_FORMAT_TAR_USTAR);
    put_entry(m, "./", AE_IFDIR, NULL, NULL, 0);
    put(m, "./a//b.jpg");
    put_entry(m, "empty.txt", AE_IFREG, NULL, NULL, 0);
    put_entry(m, "d/", AE_IFDIR, NULL, NULL, 0);
    put_entry(m, "d/s", AE_IFLNK, "../../x", NULL, 0);
    put_entry(m, "../up", AE_IFLNK, "x", NULL, 0);
    put_entry(m, "fifo", AE_IFIFO, NULL, NULL, 0);
    ck_ok(list(m), err);
    ck_assert_str_eq(members(), "/ a/b.jpg=./a//b.jpg empty.txt= d/ d/s@ @ fifo? ");
    ck_assert_int_eq(arc->stamp, 5);
    ck_assert_uint_eq(arc->members[1].offset, 1024);
}
END_TEST

START_TEST(long_names)
{
    static const int formats[] = {ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE, ARCHIVE_FORMAT_TAR_PAX_RESTRICTED,
                                  ARCHIVE_FORMAT_TAR_GNUTAR, ARCHIVE_FORMAT_TAR_USTAR};
    maker *m = begin(formats[_i]);
    char path[600], expected[4096];
    size_t n = _i == 3 ? 175 : 590; /* ustar splits at a slash into prefix and name */
    for (size_t i = 0; i < n; i++)
        path[i] = i % 90 == 89 ? '/' : (char)('a' + i % 26);
    path[n] = '\0';
    put(m, "first");
    put(m, path);
    put(m, "last");
    ck_ok(list(m), err);
    snprintf(expected, sizeof expected, "first=first %s=%s last=last ", path, path);
    ck_assert_str_eq(members(), expected);
}
END_TEST

/* A pax record by hand: libarchive would write the name only as the locale has it. */
static void pax_name(uint8_t *out, const char *name)
{
    char record[200];
    int n = snprintf(record, sizeof record, " path=%s\n", name), digits = n + 2 < 10 ? 1 : 2;
    snprintf(record, sizeof record, "%d path=%s\n", n + digits, name);
    uint8_t *block = out;
    memset(out, 0, 1024);
    strcpy((char *)block, "pax");
    sprintf((char *)block + 100, "%07o", 0644);
    sprintf((char *)block + 124, "%011o", (unsigned)(n + digits));
    memcpy(block + 257, "ustar\00000", 8);
    block[156] = 'x';
    memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < 512; i++)
        sum += block[i];
    sprintf((char *)block + 148, "%06o", sum);
    memcpy(out + 512, record, strlen(record));
}

START_TEST(names_do_not_depend_on_the_locale)
{
    static const char *const names[] = {"cafe\xcc\x81.jpg", "caf\xc3\xa9.jpg", "\xe6\x97\xa5.jpg", "bad-\xff.jpg"};
    static const char *const locales[] = {"C", "C.UTF-8", "en_US.ISO-8859-1"};
    uint8_t data[4 * 2048 + 1024] = {0};
    maker *m = begin(ARCHIVE_FORMAT_TAR_USTAR);
    put(m, "x");
    end(m);
    for (size_t i = 0; i < 4; i++) {
        pax_name(data + i * 2048, names[i]);
        memcpy(data + i * 2048 + 1024, m->data, 1024);
    }
    free(m);
    for (size_t k = 0; k < 3; k++) {
        if (!setlocale(LC_ALL, locales[k]))
            continue;
        ck_ok(list_bytes(data, sizeof data), err);
        ck_assert_str_eq(members(), "cafe\xcc\x81.jpg=x caf\xc3\xa9.jpg=x \xe6\x97\xa5.jpg=x bad-\xff.jpg=x ");
    }
    setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(nested)
{
    maker *m = begin(ARCHIVE_FORMAT_TAR_USTAR), *one = begin(ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE);
    maker *two = begin(ARCHIVE_FORMAT_TAR_GNUTAR);
    put(m, "first");
    put(two, "deep.jpg");
    put(two, "x/y.jpg");
    put(one, "./a.jpg");
    put_inner(one, "two.TAR", two);
    put_inner(m, "d/one.tar", one);
    put_inner(m, "none.tar", begin(ARCHIVE_FORMAT_TAR_USTAR));
    put(m, "._junk.tar");
    put(m, "__MACOSX/k.tar");
    put(m, "last.tar.gz");
    put(m, ".tar");
    ck_ok(list(m), err);
    ck_assert_str_eq(members(), "first=first d/one/ none/ ._junk.tar=._junk.tar __MACOSX/k.tar=__MACOSX/k.tar "
                                "last.tar.gz=last.tar.gz .tar=.tar d/one/a.jpg=./a.jpg d/one/two/ "
                                "d/one/two/deep.jpg=deep.jpg d/one/two/x/y.jpg=x/y.jpg ");
    const spk_archive_member *f = &arc->members[arc->members_n - 1];
    (void)spk_error_set(&err, SPK_E_FORMAT, "bad");
    spk_archive_prefix(arc, "x.tar", (const char *)arc->paths.data + f->path, f->offset, &err);
    ck_assert_str_eq(err.text, "x.tar: d/one.tar: two.TAR: x/y.jpg: bad");
    (void)spk_error_set(&err, SPK_E_FORMAT, "bad");
    spk_archive_prefix(arc, "x.tar", "first", arc->members[0].offset, &err);
    ck_assert_str_eq(err.text, "x.tar: first: bad");
    spk_archive_forget(arc);
    (void)spk_error_set(&err, SPK_E_FORMAT, "bad");
    spk_archive_prefix(arc, "x.tar", "d/one/a.jpg", arc->parts[1].offset + 1024, &err);
    ck_assert_str_eq(err.text, "x.tar: d/one.tar: a.jpg: bad");
}
END_TEST

START_TEST(depth)
{
    for (int deep = 8; deep <= 9; deep++) {
        maker *m = begin(ARCHIVE_FORMAT_TAR_USTAR);
        put(m, "x");
        for (int i = 0; i < deep; i++) {
            maker *outer = begin(ARCHIVE_FORMAT_TAR_USTAR);
            put_inner(outer, "t.tar", m);
            m = outer;
        }
        if (deep == 8)
            ck_ok(list(m), err);
        else
            ck_fails(list(m), err, SPK_E_LIMIT, "t.tar: t.tar: archives in archives more than 8 deep");
    }
}
END_TEST

START_TEST(hard_links)
{
    maker *m = begin(ARCHIVE_FORMAT_TAR_USTAR);
    put(m, "a");
    put_entry(m, "l", AE_IFREG, "./a", NULL, 0);
    put_entry(m, "ll", AE_IFREG, "l", NULL, 0);
    put_entry(m, "s", AE_IFLNK, "a", NULL, 0);
    put_entry(m, "sl", AE_IFREG, "s", NULL, 0);
    maker *inner = begin(ARCHIVE_FORMAT_TAR_USTAR);
    put(inner, "b");
    put_entry(inner, "lb", AE_IFREG, "b", NULL, 0);
    put_inner(m, "i.tar", inner);
    ck_ok(list(m), err);
    ck_assert_str_eq(members(), "a=a l=a ll=a s@ sl@ i/ i/b=b i/lb=b ");
    static const char *const bad[][3] = {
        {"l", "later", "x.tar: l: a hard link to \"later\", which is no file before it"},
        {"l", "l", "a hard link to \"l\", which is no file before it"},
        {"l", "../a", "a hard link to \"../a\", which is no file before it"},
        {"l", "d", "a hard link to \"d\", which is no file before it"},
        {"l.tar", "a", "x.tar: l.tar: a hard link to an archive"},
        {"l", "i.tar", "a hard link to an archive"},
        {"../l", "a", "x.tar: ../l: leaves the source folder"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        m = begin(ARCHIVE_FORMAT_TAR_USTAR);
        put(m, "a");
        put_entry(m, "d", AE_IFDIR, NULL, NULL, 0);
        put_inner(m, "i.tar", begin(ARCHIVE_FORMAT_TAR_USTAR));
        put_entry(m, bad[i][0], AE_IFREG, bad[i][1], NULL, 0);
        put(m, "later");
        spk_status status = list(m);
        ck_assert_msg(status < 0 && strstr(err.text, bad[i][2]), "%s: %s", bad[i][2], err.text);
    }
}
END_TEST

START_TEST(bad_paths)
{
    static const char *const bad[][2] = {{"/abs.jpg", "absolute"},
                                         {"..", "leaves the source folder"},
                                         {"a/../../b", "leaves the source folder"},
                                         {"./.", "names the source folder itself"}};
    for (size_t i = 0; i < 4; i++) {
        maker *m = begin(ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
        put(m, bad[i][0]);
        ck_fails(list(m), err, SPK_E_FORMAT, bad[i][1]);
        ck_assert_ptr_null(arc);
    }
    char path[5001];
    memset(path, 'x', sizeof path);
    for (size_t i = 50; i < sizeof path; i += 50)
        path[i] = '/';
    path[4095] = '\0';
    maker *m = begin(ARCHIVE_FORMAT_TAR_PAX_RESTRICTED), *inner = begin(ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
    put(m, path);
    ck_ok(list(m), err);
    m = begin(ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
    put(inner, path);
    put_inner(m, "i.tar", inner);
    ck_fails(list(m), err, SPK_E_FORMAT, "longer than 4095 bytes");
    path[4095] = 'x';
    path[4096] = '\0';
    m = begin(ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
    put(m, path);
    ck_fails(list(m), err, SPK_E_FORMAT, "longer than 4095 bytes");
}
END_TEST

/* An archive with one of everything that has a header of its own. */
static maker *varied(void)
{
    static const int formats[] = {ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE,
                                  ARCHIVE_FORMAT_TAR_GNUTAR};
    char path[300];
    maker *m = begin(ARCHIVE_FORMAT_TAR_USTAR);
    memset(path, 'p', sizeof path);
    path[299] = '\0';
    put_entry(m, "d/", AE_IFDIR, NULL, NULL, 0);
    for (int i = 0; i < 3; i++) {
        maker *inner = begin(formats[i]);
        put(inner, "a.jpg");
        put(inner, i ? path : "b.jpg");
        put_entry(inner, "s", AE_IFLNK, "a.jpg", NULL, 0);
        put_entry(inner, "h", AE_IFREG, "a.jpg", NULL, 0);
        char name[16];
        snprintf(name, sizeof name, "%d.tar", i);
        put_inner(m, name, inner);
    }
    put(m, "last");
    end(m);
    return m;
}

START_TEST(truncated)
{
    maker *m = varied();
    ck_assert_uint_eq(m->n % 512, 0);
    ck_ok(list_bytes(m->data, m->n), err);
    for (size_t n = 0; n < m->n; n += 256) {
        spk_status status = list_bytes(m->data, n);
        if (n >= m->n - 512) /* half of the end marker says that nothing follows */
            ck_ok(status, err);
        else
            ck_assert_msg(status < 0, "cut at %zu of %zu", n, m->n);
        ck_assert_msg(status == SPK_OK || strncmp(err.text, "x.tar: ", 7) == 0, "%s", err.text);
    }
    ck_fails(list_bytes(m->data, m->n - 1024), err, SPK_E_FORMAT, "without an end marker");
    free(m);
}
END_TEST

/* Any one byte changed: either refused, or what is found lies inside. Bytes of headers are under a checksum. */
START_TEST(damaged)
{
    maker *m = varied();
    size_t fine = 0;
    for (size_t i = 0; i < m->n; i += 3) {
        m->data[i] ^= 0x55;
        if (list_bytes(m->data, m->n) == SPK_OK) {
            fine++;
            for (size_t k = 0; k < arc->members_n; k++)
                ck_assert_uint_le(arc->members[k].offset + arc->members[k].size, m->n);
        }
        m->data[i] ^= 0x55;
    }
    ck_assert_uint_gt(fine, 0); /* data and padding of members */
    m->data[m->n - 1] = 1;
    ck_fails(list_bytes(m->data, m->n), err, SPK_E_FORMAT, "data behind the end marker, at byte");
    free(m);
}
END_TEST

START_TEST(other_files)
{
    static const char gz[600] = "\x1f\x8b\x08", zip[600] = "PK\x03\x04", text[600] = "no tar", zeros[1024];
    ck_fails(list_bytes(gz, sizeof gz), err, SPK_E_UNSUPPORTED,
             "x.tar: compressed archives (this is gzip) cannot be read at random: unpack it first");
    ck_fails(list_bytes(zip, 30), err, SPK_E_UNSUPPORTED, "(this is zip)");
    ck_fails(list_bytes(text, sizeof text), err, SPK_E_INVALID, "x.tar: neither a folder nor a tar archive");
    ck_fails(list_bytes(text, 0), err, SPK_E_INVALID, "x.tar: neither a folder nor a tar archive");
    ck_ok(list_bytes(zeros, sizeof zeros), err);
    ck_assert_uint_eq(arc->members_n, 0);
    maker *m = begin(ARCHIVE_FORMAT_TAR_USTAR);
    put_entry(m, "i.tar", AE_IFREG, NULL, gz, sizeof gz);
    ck_fails(list(m), err, SPK_E_INVALID, "x.tar: i.tar: not a tar archive: gzip");
}
END_TEST

START_TEST(sparse)
{
    maker *m = begin(ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE);
    struct archive_entry *e = archive_entry_new();
    static const char data[100000];
    archive_entry_copy_pathname(e, "hole");
    archive_entry_set_mode(e, AE_IFREG | 0644);
    archive_entry_set_size(e, sizeof data);
    archive_entry_sparse_add_entry(e, 50000, 512);
    ck_assert_int_eq(archive_write_header(m->a, e), ARCHIVE_OK);
    ck_assert_int_ge(archive_write_data(m->a, data, sizeof data), 0);
    archive_entry_free(e);
    ck_fails(list(m), err, SPK_E_UNSUPPORTED, "x.tar: hole: a sparse file cannot be read in place");
}
END_TEST

static int stop_at_second(void *ctx, uint64_t count)
{
    (void)count;
    return ++*(int *)ctx == 2;
}

/* The first bytes of the archive, before libarchive has seen any. */
START_TEST(unreadable)
{
    static const char zeros[2048];
    ck_assert_int_eq(list_bytes(zeros, sizeof zeros), SPK_OK);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int deaf = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(deaf, 0);
    close(fd);
    fd = deaf;
    spk_archive_free(arc);
    arc = NULL;
    ck_assert_int_eq(spk_archive_list(&arc, fd, "x.tar", 5, NULL, NULL, &err), SPK_E_IO);
    ck_assert_str_eq(err.text, "x.tar: read: Bad file descriptor");
    ck_assert_int_eq(err.sys_errno, EBADF);
}
END_TEST

START_TEST(cancelled)
{
    maker *m = begin(ARCHIVE_FORMAT_TAR_USTAR);
    int calls = 0;
    for (int i = 0; i < 1000; i++) {
        char path[20];
        snprintf(path, sizeof path, "%d", i);
        put_entry(m, path, AE_IFREG, NULL, NULL, 0);
    }
    end(m);
    ck_ok(list_bytes(m->data, m->n), err);
    memcpy(m->data + 512000, m->data, 512000);
    memset(m->data + 1024000, 0, 1024);
    ck_assert_int_eq(pwrite(fd, m->data, 1025024, 0), 1025024);
    spk_archive_free(arc);
    ck_fails(spk_archive_list(&arc, fd, "x.tar", 0, stop_at_second, &calls, &err), err, SPK_E_CANCELLED,
             "cancelled after 1024 members");
    free(m);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pack/archive");
    TCase *c = tcase_create("archive");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, plain);
    tcase_add_loop_test(c, long_names, 0, 4);
    tcase_add_test(c, names_do_not_depend_on_the_locale);
    tcase_add_test(c, nested);
    tcase_add_test(c, depth);
    tcase_add_test(c, hard_links);
    tcase_add_test(c, bad_paths);
    tcase_add_test(c, truncated);
    tcase_add_test(c, damaged);
    tcase_add_test(c, other_files);
    tcase_add_test(c, sparse);
    tcase_add_test(c, unreadable);
    tcase_add_test(c, cancelled);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    return s;
}

CHECK_MAIN(suite)
