/* load/: memory limits of made-up cgroup trees, out-of-memory counters, the shared memory's layout, the ring's states.
 */
#include "check_main.h"

#include "load_fixture.h"

#include "base/cgroup.h"
#include "base/error.h"

#include <sys/mman.h>

#define MB 1000000u

static const spk_memory_need need = {
    .catalog = 2 * MB, .slots = 6, .slot_bytes = 10 * MB, .workers = 2, .worker_bytes = 19 * MB}; /* 100 MB */

static void put_text(const char *name, const char *text)
{
    put_file(name, text, strlen(text));
}

static spk_status check_need(void)
{
    return spk_memory_check(&need, in_dir("proc"), in_dir("cg"), &err);
}

static void machine_of(const char *kb)
{
    char text[256];
    snprintf(text, sizeof text, "MemTotal: 99999999 kB\nMemAvailable:   %s kB\nSwapFree: 0 kB\n", kb);
    put_text("proc/meminfo", text);
}

START_TEST(v2_limits_up_the_tree)
{
    put_text("proc/self/cgroup", "0::/a/b\n");
    machine_of("1000000");
    ck_ok(check_need(), err); /* no limit anywhere */
    put_text("cg/a/b/memory.max", "max\n");
    ck_ok(check_need(), err);
    put_text("cg/a/memory.max", "150000000\n");
    put_text("cg/a/memory.current", "60000000\n");
    ck_fails(check_need(), err, SPK_E_LIMIT,
             "needs 100.0 MB of memory (6 slots of 10.0 MB, catalog 2.0 MB, 2 workers of "
             "19.0 MB), but the cgroup ");
    ck_assert_ptr_nonnull(strstr(err.text, "cg/a has 90.0 MB left (its limit is 150.0 MB, 60.0 MB are in use"));
    put_text("cg/a/memory.stat", "anon 1\nfile 2\ninactive_file 15000000\nactive_file 5000000\n");
    ck_ok(check_need(), err); /* cached files give way */
    put_text("cg/a/b/memory.max", "90000000\n");
    put_text("cg/a/b/memory.current", "0\n");
    ck_fails(check_need(), err, SPK_E_LIMIT, "cg/a/b has 90.0 MB left");
    put_text("cg/a/b/memory.current", "95000000\n"); /* above its limit already */
    ck_fails(check_need(), err, SPK_E_LIMIT, "cg/a/b has 0.0 MB left");
}
END_TEST

