/* Shards checked: against a table, by verify, and what each kind of damage is called; read errors. */
#include "check_main.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "shard/shard.h"
#include "small_shard.h"

static void expect_of(spk_shard_expect *e)
{
    *e = (spk_shard_expect){info.samples, info.frames, info.bytes, info.tar_bytes, info.index_offset, {0}};
    memcpy(e->tail_sha256, info.tail_sha256, 32);
}

static spk_status open_bytes(spk_shard **out, const uint8_t *p, size_t n, const spk_shard_expect *expect,
                             spk_error *err)
{
    spk_source *source = NULL;
    fixture_must(spk_source_memory(&source, p, n, "dir/x.tar.zst", fe));
    return spk_shard_open_source(out, source, expect, NULL, err);
}

/* Texts of all problems, one a line. */
typedef struct report {
    int problems;
    char text[16384];
    uint64_t bytes;
    int keys;
    uint64_t stop_after;
} report;

static void on_problem(void *ctx, const spk_error *problem)
{
    report *r = ctx;
    r->problems++;
    size_t n = strlen(r->text);
    snprintf(r->text + n, sizeof r->text - n, "%s\n", problem->text);
}

static int on_bytes(void *ctx, uint64_t n)
{
    report *r = ctx;
    r->bytes += n;
    return r->stop_after > 0 && r->bytes >= r->stop_after;
}

static spk_status on_key(void *ctx, const char *key, size_t len, uint64_t sample, spk_error *err)
{
    report *r = ctx;
    r->keys++;
    ck_assert_uint_eq(strlen(key), len);
    return strcmp(key, "b-2") == 0 ? spk_error_set(err, SPK_E_FORMAT, "key of sample %d is taken", (int)sample)
                                   : SPK_OK;
}

static uint64_t verify(report *r, spk_source *source, const spk_shard_expect *expect)
{
    spk_shard_verify_hooks hooks = {on_problem, on_bytes, NULL, r, NULL};
    uint64_t samples = 99;
    spk_error err;
    memset(r, 0, sizeof *r);
    ck_ok(spk_shard_verify(source, expect, &hooks, &samples, &err), err);
    return samples;
}

static uint64_t verify_bytes(report *r, const uint8_t *p, size_t n, const spk_shard_expect *expect)
{
    spk_source *source = NULL;
    fixture_must(spk_source_memory(&source, p, n, "dir/x.tar.zst", fe));
    uint64_t samples = verify(r, source, expect);
    spk_source_close(source);
    return samples;
}

#define ck_has(r, part) ck_assert_msg(strstr((r).text, (part)), "\"%s\" lacks \"%s\"", (r).text, (part))

START_TEST(the_tables_promises_are_checked)
{
    spk_shard *s = NULL;
    spk_error err;
    spk_shard_expect e;
    expect_of(&e);
    ck_ok(open_bytes(&s, bytes, bytes_n, &e, &err), err);
    ck_assert_str_eq(spk_shard_name(s), "x.tar.zst");
    ck_assert_uint_eq(spk_source_size(spk_shard_source(s)), bytes_n);
    ck_assert_uint_eq(spk_shard_index(s)->samples_n, 3);
    uint64_t offset = 0;
    uint32_t n = 0, content = 0;
    spk_shard_frame_range(s, 1, &offset, &n, &content);
    ck_assert_uint_eq(offset + n, info.index_offset);
    ck_assert_uint_eq(content % 512, 0);
    spk_shard_close(s);
    e.bytes++;
    ck_fails(open_bytes(&s, bytes, bytes_n, &e, &err), err, SPK_E_FORMAT, "x.tar.zst: has");
    expect_of(&e);
    e.samples = 4;
    ck_fails(open_bytes(&s, bytes, bytes_n, &e, &err), err, SPK_E_FORMAT, "has 3 samples, the shard table says 4");
    expect_of(&e);
    e.frames = 1;
    ck_fails(open_bytes(&s, bytes, bytes_n, &e, &err), err, SPK_E_FORMAT, "has 2 frames, the shard table says 1");
    expect_of(&e);
    e.tar_bytes = 1;
    ck_fails(open_bytes(&s, bytes, bytes_n, &e, &err), err, SPK_E_FORMAT, "tar bytes, the shard table says 1");
    expect_of(&e);
    e.tail_sha256[31] ^= 1;
    ck_fails(open_bytes(&s, bytes, bytes_n, &e, &err), err, SPK_E_CHECKSUM, "do not match their SHA-256");
    expect_of(&e);
    e.index_offset++;
    ck_fails(open_bytes(&s, bytes, bytes_n, &e, &err), err, SPK_E_CHECKSUM, "do not match their SHA-256");
    e.index_offset = bytes_n;
    ck_fails(open_bytes(&s, bytes, bytes_n, &e, &err), err, SPK_E_FORMAT, "in the shard table");
    report r;
    ck_assert_uint_eq(verify_bytes(&r, bytes, bytes_n, &e), 3);
    ck_assert_int_eq(r.problems, 1);
}
END_TEST

