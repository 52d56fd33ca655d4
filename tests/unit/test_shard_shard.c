/* Whole shards: write, open, list, read, seek; misuse and failed writes. Damage: test_shard_verify.c. */
#include "check_main.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "shard/shard.h"
#include "small_shard.h"

START_TEST(shards_are_listed_from_their_index)
{
    spk_shard *s = NULL;
    spk_shard_stat st;
    spk_member m;
    spk_error err;
    uint64_t n = 0;
    ck_ok(spk_shard_open(&s, path, NULL, &err), err);
    spk_shard_get_stat(s, &st);
    ck_assert_uint_eq(st.samples, 3);
    ck_assert_uint_eq(st.frames, 2);
    ck_assert_uint_eq(st.bytes, bytes_n);
    ck_assert_uint_eq(st.tar_bytes, info.tar_bytes);
    ck_assert_uint_eq(st.index_offset, info.index_offset);
    ck_assert_str_eq(spk_shard_key(s, 2), "c_3");
    ck_assert_ptr_null(spk_shard_key(s, 3));
    ck_assert_uint_eq(spk_shard_frame_of(s, 1), 0);
    ck_assert_uint_eq(spk_shard_frame_of(s, 2), 1);
    ck_assert_uint_eq(spk_shard_member_count(s, 2), 3);
    ck_assert_uint_eq(spk_shard_member_count(s, 3), 0);
    ck_ok(spk_shard_get_member(s, 0, 1, &m, &err), err);
    ck_assert_str_eq(m.field, "jpg");
    ck_assert_str_eq(m.path, "a/one.JPG");
    ck_assert_uint_eq(m.size, 13);
    ck_assert_uint_eq(m.offset, 1536);
    ck_ok(spk_shard_get_member(s, 0, 0, &m, &err), err);
    ck_assert_ptr_null(m.path);
    ck_fails(spk_shard_get_member(s, 0, 2, &m, &err), err, SPK_E_INVALID, "small.tar.zst: no member 2 of sample 0");
    ck_ok(spk_shard_find(s, "c_3", &n, &err), err);
    ck_assert_uint_eq(n, 2);
    ck_fails(spk_shard_find(s, "c_", &n, &err), err, SPK_E_NOT_FOUND, "no sample has the key \"c_\"");
    spk_shard_close(s);
    spk_shard_close(NULL);
}
END_TEST

START_TEST(samples_are_read_in_order_and_by_number)
{
    spk_shard *s = NULL;
    spk_reader *r = NULL;
    const spk_sample *x = NULL;
    spk_error err;
    spk_shard_options full = {.size = sizeof full, .verify_full = 1};
    ck_ok(spk_shard_open(&s, path, &full, &err), err);
    ck_ok(spk_reader_open_shard(&r, s, 0, &err), err);
    size_t member = 0;
    for (uint64_t i = 0; i < 3; i++) {
        ck_ok(spk_reader_next(r, &x, &err), err);
        ck_assert_uint_eq(x->number, i);
        ck_assert_uint_eq(x->shard, 0);
        ck_assert_uint_eq(x->frame, i / 2);
        for (size_t j = 0; j < x->field_count; j++, member++) {
            ck_assert_str_eq(x->key, fixture_small[member].key);
            ck_assert_str_eq(x->fields[j].name, fixture_small[member].field);
            ck_assert_uint_eq(x->fields[j].size, fixture_small[member].size);
            ck_assert(memcmp(x->fields[j].data, fixture_small[member].data, x->fields[j].size) == 0);
        }
    }
    ck_assert_uint_eq(member, 6);
    ck_assert_int_eq(spk_reader_next(r, &x, &err), SPK_END);
    ck_assert_int_eq(spk_reader_next(r, &x, &err), SPK_END);
    ck_assert_ptr_null(x);
    static const uint64_t order[] = {2, 0, 1, 1, 2};
    for (size_t i = 0; i < 5; i++) {
        ck_ok(spk_reader_seek(r, order[i], &err), err);
        ck_ok(spk_reader_next(r, &x, &err), err);
        ck_assert_uint_eq(x->number, order[i]);
    }
    ck_ok(spk_reader_seek(r, 3, &err), err);
    ck_assert_int_eq(spk_reader_next(r, &x, &err), SPK_END);
    ck_fails(spk_reader_seek(r, 4, &err), err, SPK_E_INVALID, "no sample 4, there are 3");
    spk_reader_close(r);
    ck_ok(spk_reader_open_shard(&r, s, 1, &err), err);
    ck_ok(spk_reader_next(r, &x, &err), err);
    ck_assert_str_eq(x->key, "b-2");
    spk_reader_close(r);
    spk_reader_close(NULL);
    ck_fails(spk_reader_open_shard(&r, s, 4, &err), err, SPK_E_INVALID, "no sample 4");
    spk_shard_close(s);
}
END_TEST

