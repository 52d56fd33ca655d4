/* load/: what fails around page-locked slots and copies to a device: every call of the CUDA runtime, with a stand-in
 * for it. */
#include "check_main.h"

#include "standin_fixture.h"

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
    o.device = 1;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_INVALID, "device of 1: has_device is not set");
    o = pin_options(0);
    o.pin_memory = (spk_pin)3;
    ck_fails(spk_loader_open(&l, ds, &o, &err), err, SPK_E_INVALID, "pin_memory of 3");
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

static Suite *suite(void)
{
    Suite *s = suite_create("load_pinned_faults");
    TCase *t = tcase_create("standin");
    tcase_add_checked_fixture(t, standin_setup, load_teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, what_fails_at_opening);
    tcase_add_test(t, no_runtime);
    tcase_add_test(t, old_and_new_versions);
    tcase_add_test(t, devices);
    tcase_add_test(t, what_fails_in_an_upload);
    tcase_add_test(t, a_slot_of_which_nothing_is_known);
    tcase_add_test(t, a_device_that_fails_ends_the_stream);
    tcase_add_test(t, a_runtime_that_is_gone);
    tcase_add_test(t, opening_that_fails_later_unlocks);
    tcase_add_test(t, a_forked_child);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