START_TEST(a_good_shard_verifies)
{
    report r;
    spk_shard_expect e;
    expect_of(&e);
    uint8_t digest[32];
    spk_error err;
    ck_ok(spk_sha256_once(bytes + info.index_offset, bytes_n - info.index_offset, digest, &err), err);
    ck_assert_mem_eq(digest, info.tail_sha256, 32);
    ck_assert_uint_eq(verify_bytes(&r, bytes, bytes_n, &e), 3);
    ck_assert_int_eq(r.problems, 0);
    ck_assert_uint_eq(r.bytes, bytes_n);
    ck_assert_uint_eq(verify_bytes(&r, bytes, bytes_n, NULL), 3);
    ck_assert_int_eq(r.problems, 0);
    ck_assert_uint_eq(r.bytes, bytes_n);
}
END_TEST

START_TEST(verify_asks_for_keys_and_stops_when_told)
{
    report r = {0};
    spk_shard_verify_hooks hooks = {on_problem, on_bytes, on_key, &r, NULL};
    spk_source *source = NULL;
    uint64_t samples = 0;
    spk_error err;
    ck_ok(spk_source_open(&source, path, &err), err);
    ck_ok(spk_shard_verify(source, NULL, &hooks, &samples, &err), err);
    ck_assert_int_eq(r.keys, 3);
    ck_assert_str_eq(r.text, "key of sample 1 is taken\n");
    r.stop_after = 1;
    ck_fails(spk_shard_verify(source, NULL, &hooks, &samples, &err), err, SPK_E_CANCELLED, "cancelled");
    spk_source_close(source);
}
END_TEST

START_TEST(a_bad_frame_is_passed_over)
{
    spk_shard *s = NULL;
    spk_reader *r = NULL;
    const spk_sample *x = NULL;
    spk_error err;
    bytes[60] ^= 0x40; /* in frame 0 */
    ck_ok(open_bytes(&s, bytes, bytes_n, NULL, &err), err);
    ck_ok(spk_reader_open_shard(&r, s, 0, &err), err);
    spk_status st = spk_reader_next(r, &x, &err);
    ck_assert(st == SPK_E_FORMAT || st == SPK_E_CHECKSUM);
    ck_assert_ptr_eq(strstr(err.text, "x.tar.zst: frame 0: "), err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "at byte 0"));
    ck_assert_int_eq(err.offset, 0);
    ck_ok(spk_reader_next(r, &x, &err), err);
    ck_assert_str_eq(x->key, "c_3");
    ck_assert_int_eq(spk_reader_next(r, &x, &err), SPK_END);
    spk_reader_close(r);
    spk_shard_close(s);
    bytes[info.index_offset - 1] ^= 1; /* checksum of frame 1 */
    report v;
    verify_bytes(&v, bytes, bytes_n, NULL);
    ck_assert_int_eq(v.problems, 2);
    ck_has(v, "x.tar.zst: frame 0: SHA-256 mismatch at byte 0\n");
    ck_has(v, "x.tar.zst: frame 1: SHA-256 mismatch at byte ");
    /* Without digests the frame's own checksum speaks. */
    bytes[60] ^= 0x40;
    ck_ok(open_bytes(&s, bytes, bytes_n, NULL, &err), err);
    ck_ok(spk_reader_open_shard(&r, s, 2, &err), err);
    ck_fails(spk_reader_next(r, &x, &err), err, SPK_E_CHECKSUM, "x.tar.zst: frame 1: checksum mismatch at byte ");
    spk_reader_close(r);
    spk_shard_close(s);
}
END_TEST

