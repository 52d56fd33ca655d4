/* load/: numbers at their ends (more workers than samples, ranks without samples, lane buffers of 1 and of millions),
 * images beyond the limit, shards that are swapped under way, and a /dev/shm of 1 MB. */
#include "check_main.h"

#include "load_fixture.h"

#include "image_fixture.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

/* ---- numbers ---- */

START_TEST(more_workers_than_samples)
{
    for (uint64_t limit = 1; limit <= 5; limit += 4)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            spk_loader_options o = load_options(0);
            spk_loader_stats s;
            o.limit = limit;
            o.shuffle = shuffle;
            o.batch_size = 3;
            load_record *want = load_reference(o, 3), *have = calloc(1, sizeof *have);
            o.workers = 11;
            spk_loader *l = load_open(o);
            for (int e = 0; e < 3; e++)
                ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
            same_record(want, have);
            spk_loader_get_stats(l, &s);
            ck_assert_uint_eq(s.samples, 3 * limit);
            spk_loader_close(l);
            no_children();
            free(want);
            free(have);
        }
}
END_TEST

/* Samples that the ranks of a world see, and batches of each. */
static uint64_t samples_of(uint32_t world, uint32_t batch, spk_tail tail, uint64_t *batches)
{
    uint64_t sum = 0;
    for (uint32_t rank = 0; rank < world; rank++) {
        spk_loader_options o = load_options(rank % 3 == 2);
        spk_loader_stats s;
        load_record *have = calloc(1, sizeof *have);
        o.rank = rank;
        o.world_size = world;
        o.batch_size = batch;
        o.tail = tail;
        spk_loader *l = load_open(o);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        ck_assert_uint_eq(have->n, spk_loader_length(l));
        ck_assert(rank == 0 || have->n == *batches);
        *batches = have->n;
        spk_loader_get_stats(l, &s);
        ck_assert_uint_eq(s.samples + s.padded, batch * have->n);
        sum += s.samples;
        spk_loader_close(l);
        free(have);
    }
    return sum;
}

START_TEST(worlds_that_do_not_fit)
{
    uint64_t batches = 0;
    ck_assert_uint_eq(samples_of(7, 5, SPK_TAIL_PAD, &batches), LOAD_SAMPLES);
    ck_assert_uint_eq(batches, 4);
    ck_assert_uint_eq(samples_of(13, 16, SPK_TAIL_PAD, &batches), LOAD_SAMPLES); /* 208 rows for 120 samples */
    ck_assert_uint_eq(batches, 1);
    ck_assert_uint_eq(samples_of(13, 16, SPK_TAIL_DROP, &batches), 0);
    ck_assert_uint_eq(batches, 0);
    ck_assert_uint_eq(samples_of(130, 1, SPK_TAIL_PAD, &batches), LOAD_SAMPLES); /* more ranks than samples */
    ck_assert_uint_eq(batches, 1);
}
END_TEST

START_TEST(lane_buffers_of_one_and_of_millions)
{
    static const uint32_t buffers[] = {1, 2, 119, 121, 1u << 20, 1u << 24};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        spk_loader_options o = load_options(0);
        spk_loader_stats s;
        o.lane_buffer = buffers[i];
        load_record *want = load_reference(o, 2), *have = calloc(1, sizeof *have);
        char *state = NULL;
        o.workers = 2;
        spk_loader *l = load_open(o);
        ck_assert_int_eq(load_run(l, have, 7), SPK_OK);
        ck_ok(spk_loader_state_save(l, &state, &err), err);
        spk_loader_close(l);
        l = load_open(o); /* enters its lanes in the middle */
        ck_ok(spk_loader_state_restore(l, state, &err), err);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        same_record(want, have);
        spk_loader_get_stats(l, &s);
        ck_assert_uint_eq(s.samples, 2 * LOAD_SAMPLES - 7 * 8);
        spk_loader_close(l);
        spk_free(state);
        free(want);
        free(have);
    }
}
END_TEST

/* ---- images ---- */

START_TEST(images_beyond_the_limit)
{
    const spk_column columns[] = {
        {.kind = SPK_COLUMN_IMAGE,
         .image = {.size = sizeof columns[0].image, .height = 8, .width = 8, .max_pixels = 40 * 30}},
        {.kind = SPK_COLUMN_INDEX}};
    spk_pack_result r;
    spk_loader_stats s;
    spk_loader_options o = load_options(0);
    load_record *have = calloc(1, sizeof *have);
    spk_dataset_close(ds);
    for (unsigned i = 0; i < 20; i++) {
        char name[32];
        size_t n = 0;
        unsigned char *p = make_jpeg(40, i % 10 == 3 ? 31 : 30, 3, 0, &n);
        snprintf(name, sizeof name, "images/c/%02u.jpg", i);
        put_file(name, (const char *)p, n);
        free(p);
    }
    spk_pack_options po = {.size = sizeof po, .jobs = 1};
    ck_ok(spk_pack(in_dir("images"), in_dir("image-set"), &po, &r, &err), err);
    ck_ok(spk_dataset_open(&ds, in_dir("image-set"), NULL, &err), err);
    o.columns = columns;
    o.column_count = 2;
    for (o.workers = 0; o.workers <= 2; o.workers += 2) {
        o.on_error = SPK_ON_ERROR_FAIL;
        have->n = 0;
        spk_loader *l = load_open(o);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_E_LIMIT);
        ck_assert_msg(strstr(err.text, "3\": jpg: ") && strstr(err.text, "1240") && strstr(err.text, "1200"), "%s",
                      err.text);
        spk_loader_close(l);
        o.on_error = SPK_ON_ERROR_SUBSTITUTE;
        l = load_open(o);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
        spk_loader_get_stats(l, &s);
        ck_assert_uint_eq(s.samples, 20);
        ck_assert_uint_eq(s.substituted, 2);
        spk_loader_close(l);
    }
    free(have);
}
END_TEST

