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
    if (!check_valgrind())
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

static uint64_t le32(const uint8_t *p)
{
    return p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

/* Where the parts of a shard begin: frames, index, its fixed and listed parts, seek table, its entries and footer. */
static size_t boundaries(const uint8_t *file, uint64_t bytes, uint64_t out[256])
{
    uint64_t entries = le32(file + bytes - 9), table = bytes - 9 - 12 * entries - 8, at = 0;
    size_t n = 0;
    for (uint64_t i = 0; i < entries; i++) {
        out[n++] = at;
        at += le32(file + table + 8 + 12 * i);
    }
    uint64_t index = out[n - 1];
    ck_assert_uint_eq(at, table);
    for (uint64_t i = 8; i < table - index && i < 64; i += 8) /* head and fixed part of the index */
        out[n++] = index + i;
    for (uint64_t i = 0; i <= entries; i++)
        out[n++] = table + 8 + 12 * i; /* the last is the footer */
    out[n++] = table;
    out[n++] = table + 4;
    out[n++] = bytes - 4; /* its magic */
    out[n++] = bytes;
    return n;
}

static void write_file(const char *path, const uint8_t *data, uint64_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, (size_t)n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

/* Each batch is right; an end only if all of them were and, where they may be, substitutions make up the rest. */
static void runs_rightly(spk_loader_options o, const load_record *want, const char *what, uint64_t at)
{
    load_record *have = calloc(1, sizeof *have);
    spk_loader_stats s;
    spk_loader *l = load_open(o);
    spk_status status = load_run(l, have, LOAD_BATCHES_MAX);
    spk_loader_get_stats(l, &s);
    uint64_t wrong = 0;
    for (size_t i = 0; i < have->n; i++)
        wrong += have->digests[i] != want->digests[i];
    if (status == SPK_END) {
        ck_assert_uint_eq(s.samples, LOAD_SAMPLES);
        ck_assert_uint_eq(have->n, want->n);
        ck_assert_msg(strcmp(what, "cut") != 0, "%s at %llu was not seen", what, (unsigned long long)at);
    } else {
        ck_assert_msg(strstr(err.text, ".tar.zst: ") != NULL, "%s at %llu: %s", what, (unsigned long long)at, err.text);
    }
    ck_assert_msg(wrong == 0 || (o.on_error == SPK_ON_ERROR_SUBSTITUTE && wrong <= s.substituted),
                  "%s at %llu: %llu batches differ, %llu samples substituted", what, (unsigned long long)at,
                  (unsigned long long)wrong, (unsigned long long)s.substituted);
    spk_loader_close(l);
    no_children();
    free(have);
}

START_TEST(damage_at_every_boundary)
{
    spk_shard_row row;
    char path[4200];
    uint64_t places[256];
    spk_loader_options o = load_options(0);
    load_record *want = load_reference(o, 1);
    ck_ok(spk_dataset_get_shard(ds, 4, &row, &err), err);
    snprintf(path, sizeof path, "%s/%s", in_dir("ds"), row.path);
    size_t bytes = (size_t)row.bytes;
    uint8_t *file = malloc(bytes);
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fread(file, 1, bytes, f), bytes);
    fclose(f);
    ck_assert_int_eq(chmod(path, 0644), 0);
    size_t n = boundaries(file, bytes, places);
    ck_assert_uint_gt(n, 16);
    for (size_t i = 0; i < 3 * n; i++) {
        uint64_t at = places[i / 3] + i % 3 - 1; /* before, at and behind it */
        if (at >= bytes)
            continue;
        o.workers = i % 7 == 0 ? 2 : 0;
        o.on_error = i % 2 ? SPK_ON_ERROR_SUBSTITUTE : SPK_ON_ERROR_FAIL;
        write_file(path, file, at);
        runs_rightly(o, want, "cut", at);
        file[at] ^= 0xFF;
        write_file(path, file, bytes);
        runs_rightly(o, want, "flipped", at);
        file[at] ^= 0xFF;
    }
    free(file);
    free(want);
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
    tcase_add_test(t, damage_at_every_boundary);
    tcase_add_test(t, substitution_is_counted_in_stream_order);
    tcase_add_test(t, fifty_early_breaks_leave_nothing);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
