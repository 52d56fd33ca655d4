/* pack/journal.h: what was written comes back; cut at any byte, all whole records before the cut do. */
#include "check_main.h"

#include "pack/journal.h"
#include "pack/report.h"

#include <fcntl.h>

#define FIELDS 3
#define RECORDS 3

typedef struct seen {
    uint64_t shards, publishes, payload, bad_bytes;
    uint64_t numbers[16];
    spk_shard_info last;
    char fingerprint[65];
} seen;

static spk_status on_shard(void *ctx, uint64_t number, const spk_shard_info *info, const spk_tally *tally,
                           spk_error *err)
{
    seen *s = ctx;
    (void)err;
    s->numbers[s->shards++] = number;
    s->last = *info;
    s->payload += tally->payload;
    s->bad_bytes += tally->bad_lines.len;
    ck_assert_uint_eq(tally->fields[2].forms[1].bytes, number + 7);
    ck_assert_uint_eq(tally->images.longer_side[17], number);
    return SPK_OK;
}

static spk_status on_publish(void *ctx, uint64_t split, const char *fingerprint, spk_error *err)
{
    seen *s = ctx;
    (void)err;
    ck_assert_uint_eq(split, 1);
    s->publishes++;
    snprintf(s->fingerprint, sizeof s->fingerprint, "%s", fingerprint);
    return SPK_OK;
}

static spk_pack_plan_digest digest_of(int n)
{
    spk_pack_plan_digest d;
    memset(&d, n, sizeof d);
    return d;
}

static spk_status open_it(spk_journal **j, int fd, const spk_pack_plan_digest *d, bool force, seen *s, bool *fresh,
                          spk_error *err)
{
    spk_journal_hooks hooks = {on_shard, on_publish, s};
    memset(s, 0, sizeof *s);
    return spk_journal_open(j, fd, "dst/.shardpack", d, FIELDS, force, &hooks, fresh, err);
}

static void put(spk_journal *j, uint64_t number)
{
    spk_error err;
    spk_tally t;
    spk_shard_info info = {.samples = 5, .frames = 2, .bytes = 1000 + number, .tar_bytes = 9, .index_offset = 3};
    memset(info.tail_sha256, (int)number + 1, sizeof info.tail_sha256);
    ck_ok(spk_tally_init(&t, FIELDS, &err), err);
    t.payload = 100;
    t.fields[2].forms[1].bytes = number + 7;
    t.images.longer_side[17] = number;
    if (number % 2 == 1) {
        ck_ok(spk_tally_bad(&t, "a\tb\n%.jpg", "skipped", "truncated JPEG", &err), err);
        ck_ok(spk_tally_bad(&t, "z.jpg", "kept", "no image", &err), err);
    }
    ck_ok(spk_journal_shard(j, number, &info, &t, &err), err);
    spk_tally_free(&t);
}

/* A journal with RECORDS shards and a publish line; sizes[i]: its length after i shards. */
static void write_journal(int fd, off_t sizes[RECORDS + 2])
{
    spk_error err;
    spk_journal *j = NULL;
    spk_pack_plan_digest d = digest_of(1);
    struct stat st;
    seen s;
    bool fresh = false;
    char fingerprint[65];
    memset(fingerprint, 'a', 64);
    fingerprint[64] = '\0';
    ck_ok(open_it(&j, fd, &d, false, &s, &fresh, &err), err);
    ck_assert(fresh);
    for (uint64_t i = 0; i <= RECORDS; i++) {
        ck_assert_int_eq(fstatat(fd, SPK_JOURNAL_NAME, &st, 0), 0);
        sizes[i] = st.st_size;
        if (i < RECORDS)
            put(j, i);
    }
    ck_ok(spk_journal_publish(j, 1, fingerprint, &err), err);
    ck_assert_int_eq(fstatat(fd, SPK_JOURNAL_NAME, &st, 0), 0);
    sizes[RECORDS + 1] = st.st_size;
    spk_journal_close(j);
}

START_TEST(records_come_back)
{
    char *dir = check_temp_folder();
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    off_t sizes[RECORDS + 2];
    spk_error err;
    spk_journal *j = NULL;
    spk_pack_plan_digest d = digest_of(1);
    seen s;
    bool fresh = true;
    write_journal(fd, sizes);
    ck_ok(open_it(&j, fd, &d, false, &s, &fresh, &err), err);
    ck_assert(!fresh);
    ck_assert_uint_eq(s.shards, RECORDS);
    ck_assert_uint_eq(s.publishes, 1);
    ck_assert_uint_eq(s.payload, 100 * RECORDS);
    ck_assert_uint_eq(s.last.bytes, 1000 + RECORDS - 1);
    ck_assert_uint_eq(s.last.tail_sha256[31], RECORDS);
    ck_assert_uint_eq(s.bad_bytes,
                      RECORDS / 2 * strlen("a%09b%0a%25.jpg\tskipped\ttruncated JPEG\nz.jpg\tkept\tno image\n"));
    put(j, 9);
    spk_journal_close(j);
    ck_ok(open_it(&j, fd, &d, false, &s, &fresh, &err), err);
    ck_assert_uint_eq(s.shards, RECORDS + 1);
    spk_journal_close(j);
    close(fd);
    check_remove_tree(dir);
}
END_TEST