/* ---- shards that change ---- */

static void shard_path(size_t shard, char path[4200])
{
    spk_shard_row row;
    ck_ok(spk_dataset_get_shard(ds, shard, &row, &err), err);
    snprintf(path, 4200, "%s/%s", in_dir("ds"), row.path);
}

static void copy_file(const char *from, const char *to)
{
    char command[9000];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    ck_assert_int_eq(system(command), 0);
}

enum { RENAMED_OVER, WRITTEN_OVER, REMOVED, EMPTIED, WAYS };

static void change_shard(size_t shard, int way)
{
    char path[4200], other[4200], command[9000];
    shard_path(shard, path);
    shard_path(shard == 0 ? 1 : 0, other);
    if (way == RENAMED_OVER) {
        copy_file(other, in_dir("new"));
        ck_assert_int_eq(rename(in_dir("new"), path), 0);
    } else if (way == WRITTEN_OVER) {
        snprintf(command, sizeof command, "dd if='%s' of='%s' conv=notrunc status=none", other, path);
        ck_assert_int_eq(system(command), 0);
    } else if (way == REMOVED) {
        ck_assert_int_eq(unlink(path), 0);
    } else {
        ck_assert_int_eq(truncate(path, 0), 0);
    }
}

/* Whatever happens to the files: each batch is right, or there is an error that names a shard. */
START_TEST(shards_that_change_under_way)
{
    spk_loader_options o = load_options(0);
    load_record *want = load_reference(o, 2), *have = calloc(1, sizeof *have);
    spk_dataset_stat stat;
    spk_dataset_get_stat(ds, &stat);
    ck_assert_int_eq(rename(in_dir("ds"), in_dir("sound")), 0);
    for (int way = 0; way < WAYS; way++)
        for (o.workers = 0; o.workers <= 2; o.workers += 2) {
            char command[9000];
            snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s' && chmod -R u+w '%s'", in_dir("ds"),
                     in_dir("sound"), in_dir("ds"), in_dir("ds"));
            ck_assert_int_eq(system(command), 0);
            have->n = 0;
            spk_loader *l = load_open(o);
            ck_assert_int_eq(load_run(l, have, 2), SPK_OK);
            for (size_t shard = 0; shard < stat.shards; shard++)
                change_shard(shard, way);
            spk_status status = load_run(l, have, LOAD_BATCHES_MAX);
            if (status == SPK_END)
                status = load_run(l, have, LOAD_BATCHES_MAX);
            /* Files that are open stay what they are when their names go to others. */
            if (status == SPK_END)
                ck_assert(have->n == want->n && (way == RENAMED_OVER || way == REMOVED));
            else
                ck_assert_msg(strstr(err.text, ".tar.zst: ") != NULL, "way %d: %s", way, err.text);
            for (size_t i = 0; i < have->n; i++)
                ck_assert_uint_eq(have->digests[i], want->digests[i]);
            spk_loader_close(l);
            no_children();
            l = load_open(o);
            ck_assert_int_lt(load_run(l, have, 1), 0);
            ck_assert_ptr_nonnull(strstr(err.text, ".tar.zst: "));
            spk_loader_close(l);
        }
    free(want);
    free(have);
}
END_TEST

/* ---- /dev/shm ---- */

static bool maps_have(const char *part)
{
    char line[4400];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(f);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, part) != NULL;
    fclose(f);
    return found;
}

/* False if this process may not have a /dev/shm of its own. */
static bool have_small_shm(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return false;
    return mount("none", "/", "", MS_REC | MS_PRIVATE, "") == 0 &&
           mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") == 0;
}

START_TEST(a_small_dev_shm)
{
    const spk_column columns[] = {{.kind = SPK_COLUMN_BYTES, .field = "gif"}, {.kind = SPK_COLUMN_INDEX}};
    spk_loader_options o = load_options(0);
    o.columns = columns;
    o.column_count = 2;
    o.batch_size = LOAD_SAMPLES; /* 360 KB each, five at once */
    load_record *want = load_reference(o, 8), *have = calloc(1, sizeof *have);
    bool small = have_small_shm();
    if (!small)
        fprintf(stderr, "no right to mount a /dev/shm: only what is mapped is looked at\n");
    o.workers = 2;
    spk_loader *l = load_open(o);
    for (int e = 0; e < 8; e++) {
        if (e == 3)
            spk_process_kill(&l->workers[1].process);
        ck_assert_int_eq(load_run(l, have, LOAD_BATCHES_MAX), SPK_END);
    }
    same_record(want, have);
    ck_assert(maps_have("/memfd:shardpack-loader"));
    ck_assert(!maps_have("/dev/shm"));
    if (small)
        ck_assert_int_eq(count_entries("/dev/shm"), 0);
    spk_loader_close(l);
    free(want);
    free(have);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_edges");
    TCase *t = tcase_create("edges");
    tcase_add_checked_fixture(t, load_setup, load_teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, more_workers_than_samples);
    tcase_add_test(t, worlds_that_do_not_fit);
    tcase_add_test(t, lane_buffers_of_one_and_of_millions);
    tcase_add_test(t, images_beyond_the_limit);
    tcase_add_test(t, shards_that_change_under_way);
    tcase_add_test(t, a_small_dev_shm);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
