/* load/: page-locked slots and copies to a device, with a stand-in for the CUDA runtime that copies late. */
#include "check_main.h"

#include "standin_fixture.h"

#include <sys/mman.h>

START_TEST(locked_once_and_the_same_batches)
{
    for (int workers = 0; workers < 3; workers += 2) {
        load_record *want = load_reference(load_options(workers), 2), *have = calloc(1, sizeof *have);
        uint64_t before = cuda.calls("HostRegister"), after = cuda.calls("HostUnregister");
        spk_loader *l = load_open(pin_options(workers));
        for (int e = 0; e < 2; e++)
            ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        same_record(want, have);
        ck_assert_uint_eq(stats_of(l).pinned, 1);
        ck_assert_uint_eq(cuda.calls("HostRegister") - before, 1);
        ck_assert_uint_eq(cuda.calls("HostUnregister") - after, 0);
        ck_assert_uint_eq(cuda.calls("EventQuery"), 0);
        spk_loader_close(l);
        ck_assert_uint_eq(cuda.calls("HostUnregister") - after, 1);
        free(want);
        free(have);
    }
    nothing_wrong();
}
END_TEST

/* Released at once, while the copies are still to come. */
START_TEST(uploaded_bytes_are_right)
{
    for (int workers = 0; workers < 3; workers++) {
        target t;
        spk_batch *b = NULL;
        void *stream = NULL;
        spk_status status = SPK_OK;
        cuda.delay_us(3000);
        spk_loader *l = load_open(pin_options(workers));
        ck_assert_uint_eq(cuda.new_stream(&stream, 1), 0);
        target_new(&t);
        for (int e = 0; e < 3; e++)
            while ((status = spk_loader_next(l, &b, &err)) == SPK_OK) {
                upload(&t, b, stream);
                spk_batch_release(b);
            }
        ck_assert_int_eq(status, SPK_END);
        ck_assert_uint_eq(t.n, 45);
        ck_assert_uint_eq(cuda.synchronize(stream), 0);
        target_check(&t, 8);
        spk_loader_stats s = stats_of(l);
        ck_assert_uint_eq(s.uploads, 90);
        ck_assert_uint_eq(s.upload_bytes, 90 * SLOT_BYTES);
        ck_assert_uint_eq(s.copies, 0);
        ck_assert_uint_gt(s.upload_wait_ns, 0);
        spk_loader_close(l);
        ck_assert_uint_eq(cuda.destroy_stream(stream), 0);
        nothing_wrong();
    }
}
END_TEST

/* The copy is the caller's own; without the guard the stand-in sees the slot change. */
START_TEST(a_slot_recycled_too_early_is_caught)
{
    for (int guard = 0; guard < 2; guard++) {
        target t;
        spk_batch *b = NULL;
        spk_view v;
        uint64_t before = cuda.violations(NULL);
        spk_loader *l = load_open(pin_options(2));
        target_new(&t);
        cuda.hold(1);
        ck_ok(spk_loader_next(l, &b, &err), err);
        ck_ok(spk_batch_column(b, COL_INDEX, &v, &err), err);
        ck_assert_uint_eq(cuda.copy(t.memory, v.data, (size_t)v.bytes, 1, NULL), 0);
        if (guard)
            ck_ok(spk_batch_release_after(b, NULL, &err), err);
        else
            spk_batch_release(b);
        for (int i = 0; i < 14; i++) {
            ck_ok(spk_loader_next(l, &b, &err), err);
            spk_batch_release(b);
        }
        cuda.hold(0);
        ck_assert_uint_eq(cuda.synchronize(NULL), 0);
        ck_assert_int_eq(cuda.violations(NULL) > before, !guard);
        spk_loader_close(l);
        ck_assert_uint_eq(cuda.free(t.memory), 0);
    }
    ck_assert_int_eq(cuda.live(), 0);
}
END_TEST

/* A batch waits for all streams that it was guarded for. */
START_TEST(several_streams)
{
    void *streams[2];
    spk_batch *b = NULL;
    target t;
    spk_loader *l = load_open(pin_options(1));
    target_new(&t);
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(cuda.new_stream(&streams[i], 1), 0);
    ck_ok(spk_loader_next(l, &b, &err), err);
    cuda.hold(1);
    upload(&t, b, streams[0]);
    upload(&t, b, streams[0]); /* the same event again */
    ck_ok(spk_batch_guard(b, streams[1], &err), err);
    ck_assert_uint_eq(cuda.calls("EventCreateWithFlags"), 2);
    ck_assert_uint_eq(cuda.synchronize(streams[1]), 0);
    spk_batch_release(b);
    ck_assert_uint_eq(l->ring.held, 1);
    cuda.hold(0);
    ck_assert_uint_eq(cuda.synchronize(streams[0]), 0);
    ck_ok(spk_loader_next(l, &b, &err), err);
    ck_assert_uint_eq(l->ring.held, 1); /* the first one is back, this one is out */
    upload(&t, b, streams[1]);
    spk_batch_release(b);
    ck_assert_uint_eq(cuda.calls("EventCreateWithFlags"), 2);
    spk_loader_close(l);
    target_check(&t, 8);
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(cuda.destroy_stream(streams[i]), 0);
    nothing_wrong();
}
END_TEST

static int stop(void *user)
{
    return *(int *)user;
}