START_TEST(cut_at_any_byte)
{
    char *dir = check_temp_folder();
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    off_t sizes[RECORDS + 2];
    spk_error err;
    spk_pack_plan_digest d = digest_of(1);
    write_journal(fd, sizes);
    int file = openat(fd, SPK_JOURNAL_NAME, O_RDONLY);
    size_t n = (size_t)sizes[RECORDS + 1];
    char *text = malloc(n);
    ck_assert_int_eq(read(file, text, n), (ssize_t)n);
    close(file);
    for (size_t cut = 0; cut <= n; cut++) {
        spk_journal *j = NULL;
        seen s;
        bool fresh = false;
        uint64_t whole = 0;
        for (int i = 1; i <= RECORDS; i++)
            whole += (off_t)cut >= sizes[i];
        file = openat(fd, SPK_JOURNAL_NAME, O_WRONLY | O_TRUNC);
        ck_assert_int_eq(write(file, text, cut), (ssize_t)cut);
        if (cut % 3 == 0) /* and rubbish, as a file system may leave behind */
            ck_assert_int_eq(write(file, "\0\0\0rubbish", 10), 10);
        close(file);
        ck_ok(open_it(&j, fd, &d, false, &s, &fresh, &err), err);
        ck_assert_uint_eq(s.shards, whole);
        ck_assert_int_eq(fresh, whole == 0);
        if (cut % 16 != 0) {
            spk_journal_close(j);
            continue;
        }
        put(j, 11); /* goes behind the last whole record */
        spk_journal_close(j);
        ck_ok(open_it(&j, fd, &d, false, &s, &fresh, &err), err);
        ck_assert_uint_eq(s.shards, whole + 1);
        ck_assert_uint_eq(s.numbers[whole], 11);
        spk_journal_close(j);
    }
    free(text);
    close(fd);
    check_remove_tree(dir);
}
END_TEST

START_TEST(another_plan_is_refused)
{
    char *dir = check_temp_folder();
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    off_t sizes[RECORDS + 2];
    spk_error err;
    spk_journal *j = NULL;
    spk_pack_plan_digest d = digest_of(1);
    seen s;
    bool fresh = false;
    write_journal(fd, sizes);
    memset(d.options, 2, sizeof d.options);
    ck_fails(open_it(&j, fd, &d, false, &s, &fresh, &err), err, SPK_E_CHANGED, "(3 shards done; changed: options)");
    memset(d.versions, 2, sizeof d.versions);
    memset(d.versions_other, 2, sizeof d.versions_other);
    ck_fails(open_it(&j, fd, &d, false, &s, &fresh, &err), err, SPK_E_CHANGED, "changed: options, versions)");
    memset(d.input, 2, sizeof d.input);
    ck_fails(open_it(&j, fd, &d, false, &s, &fresh, &err), err, SPK_E_CHANGED, "changed: options, versions, files)");
    d = digest_of(1); /* --check is an option, although it decides whether the versions of the decoders count */
    memset(d.options, 2, sizeof d.options);
    memset(d.versions, 2, sizeof d.versions);
    ck_fails(open_it(&j, fd, &d, false, &s, &fresh, &err), err, SPK_E_CHANGED, "changed: options)");
    d = digest_of(1);
    memset(d.stamps, 2, sizeof d.stamps);
    ck_fails(open_it(&j, fd, &d, false, &s, &fresh, &err), err, SPK_E_CHANGED, "changed: times of files)");
    memset(d.input, 2, sizeof d.input);
    ck_fails(open_it(&j, fd, &d, false, &s, &fresh, &err), err, SPK_E_CHANGED,
             "dst/.shardpack (3 shards done; changed: files)");
    ck_ok(open_it(&j, fd, &d, true, &s, &fresh, &err), err);
    ck_assert(fresh);
    ck_assert_uint_eq(s.shards, 0);
    spk_journal_close(j);
    d = digest_of(5); /* nothing was finished: nothing is lost */
    ck_ok(open_it(&j, fd, &d, false, &s, &fresh, &err), err);
    ck_assert(fresh);
    spk_journal_close(j);
    close(fd);
    check_remove_tree(dir);
}
END_TEST

START_TEST(report_is_sorted_by_path)
{
    spk_error err;
    spk_buf lines = {0}, out = {0};
    ck_ok(spk_buf_printf(&lines, &err, "b/1.jpg\tkept\tx\na.jpg\tskipped\ty\nb\tkept\tz\n"), err);
    ck_ok(spk_report_encode(&out, &lines, &err), err);
    ck_ok(spk_buf_terminate(&out, &err), err);
    ck_assert_str_eq((char *)out.data, "#path\taction\treason\na.jpg\tskipped\ty\nb\tkept\tz\nb/1.jpg\tkept\tx\n");
    spk_buf_free(&lines);
    spk_buf_free(&out);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pack_journal");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, records_come_back);
    tcase_add_test(t, cut_at_any_byte);
    tcase_add_test(t, another_plan_is_refused);
    tcase_add_test(t, report_is_sorted_by_path);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
