/* What every unit test program shares: a runner and a temporary folder. Each test_<layer>_<file>.c includes this once,
 * defines `static Suite *suite(void)` and ends with CHECK_MAIN(suite). */
#ifndef CHECK_MAIN_H
#define CHECK_MAIN_H

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shardpack/error.h>

/* Fails the test with the record's text unless the call returned SPK_OK. */
#define ck_ok(call, err)                                                                                               \
    do {                                                                                                               \
        spk_status ck_status_ = (call);                                                                                \
        ck_assert_msg(ck_status_ == SPK_OK, "%s: %s: %s", #call, spk_status_name(ck_status_), (err).text);             \
    } while (0)

/* Fails unless the call returned `want` and the record's text contains `part`. */
#define ck_fails(call, err, want, part)                                                                                \
    do {                                                                                                               \
        spk_error_clear(&(err));                                                                                       \
        spk_status ck_status_ = (call);                                                                                \
        ck_assert_msg(ck_status_ == (want), "%s: got %s, expected %s (%s)", #call, spk_status_name(ck_status_),        \
                      spk_status_name(want), (err).text);                                                              \
        ck_assert_msg(strstr((err).text, (part)) != NULL, "%s: text \"%s\" lacks \"%s\"", #call, (err).text, (part));  \
    } while (0)

/* True under valgrind, which starts no program that is missing, reserves descriptors and has memory of its own. */
static inline int check_valgrind(void)
{
    return getenv("CHECK_VALGRIND") != NULL;
}

static inline int check_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

/* Makes a fresh folder; remove it with check_remove_tree. The returned string is malloc'ed. */
static inline char *check_temp_folder(void)
{
    const char *base = getenv("TMPDIR");
    char *path = malloc(4096);
    ck_assert_ptr_nonnull(path);
    snprintf(path, 4096, "%s/shardpack-test-XXXXXX", base && *base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(path));
    return path;
}

static inline void check_remove_tree(char *path)
{
    nftw(path, check_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

#define CHECK_MAIN(suite_fn)                                                                                           \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        SRunner *runner = srunner_create(suite_fn());                                                                  \
        srunner_run_all(runner, CK_ENV);                                                                               \
        int failed = srunner_ntests_failed(runner);                                                                    \
        srunner_free(runner);                                                                                          \
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;                                                                   \
    }

#endif
