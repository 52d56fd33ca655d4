/* load/: the uploader's buffers in device memory, with a stand-in for the CUDA runtime that copies late. */
#include "check_main.h"

#include "standin_fixture.h"

/* A step of training: reads the batch on the device when its turn on the stream comes. */
typedef struct record {
    uint64_t have[64][3], want[64][3], rows[64];
    size_t n;
} record;

static const size_t columns[] = {COL_LABEL, COL_INDEX, COL_VALID};

/* What the batches of two epochs are. */
static void expect(record *r, int epochs)
{
    spk_loader *l = load_open(load_options(0));
    spk_batch *b = NULL;
    spk_view v;
    for (int e = 0; e < epochs; e++)
        while (spk_loader_next(l, &b, &err) == SPK_OK) {
            for (size_t c = 0; c < 3; c++) {
                ck_ok(spk_batch_column(b, columns[c], &v, &err), err);
                r->want[r->n][c] = digest_bytes(0xcbf29ce484222325u, v.data, (size_t)v.bytes);
            }
            r->rows[r->n++] = spk_batch_rows(b);
            spk_batch_release(b);
        }
    spk_loader_close(l);
}

static spk_uploader *open_uploader(spk_loader *l, uint32_t buffers)
{
    spk_uploader_options o = {.size = sizeof o, .buffers = buffers};
    spk_uploader *u = NULL;
    ck_ok(spk_uploader_open(&u, l, &o, &err), err);
    return u;
}

static spk_status step_of(spk_uploader *u, record *r, size_t i, void *stream, unsigned delay_us)
{
    spk_upload up;
    spk_status status = spk_uploader_next(u, &up, stream, &err);
    if (status != SPK_OK)
        return status;
    if (delay_us > 0)
        cuda.delay_us(delay_us);
    ck_assert_uint_eq(up.column_count, 3);
    ck_assert_uint_eq(up.rows, r->rows[i]);
    for (size_t c = 0; c < 3; c++) {
        ck_assert_uint_eq(up.columns[c].shape[0], up.rows);
        void *memory = NULL;
        memcpy(&memory, &up.columns[c].data, sizeof memory);
        cuda.digest(stream, memory, (size_t)up.columns[c].bytes, &r->have[i][c]);
    }
    if (delay_us > 0)
        cuda.delay_us(0);
    return SPK_OK;
}

static spk_status step(spk_uploader *u, record *r, size_t i, void *stream)
{
    return step_of(u, r, i, stream, 0);
}

START_TEST(steps_see_their_batches)
{
    for (uint32_t buffers = 0; buffers < 5; buffers++) {
        record r = {.n = 0};
        void *stream = NULL;
        size_t i = 0;
        expect(&r, 2);
        cuda.delay_us(1500);
        spk_loader *l = load_open(pin_options(2));
        ck_assert_uint_eq(cuda.new_stream(&stream, 1), 0);
        spk_uploader *u = open_uploader(l, buffers);
        for (int e = 0; e < 2; e++) {
            spk_status status = SPK_OK;
            while ((status = step(u, &r, i, stream)) == SPK_OK)
                i++;
            ck_assert_msg(status == SPK_END, "%s", err.text);
        }
        ck_assert_uint_eq(i, r.n);
        ck_assert_uint_eq(cuda.synchronize(stream), 0);
        ck_assert_int_eq(memcmp(r.have, r.want, sizeof r.have), 0);
        ck_assert_uint_eq(stats_of(l).copies, 0);
        spk_uploader_close(u);
        spk_loader_close(l);
        ck_assert_uint_eq(cuda.destroy_stream(stream), 0);
        nothing_wrong();
    }
}
END_TEST

