/* io/: the cache without a network: pieces, claims, leases, limit. */
#include "check_main.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "io/cache.h"
#include "io/cache_impl.h"
#include "io/net.h"
#include "io/source.h"

#define UNIT 65536u

static char *folder;
static spk_net_shared counts;
static spk_error err;
static uint8_t piece[UNIT];

static void setup(void)
{
    folder = check_temp_folder();
    memset(&counts, 0, sizeof counts);
    memset(piece, 0x5a, sizeof piece);
}

static void teardown(void)
{
    check_remove_tree(folder);
}

static spk_cache *open_cache(uint64_t limit)
{
    spk_cache *c = NULL;
    ck_ok(spk_cache_open(&c, folder, limit, &counts, &err), err);
    return c;
}

static spk_cache_entry *entry(spk_cache *c, uint8_t number)
{
    uint8_t digest[32] = {number};
    bool busy = true;
    spk_cache_entry *e = spk_cache_entry_open(c, digest, 8 * UNIT, 8, &busy);
    ck_assert(!busy);
    return e;
}

static bool store(spk_cache_entry *e, uint64_t unit)
{
    if (spk_cache_claim(e, unit) != SPK_CLAIM_MINE)
        return false;
    spk_cache_store(e, unit, unit * UNIT, piece, UNIT);
    return spk_cache_has(e, unit);
}

START_TEST(pieces_come_back)
{
    uint8_t got[UNIT];
    spk_cache *c = open_cache(0);
    spk_cache_entry *e = entry(c, 1);
    ck_assert_ptr_nonnull(e);
    ck_assert(!spk_cache_read(e, 3, 3 * UNIT, got, UNIT));
    ck_assert(store(e, 3));
    ck_assert(spk_cache_read(e, 3, 3 * UNIT, got, UNIT));
    ck_assert_mem_eq(got, piece, UNIT);
    ck_assert(!spk_cache_has(e, 2) && !spk_cache_has(e, 8));
    spk_cache_drop(e, 3);
    ck_assert(!spk_cache_has(e, 3));
    ck_assert(store(e, 3));
    spk_cache_entry_close(e);
    spk_cache_close(c);
    c = open_cache(0);
    e = entry(c, 1);
    ck_assert(spk_cache_has(e, 3));
    spk_cache_entry_close(e);
    uint8_t digest[32] = {1};
    bool busy = true;
    ck_assert_ptr_null(spk_cache_entry_open(c, digest, 8 * UNIT, 9, &busy)); /* another shape of the same name */
    ck_assert(!busy);
    spk_cache_close(c);
}
END_TEST

START_TEST(one_fetches_the_others_wait)
{
    spk_cache *c = open_cache(0), *d = open_cache(0);
    spk_cache_entry *a = entry(c, 1), *b = entry(d, 1);
    ck_assert_int_eq(spk_cache_claim(a, 0), SPK_CLAIM_MINE);
    ck_assert_int_eq(spk_cache_claim(b, 0), SPK_CLAIM_OTHERS);
    ck_assert_int_eq(spk_cache_claim(b, 1), SPK_CLAIM_MINE);
    spk_cache_entry_close(a); /* as if its process had died */
    ck_assert_int_eq(spk_cache_claim(b, 0), SPK_CLAIM_MINE);
    a = entry(c, 1);
    ck_assert(!spk_cache_has(a, 0));
    spk_cache_store(b, 0, 0, piece, UNIT);
    ck_assert_int_eq(spk_cache_claim(a, 0), SPK_CLAIM_THERE); /* stored since a has looked */
    spk_cache_drop(b, 0);
    ck_assert_int_eq(spk_cache_claim(b, 0), SPK_CLAIM_MINE); /* a keeps no claim */
    spk_cache_entry_close(a);
    spk_cache_entry_close(b);
    spk_cache_close(c);
    spk_cache_close(d);
}
END_TEST

static uint64_t bytes(void)
{
    spk_cache_look_result r;
    ck_ok(spk_cache_look(folder, false, &r, &err), err);
    return r.bytes;
}

START_TEST(old_entries_go_open_ones_stay)
{
    const uint64_t limit = 1 << 20;
    spk_cache *c = open_cache(limit);
    spk_cache_entry *open = entry(c, 1);
    for (uint64_t u = 0; u < 4; u++)
        ck_assert(store(open, u));
    for (uint8_t i = 2; i < 20; i++) {
        spk_cache_entry *e = entry(c, i);
        for (uint64_t u = 0; u < 4; u++) {
            ck_assert(store(e, u));
            ck_assert_uint_le(bytes(), limit);
        }
        spk_cache_entry_close(e);
    }
    spk_cache_entry *first = entry(c, 2), *last = entry(c, 19);
    ck_assert(!spk_cache_has(first, 0));
    ck_assert(spk_cache_has(last, 0) && spk_cache_has(open, 0));
    spk_cache_entry_close(first);
    spk_cache_entry_close(last);
    spk_cache_entry_close(open);
    spk_cache_close(c);
}
END_TEST