START_TEST(a_wait_for_the_device_can_be_ended)
{
    spk_batch *b = NULL;
    int stopped = 0;
    target t;
    spk_loader_options o = pin_options(1);
    o.on_wait = stop;
    o.user = &stopped;
    o.on_note = NULL;
    load_record *want = load_reference(load_options(0), 1), have = {.n = 0};
    spk_loader *l = load_open(o);
    target_new(&t);
    cuda.hold(1);
    stopped = 1;
    spk_status status = SPK_OK;
    while (status != SPK_E_CANCELLED || !strstr(err.text, "copies to the device")) { /* else a wait for workers */
        status = spk_loader_next(l, &b, &err);
        ck_assert(status == SPK_OK || status == SPK_E_CANCELLED);
        if (status != SPK_OK)
            continue;
        have.digests[have.n++] = digest_batch(b);
        upload(&t, b, NULL);
        spk_batch_release(b);
        ck_assert_uint_lt(have.n, 10);
    }
    ck_assert_int_eq(spk_loader_ready(l), 0);
    stopped = 0;
    cuda.hold(0);
    while (status != SPK_END) {
        status = spk_loader_next(l, &b, &err);
        ck_assert(status == SPK_OK || status == SPK_END);
        if (status != SPK_OK)
            continue;
        have.digests[have.n++] = digest_batch(b);
        upload(&t, b, NULL);
        spk_batch_release(b);
    }
    same_record(want, &have);
    spk_loader_close(l);
    target_check(&t, 8);
    free(want);
    nothing_wrong();
}
END_TEST

START_TEST(bad_uploads)
{
    spk_batch *b = NULL;
    void *to[] = {NULL};
    size_t column = COL_LABEL;
    spk_loader *l = load_open(load_options(0));
    ck_ok(spk_loader_next(l, &b, &err), err);
    ck_fails(spk_batch_upload(b, &column, 1, to, NULL, &err), err, SPK_E_INVALID, "need a loader with pin_memory");
    spk_batch_release(b);
    spk_loader_close(l);
    l = load_open(pin_options(0));
    ck_ok(spk_loader_next(l, &b, &err), err);
    ck_fails(spk_batch_upload(b, &column, 1, to, NULL, &err), err, SPK_E_INVALID, "its device pointer is NULL");
    column = COL_KEY;
    ck_fails(spk_batch_upload(b, &column, 1, to, NULL, &err), err, SPK_E_INVALID, "must be of fixed shape");
    column = COLS;
    ck_fails(spk_batch_upload(b, &column, 1, to, NULL, &err), err, SPK_E_INVALID, "column 6 of a batch of 6");
    spk_batch_release(b);
    spk_loader_close(l);
    nothing_wrong();
}
END_TEST

/* Closing waits for copies; a batch that is still held keeps the memory, and releasing it waits, too. */
START_TEST(closing_with_copies_under_way)
{
    target t;
    spk_batch *b = NULL, *held = NULL;
    spk_loader *l = load_open(pin_options(2));
    target_new(&t);
    cuda.delay_us(30000);
    ck_ok(spk_loader_next(l, &held, &err), err);
    ck_ok(spk_loader_next(l, &b, &err), err);
    upload(&t, b, NULL);
    spk_batch_release(b);
    spk_loader_close(l);
    ck_assert_uint_eq(cuda.copied(), 2 * SLOT_BYTES);
    ck_assert_uint_eq(cuda.calls("HostUnregister"), 0);
    upload(&t, held, NULL);
    spk_batch_release(held);
    ck_assert_uint_eq(cuda.copied(), 4 * SLOT_BYTES);
    ck_assert_uint_eq(cuda.calls("HostUnregister"), 1);
    target_check(&t, 8);
    nothing_wrong();
}
END_TEST

/* More batches held than there are slots: private copies are pageable, and wait for their events all the same. */
START_TEST(private_copies)
{
    target t;
    spk_batch *held[9];
    spk_loader_options o = pin_options(1);
    o.on_note = NULL;
    cuda.allow_pageable(1);
    spk_loader *l = load_open(o);
    target_new(&t);
    cuda.delay_us(10000);
    for (int i = 0; i < 9; i++)
        ck_ok(spk_loader_next(l, &held[i], &err), err);
    ck_assert_uint_gt(stats_of(l).copies, 0);
    for (int i = 0; i < 9; i++) {
        upload(&t, held[i], NULL);
        if (i < 8)
            spk_batch_release(held[i]);
    }
    spk_loader_close(l);
    spk_batch_release(held[8]);
    target_check(&t, 8);
    nothing_wrong();
}
END_TEST

START_TEST(populating)
{
    enum { BYTES = 40 << 20 };
    uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(p != MAP_FAILED);
    p[4096] = 7;
    ck_ok(spk_populate(p, BYTES, 5, &err), err);
    unsigned char *present = malloc(BYTES / 4096);
    ck_assert_int_eq(mincore(p, BYTES, present), 0);
    for (size_t i = 0; i < BYTES / 4096; i++)
        ck_assert_msg(present[i] & 1, "page %zu is not there", i);
    ck_assert_uint_eq(p[4096], 0 + 7);
    free(present);
    ck_assert_int_eq(munmap(p + (BYTES / 2), 4096), 0);
    ck_assert_int_lt(spk_populate(p, BYTES, 2, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "bytes for the slots into memory"));
    munmap(p, BYTES);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_pinned");
    TCase *t = tcase_create("standin");
    tcase_add_checked_fixture(t, standin_setup, load_teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, locked_once_and_the_same_batches);
    tcase_add_test(t, uploaded_bytes_are_right);
    tcase_add_test(t, a_slot_recycled_too_early_is_caught);
    tcase_add_test(t, several_streams);
    tcase_add_test(t, a_wait_for_the_device_can_be_ended);
    tcase_add_test(t, bad_uploads);
    tcase_add_test(t, closing_with_copies_under_way);
    tcase_add_test(t, private_copies);
    tcase_add_test(t, populating);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
