/* load/: batches are the same for any number of workers and ranks, epochs, states, held batches, counts. */
#include "check_main.h"

#include "load_fixture.h"

#include <sys/wait.h>

static const int worker_counts[] = {0, 1, 2, 3};

START_TEST(same_batches_for_any_workers)
{
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        spk_loader_options o = load_options(0);
        o.shuffle = shuffle;
        load_record *want = load_reference(o, 3);
        ck_assert_uint_eq(want->n, 45);
        ck_assert(!shuffle || want->digests[0] != want->digests[15]);
        for (size_t i = 0; i < 4; i++) {
            load_record *have = calloc(1, sizeof *have);
            o.workers = worker_counts[i];
            spk_loader *l = load_open(o);
            ck_assert_uint_eq(spk_loader_length(l), 15);
            for (int e = 0; e < 3; e++)
                ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
            same_record(want, have);
            spk_loader_close(l);
            free(have);
        }
        free(want);
    }
}
END_TEST

static void note_indexes(const spk_batch *b, unsigned *seen)
{
    spk_view index, valid;
    ck_ok(spk_batch_column(b, COL_INDEX, &index, &err), err);
    ck_ok(spk_batch_column(b, COL_VALID, &valid, &err), err);
    ck_assert_uint_eq(index.bytes, 8 * spk_batch_rows(b));
    for (uint64_t r = 0; r < spk_batch_rows(b); r++)
        if (((const uint8_t *)valid.data)[r])
            seen[((const int64_t *)index.data)[r]]++;
}

/* Each rank the same number of batches, each sample once. */
START_TEST(ranks_share_an_epoch)
{
    for (uint32_t world = 1; world <= 4; world++)
        for (int tail = SPK_TAIL_DEFAULT; tail <= SPK_TAIL_PAD; tail++) {
            unsigned seen[LOAD_SAMPLES] = {0};
            uint64_t length = 0, valid = 0;
            for (uint32_t rank = 0; rank < world; rank++) {
                spk_loader_options o = load_options(1);
                o.batch_size = 7;
                o.rank = rank;
                o.world_size = world;
                o.tail = (spk_tail)tail;
                spk_loader *l = load_open(o);
                spk_batch *b = NULL;
                ck_assert(rank == 0 || length == spk_loader_length(l));
                length = spk_loader_length(l);
                uint64_t n = 0;
                for (; spk_loader_next(l, &b, &err) == SPK_OK; n++) {
                    note_indexes(b, seen);
                    valid += spk_batch_valid_rows(b);
                    ck_assert_uint_eq(spk_batch_number(b), n);
                    spk_batch_release(b);
                }
                ck_assert_uint_eq(n, length);
                spk_loader_close(l);
            }
            uint64_t whole = LOAD_SAMPLES / (7 * world) * (7 * world);
            ck_assert_uint_eq(valid, tail == SPK_TAIL_DROP ? whole : LOAD_SAMPLES);
            for (unsigned i = 0; i < LOAD_SAMPLES; i++)
                ck_assert(seen[i] == 1 || (tail == SPK_TAIL_DROP && seen[i] == 0));
        }
}
END_TEST

START_TEST(set_epoch_and_early_breaks)
{
    spk_loader_options o = load_options(2);
    load_record *want = load_reference(o, 3), *have = calloc(1, sizeof *have);
    spk_loader *l = load_open(o);
    spk_batch *b = NULL;
    for (unsigned round = 0; round < 30; round++) {
        uint32_t epoch = round % 3;
        size_t most = 1 + round * 7 % 16;
        have->n = 0;
        ck_ok(spk_loader_set_epoch(l, epoch, &err), err);
        (void)load_run(l, have, most);
        for (size_t i = 0; i < have->n; i++)
            ck_assert_uint_eq(have->digests[i], want->digests[epoch * 15 + i]);
        ck_assert_uint_eq(have->n, most < 15 ? most : 15);
    }
    /* a batch that is held stays as it is */
    ck_ok(spk_loader_set_epoch(l, 0, &err), err);
    ck_ok(spk_loader_next(l, &b, &err), err);
    ck_ok(spk_loader_set_epoch(l, 1, &err), err);
    have->n = 0;
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    ck_assert_uint_eq(digest_batch(b), want->digests[0]);
    spk_loader_close(l);
    ck_assert_uint_eq(digest_batch(b), want->digests[0]);
    spk_batch_release(b);
    free(want);
    free(have);
}
END_TEST