START_TEST(v1_limits)
{
    put_text("proc/self/cgroup", "5:cpu,memory:/x\n2:cpuset:/\n0::/y\n");
    machine_of("1000000");
    put_text("cg/y/memory.max", "5\n"); /* the controller belongs to v1 here */
    put_text("cg/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
    put_text("cg/memory/x/memory.usage_in_bytes", "5\n");
    ck_ok(check_need(), err);
    put_text("cg/memory/memory.limit_in_bytes", "99999999\n");
    put_text("cg/memory/memory.usage_in_bytes", "0\n");
    ck_fails(check_need(), err, SPK_E_LIMIT, "cg/memory has 100.0 MB left (its limit is 100.0 MB");
    put_text("cg/memory/memory.limit_in_bytes", "100000000\n");
    ck_ok(check_need(), err);
}
END_TEST

static double cpus(void)
{
    return spk_cgroup_cpus(in_dir("proc"), in_dir("cg"));
}

START_TEST(cpu_quotas)
{
    ck_assert(cpus() == 0); /* nothing there */
    put_text("proc/self/cgroup", "0::/a/b\n");
    put_text("cg/a/b/cpu.max", "max 100000\n");
    ck_assert(cpus() == 0);
    put_text("cg/a/cpu.max", "250000 100000\n");
    ck_assert(cpus() == 2.5);
    put_text("cg/a/b/cpu.max", "50000 100000\n");
    ck_assert(cpus() == 0.5);
    put_text("proc/self/cgroup", "7:cpuset:/c\n3:cpuacct,cpu:/x\n0::/a/b\n"); /* v1 has the controller */
    ck_assert(cpus() == 0);
    put_text("cg/cpu/x/cpu.cfs_quota_us", "-1\n");
    put_text("cg/cpu/x/cpu.cfs_period_us", "100000\n");
    ck_assert(cpus() == 0);
    put_text("cg/cpu/cpu.cfs_quota_us", "300000\n");
    put_text("cg/cpu/cpu.cfs_period_us", "100000\n");
    ck_assert(cpus() == 3);
}
END_TEST

START_TEST(free_memory)
{
    machine_of("97656"); /* kB of 1024 */
    ck_fails(check_need(), err, SPK_E_LIMIT, "but the machine has 100.0 MB available and 0.0 MB of free swap");
    machine_of("97657");
    ck_ok(check_need(), err);
    put_text("proc/meminfo", "nothing\n");
    ck_ok(check_need(), err);
}
END_TEST

START_TEST(oom_kills_are_seen)
{
    spk_oom seen;
    char text[2048] = "";
    put_text("proc/self/cgroup", "0::/a\n");
    put_text("proc/vmstat", "nr_free 1\noom_kill 3\n");
    put_text("cg/a/memory.events", "low 0\noom 1\noom_kill 4\noom_group_kill 9\n");
    put_text("cg/a/memory.max", "50000000\n");
    spk_oom_read(&seen, in_dir("proc"), in_dir("cg"));
    ck_assert_uint_eq(seen.cgroup, 4);
    ck_assert_uint_eq(seen.machine, 3);
    ck_assert(!spk_oom_rose(&seen, in_dir("proc"), in_dir("cg"), text, sizeof text));
    put_text("cg/a/memory.events", "oom 1\noom_kill 5\n");
    ck_assert(spk_oom_rose(&seen, in_dir("proc"), in_dir("cg"), text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "rose from 4 to 5, limit 50.0 MB"));
    ck_assert(!spk_oom_rose(&seen, in_dir("proc"), in_dir("cg"), text, sizeof text));
    put_text("proc/vmstat", "oom_kill 4\n");
    ck_assert(spk_oom_rose(&seen, in_dir("proc"), in_dir("cg"), text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "of the machine rose from 3 to 4"));
    put_text("proc/self/cgroup", "7:memory:/v\n");
    put_text("cg/memory/v/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 8\n");
    spk_oom_read(&seen, in_dir("proc"), in_dir("cg"));
    ck_assert_uint_eq(seen.cgroup, 8);
}
END_TEST

static void check_catalog(const spk_memory *m, const spk_load_spec *spec)
{
    const spk_shm_head *head = spk_memory_head(m);
    const uint64_t *first = (const uint64_t *)(m->base + head->first_sample);
    const spk_shm_shard *shards = (const spk_shm_shard *)(m->base + head->shards);
    const char *names = (const char *)m->base + head->names;
    ck_assert_str_eq(names + head->folder, in_dir("ds"));
    ck_assert_mem_eq(spk_memory_spec(m), spec, sizeof *spec);
    for (uint64_t i = 0; i < spec->shards; i++) {
        spk_shard_row row;
        ck_ok(spk_dataset_get_shard(ds, i, &row, &err), err);
        ck_assert_uint_eq(first[i], row.first_sample);
        ck_assert_str_eq(names + shards[i].name, row.path);
        ck_assert_uint_eq(shards[i].index_offset, row.index_offset);
        ck_assert_mem_eq(shards[i].tail_sha256, row.tail_sha256, 32);
    }
    ck_assert_uint_eq(first[spec->shards], LOAD_SAMPLES);
}

/* Whether a core dump leaves out the mapping at that address: "dd" of VmFlags. */
static bool is_not_dumped(const void *at)
{
    char line[512];
    bool here = false, found = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long from = 0, to = 0;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)at >= from && (uintptr_t)at < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, " dd") != NULL;
    }
    fclose(f);
    return found;
}

START_TEST(layout_and_catalog)
{
    spk_shm_head head;
    spk_memory m, view;
    spk_load_spec *spec = calloc(1, sizeof *spec);
    spk_loader_options o = load_options(2);
    ck_ok(spk_load_spec_make(spec, ds, &o, &err), err);
    ck_ok(spk_memory_layout(&head, spec, ds, &(spk_choice){0}, in_dir("ds"), 5, &err), err);
    ck_assert_uint_eq(head.activity_at % SPK_PAGE_MAX, 0); /* what lies before it is protected, whatever a page is */
    ck_assert_uint_eq(head.slots_at % SPK_PAGE_MAX, 0);
    ck_assert_uint_eq(head.arenas_at % SPK_PAGE_MAX, 0);
    ck_assert_uint_eq(head.slot_stride, spec->slot_bytes + SPK_SLOT_ALIGN);
    ck_assert_uint_ge(head.bytes, head.arenas_at + 5 * spec->arena_bytes);
    for (int shared = 0; shared < 2; shared++) {
        ck_ok(spk_memory_new(&m, &head, spec, ds, &(spk_choice){0}, in_dir("ds"), shared, &err), err);
        ck_assert((m.fd >= 0) == shared);
        check_catalog(&m, spec);
        if (!shared) {
            spk_memory_free(&m);
            continue;
        }
        ck_assert_int_ne(ftruncate(m.fd, 0), 0); /* nobody cuts it */
        ck_assert_int_ne(fcntl(m.fd, F_GETFD) & FD_CLOEXEC, 0);
        ck_ok(spk_memory_map(&view, dup(m.fd), &err), err);
        check_catalog(&view, spec);
        ck_assert(is_not_dumped(spk_slot_data(m.base, 4)) && is_not_dumped(spk_slot_data(view.base, 4)));
        ck_assert(is_not_dumped(spk_slot_arena(m.base, spec, 4)) && !is_not_dumped(m.base));
        spk_memory_free(&view);
        int fd = dup(m.fd);
        ((spk_shm_head *)m.base)->version[0]++;
        ck_fails(spk_memory_map(&view, fd, &err), err, SPK_E_UNSUPPORTED,
                 "this worker is of version " SPK_VERSION_STRING);
        ((spk_shm_head *)m.base)->protocol++;
        ck_fails(spk_memory_map(&view, fd, &err), err, SPK_E_UNSUPPORTED, "this worker speaks");
        close(fd);
        spk_memory_free(&m);
    }
    ck_fails(spk_memory_map(&view, STDIN_FILENO, &err), err, SPK_E_FORMAT, "memory of 0 bytes");
    spec->arena_bytes = UINT64_MAX / 4;
    ck_fails(spk_memory_layout(&head, spec, ds, &(spk_choice){0}, in_dir("ds"), 5, &err), err, SPK_E_LIMIT,
             "more than can be addressed");
    free(spec);
}
END_TEST