/* Each step is on another stream than the one before, and takes longer than the copies. */
START_TEST(streams_in_turn)
{
    record r = {.n = 0};
    void *streams[2] = {NULL, NULL};
    size_t i = 0;
    expect(&r, 1);
    cuda.delay_us(0);
    spk_loader *l = load_open(pin_options(2));
    for (int s = 0; s < 2; s++)
        ck_assert_uint_eq(cuda.new_stream(&streams[s], 1), 0);
    spk_uploader *u = open_uploader(l, 2);
    while (step_of(u, &r, i, streams[i % 2], 5000) == SPK_OK)
        i++;
    ck_assert_uint_eq(i, r.n);
    for (int s = 0; s < 2; s++)
        ck_assert_uint_eq(cuda.synchronize(streams[s]), 0);
    ck_assert_int_eq(memcmp(r.have, r.want, sizeof r.have), 0);
    spk_uploader_close(u);
    spk_loader_close(l);
    for (int s = 0; s < 2; s++)
        ck_assert_uint_eq(cuda.destroy_stream(streams[s]), 0);
    nothing_wrong();
}
END_TEST

/* The next batch is on its way while the step of this one is held up. */
START_TEST(one_ahead)
{
    record r = {.n = 0};
    expect(&r, 1);
    cuda.delay_us(0);
    spk_loader *l = load_open(pin_options(1));
    spk_uploader *u = open_uploader(l, 2);
    while (!spk_loader_ready(l) || spk_ring_ready_count(&l->ring) < 3)
        (void)spk_crew_receive(l, 10);
    ck_ok(step(u, &r, 0, NULL), err);
    ck_assert_uint_eq(cuda.calls("MemcpyAsync"), 6);
    ck_ok(step(u, &r, 1, NULL), err);
    ck_assert_uint_eq(cuda.calls("MemcpyAsync"), 9);
    ck_assert_uint_eq(cuda.synchronize(NULL), 0);
    ck_assert_int_eq(memcmp(r.have, r.want, 2 * sizeof r.have[0]), 0);
    spk_uploader_close(u);
    spk_loader_close(l);
    nothing_wrong();
}
END_TEST

/* The state is that of the batch that came last, not of those ahead of it. */
START_TEST(states)
{
    record r = {.n = 0};
    spk_batch *b = NULL;
    expect(&r, 1);
    spk_loader *plain = load_open(load_options(0)), *l = load_open(pin_options(2));
    spk_uploader *u = open_uploader(l, 3);
    spk_status status = SPK_OK;
    for (size_t i = 0; status != SPK_END; i++) {
        char *want = NULL, *have = NULL;
        ck_ok(spk_loader_state_save(plain, &want, &err), err);
        ck_ok(spk_uploader_state_save(u, &have, &err), err);
        ck_assert_str_eq(want, have);
        spk_free(want);
        spk_free(have);
        status = spk_loader_next(plain, &b, &err);
        spk_batch_release(b);
        ck_assert_int_eq(step(u, &r, i, NULL), status);
    }
    ck_ok(spk_loader_set_epoch(l, 0, &err), err);
    ck_ok(step(u, &r, 0, NULL), err);
    ck_ok(step(u, &r, 1, NULL), err);
    ck_ok(spk_loader_set_epoch(l, 0, &err), err); /* what was fetched ahead is dropped */
    ck_ok(step(u, &r, 0, NULL), err);
    ck_ok(step(u, &r, 1, NULL), err);
    ck_assert_uint_eq(cuda.synchronize(NULL), 0);
    ck_assert_int_eq(memcmp(r.have, r.want, sizeof r.have), 0);
    spk_uploader_close(u);
    spk_loader_close(plain);
    spk_loader_close(l);
    nothing_wrong();
}
END_TEST

/* A state that is refused moves nothing: what was fetched ahead still comes. */
START_TEST(a_refused_state_drops_nothing)
{
    record r = {.n = 0};
    expect(&r, 1);
    cuda.delay_us(0);
    spk_loader *l = load_open(pin_options(1));
    spk_uploader *u = open_uploader(l, 3);
    char *state = NULL;
    ck_ok(spk_uploader_state_save(u, &state, &err), err);
    state[strlen(state) - 1] = ' ';
    while (!spk_loader_ready(l) || spk_ring_ready_count(&l->ring) < 3)
        (void)spk_crew_receive(l, 10);
    for (size_t i = 0; i < r.n; i++) {
        ck_ok(step(u, &r, i, NULL), err);
        ck_assert_int_eq(spk_loader_state_restore(l, state, &err), SPK_E_FORMAT);
    }
    ck_assert_int_eq(step(u, &r, r.n, NULL), SPK_END);
    ck_assert_uint_eq(cuda.synchronize(NULL), 0);
    ck_assert_int_eq(memcmp(r.have, r.want, sizeof r.have), 0);
    spk_free(state);
    spk_uploader_close(u);
    spk_loader_close(l);
    nothing_wrong();
}
END_TEST