/* What was prepared for the next epoch is not thrown away by set_epoch to it. */
START_TEST(set_epoch_to_the_next_keeps_what_is_ready)
{
    spk_loader *l = load_open(load_options(2));
    load_record *have = calloc(1, sizeof *have);
    ck_assert_int_eq(load_run(l, have, 15), SPK_OK);
    uint64_t begun = l->ring.next;
    ck_assert_uint_gt(begun, 15);
    ck_ok(spk_loader_set_epoch(l, 1, &err), err);
    ck_assert_uint_eq(l->ring.next, begun);
    ck_assert_uint_eq(l->ring.deliver, 15);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    ck_ok(spk_loader_set_epoch(l, 2, &err), err);
    ck_assert_uint_eq(l->ring.deliver, 30);
    ck_assert_uint_gt(l->ring.next, 30);
    spk_loader_close(l);
    free(have);
}
END_TEST

START_TEST(resumes_at_every_batch)
{
    spk_loader_options o = load_options(2);
    load_record *want = load_reference(o, 2), *have = calloc(1, sizeof *have);
    spk_loader *first = load_open(o);
    for (size_t cut = 0; cut <= 15; cut++) {
        char *state = NULL;
        uint32_t epoch = 9;
        uint64_t at = 0;
        ck_ok(spk_loader_state_save(first, &state, &err), err);
        ck_assert_uint_lt(strlen(state), 500);
        o.workers = worker_counts[cut % 4];
        spk_loader *l = load_open(o);
        ck_ok(spk_loader_state_restore(l, state, &err), err);
        spk_loader_position(l, &epoch, &at);
        ck_assert_uint_eq(epoch, 0);
        ck_assert_uint_eq(at, 8 * cut);
        have->n = 0;
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        ck_assert_uint_eq(have->n, 15 - cut);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        for (size_t i = 0; i < have->n; i++)
            ck_assert_uint_eq(have->digests[i], want->digests[cut + i]);
        spk_loader_close(l);
        spk_free(state);
        have->n = 0;
        (void)load_run(first, have, 1);
    }
    spk_loader_close(first);
    free(want);
    free(have);
}
END_TEST

static void collect(spk_loader *l, int64_t *out, uint64_t *n)
{
    spk_batch *b = NULL;
    spk_view v;
    while (spk_loader_next(l, &b, &err) == SPK_OK) {
        ck_ok(spk_batch_column(b, COL_INDEX, &v, &err), err);
        memcpy(out + *n, v.data, (size_t)v.bytes);
        *n += spk_batch_rows(b);
        spk_batch_release(b);
    }
}

/* Another batch size cuts the same order. */
START_TEST(resumes_with_another_batch_size)
{
    int64_t want[LOAD_SAMPLES], have[LOAD_SAMPLES];
    uint64_t n = 0, m = 0;
    spk_loader_options o = load_options(1);
    o.lane_groups = 0;
    spk_loader *l = load_open(o);
    load_record *skipped = calloc(1, sizeof *skipped);
    char *state = NULL;
    ck_assert_int_eq(load_run(l, skipped, 3), SPK_OK);
    ck_ok(spk_loader_state_save(l, &state, &err), err);
    collect(l, want, &n);
    spk_loader_close(l);
    for (uint32_t batch = 3; batch <= 48; batch += 15)
        for (int workers = 0; workers < 3; workers += 2) {
            o.batch_size = batch;
            o.workers = workers;
            l = load_open(o);
            m = 0;
            ck_ok(spk_loader_state_restore(l, state, &err), err);
            collect(l, have, &m);
            ck_assert_uint_eq(n, m);
            ck_assert_mem_eq(want, have, n * sizeof *want);
            spk_loader_close(l);
        }
    spk_free(state);
    free(skipped);
}
END_TEST