/* A table that says so would have a reader take memory for what is no index. */
START_TEST(tails_are_bounded)
{
    const spk_shard_expect expect = {1, 1, (uint64_t)3 << 30, 2048, 1, {0}};
    spk_error err;
    spk_shard *shard = NULL;
    spk_source *source = NULL;
    char *dir = check_temp_folder(), file[4096];
    snprintf(file, sizeof file, "%s/x.tar.zst", dir);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    ck_assert_int_eq(ftruncate(fd, (off_t)expect.bytes), 0);
    close(fd);
    ck_ok(spk_source_open(&source, file, &err), err);
    ck_fails(spk_shard_open_source(&shard, source, &expect, NULL, &err), err, SPK_E_LIMIT,
             "x.tar.zst: 3221225471 bytes from its index on in the shard table, at most 1342177");
    check_remove_tree(dir);
}
END_TEST

START_TEST(options_are_checked)
{
    spk_shard *s = NULL;
    spk_error err;
    struct {
        spk_shard_options known;
        uint64_t unknown;
    } o = {.known.size = sizeof o};
    ck_ok(spk_shard_open(&s, path, &o.known, &err), err);
    spk_shard_close(s);
    o.unknown = 1;
    ck_fails(spk_shard_open(&s, path, &o.known, &err), err, SPK_E_INVALID, "unknown to this library");
    o.known = (spk_shard_options){.size = sizeof o.known, .reserved = 1};
    ck_fails(spk_shard_open(&s, path, &o.known, &err), err, SPK_E_INVALID, "reserved is not 0");
    o.known.size = 0;
    ck_fails(spk_shard_open(&s, path, &o.known, &err), err, SPK_E_INVALID, "size 0 is not set right");
    ck_fails(spk_shard_open(&s, "/nonexistent/x", NULL, &err), err, SPK_E_NOT_FOUND, "/nonexistent/x: No such file");
}
END_TEST

START_TEST(unknown_encodings_are_listed_but_not_read)
{
    const fixture_member m[] = {{"a", "jpg", "x", 1, NULL, "other", 0}, {"b", "jpg", "y", 1, NULL, NULL, 0}};
    spk_shard *s = NULL;
    spk_reader *r = NULL;
    const spk_sample *x = NULL;
    spk_member member;
    spk_error err;
    fixture_shard(path, m, 2, 1, 1, &info);
    ck_ok(spk_shard_open(&s, path, NULL, &err), err);
    ck_ok(spk_shard_get_member(s, 0, 0, &member, &err), err);
    ck_assert_str_eq(member.encoding, "other");
    ck_ok(spk_reader_open_shard(&r, s, 0, &err), err);
    ck_fails(spk_reader_next(r, &x, &err), err, SPK_E_UNSUPPORTED,
             "small.tar.zst: sample \"a\": field \"jpg\" is stored as \"other\"");
    ck_ok(spk_reader_next(r, &x, &err), err);
    ck_assert_str_eq(x->key, "b");
    spk_reader_close(r);
    spk_shard_close(s);
}
END_TEST

START_TEST(the_writer_tells_misuse_and_failed_writes)
{
    spk_shard_writer *w = NULL;
    spk_index_part *part = NULL;
    spk_frame_info frame = {10, 512, 0, {0}};
    spk_error err;
    int fd = open("/dev/full", O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_ok(spk_shard_writer_new(&w, fd, "full", &err), err);
    ck_ok(spk_index_part_new(&part, &err), err);
    ck_fails(spk_shard_writer_finish(w, &info, &err), err, SPK_E_INVALID, "full: a shard without samples");
    ck_fails(spk_shard_writer_finish(w, &info, &err), err, SPK_E_STATE, "already finished");
    ck_fails(spk_shard_writer_bytes(w, "x", 1, &err), err, SPK_E_IO, "full: cannot write at byte 0: No space left");
    ck_fails(spk_shard_writer_frame(w, &frame, part, &err), err, SPK_E_STATE,
             "full: frame 0: 0 bytes were written for a frame of 10");
    spk_shard_writer_free(w);
    spk_shard_writer_free(NULL);
    spk_index_part_free(part);
    close(fd);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("shard/shard");
    TCase *t = tcase_create("shard");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, tails_are_bounded);
    tcase_add_test(t, shards_are_listed_from_their_index);
    tcase_add_test(t, samples_are_read_in_order_and_by_number);
    tcase_add_test(t, options_are_checked);
    tcase_add_test(t, unknown_encodings_are_listed_but_not_read);
    tcase_add_test(t, the_writer_tells_misuse_and_failed_writes);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
