/* pack/plan.h: order, splits, shards and frames, by brute force over small inputs; options and digests. */
#include "check_main.h"

#include "pack/options.h"
#include "pack/plan.h"
#include "shard/tar.h"

#include <inttypes.h>

static uint32_t lcg(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* n samples with one jpg each, every third also a txt, every second a label; sizes below `most`. */
static void make_input(spk_input *in, uint32_t n, uint32_t most, uint32_t seed)
{
    static char jpg[] = "jpg", txt[] = "txt", *fields[] = {jpg, txt};
    spk_error err;
    memset(in, 0, sizeof *in);
    in->fields = fields;
    in->fields_n = 2;
    in->files = calloc(2 * n + 1, sizeof *in->files);
    in->samples = calloc(n + 1, sizeof *in->samples);
    for (uint32_t i = 0; i < n; i++) {
        spk_input_sample *s = &in->samples[in->samples_n++];
        s->key = in->paths.len;
        ck_ok(spk_buf_printf(&in->paths, &err, "c/%05" PRIu32 "%c", i, 0), err);
        s->first = in->files_n;
        s->files = i % 3 == 0 ? 2 : 1;
        s->label = i % 2 == 0 ? (int32_t)i : -1;
        for (uint32_t f = 0; f < s->files; f++) {
            spk_input_file *file = &in->files[in->files_n++];
            file->path = in->paths.len;
            ck_ok(spk_buf_printf(&in->paths, &err, "c/%05" PRIu32 ".%s%c", i, fields[f], 0), err);
            file->size = lcg(&seed) % most;
            file->field = f;
            file->stamp = (int64_t)i;
        }
    }
}

static void free_input(spk_input *in)
{
    free(in->files);
    free(in->samples);
    spk_buf_free(&in->paths);
}

static spk_pack_options settle(spk_pack_options o)
{
    spk_pack_options out;
    spk_error err;
    o.size = sizeof o;
    ck_ok(spk_pack_options_settle(&out, &o, &err), err);
    return out;
}

static uint64_t tar_of(const spk_pack_plan *plan, uint32_t sample)
{
    uint64_t sum = 0;
    spk_pack_plan_members m;
    spk_pack_plan_member one;
    for (spk_pack_plan_members_begin(&m, plan, sample); spk_pack_plan_members_next(&m, &one);)
        sum += spk_tar_member_bytes(one.size);
    return sum;
}

static uint64_t payload_of(const spk_pack_plan *plan, uint32_t sample)
{
    const spk_input_sample *s = &plan->in->samples[sample];
    uint64_t sum = 0;
    for (uint32_t f = 0; f < s->files; f++)
        sum += plan->in->files[s->first + f].size;
    return sum;
}

static void check_frames(const spk_pack_plan *plan, const spk_pack_plan_shard *s)
{
    const spk_pack_options *o = plan->o;
    uint32_t at = s->first;
    for (bool last = false; !last;) {
        spk_pack_plan_frame f;
        uint64_t tar = 0;
        spk_pack_plan_frame_at(plan, s, at, &f);
        ck_assert_uint_eq(f.first, at);
        ck_assert_uint_ge(f.samples, 1);
        for (uint32_t i = 0; i < f.samples; i++)
            tar += tar_of(plan, plan->order[at + i]);
        ck_assert_uint_eq(tar, f.tar_bytes);
        at += f.samples;
        last = f.last;
        ck_assert_int_eq(last, at == s->first + s->samples);
        if (o->single_frame) {
            ck_assert(last);
            continue;
        }
        ck_assert_uint_le(f.samples, o->frame_samples);
        ck_assert(f.samples == 1 || tar <= o->frame_size);
        if (!last && f.samples < o->frame_samples) /* not cut short */
            ck_assert_uint_gt(tar + tar_of(plan, plan->order[at]), o->frame_size);
    }
}

static void check_plan(const spk_pack_plan *plan)
{
    const spk_pack_options *o = plan->o;
    uint32_t n = (uint32_t)plan->in->samples_n, at = 0;
    char *seen = calloc(n + 1, 1);
    ck_assert_uint_eq(plan->order_n, o->limit && o->limit < n ? o->limit : n);
    for (uint32_t i = 0; i < plan->order_n; i++) {
        ck_assert_uint_lt(plan->order[i], n);
        ck_assert_int_eq(seen[plan->order[i]]++, 0);
    }
    free(seen);
    for (size_t k = 0; k < plan->shards_n; k++) {
        const spk_pack_plan_shard *s = &plan->shards[k];
        uint64_t payload = 0;
        ck_assert_uint_eq(s->first, at);
        ck_assert_uint_ge(s->samples, 1);
        for (uint32_t i = 0; i < s->samples; i++)
            payload += payload_of(plan, plan->order[at + i]);
        ck_assert_uint_eq(payload, s->payload);
        ck_assert(s->samples == 1 || payload <= o->shard_size);
        ck_assert(!o->shard_samples || s->samples <= o->shard_samples);
        at += s->samples;
        check_frames(plan, s);
    }
    ck_assert_uint_eq(at, plan->order_n);
}

START_TEST(every_sample_has_one_place)
{
    const uint64_t shard_sizes[] = {1, 1000, 20000, 0}, frame_sizes[] = {1024, 4096, 0};
    for (uint32_t round = 0; round < 4 * 3 * 3 * 8; round++) {
        spk_input in;
        spk_error err;
        spk_pack_plan plan = {0};
        uint32_t n = 1 + round * 7 % 90;
        make_input(&in, n, round % 5 ? 3000 : 1, round);
        spk_split splits[] = {{"train", 0.5}, {"val", 0.5}};
        spk_pack_options o = {.shard_size = shard_sizes[round % 4],
                              .frame_size = frame_sizes[round / 4 % 3],
                              .shard_samples = round / 12 % 3 * 5,
                              .frame_samples = round % 7 == 0 ? 3 : 0,
                              .single_frame = round % 11 == 0,
                              .no_shuffle = round % 2,
                              .seed = round,
                              .limit = round % 13 == 0 ? 10 : 0,
                              .splits = splits,
                              .split_count = n > 50 ? 2 : 0};
        o = settle(o);
        ck_ok(spk_pack_plan_make(&plan, &in, &o, "src", &err), err);
        check_plan(&plan);
        spk_pack_plan_free(&plan);
        free_input(&in);
    }
}
END_TEST

START_TEST(shards_are_of_nearly_equal_size)
{
    spk_input in;
    spk_error err;
    spk_pack_plan plan = {0};
    make_input(&in, 2000, 1000, 1);
    spk_pack_options o = settle((spk_pack_options){.shard_size = 300000});
    ck_ok(spk_pack_plan_make(&plan, &in, &o, "src", &err), err);
    uint64_t n = (plan.payload + o.shard_size - 1) / o.shard_size;
    ck_assert_uint_eq(plan.shards_n, n);
    for (size_t i = 0; i < plan.shards_n; i++) {
        ck_assert_uint_gt(plan.shards[i].payload, plan.payload / n - 2000);
        ck_assert_uint_lt(plan.shards[i].payload, plan.payload / n + 2000);
    }
    spk_pack_plan_free(&plan);
    free_input(&in);
}
END_TEST

START_TEST(order_depends_on_the_seed_only)
{
    spk_input in;
    spk_error err;
    uint32_t first[3][100];
    make_input(&in, 100, 100, 1);
    for (int i = 0; i < 3; i++) {
        spk_pack_plan plan = {0};
        spk_pack_options o = settle((spk_pack_options){.seed = i == 2, .jobs = i + 1});
        ck_ok(spk_pack_plan_make(&plan, &in, &o, "src", &err), err);
        memcpy(first[i], plan.order, sizeof first[i]);
        spk_pack_plan_free(&plan);
    }
    ck_assert_mem_eq(first[0], first[1], sizeof first[0]);
    ck_assert_mem_ne(first[0], first[2], sizeof first[0]);
    free_input(&in);
}
END_TEST

/* A limit takes the first of the shuffled order, not the first keys. */
START_TEST(limit_follows_the_order)
{
    spk_input in;
    spk_error err;
    spk_pack_plan all = {0}, some = {0};
    make_input(&in, 100, 100, 1);
    spk_pack_options o = settle((spk_pack_options){.seed = 5}), limited = o;
    limited.limit = 7;
    ck_ok(spk_pack_plan_make(&all, &in, &o, "src", &err), err);
    ck_ok(spk_pack_plan_make(&some, &in, &limited, "src", &err), err);
    ck_assert_uint_eq(some.order_n, 7);
    ck_assert_mem_eq(all.order, some.order, 7 * sizeof *all.order);
    spk_pack_plan_free(&all);
    spk_pack_plan_free(&some);
    free_input(&in);
}
END_TEST

START_TEST(splits_stay_when_files_are_added)
{
    spk_split splits[] = {{"train", 0.8}, {"val", 0.1}, {"test", 0.1}};
    spk_pack_options o = settle((spk_pack_options){.splits = splits, .split_count = 3});
    int split[2][400];
    spk_error err;
    for (int round = 0; round < 2; round++) {
        spk_input in;
        spk_pack_plan plan = {0};
        uint32_t n = round ? 400 : 300;
        make_input(&in, n, 100, 1);
        ck_ok(spk_pack_plan_make(&plan, &in, &o, "src", &err), err);
        for (size_t k = 0; k < plan.splits_n; k++)
            for (uint32_t i = 0; i < plan.splits[k].samples; i++)
                split[round][plan.order[plan.splits[k].first + i]] = (int)k;
        ck_assert_uint_gt(plan.splits[0].samples, n * 7 / 10);
        ck_assert_uint_lt(plan.splits[0].samples, n * 9 / 10);
        spk_pack_plan_free(&plan);
        free_input(&in);
    }
    ck_assert_mem_eq(split[0], split[1], 300 * sizeof split[0][0]);
}
END_TEST

START_TEST(members_are_in_the_order_of_their_fields)
{
    spk_input in;
    spk_error err;
    spk_pack_plan plan = {0};
    make_input(&in, 4, 100, 1);
    in.samples[0].json = 1 + in.paths.len;
    ck_ok(spk_buf_printf(&in.paths, &err, "{\"a\":1}%c", 0), err);
    spk_pack_options o = settle((spk_pack_options){0});
    ck_ok(spk_pack_plan_make(&plan, &in, &o, "src", &err), err);
    spk_pack_plan_members m;
    spk_pack_plan_member one;
    const char *want[] = {"cls", "jpg", "json", "txt"};
    spk_pack_plan_members_begin(&m, &plan, 0);
    for (int i = 0; i < 4; i++) {
        ck_assert(spk_pack_plan_members_next(&m, &one));
        ck_assert_str_eq(plan.fields[one.field], want[i]);
        ck_assert_int_eq(one.file == NULL, i % 2 == 0);
    }
    ck_assert(!spk_pack_plan_members_next(&m, &one));
    spk_pack_plan_free(&plan);
    free_input(&in);
}
END_TEST

START_TEST(frames_of_packed_fields_get_the_fast_level)
{
    spk_input in;
    spk_error err;
    spk_pack_plan_frame f;
    make_input(&in, 2, 1, 1);
    in.files[0].size = 100000;
    for (int i = 0; i < 3; i++) {
        spk_pack_plan plan = {0};
        in.files[1].size = i == 1 ? 6666 : 6668; /* 1/16 of the frame is 6666 and 6667 */
        spk_pack_options o = settle((spk_pack_options){.has_level = i == 2, .level = 9});
        ck_ok(spk_pack_plan_make(&plan, &in, &o, "src", &err), err);
        spk_pack_plan_frame_at(&plan, &plan.shards[0], 0, &f);
        ck_assert_int_eq(f.level, i == 0 ? 3 : i == 1 ? -1 : 9);
        spk_pack_plan_free(&plan);
    }
    free_input(&in);
}
END_TEST

START_TEST(what_does_not_fit_is_refused_with_numbers)
{
    spk_input in;
    spk_error err;
    spk_pack_plan plan = {0};
    make_input(&in, 3, 100, 1);
    in.files[2].size = 9ull << 30;
    spk_pack_options o = settle((spk_pack_options){0});
    ck_fails(spk_pack_plan_make(&plan, &in, &o, "src", &err), err, SPK_E_LIMIT,
             "src/c/00001.jpg: its sample has 96636");
    spk_pack_plan_free(&plan);
    for (size_t i = 0; i < in.files_n; i++)
        in.files[i].size = 500u << 20;
    o = settle((spk_pack_options){.shard_size = 4ull << 30, .single_frame = 1});
    ck_fails(spk_pack_plan_make(&plan, &in, &o, "src", &err), err, SPK_E_LIMIT, "a single frame would hold");
    spk_pack_plan_free(&plan);
    spk_split splits[] = {{"a", 0.999999}, {"b", 0.000001}};
    o = settle((spk_pack_options){.splits = splits, .split_count = 2});
    ck_fails(spk_pack_plan_make(&plan, &in, &o, "src", &err), err, SPK_E_INVALID, "split b: no sample of 3");
    spk_pack_plan_free(&plan);
    free_input(&in);
}
END_TEST

/* As many samples as it takes, all of one file: two gigabytes, so in the long version only. */
START_TEST(more_shards_than_a_table_holds)
{
    const size_t most = 1u << 24;
    spk_error err;
    spk_input in;
    spk_pack_plan plan = {0};
    make_input(&in, 1, 10, 1);
    spk_input_sample one = in.samples[0];
    free(in.samples);
    in.samples = malloc((most + 1) * sizeof *in.samples);
    for (in.samples_n = 0; in.samples_n <= most; in.samples_n++)
        in.samples[in.samples_n] = one;
    spk_pack_options o = settle((spk_pack_options){.shard_samples = 1, .no_shuffle = 1});
    ck_fails(spk_pack_plan_make(&plan, &in, &o, "src", &err), err, SPK_E_LIMIT,
             "more than 16777216 shards: choose a larger shard size");
    spk_pack_plan_free(&plan);
    in.samples_n--;
    ck_ok(spk_pack_plan_make(&plan, &in, &o, "src", &err), err);
    ck_assert_uint_eq(plan.shards_n, most);
    spk_pack_plan_free(&plan);
    free_input(&in);
}
END_TEST

START_TEST(options_are_checked)
{
    spk_pack_options out;
    spk_error err;
    const spk_split odd[] = {{"a", 0.5}, {"b", 0.4}}, twice[] = {{"a", 0.5}, {"a", 0.5}}, up[] = {{"../a", 1}};
    const struct {
        spk_pack_options o;
        const char *text;
    } cases[] = {{{.frame_size = 100}, "frame size is 100"},
                 {{.frame_size = 1ull << 40}, "frame size is"},
                 {{.has_level = 1, .level = 23}, "level is 23"},
                 {{.jobs = -1}, "jobs is -1"},
                 {{.prefix = "a-b"}, "prefix \"a-b\""},
                 {{.prefix = ""}, "prefix \"\""},
                 {{.check = (spk_check)7}, "check is 7"},
                 {{.splits = odd, .split_count = 2}, "add up to 0.9"},
                 {{.splits = twice, .split_count = 2}, "split a is given twice"},
                 {{.splits = up, .split_count = 1}, "split \"../a\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spk_pack_options o = cases[i].o;
        o.size = sizeof o;
        ck_fails(spk_pack_options_settle(&out, &o, &err), err, SPK_E_INVALID, cases[i].text);
    }
    ck_ok(spk_pack_options_settle(&out, NULL, &err), err);
    ck_assert_uint_eq(out.shard_size, 256u << 20);
    ck_assert_int_ge(out.jobs, 1);
    struct {
        spk_pack_options o;
        uint64_t later;
    } newer = {.o = {.size = sizeof newer}};
    ck_ok(spk_pack_options_settle(&out, &newer.o, &err), err);
    newer.later = 1;
    ck_fails(spk_pack_options_settle(&out, &newer.o, &err), err, SPK_E_INVALID, "lacks an option");
}
END_TEST

START_TEST(digests_tell_what_changed)
{
    spk_input in;
    spk_error err;
    spk_pack_plan_digest base, other;
    make_input(&in, 10, 100, 1);
    spk_pack_options o = settle((spk_pack_options){.jobs = 1});
    ck_ok(spk_pack_plan_digest_make(&base, &in, &o, &err), err);
    spk_pack_options jobs = settle((spk_pack_options){.jobs = 7});
    ck_ok(spk_pack_plan_digest_make(&other, &in, &jobs, &err), err);
    ck_assert_mem_eq(&base, &other, sizeof base);
    spk_pack_options seed = settle((spk_pack_options){.seed = 1});
    ck_ok(spk_pack_plan_digest_make(&other, &in, &seed, &err), err);
    ck_assert_mem_ne(base.options, other.options, 32);
    ck_assert_mem_eq(base.input, other.input, 32);
    ck_assert_mem_ne(base.plan, other.plan, 32);
    spk_pack_options unchecked = settle((spk_pack_options){.check = SPK_CHECK_NONE});
    ck_ok(spk_pack_plan_digest_make(&other, &in, &unchecked, &err), err);
    ck_assert_mem_ne(base.versions, other.versions, 32);
    ck_assert_mem_eq(base.versions, other.versions_other, 32);
    ck_assert_mem_eq(base.versions_other, other.versions, 32);
    in.files[4].stamp++;
    ck_ok(spk_pack_plan_digest_make(&other, &in, &o, &err), err);
    ck_assert_mem_ne(base.stamps, other.stamps, 32);
    ck_assert_mem_eq(base.plan, other.plan, 32);
    in.files[4].size++;
    ck_ok(spk_pack_plan_digest_make(&other, &in, &o, &err), err);
    ck_assert_mem_ne(base.input, other.input, 32);
    ck_assert_mem_ne(base.plan, other.plan, 32);
    free_input(&in);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pack_plan");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_sample_has_one_place);
    tcase_add_test(t, shards_are_of_nearly_equal_size);
    tcase_add_test(t, order_depends_on_the_seed_only);
    tcase_add_test(t, limit_follows_the_order);
    tcase_add_test(t, splits_stay_when_files_are_added);
    tcase_add_test(t, members_are_in_the_order_of_their_fields);
    tcase_add_test(t, frames_of_packed_fields_get_the_fast_level);
    tcase_add_test(t, what_does_not_fit_is_refused_with_numbers);
    if (getenv("TEST_LONG"))
        tcase_add_test(t, more_shards_than_a_table_holds);
    tcase_add_test(t, options_are_checked);
    tcase_add_test(t, digests_tell_what_changed);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
