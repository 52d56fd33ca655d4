/* load/: page-locked slots and copies to a device, with a stand-in for the CUDA runtime that copies late. */
#include "check_main.h"

#include "standin_fixture.h"

#include <sys/mman.h>

#define SLOT_BYTES 64u /* of a label or index column, whole batch */

static const size_t fixed[] = {COL_LABEL, COL_INDEX};

/* Device memory for every batch of an epoch: two columns each. */
typedef struct target {
    void *memory;
    uint64_t want[64];
    size_t n;
} target;

static void target_new(target *t)
{
    memset(t, 0, sizeof *t);
    ck_assert_uint_eq(cuda.malloc(&t->memory, (size_t)64 * 2 * SLOT_BYTES), 0);
}

static void *place(const target *t, size_t batch, size_t column)
{
    return (uint8_t *)t->memory + (batch * 2 + column) * SLOT_BYTES;
}

static uint64_t digest_column(const spk_batch *b, size_t column)
{
    spk_view v;
    ck_ok(spk_batch_column(b, column, &v, &err), err);
    return digest_bytes(0xcbf29ce484222325u, v.data, (size_t)v.bytes);
}

static void upload(target *t, spk_batch *b, void *stream)
{
    void *to[] = {place(t, t->n, 0), place(t, t->n, 1)};
    t->want[t->n++] = digest_column(b, COL_INDEX);
    ck_ok(spk_batch_upload(b, fixed, 2, to, stream, &err), err);
}

/* What arrived is what the host saw. */
static void target_check(target *t, uint64_t rows)
{
    for (size_t i = 0; i < t->n; i++)
        ck_assert_msg(digest_bytes(0xcbf29ce484222325u, place(t, i, 1), (size_t)rows * 8) == t->want[i],
                      "batch %zu arrived with other bytes", i);
    ck_assert_uint_eq(cuda.free(t->memory), 0);
}

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

static const struct {
    const char *call, *text;
} open_calls[] = {{"RuntimeGetVersion", "asking for its version: CUDA error 35"},
                  {"GetDevice", "the current device: CUDA error 35"},
                  {"HostRegister", "page-locking"}};

START_TEST(what_fails_at_opening)
{
    for (size_t i = 0; i < sizeof open_calls / sizeof *open_calls; i++) {
        spk_loader *l = NULL;
        spk_loader_options o = pin_options(1);
        load_record have = {.n = 0};
        cuda.break_call(open_calls[i].call, 0, 2, 35);
        ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_DEVICE, open_calls[i].text);
        ck_assert_ptr_nonnull(strstr(err.text, "pin_memory: "));
        ck_assert_ptr_null(l);
        notes = 0;
        o.pin_memory = SPK_PIN_AUTO;
        l = load_open(o);
        ck_assert_uint_eq(notes, 1);
        ck_assert_ptr_nonnull(strstr(last_note, open_calls[i].text));
        ck_assert_ptr_nonnull(strstr(last_note, "pageable"));
        ck_assert_uint_eq(stats_of(l).pinned, 0);
        ck_assert_int_eq(load_run(l, &have, LOAD_BATCHES_MAX), SPK_END);
        spk_loader_close(l);
        nothing_wrong();
    }
}
END_TEST

START_TEST(no_runtime)
{
    spk_loader *l = NULL;
    spk_batch *b = NULL;
    spk_loader_options o = pin_options(0);
    setenv("SHARDPACK_CUDART", "/nowhere/libcudart.so", 1);
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_UNSUPPORTED, "pin_memory: SHARDPACK_CUDART: /nowhere/lib");
    o.pin_memory = SPK_PIN_AUTO;
    l = load_open(o);
    ck_assert_ptr_nonnull(strstr(last_note, "/nowhere/libcudart.so"));
    ck_ok(spk_loader_next(l, &b, &err), err);
    ck_fails(spk_batch_guard(b, NULL, &err), err, SPK_E_UNSUPPORTED, "no CUDA runtime");
    ck_fails(spk_batch_release_after(b, NULL, &err), err, SPK_E_UNSUPPORTED, "no CUDA runtime");
    ck_assert_uint_eq(l->ring.held, 0);
    spk_loader_close(l);
    setenv("SHARDPACK_CUDART", "libm.so.6", 1);
    o.pin_memory = SPK_PIN_ON;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_UNSUPPORTED, "libm.so.6: it lacks cuda");
}
END_TEST