START_TEST(damaged_files_are_described)
{
    report r;
    spk_shard *s = NULL;
    spk_error err;
    uint8_t *two = calloc(2, bytes_n + 4096);
    memcpy(two, bytes, bytes_n);
    /* zero padding */
    ck_fails(open_bytes(&s, two, bytes_n + 512, NULL, &err), err, SPK_E_FORMAT,
             "x.tar.zst: the file ends with zeros instead of a seek table");
    verify_bytes(&r, two, bytes_n + 512, NULL);
    ck_has(r, "but 512 bytes follow (padding, or another shard)");
    ck_has(r, "without its index: 2 good frames with 3 samples");
    /* two shards */
    memcpy(two + bytes_n, bytes, bytes_n);
    ck_fails(open_bytes(&s, two, 2 * bytes_n, NULL, &err), err, SPK_E_FORMAT, "(two shards concatenated?)");
    verify_bytes(&r, two, 2 * bytes_n, NULL);
    ck_has(r, "bytes follow (padding, or another shard)");
    ck_has(r, "4 good frames with 6 samples");
    free(two);
    /* cut at a frame's border, in a frame, in the tail, to nothing */
    ck_fails(open_bytes(&s, bytes, info.index_offset, NULL, &err), err, SPK_E_FORMAT, "no seek table at the end");
    verify_bytes(&r, bytes, info.index_offset, NULL);
    ck_has(r, "2 good frames with 3 samples up to byte");
    ck_has(r, "with the tar's end marker");
    verify_bytes(&r, bytes, info.index_offset - 7, NULL);
    ck_has(r, "x.tar.zst: frame 1 at byte ");
    ck_has(r, "cut: the file ends inside it");
    ck_has(r, "1 good frames with 2 samples");
    ck_fails(open_bytes(&s, bytes, bytes_n - 1, NULL, &err), err, SPK_E_FORMAT, "no seek table at the end");
    ck_fails(open_bytes(&s, bytes, 3, NULL, &err), err, SPK_E_FORMAT, "3 bytes are too few for a shard");
    ck_fails(open_bytes(&s, bytes, 0, NULL, &err), err, SPK_E_FORMAT, "0 bytes are too few for a shard");
    verify_bytes(&r, bytes, 0, NULL);
    ck_has(r, "0 good frames");
    verify_bytes(&r, (const uint8_t *)"<!DOCTYPE html><html>............................................", 60, NULL);
    ck_has(r, "no seek table at the end");
    ck_has(r, "frame 0 at byte 0: not a zstd frame");
}
END_TEST

/* The seek table's entry e, word w (0 bytes, 1 content, 2 checksum), set to v; returns what open says. */
static spk_status with_entry(size_t e, size_t w, uint32_t v, spk_error *err)
{
    uint8_t *copy = malloc(bytes_n);
    memcpy(copy, bytes, bytes_n);
    spk_le32_store(copy + bytes_n - 9 - 12 * (3 - e) + 4 * w, v);
    spk_shard *s = NULL;
    spk_status st = open_bytes(&s, copy, bytes_n, NULL, err);
    spk_shard_close(s);
    free(copy);
    return st;
}

START_TEST(entries_of_the_seek_table_are_checked)
{
    spk_error err;
    ck_fails(with_entry(0, 1, 0, &err), err, SPK_E_FORMAT, "seek table: entry 0: content of 0 bytes is no run");
    ck_fails(with_entry(1, 1, 513, &err), err, SPK_E_FORMAT, "entry 1: content of 513 bytes");
    ck_fails(with_entry(0, 1, 0x40000200, &err), err, SPK_E_LIMIT, "at most 1073741824");
    ck_fails(with_entry(0, 1, 0x40000000, &err), err, SPK_E_FORMAT, "bytes cannot hold 1073741824");
    ck_fails(with_entry(0, 1, 512, &err), err, SPK_E_FORMAT, "shard index: tar of");
    ck_fails(with_entry(0, 0, 1, &err), err, SPK_E_FORMAT, "stand in front of them");
    ck_fails(with_entry(0, 0, 0xFFFFFFFF, &err), err, SPK_E_FORMAT, "do not fit the file");
    ck_fails(with_entry(2, 1, 512, &err), err, SPK_E_FORMAT, "its last entry is no shard index (content 512");
    ck_fails(with_entry(2, 2, 0, &err), err, SPK_E_FORMAT, "checksum 00000000");
    uint8_t *copy = malloc(bytes_n);
    memcpy(copy, bytes, bytes_n);
    spk_le32_store(copy + bytes_n - 9, 1);
    spk_shard *s = NULL;
    ck_fails(open_bytes(&s, copy, bytes_n, NULL, &err), err, SPK_E_FORMAT, "1 entries: a shard has a data frame");
    spk_le32_store(copy + bytes_n - 9, 0x8000000);
    ck_fails(open_bytes(&s, copy, bytes_n, NULL, &err), err, SPK_E_FORMAT, "134217728 entries need");
    free(copy);
    /* The checksum of a data frame is compared when it is read. */
    copy = malloc(bytes_n);
    memcpy(copy, bytes, bytes_n);
    copy[bytes_n - 9 - 12 * 3 + 8] ^= 1;
    report r;
    verify_bytes(&r, copy, bytes_n, NULL);
    ck_assert_int_eq(r.problems, 1);
    ck_has(r, "x.tar.zst: frame 0: checksum ");
    ck_has(r, ", the seek table says ");
    free(copy);
}
END_TEST