START_TEST(states_are_checked)
{
    spk_loader_options o = load_options(0);
    spk_loader *l = load_open(o);
    char *state = NULL, big[70000];
    ck_ok(spk_loader_state_save(l, &state, &err), err);
    spk_loader_close(l);
    o.seed = 8;
    o.chunk = 4;
    l = load_open(o);
    ck_fails(spk_loader_state_restore(l, state, &err), err, SPK_E_CHANGED, "seed was 7 and is 8, chunk was 2 and is 4");
    spk_free(state);
    static const char *const bad[] = {"",  "[]", "{\"format\":\"x\"}", "{\"format\":\"shardpack-state\",\"version\":1}",
                                      "{", "nul"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_fails(spk_loader_state_restore(l, bad[i], &err), err, SPK_E_FORMAT, "state: ");
    ck_fails(spk_loader_state_restore(l, "{\"format\":\"shardpack-state\",\"version\":2}", &err), err,
             SPK_E_UNSUPPORTED, "version 2, this library knows 1");
    memset(big, ' ', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    ck_fails(spk_loader_state_restore(l, big, &err), err, SPK_E_LIMIT, "65536");
    load_record *have = calloc(1, sizeof *have);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END); /* none of that did harm */
    spk_loader_close(l);
    free(have);
}
END_TEST

START_TEST(another_dataset_is_refused)
{
    spk_pack_result r;
    spk_loader *l = load_open(load_options(0)), *other = NULL;
    spk_dataset *second = NULL;
    char *state = NULL;
    spk_loader_options o = load_options(0);
    ck_ok(pack("other", (spk_pack_options){.check = SPK_CHECK_NONE, .seed = 5}, &r, &err), err);
    ck_ok(spk_dataset_open(&second, in_dir("other"), NULL, &err), err);
    ck_ok(spk_loader_open(&other, second, &o, &err), err);
    ck_ok(spk_loader_state_save(l, &state, &err), err);
    ck_fails(spk_loader_state_restore(other, state, &err), err, SPK_E_CHANGED, "the dataset's fingerprint was");
    spk_free(state);
    spk_loader_close(other);
    spk_loader_close(l);
    spk_dataset_close(second);
}
END_TEST

static void check_and_release(spk_batch *b, uint64_t want)
{
    ck_assert_uint_eq(digest_batch(b), want);
    spk_batch_release(b);
}

/* Held to the end, released in any order, also after the loader is gone. */
START_TEST(all_batches_held)
{
    for (int workers = 0; workers <= 2; workers += 2) {
        spk_batch *held[15];
        spk_loader_stats s;
        spk_loader_options o = load_options(workers);
        load_record *want = load_reference(o, 1);
        o.prefetch = 3;
        notes = 0;
        spk_loader *l = load_open(o);
        for (size_t i = 0; i < 15; i++)
            ck_ok(spk_loader_next(l, &held[i], &err), err);
        ck_assert_int_eq(spk_loader_next(l, &(spk_batch *){NULL}, &err), SPK_END);
        spk_loader_get_stats(l, &s);
        ck_assert_uint_eq(s.batches, 15);
        ck_assert_uint_eq(s.samples, LOAD_SAMPLES);
        ck_assert_uint_eq(s.copies, workers == 0 ? 13 : 12);
        ck_assert_uint_eq(notes, 1);
        ck_assert_ptr_nonnull(strstr(last_note, "private copies"));
        for (size_t i = 0; i < 15; i += 2)
            check_and_release(held[i], want->digests[i]);
        spk_loader_close(l);
        for (size_t i = 13; i < 15; i -= 2)
            check_and_release(held[i], want->digests[i]);
        free(want);
    }
}
END_TEST

START_TEST(held_batches_as_an_error)
{
    spk_loader_options o = load_options(2);
    spk_batch *held[16] = {NULL}, *b = NULL;
    size_t n = 0;
    o.error_on_hold = 1;
    spk_loader *l = load_open(o);
    while (spk_loader_next(l, &held[n], &err) == SPK_OK)
        n++;
    ck_assert_uint_eq(n, 4);
    ck_fails(spk_loader_next(l, &b, &err), err, SPK_E_LIMIT, "4 batches are held, 2 of the 6 slots");
    spk_batch_release(held[1]);
    ck_ok(spk_loader_next(l, &b, &err), err); /* it goes on where it was */
    ck_assert_uint_eq(spk_batch_number(b), 4);
    spk_batch_release(b);
    for (size_t i = 0; i < n; i++)
        if (i != 1)
            spk_batch_release(held[i]);
    spk_loader_close(l);
}
END_TEST

START_TEST(two_loaders_in_one_process)
{
    spk_loader_options o = load_options(1);
    load_record *want = load_reference(o, 1), *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    spk_loader *one = load_open(o), *two = load_open(o);
    for (size_t i = 0; i < 15; i++) {
        ck_assert_int_eq(load_run(one, a, 1), SPK_OK);
        ck_assert_int_eq(load_run(two, b, 1), SPK_OK);
    }
    same_record(want, a);
    same_record(want, b);
    spk_loader_close(one);
    b->n = 0;
    ck_assert_int_eq(load_run(two, b, 1), SPK_END);
    spk_loader_close(two);
    free(want);
    free(a);
    free(b);
}
END_TEST

START_TEST(limit_echo_and_no_batch)
{
    spk_loader_options o = load_options(2);
    load_record *have = calloc(1, sizeof *have);
    o.limit = 20;
    o.echo = 3;
    spk_loader *l = load_open(o);
    ck_assert_uint_eq(spk_loader_length(l), 3);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    ck_assert_uint_eq(have->n, 3);
    spk_loader_close(l);
    o = load_options(2);
    o.batch_size = 1000;
    o.tail = SPK_TAIL_DROP;
    l = load_open(o);
    ck_assert_ptr_nonnull(strstr(last_note, "an epoch has no batch"));
    ck_assert_uint_eq(spk_loader_length(l), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(load_run(l, have, 1), SPK_END);
    spk_loader_close(l);
    o.tail = SPK_TAIL_KEEP; /* larger than the dataset: one short batch */
    l = load_open(o);
    have->n = 0;
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    ck_assert_uint_eq(have->n, 1);
    spk_loader_close(l);
    free(have);
}
END_TEST

START_TEST(hints_and_estimate)
{
    spk_loader_options o = load_options(3);
    spk_loader_estimate e;
    notes = 0;
    spk_loader_close(load_open(o)); /* 8 lanes */
    ck_assert_uint_eq(notes, 1);
    ck_assert_ptr_nonnull(strstr(last_note, "8 lanes over 3 workers: some have 3, others 2; 2 or 4 workers"));
    o.batch_size = 9;
    o.world_size = 2;
    o.workers = 1;
    spk_loader *l = load_open(o);
    ck_assert_ptr_nonnull(strstr(last_note, "lanes are read by another rank"));
    spk_loader_close(l);
    ck_ok(spk_loader_estimate_memory(ds, &o, &e, &err), err);
    ck_assert_uint_eq(e.slots, 6);
    ck_assert_uint_eq(e.workers, 1);
    ck_assert_uint_eq(e.batches, 7);
    ck_assert_uint_gt(e.lanes, 0);
    ck_assert_uint_gt(e.shared_bytes, 6 * 4096);
    ck_assert_uint_gt(e.worker_bytes, 1000000);
    ck_assert_uint_le(e.shuffle_samples, e.lanes * 5);
    o.lane_groups = 40; /* more lanes than samples: no more is buffered than there is */
    ck_ok(spk_loader_estimate_memory(ds, &o, &e, &err), err);
    ck_assert_uint_gt(e.lanes, LOAD_SAMPLES);
    ck_assert_uint_eq(e.shuffle_samples, LOAD_SAMPLES);
    ck_assert_uint_gt(e.shuffle_bytes, 0);
}
END_TEST

/* A column of labels that are all -100 is no error, but seldom what was meant. */
START_TEST(labels_that_are_not_there_are_told_of)
{
    spk_pack_result r;
    spk_pack_options p = {.jobs = 1, .check = SPK_CHECK_NONE, .labels = SPK_LABELS_NONE};
    spk_loader_options o = load_options(0);
    notes = 0;
    spk_loader_close(load_open(o));
    ck_assert_uint_eq(notes, 0);
    ck_ok(pack("plain", p, &r, &err), err);
    spk_dataset_close(ds);
    ck_ok(spk_dataset_open(&ds, in_dir("plain"), NULL, &err), err);
    spk_loader_close(load_open(o));
    ck_assert_uint_eq(notes, 1);
    ck_assert_str_eq(last_note, "no sample of the dataset has the field cls: all labels are -100");
}
END_TEST

START_TEST(options_are_checked)
{
    spk_loader *l = NULL;
    spk_loader_options o = load_options(0);
    ck_fails(spk_loader_open(&l, ds, NULL, &err), err, SPK_E_INVALID, "batch_size");
    o.batch_size = 0;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_INVALID, "batch_size of 0");
    ck_assert_ptr_null(l);
    l = load_open(load_options(0));
    ck_fails(spk_loader_set_epoch(l, 0x40000000, &err), err, SPK_E_INVALID, "epoch of 1073741824");
    ck_ok(spk_loader_set_epoch(l, SPK_PLAN_EPOCH_MAX, &err), err);
    load_record *have = calloc(1, sizeof *have);
    ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    spk_batch *b = NULL;
    ck_fails(spk_loader_next(l, &b, &err), err, SPK_E_INVALID, "must be at most");
    spk_loader_close(l);
    spk_loader_close(NULL);
    spk_batch_release(NULL);
    free(have);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_loader");
    TCase *t = tcase_create("loader");
    tcase_add_checked_fixture(t, load_setup, load_teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, same_batches_for_any_workers);
    tcase_add_test(t, ranks_share_an_epoch);
    tcase_add_test(t, set_epoch_and_early_breaks);
    tcase_add_test(t, set_epoch_to_the_next_keeps_what_is_ready);
    tcase_add_test(t, resumes_at_every_batch);
    tcase_add_test(t, resumes_with_another_batch_size);
    tcase_add_test(t, states_are_checked);
    tcase_add_test(t, another_dataset_is_refused);
    tcase_add_test(t, all_batches_held);
    tcase_add_test(t, held_batches_as_an_error);
    tcase_add_test(t, two_loaders_in_one_process);
    tcase_add_test(t, limit_echo_and_no_batch);
    tcase_add_test(t, hints_and_estimate);
    tcase_add_test(t, labels_that_are_not_there_are_told_of);
    tcase_add_test(t, options_are_checked);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
