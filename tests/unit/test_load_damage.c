/* load/: shards that are damaged or missing, samples that are made up for, and nothing left after early breaks. */
#include "check_main.h"

#include "load_fixture.h"

static uint64_t resident_kb(void)
{
    char line[256];
    unsigned long long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %llu", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

START_TEST(fifty_early_breaks_leave_nothing)
{
    spk_loader_options o = load_options(2);
    load_record *have = calloc(1, sizeof *have);
    uint64_t before = 0;
    int fds = count_fds();
    for (int round = 0; round < 50; round++) {
        spk_loader *l = load_open(o);
        have->n = 0;
        ck_assert_int_eq(load_run(l, have, 1 + (size_t)round % 14), SPK_OK);
        ck_ok(spk_loader_set_epoch(l, 1, &err), err);
        ck_assert_int_eq(load_run(l, have, 1), SPK_OK);
        spk_loader_close(l);
        ck_assert_int_eq(count_fds(), fds);
        no_children();
        if (round == 9)
            before = resident_kb();
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_uint_le(resident_kb(), before + 2048);
#endif
    (void)before;
    free(have);
}
END_TEST

static void damage(size_t shard, bool cut)
{
    spk_shard_row row;
    char path[4200];
    ck_ok(spk_dataset_get_shard(ds, shard, &row, &err), err);
    snprintf(path, sizeof path, "%s/%s", in_dir("ds"), row.path);
    if (cut) {
        ck_assert_int_eq(unlink(path), 0);
        return;
    }
    FILE *f = fopen(path, "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, 400, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite("damage", 1, 6, f), 6);
    fclose(f);
}

/* The error is the same, and comes at the same batch, for any number of workers. */
static void same_error(spk_loader_options o, size_t *batches, spk_status *status, char text[SPK_ERROR_TEXT])
{
    load_record *have = calloc(1, sizeof *have);
    for (int workers = 0; workers <= 3; workers++) {
        have->n = 0;
        o.workers = workers;
        spk_loader *l = load_open(o);
        spk_status s = load_run(l, have, LOAD_BATCHES_MAX);
        if (workers == 0) {
            *batches = have->n;
            *status = s;
            snprintf(text, SPK_ERROR_TEXT, "%s", err.text);
        }
        ck_assert_uint_eq(have->n, *batches);
        ck_assert_int_eq(s, *status);
        ck_assert_str_eq(err.text, text);
        spk_loader_close(l);
    }
    free(have);
}

START_TEST(damaged_and_missing_shards)
{
    char text[SPK_ERROR_TEXT];
    size_t batches = 0;
    spk_status status = SPK_OK;
    spk_loader_options o = load_options(0);
    damage(4, false);
    same_error(o, &batches, &status, text);
    ck_assert_int_eq(status, SPK_E_CHECKSUM);
    ck_assert_msg(strstr(text, ": frame 0: checksum mismatch at byte") != NULL, "%s", text);
    damage(4, true);
    same_error(o, &batches, &status, text);
    ck_assert_int_eq(status, SPK_E_NOT_FOUND);
    o.on_error = SPK_ON_ERROR_SUBSTITUTE; /* is for content only */
    same_error(o, &batches, &status, text);
    ck_assert_int_eq(status, SPK_E_NOT_FOUND);
}
END_TEST

START_TEST(substitution_is_counted_in_stream_order)
{
    char text[SPK_ERROR_TEXT], *state = NULL;
    size_t batches = 0;
    spk_status status = SPK_OK;
    spk_loader_stats s;
    spk_loader_options o = load_options(0);
    damage(4, false); /* a frame of 4 samples */
    o.on_error = SPK_ON_ERROR_SUBSTITUTE;
    load_record *want = load_reference(o, 1), *have = calloc(1, sizeof *have);
    o.workers = 2;
    notes = 0;
    spk_loader *l = load_open(o);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    same_record(want, have);
    spk_loader_get_stats(l, &s);
    ck_assert_uint_eq(s.samples, LOAD_SAMPLES);
    ck_assert_uint_eq(s.substituted, 4);
    ck_assert_ptr_nonnull(strstr(last_note, "samples substituted so far: "));
    ck_ok(spk_loader_state_save(l, &state, &err), err);
    ck_assert_ptr_nonnull(strstr(state, "\"substituted\":4,"));
    spk_loader_close(l);
    o.max_errors = 6; /* a frame more in the second epoch */
    l = load_open(o);
    ck_ok(spk_loader_state_restore(l, state, &err), err);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_E_CHECKSUM);
    ck_assert_ptr_nonnull(strstr(err.text, "max_errors is 6: "));
    spk_loader_close(l);
    o.max_errors = 2;
    have->n = 0;
    same_error(o, &batches, &status, text);
    ck_assert_int_eq(status, SPK_E_CHECKSUM);
    ck_assert_ptr_nonnull(strstr(text, "max_errors is 2: "));
    spk_free(state);
    free(want);
    free(have);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_damage");
    TCase *t = tcase_create("damage");
    tcase_add_checked_fixture(t, load_setup, load_teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, damaged_and_missing_shards);
    tcase_add_test(t, substitution_is_counted_in_stream_order);
    tcase_add_test(t, fifty_early_breaks_leave_nothing);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