START_TEST(old_and_new_versions)
{
    static const char *const versions[] = {"10020", "14000", "11000", "13000"};
    for (size_t i = 0; i < 4; i++) {
        spk_loader *l = NULL;
        spk_loader_options o = pin_options(0);
        setenv("CUDART_STANDIN_VERSION", versions[i], 1);
        if (i < 2)
            ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_UNSUPPORTED, "must be 11 to 13");
        else
            l = load_open(o);
        spk_loader_close(l);
    }
    unsetenv("CUDART_STANDIN_VERSION");
    nothing_wrong();
}
END_TEST

/* Only the device that the caller chose gets a context. */
START_TEST(devices)
{
    spk_loader *l = NULL;
    spk_loader_options o = pin_options(0);
    l = load_open(o);
    spk_loader_close(l);
    ck_assert_uint_eq(cuda.contexts(), 1);
    o.has_device = 1;
    o.device = 7;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_DEVICE, "pin_memory: device 7: CUDA error 101");
    o.device = 1;
    l = load_open(o);
    spk_loader_close(l);
    ck_assert_uint_eq(cuda.contexts(), 3);
    o.device = -1;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_INVALID, "device of -1");
    o.device = 0;
    o.pin_memory = SPK_PIN_OFF;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_INVALID, "device of 0: needs pin_memory");
    o = pin_options(0);
    o.pin_memory = (spk_pin)3;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_INVALID, "pin_memory of 3");
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

static const struct {
    const char *call;
    unsigned skip;
    const char *text;
} upload_calls[] = {{"GetDevice", 0, "current device: CUDA error 77"},
                    {"EventCreateWithFlags", 0, "an event could not be made: CUDA error 77"},
                    {"MemcpyAsync", 0, "upload: column 2: copying 64 bytes to the device: CUDA error 77"},
                    {"MemcpyAsync", 1, "upload: column 3: copying"},
                    {"EventRecord", 0, "upload: an event could not be recorded: CUDA error 77"}};

/* The batch can be released and the loader goes on; the slot is used again only after what was queued. */
START_TEST(what_fails_in_an_upload)
{
    for (size_t i = 0; i < sizeof upload_calls / sizeof *upload_calls; i++) {
        target t;
        spk_batch *b = NULL;
        load_record rest = {.n = 0};
        spk_loader *l = load_open(pin_options(2));
        target_new(&t);
        ck_ok(spk_loader_next(l, &b, &err), err);
        void *to[] = {place(&t, 0, 0), place(&t, 0, 1)};
        cuda.break_call(upload_calls[i].call, upload_calls[i].skip, 1, 77);
        ck_fails(spk_batch_upload(b, fixed, 2, to, NULL, &err), err, SPK_E_DEVICE, upload_calls[i].text);
        spk_batch_release(b);
        ck_assert_int_eq(load_run(l, &rest, LOAD_BATCHES_MAX), SPK_END);
        ck_assert_uint_eq(rest.n, 14);
        spk_loader_close(l);
        ck_assert_uint_eq(cuda.free(t.memory), 0);
        nothing_wrong();
    }
}
END_TEST

/* Neither an event nor a synchronisation says when the copy has ended: the slot is never used again. */
START_TEST(a_slot_of_which_nothing_is_known)
{
    target t;
    spk_batch *b = NULL;
    load_record rest = {.n = 0};
    spk_loader *l = load_open(pin_options(2));
    target_new(&t);
    ck_ok(spk_loader_next(l, &b, &err), err);
    cuda.hold(1);
    void *to[] = {place(&t, 0, 0), place(&t, 0, 1)};
    cuda.break_call("EventRecord", 0, 1, 77);
    cuda.break_call("StreamSynchronize", 0, 1, 77);
    ck_fails(spk_batch_upload(b, fixed, 2, to, NULL, &err), err, SPK_E_DEVICE, "could not be recorded");
    spk_batch_release(b);
    ck_assert_int_eq(load_run(l, &rest, LOAD_BATCHES_MAX), SPK_END);
    ck_assert_int_eq(load_run(l, &rest, LOAD_BATCHES_MAX), SPK_END);
    ck_assert_uint_eq(l->ring.held, 1);
    cuda.hold(0);
    ck_assert_uint_eq(cuda.synchronize(NULL), 0);
    spk_loader_close(l);
    ck_assert_uint_eq(cuda.free(t.memory), 0);
    nothing_wrong();
}
END_TEST