/* Makes a shard of one frame with the given tar bytes, which its index describes as fixture_small's first sample. */
static void with_tar(const spk_buf *tar, const char *text)
{
    spk_shard_writer *w = NULL;
    spk_frame_writer *z = NULL;
    spk_shard_info i;
    report r;
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    fixture_must(spk_shard_writer_new(&w, fileno(f), "x", fe));
    fixture_must(spk_frame_writer_new(&z, fe));
    fixture_frame_tar(w, z, fixture_small, 2, 1, tar);
    fixture_must(spk_shard_writer_finish(w, &i, fe));
    uint8_t *p = malloc(i.bytes);
    ck_assert_int_eq(pread(fileno(f), p, i.bytes, 0), (ssize_t)i.bytes);
    verify_bytes(&r, p, i.bytes, NULL);
    ck_assert_int_eq(r.problems, text ? 1 : 0);
    if (text)
        ck_has(r, text);
    free(p);
    fclose(f);
    spk_frame_writer_free(z);
    spk_shard_writer_free(w);
}

START_TEST(tar_bytes_are_checked_against_the_index)
{
    spk_buf tar = {0};
    uint8_t header[SPK_TAR_BLOCK], good[SPK_TAR_BLOCK];
    fixture_tar(&tar, fixture_small, 2, 1);
    with_tar(&tar, NULL);
    tar.data[1024 + 512 + 13] = 1;
    with_tar(&tar, "x.tar.zst: frame 0: sample 0: member \"a/one.jpg\" at tar byte 1024: padding behind its data");
    tar.data[1024 + 512 + 13] = 0;
    tar.data[tar.len - 1] = 1;
    with_tar(&tar, "x.tar.zst: frame 0: no end marker at tar byte 2048");
    tar.data[tar.len - 1] = 0;
    memcpy(good, tar.data, 512);
    fixture_must(spk_tar_header(header, "a/two", "cls", 1, fe));
    memcpy(tar.data, header, 512);
    with_tar(&tar, "member \"a/one.cls\" at tar byte 0: the header names \"a/two.cls\"");
    fixture_must(spk_tar_header(header, "a/one", "cls", 2, fe));
    memcpy(tar.data, header, 512);
    with_tar(&tar, "the header says 2 bytes, the index 1");
    memset(tar.data, 0, 512);
    with_tar(&tar, "end marker instead of a header");
    memcpy(tar.data, good, 512);
    tar.data[156] = '2';
    with_tar(&tar, "tar header checksum does not match");
    spk_buf_free(&tar);
}
END_TEST

/* A source that fails to read one range. */
typedef struct broken {
    spk_source base;
    uint64_t from, to;
} broken;

static spk_status broken_pread(spk_source *s, void *out, size_t n, uint64_t off, spk_error *err)
{
    const broken *b = (const broken *)s;
    if (off < b->to && off + n > b->from)
        return spk_error_sys(err, 5, "cannot read at byte %llu", (unsigned long long)off);
    memcpy(out, bytes + off, n);
    return SPK_OK;
}

static uint64_t broken_size(const spk_source *s)
{
    (void)s;
    return bytes_n;
}

static const char *broken_name(const spk_source *s)
{
    (void)s;
    return "/a/broken.tar.zst";
}

static void broken_close(spk_source *s)
{
    (void)s;
}

START_TEST(read_errors_are_problems)
{
    static const struct spk_source_ops ops = {
        .pread = broken_pread, .size = broken_size, .name = broken_name, .close = broken_close};
    broken b = {{&ops}, 0, 10};
    report r;
    ck_assert_uint_eq(verify(&r, &b.base, NULL), 3);
    ck_assert_int_eq(r.problems, 1);
    ck_has(r, "broken.tar.zst: frame 0: cannot read at byte 0: Input/output error");
    b.from = bytes_n - 5;
    b.to = bytes_n;
    verify(&r, &b.base, NULL);
    ck_has(r, "broken.tar.zst: cannot read at byte");
    b.from = 0;
    verify(&r, &b.base, NULL);
    ck_assert_int_eq(r.problems, 3);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("shard/verify");
    TCase *t = tcase_create("verify");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_tables_promises_are_checked);
    tcase_add_test(t, a_good_shard_verifies);
    tcase_add_test(t, verify_asks_for_keys_and_stops_when_told);
    tcase_add_test(t, a_bad_frame_is_passed_over);
    tcase_add_test(t, damaged_files_are_described);
    tcase_add_test(t, entries_of_the_seek_table_are_checked);
    tcase_add_test(t, tar_bytes_are_checked_against_the_index);
    tcase_add_test(t, read_errors_are_problems);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
