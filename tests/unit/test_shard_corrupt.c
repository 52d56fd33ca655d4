/* Brute force on a small shard: every byte changed, every bit flipped, every length cut, every byte left out. Whatever
 * happens to the file, verifying must say so, with the shard table's entry and without, and nothing may be delivered
 * that differs from what was packed. */
#include "check_main.h"

#include "shard/shard.h"
#include "shard_fixture.h"

static uint8_t *good, *bad;
static size_t good_n;
static spk_shard_expect expect;

static void setup(void)
{
    char *folder = check_temp_folder(), path[4096];
    spk_shard_info info;
    snprintf(path, sizeof path, "%s/small.tar.zst", folder);
    fixture_shard(path, fixture_small, 6, 3, 1, &info);
    good = fixture_load(path, &good_n);
    bad = malloc(2 * good_n);
    expect = (spk_shard_expect){info.samples, info.frames, info.bytes, info.tar_bytes, info.index_offset, {0}};
    memcpy(expect.tail_sha256, info.tail_sha256, 32);
    check_remove_tree(folder);
}

static void teardown(void)
{
    free(good);
    free(bad);
}

static void count(void *ctx, const spk_error *problem)
{
    ck_assert_ptr_nonnull(strstr(problem->text, "x.tar.zst: "));
    ck_assert_int_lt(problem->code, 0);
    (*(int *)ctx)++;
}

/* What a reader delivers must be what was packed, unless it tells of an error. */
static void read_all(spk_source *source)
{
    spk_shard *s = NULL;
    spk_reader *r = NULL;
    const spk_sample *x = NULL;
    spk_error err;
    if (spk_shard_open_source(&s, source, NULL, NULL, &err) < 0)
        return;
    fixture_must(spk_reader_open_shard(&r, s, 0, fe));
    for (int i = 0; i < 100; i++) {
        spk_status st = spk_reader_next(r, &x, &err);
        if (st == SPK_END)
            break;
        if (st < 0)
            continue;
        for (size_t j = 0; j < x->field_count; j++) {
            const fixture_member *m = fixture_small;
            while (m < fixture_small + 6 && (strcmp(m->key, x->key) != 0 || strcmp(m->field, x->fields[j].name) != 0))
                m++;
            ck_assert(m < fixture_small + 6);
            ck_assert_uint_eq(m->size, x->fields[j].size);
            ck_assert(memcmp(m->data, x->fields[j].data, m->size) == 0);
        }
    }
    spk_reader_close(r);
    spk_shard_close(s);
}

static int problems_of(spk_source *source, const spk_shard_expect *e)
{
    int problems = 0;
    uint64_t samples = 0;
    spk_error err;
    spk_shard_verify_hooks hooks = {count, NULL, NULL, &problems, NULL};
    ck_ok(spk_shard_verify(source, e, &hooks, &samples, &err), err);
    return problems;
}

/* bad[0..n) must be found bad; at is where it was changed. */
static void must_be_found(size_t n, const char *what, size_t at)
{
    uint8_t *exact = malloc(n + 1); /* on the heap, so that ASan sees reads beyond */
    memcpy(exact, bad, n);
    spk_source *source = NULL;
    fixture_must(spk_source_memory(&source, exact, n, "x.tar.zst", fe));
    ck_assert_msg(problems_of(source, &expect) > 0, "%s at byte %zu is not seen with the table's entry", what, at);
    ck_assert_msg(problems_of(source, NULL) > 0, "%s at byte %zu is not seen", what, at);
    read_all(source); /* closes it */
    free(exact);
}

START_TEST(every_flipped_bit_is_found)
{
    for (size_t bit = 0; bit < 8 * good_n; bit++) {
        memcpy(bad, good, good_n);
        bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
        must_be_found(good_n, "bit flipped", bit / 8);
    }
}
END_TEST

START_TEST(every_changed_byte_is_found)
{
    static const uint8_t to[] = {0x00, 0xFF};
    for (size_t i = 0; i < good_n; i++) {
        for (size_t j = 0; j < 2; j++) {
            if (good[i] == to[j])
                continue;
            memcpy(bad, good, good_n);
            bad[i] = to[j];
            must_be_found(good_n, "byte changed", i);
        }
    }
}
END_TEST

START_TEST(every_cut_is_found)
{
    memcpy(bad, good, good_n);
    for (size_t n = 0; n < good_n; n++)
        must_be_found(n, "cut", n);
}
END_TEST

START_TEST(every_missing_and_added_byte_is_found)
{
    for (size_t i = 0; i < good_n; i++) {
        memcpy(bad, good, i);
        memcpy(bad + i, good + i + 1, good_n - i - 1);
        must_be_found(good_n - 1, "byte missing", i);
        memcpy(bad, good, i);
        bad[i] = 0;
        memcpy(bad + i + 1, good + i, good_n - i);
        must_be_found(good_n + 1, "byte added", i);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("shard/corrupt");
    TCase *t = tcase_create("corrupt");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, every_flipped_bit_is_found);
    tcase_add_test(t, every_changed_byte_is_found);
    tcase_add_test(t, every_cut_is_found);
    tcase_add_test(t, every_missing_and_added_byte_is_found);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