static spk_slot *begin(spk_ring *r, uint32_t answers)
{
    spk_slot *slot = spk_ring_find_free(r);
    if (slot)
        spk_ring_begin(r, slot, 0, (spk_batch_range){r->next * 8, 8}, answers);
    return slot;
}

START_TEST(ring_states)
{
    spk_ring r;
    spk_done_packet done = {.kind = SPK_PACKET_DONE, .row = SPK_ROW_NONE}, fail = {.kind = SPK_PACKET_FAIL};
    ck_ok(spk_ring_init(&r, 3, &err), err);
    spk_slot *a = begin(&r, 2), *b = begin(&r, 2), *c = begin(&r, 2);
    ck_assert(a->number == 0 && b->number == 1 && c->number == 2);
    ck_assert_ptr_null(begin(&r, 2));
    spk_ring_answer(&r, 0, &done);
    spk_ring_answer(&r, 1, &done);
    ck_assert_ptr_null(spk_ring_ready(&r));
    done.counters.substituted = 2;
    spk_ring_answer(&r, 0, &done);
    ck_assert_ptr_eq(spk_ring_ready(&r), a);
    ck_assert_uint_eq(a->sum.substituted, 2);
    spk_ring_hand(&r, a, false);
    ck_assert_uint_eq(r.held, 1);
    fail.row = 6;
    (void)spk_error_set(&fail.error, SPK_E_FORMAT, "six");
    spk_ring_answer(&r, 1, &fail);
    spk_ring_answer(&r, 2, &fail);
    fail.row = 4;
    (void)spk_error_set(&fail.error, SPK_E_IO, "four");
    spk_ring_answer(&r, 2, &fail);
    ck_assert_uint_eq(spk_ring_ready_count(&r), 2);
    ck_assert_str_eq(b->error.text, "six");
    ck_assert_str_eq(c->error.text, "four"); /* the lowest row, whoever came first */
    spk_ring_hand(&r, b, true);
    ck_assert_int_eq(b->state, SPK_SLOT_FREE);
    spk_ring_abandon(&r);
    ck_assert_int_eq(c->state, SPK_SLOT_FREE);
    ck_assert_uint_eq(spk_ring_ahead(&r), 0);
    b = begin(&r, 1);
    ck_assert_uint_eq(b->serial, 3);
    ck_assert_int_eq(b->error.code, SPK_OK);
    spk_ring_abandon(&r);
    ck_assert_int_eq(b->state, SPK_SLOT_RUNNING); /* a worker may still write into it */
    c = begin(&r, 1);
    spk_ring_answer(&r, 3, &done);
    ck_assert_int_eq(b->state, SPK_SLOT_FREE);
    spk_ring_answer(&r, 4, &done);
    ck_assert_ptr_eq(spk_ring_ready(&r), c);
    spk_ring_release(&r, a->number);
    spk_ring_release(&r, a->number); /* once only */
    ck_assert_uint_eq(r.held, 0);
    begin(&r, 1);
    spk_ring_abandon(&r);
    spk_ring_clear(&r);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(r.slots[i].state, SPK_SLOT_FREE);
    ck_assert_uint_eq(begin(&r, 1)->serial, 6);
    spk_ring_free(&r);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("load_memory");
    TCase *t = tcase_create("limits"), *m = tcase_create("memory");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, v2_limits_up_the_tree);
    tcase_add_test(t, v1_limits);
    tcase_add_test(t, cpu_quotas);
    tcase_add_test(t, free_memory);
    tcase_add_test(t, oom_kills_are_seen);
    tcase_add_test(t, ring_states);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(m, load_setup, load_teardown);
    tcase_add_test(m, layout_and_catalog);
    suite_add_tcase(s, m);
    return s;
}

CHECK_MAIN(suite)