START_TEST(what_does_not_fit_is_not_stored)
{
    spk_cache *c = open_cache(1 << 20);
    spk_cache_entry *e[8];
    uint64_t stored = 0;
    for (uint8_t i = 0; i < 8; i++) { /* all open: nothing can go */
        e[i] = entry(c, (uint8_t)(i + 1));
        for (uint64_t u = 0; e[i] && u < 8; u++)
            stored += store(e[i], u);
    }
    ck_assert_uint_gt(stored, 8);
    ck_assert_uint_lt(stored, 16);
    ck_assert(e[7] || counts.cache_off == EDQUOT);
    ck_assert_uint_le(bytes(), 1 << 20);
    for (uint8_t i = 0; i < 8; i++)
        spk_cache_entry_close(e[i]);
    spk_cache_close(c);
    spk_cache_look_result left;
    ck_ok(spk_cache_look(folder, true, &left, &err), err);
    ck_assert_uint_eq(left.entries, 0);
}
END_TEST

/* The map of object 1 as a process leaves it that has just begun to make it, and goes on only when this is closed. */
static int begin_map(void)
{
    char path[4200], digest[65] = "01";
    memset(digest + 2, '0', 62);
    snprintf(path, sizeof path, "%s/shardpack-cache-1/%s.map", folder, digest);
    int fd = open(path, O_RDWR | O_CREAT, 0666);
    ck_assert(fd >= 0 && spk_cache_lock(fd, F_WRLCK, SPK_CACHE_LEASE, false));
    return fd;
}

START_TEST(one_that_is_being_made_is_busy)
{
    const uint8_t digest[32] = {1};
    bool busy = false;
    spk_cache *c = open_cache(0);
    int fd = begin_map();
    for (int i = 0; i < 20; i++) {
        ck_assert_ptr_null(spk_cache_entry_open(c, digest, 8 * UNIT, 8, &busy));
        ck_assert(busy);
    }
    close(fd);
    spk_cache_entry *e = entry(c, 1);
    ck_assert(store(e, 3));
    ck_assert_uint_eq(counts.cache_off, 0); /* nothing to warn of */
    spk_cache_entry_close(e);
    spk_cache_close(c);
}
END_TEST

static void *end_soon(void *fd)
{
    poll(NULL, 0, 50);
    close((int)(intptr_t)fd);
    return NULL;
}

START_TEST(one_that_is_being_made_is_waited_for)
{
    const spk_net_options options = {.deadline = 300, .cache_dir = folder};
    const uint8_t digest[32] = {1};
    const spk_net_object object = {.size = 8 * UNIT, .units = 8, .digest = digest};
    spk_net *net = NULL;
    spk_source *s = NULL;
    spk_cache_look_result look;
    pthread_t maker;
    ck_ok(spk_net_new(&net, &options, &err), err);
    ck_ok(spk_net_add_mirror(net, "http://127.0.0.1:1/", &err), err);
    ck_assert_int_eq(pthread_create(&maker, NULL, end_soon, (void *)(intptr_t)begin_map()), 0);
    ck_ok(spk_net_open(net, "object", &object, &s, &err), err);
    ck_ok(spk_cache_look(folder, false, &look, &err), err);
    ck_assert_uint_eq(look.entries, 1);
    ck_assert_uint_eq(look.in_use, 1);
    pthread_join(maker, NULL);
    spk_source_close(s);
    spk_net_free(net);
}
END_TEST

START_TEST(a_folder_of_something_else_is_refused)
{
    char path[4200];
    spk_cache *c = NULL;
    ck_fails(spk_cache_open(&c, folder, 1000, &counts, &err), err, SPK_E_INVALID, "at least 1048576");
    snprintf(path, sizeof path, "%s/shardpack-cache-1", folder);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/shardpack-cache-1/account", folder);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fputs("my savings: 12", f);
    fclose(f);
    ck_fails(spk_cache_open(&c, folder, 0, &counts, &err), err, SPK_E_INVALID, "is not of a shardpack cache");
    ck_assert_ptr_null(c);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("io/cache");
    TCase *t = tcase_create("cache");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, pieces_come_back);
    tcase_add_test(t, one_fetches_the_others_wait);
    tcase_add_test(t, old_entries_go_open_ones_stay);
    tcase_add_test(t, what_does_not_fit_is_not_stored);
    tcase_add_test(t, one_that_is_being_made_is_busy);
    tcase_add_test(t, one_that_is_being_made_is_waited_for);
    tcase_add_test(t, a_folder_of_something_else_is_refused);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
