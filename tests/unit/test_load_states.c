/* load/: states that are damaged, or were made by other plans, are refused and do no harm. */
#include "check_main.h"

#include "load_exact.h"

static spk_loader_options refusal_options(void)
{
    return (spk_loader_options){.size = sizeof(spk_loader_options),
                                .batch_size = 7,
                                .world_size = 1,
                                .has_workers = 1,
                                .shuffle = 1,
                                .seed = 5,
                                .echo = 1,
                                .chunk = 3,
                                .lane_groups = 2,
                                .lane_buffer = 9,
                                .columns = exact_columns,
                                .column_count = EX_COLUMNS};
}

/* A refused state leaves the loader where it was. */
static spk_status offer(spk_loader *l, const char *text)
{
    char *before = NULL, *after = NULL;
    ck_ok(spk_loader_state_save(l, &before, &err), err);
    spk_status status = spk_loader_state_restore(l, text, &err);
    ck_ok(spk_loader_state_save(l, &after, NULL), err);
    if (status < 0) {
        ck_assert_str_eq(before, after);
        ck_assert(strncmp(err.text, "state", 5) == 0);
    }
    spk_free(before);
    spk_free(after);
    return status;
}

/* The text with the number behind `key` replaced. */
static void offer_number(spk_loader *l, const char *text, const char *key, const char *number, spk_status want,
                         const char *part)
{
    char changed[2048], quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(text, quoted);
    ck_assert_ptr_nonnull(at);
    at += strlen(quoted);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, number, at + strcspn(at, ",}"));
    ck_fails(offer(l, changed), err, want, part);
}

START_TEST(damaged_states_are_refused)
{
    static const char *const numbers[] = {"version",      "order", "epoch",       "position",    "total", "substituted",
                                          "global_batch", "chunk", "lane_groups", "lane_buffer", "echo"};
    exact_run r = {.set = &sets[4], .o = refusal_options()};
    char *text = NULL;
    choose(&r, 0);
    spk_loader *l = open_run(&r);
    (void)follow(&r, l, 0, 0, 3, NULL);
    ck_ok(spk_loader_state_save(l, &text, &err), err);
    size_t n = strlen(text);
    for (size_t cut = 0; cut < n; cut++) {
        char part[2048];
        memcpy(part, text, cut);
        part[cut] = '\0';
        ck_assert_int_eq(offer(l, part), SPK_E_FORMAT);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        static const char *const huge[] = {"9007199254740993",
                                           "18446744073709551615",
                                           "1e300",
                                           "-1",
                                           "99999999999999999999999999",
                                           "null",
                                           "\"7\"",
                                           "1.5",
                                           "{}"};
        for (size_t k = 0; k < sizeof huge / sizeof huge[0]; k++)
            offer_number(l, text, numbers[i], huge[k], SPK_E_FORMAT, "state: ");
    }
    offer_number(l, text, "version", "2", SPK_E_UNSUPPORTED, "version 2, this library knows 1");
    offer_number(l, text, "order", "2", SPK_E_UNSUPPORTED, "order of version 2, this library makes 1");
    offer_number(l, text, "seed", "\"18446744073709551616\"", SPK_E_FORMAT, "seed");
    offer_number(l, text, "position", "201", SPK_E_FORMAT, "position 201 of 200");
    offer_number(l, text, "global_batch", "0", SPK_E_FORMAT, "global_batch of 0");
    offer_number(l, text, "lane_groups", "4294967297", SPK_E_FORMAT, "lane_groups of 4294967297");
    offer_number(l, text, "epoch", "1073741824", SPK_E_FORMAT, "epoch 1073741824");
    for (unsigned i = 0; i < 3000; i++) { /* a byte changed: an error, or another place of the same plan */
        char changed[2048];
        memcpy(changed, text, n + 1);
        changed[throw(0, (uint32_t)n - 1)] = (char) throw(1, 255);
        (void)offer(l, changed);
    }
    ck_ok(spk_loader_state_restore(l, text, &err), err);
    r.plan_batch = 7;
    ck_assert(follow(&r, l, 0, 21, UINT64_MAX, NULL));
    spk_free(text);
    spk_loader_close(l);
    model_free(&r.order);
}
END_TEST

static void differs(exact_run r, const char *text, const char *part)
{
    if (r.o.indices)
        r.o.indices = r.chosen; /* its own, not those of what it was copied from */
    else
        choose(&r, 0);
    spk_loader *l = open_run(&r);
    ck_fails(offer(l, text), err, SPK_E_CHANGED, part);
    model_epoch(&r, 0);
    ck_assert(follow(&r, l, 0, 0, UINT64_MAX, NULL)); /* it did no harm */
    spk_loader_close(l);
    model_free(&r.order);
}

START_TEST(states_of_other_plans_are_refused)
{
    exact_run r = {.set = &sets[4], .o = refusal_options()}, x = r;
    char *text = NULL;
    spk_loader *l = open_run(&r);
    ck_ok(spk_loader_state_save(l, &text, &err), err);
    spk_loader_close(l);
    x.set = &sets[3];
    differs(x, text, "the dataset's fingerprint was ");
    x = r;
    x.o.seed = UINT64_MAX;
    differs(x, text, "seed was 5 and is 18446744073709551615");
    x = r;
    x.o.chunk = 4;
    differs(x, text, "chunk was 3 and is 4");
    x = r;
    x.o.lane_groups = 3;
    differs(x, text, "lane_groups was 2 and is 3");
    x = r;
    x.o.lane_buffer = 10;
    differs(x, text, "lane_buffer was 9 and is 10");
    x = r;
    x.o.echo = 2;
    differs(x, text, "echo was 1 and is 2");
    x = r;
    choose(&x, 4);
    differs(x, text, "state: indices were not given and are now");
    x = r;
    x.o.shuffle = 0;
    differs(x, text, "shuffle was 1 and is 0");
    x = r;
    x.o.limit = 199;
    differs(x, text, "the number of samples in an epoch (limit) was 200 and is 199");
    spk_free(text);
}
END_TEST

START_TEST(states_are_of_one_choice_of_samples)
{
    exact_run r = {.set = &sets[4], .o = refusal_options()}, x = r;
    char *text = NULL;
    do
        choose(&r, 3);
    while (r.chosen[0] == 0);
    spk_loader *l = open_run(&r);
    ck_ok(spk_loader_state_save(l, &text, &err), err);
    spk_loader_close(l);
    differs(x, text, "state: indices were given and are not now, the number of samples");
    x = r;
    x.chosen[0]--; /* of the same shard or of the one before: */
    spk_loader *other = NULL;
    x.o.indices = x.chosen;
    ck_ok(spk_loader_open(&other, x.set->dataset, &x.o, &err), err);
    ck_fails(spk_loader_state_restore(other, text, &err), err, SPK_E_CHANGED, "state: indices were others");
    spk_loader_close(other);
    spk_free(text);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load states");
    TCase *t = tcase_create("load states");
    tcase_set_timeout(t, 3600);
    tcase_add_checked_fixture(t, exact_setup, exact_teardown);
    tcase_add_test(t, damaged_states_are_refused);
    tcase_add_test(t, states_of_other_plans_are_refused);
    tcase_add_test(t, states_are_of_one_choice_of_samples);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