static const struct {
    const char *call;
    unsigned skip;
    spk_status status;
    const char *text;
} open_calls[] = {
    {"StreamCreateWithFlags", 0, SPK_E_DEVICE, "uploader: a stream could not be made: CUDA error 77"},
    {"Malloc", 1, SPK_E_DEVICE, "uploader: 768 bytes of device memory for a batch: CUDA error 77"},
    {"EventCreateWithFlags", 1, SPK_E_DEVICE, "uploader: an event could not be made"},
};

START_TEST(what_fails_at_opening)
{
    spk_loader *l = load_open(pin_options(1));
    spk_uploader *u = NULL;
    for (size_t i = 0; i < sizeof open_calls / sizeof *open_calls; i++) {
        spk_uploader_options o = {.size = sizeof o};
        cuda.break_call(open_calls[i].call, open_calls[i].skip, 1, 77);
        ck_fails(spk_uploader_open(&u, l, &o, &err), err, open_calls[i].status, open_calls[i].text);
    }
    const size_t wrong[] = {COL_KEY, COLS};
    for (size_t i = 0; i < 2; i++) {
        spk_uploader_options o = {.size = sizeof o, .columns = &wrong[i], .column_count = 1};
        ck_fails(spk_uploader_open(&u, l, &o, &err), err, SPK_E_INVALID, i ? "column 6 of a" : "of fixed shape");
    }
    spk_uploader_options many = {.size = sizeof many, .buffers = 65};
    ck_fails(spk_uploader_open(&u, l, &many, &err), err, SPK_E_INVALID, "buffers of 65: must be 0 to 64");
    spk_loader_close(l);
    l = load_open(load_options(1));
    ck_fails(spk_uploader_open(&u, l, NULL, &err), err, SPK_E_INVALID, "pin_memory");
    spk_loader_close(l);
    nothing_wrong();
}
END_TEST

static const struct {
    const char *call, *text;
} step_calls[] = {{"MemcpyAsync", "upload: column 2: copying"},
                  {"EventRecord", "could not be recorded"},
                  {"StreamWaitEvent", "could not be made to wait"}};

START_TEST(what_fails_in_a_step)
{
    for (size_t i = 0; i < sizeof step_calls / sizeof *step_calls; i++) {
        record r = {.n = 0};
        expect(&r, 1);
        spk_loader *l = load_open(pin_options(1));
        spk_uploader *u = open_uploader(l, 2);
        ck_ok(step(u, &r, 0, NULL), err);
        cuda.break_call(step_calls[i].call, 0, 1, 77);
        spk_status status = SPK_OK;
        for (size_t n = 1; status == SPK_OK && n < r.n; n++) /* perhaps it had been fetched */
            status = step(u, &r, n, NULL);
        ck_assert_int_eq(status, SPK_E_DEVICE);
        ck_assert_msg(strstr(err.text, step_calls[i].text) != NULL, "%s", err.text);
        spk_uploader_close(u);
        spk_loader_close(l);
        nothing_wrong();
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_uploader");
    TCase *t = tcase_create("standin");
    tcase_add_checked_fixture(t, standin_setup, load_teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, steps_see_their_batches);
    tcase_add_test(t, streams_in_turn);
    tcase_add_test(t, one_ahead);
    tcase_add_test(t, states);
    tcase_add_test(t, a_refused_state_drops_nothing);
    tcase_add_test(t, what_fails_at_opening);
    tcase_add_test(t, what_fails_in_a_step);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