START_TEST(a_device_that_fails_ends_the_stream)
{
    target t;
    spk_batch *b = NULL;
    spk_loader *l = load_open(pin_options(1));
    target_new(&t);
    ck_ok(spk_loader_next(l, &b, &err), err);
    upload(&t, b, NULL);
    cuda.break_call("EventQuery", 0, 1, 700);
    spk_batch_release(b);
    for (int i = 0; i < 2; i++)
        ck_fails(spk_loader_next(l, &b, &err), err, SPK_E_DEVICE,
                 "waiting for a copy to the device: CUDA error 700 (stand-in)");
    ck_assert_uint_eq(cuda.synchronize(NULL), 0);
    spk_loader_close(l);
    ck_assert_uint_eq(cuda.free(t.memory), 0);
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

START_TEST(a_runtime_that_is_gone)
{
    static const unsigned codes[] = {4, 709, 1};
    for (size_t i = 0; i < 3; i++) {
        spk_batch *b = NULL;
        spk_loader *l = load_open(pin_options(1));
        ck_ok(spk_loader_next(l, &b, &err), err);
        ck_ok(spk_batch_release_after(b, NULL, &err), err);
        ck_assert_uint_eq(cuda.synchronize(NULL), 0);
        cuda.break_call("HostUnregister", 0, 1, codes[i]);
        notes = 0;
        spk_loader_close(l);
        ck_assert_uint_eq(notes, codes[i] == 1);
    }
    ck_assert_ptr_nonnull(strstr(last_note, "the slots could not be unlocked: CUDA error 1"));
}
END_TEST

START_TEST(opening_that_fails_later_unlocks)
{
    spk_loader *l = NULL;
    spk_loader_options o = pin_options(2);
    o.worker_program = "/bin/false";
    spk_error_clear(&err);
    ck_assert_int_lt(spk_loader_open(&l, ds, &o, &err), 0);
    ck_assert_uint_eq(cuda.calls("HostRegister"), 1);
    nothing_wrong();
}
END_TEST

/* A forked child makes no CUDA call with what it inherits. */
START_TEST(a_forked_child)
{
    target t;
    spk_batch *b = NULL, *held = NULL;
    spk_loader *l = load_open(pin_options(1));
    target_new(&t);
    ck_ok(spk_loader_next(l, &held, &err), err);
    ck_ok(spk_loader_next(l, &b, &err), err);
    cuda.hold(1);
    upload(&t, b, NULL);
    upload(&t, held, NULL);
    spk_batch_release(b);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        uint64_t before = cuda.calls("EventQuery") + cuda.calls("EventDestroy") + cuda.calls("HostUnregister");
        bool refused = spk_batch_guard(held, NULL, NULL) == SPK_E_STATE;
        spk_batch_release(held);
        spk_loader_close(l);
        uint64_t after = cuda.calls("EventQuery") + cuda.calls("EventDestroy") + cuda.calls("HostUnregister");
        _exit(before == after && refused ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    cuda.hold(0);
    spk_batch_release(held);
    spk_loader_close(l);
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
    tcase_add_test(t, what_fails_at_opening);
    tcase_add_test(t, no_runtime);
    tcase_add_test(t, old_and_new_versions);
    tcase_add_test(t, devices);
    tcase_add_test(t, bad_uploads);
    tcase_add_test(t, what_fails_in_an_upload);
    tcase_add_test(t, a_slot_of_which_nothing_is_known);
    tcase_add_test(t, a_device_that_fails_ends_the_stream);
    tcase_add_test(t, closing_with_copies_under_way);
    tcase_add_test(t, a_runtime_that_is_gone);
    tcase_add_test(t, opening_that_fails_later_unlocks);
    tcase_add_test(t, a_forked_child);
    tcase_add_test(t, private_copies);
    tcase_add_test(t, populating);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
