/* What the tests of load/ share: a small dataset of several shards, loaders over it, and digests of what they deliver.
 * The worker program is the one built beside the tests, unless a test names another. */
#ifndef LOAD_FIXTURE_H
#define LOAD_FIXTURE_H

#include "pack_fixture.h"

#include "load/loader_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/wait.h>

#define LOAD_SAMPLES 120u
#define LOAD_BATCHES_MAX 4096u

static spk_dataset *ds;
static spk_error err;
static char last_note[2048];
static unsigned notes;

static const spk_column load_columns[] = {
    {.kind = SPK_COLUMN_BYTES, .field = "gif"},
    {.kind = SPK_COLUMN_BYTES, .field = "txt", .optional = 1},
    {.kind = SPK_COLUMN_LABEL},
    {.kind = SPK_COLUMN_INDEX},
    {.kind = SPK_COLUMN_VALID},
    {.kind = SPK_COLUMN_KEY},
};
enum { COL_GIF, COL_TXT, COL_LABEL, COL_INDEX, COL_VALID, COL_KEY, COLS };

static inline void take_note(void *user, const char *text)
{
    (void)user;
    notes++;
    snprintf(last_note, sizeof last_note, "%s", text);
}

/* $(BUILD)/shardpack-worker, two folders above the test. */
static inline void use_built_worker(void)
{
    char self[4096], path[4200];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(n, 0);
    self[n] = '\0';
    snprintf(path, sizeof path, "%s/../../shardpack-worker", dirname(self));
    setenv("SHARDPACK_WORKER", path, 1);
}

static inline void load_setup(void)
{
    spk_pack_result r;
    setup();
    put_tree(3, (int)LOAD_SAMPLES / 3, 3000);
    spk_pack_options o = {.shard_samples = 13, .frame_samples = 4, .jobs = 1, .check = SPK_CHECK_NONE};
    ck_ok(pack("ds", o, &r, &err), err);
    ck_assert_uint_eq(r.samples, LOAD_SAMPLES);
    ck_ok(spk_dataset_open(&ds, in_dir("ds"), NULL, &err), err);
    use_built_worker();
    spk_error_clear(&err);
}

/* Every worker was reaped. */
static inline void no_children(void)
{
    pid_t left = waitpid(-1, NULL, WNOHANG);
    ck_assert_msg(left == -1 && errno == ECHILD, "child %ld is left after \"%s\"", (long)left, err.text);
}

static inline void load_teardown(void)
{
    no_children();
    spk_dataset_close(ds);
    teardown();
}

static inline spk_loader_options load_options(int workers)
{
    return (spk_loader_options){.size = sizeof(spk_loader_options),
                                .batch_size = 8,
                                .has_workers = 1,
                                .workers = workers,
                                .shuffle = 1,
                                .seed = 7,
                                .chunk = 2,
                                .lane_groups = 2,
                                .lane_buffer = 5,
                                .timeout = 20,
                                .columns = load_columns,
                                .column_count = COLS,
                                .on_note = take_note};
}

static inline spk_loader *load_open(spk_loader_options o)
{
    spk_loader *l = NULL;
    ck_ok(spk_loader_open(&l, ds, &o, &err), err);
    return l;
}

static inline uint64_t digest_bytes(uint64_t h, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3u;
    return h;
}

/* Of all values of a batch, wherever they lie. */
static inline uint64_t digest_batch(const spk_batch *b)
{
    uint64_t h = 0xcbf29ce484222325u, n = spk_batch_rows(b);
    const uint64_t head[2] = {n, spk_batch_position(b)};
    h = digest_bytes(h, head, sizeof head);
    for (size_t c = 0;; c++) {
        spk_view v;
        if (spk_batch_column(b, c, &v, NULL) != SPK_OK)
            return h;
        if (!v.offsets) {
            h = digest_bytes(h, v.data, (size_t)v.bytes);
            continue;
        }
        for (uint64_t r = 0; r < n; r++) {
            h = digest_bytes(h, (const uint8_t *)v.data + v.offsets[2 * r], (size_t)v.offsets[2 * r + 1]);
            h = digest_bytes(h, &v.offsets[2 * r + 1], 8);
        }
    }
}

typedef struct load_record {
    uint64_t digests[LOAD_BATCHES_MAX];
    size_t n;
} load_record;

/* Records up to `most` batches or to the end of the epoch; returns what stopped it. */
static inline spk_status load_run(spk_loader *l, load_record *out, size_t most)
{
    spk_batch *b = NULL;
    spk_status status = SPK_OK;
    while (most-- > 0 && (status = spk_loader_next(l, &b, &err)) == SPK_OK) {
        out->digests[out->n++] = digest_batch(b);
        spk_batch_release(b);
    }
    return status;
}

static inline void same_record(const load_record *a, const load_record *b)
{
    ck_assert_uint_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        ck_assert_msg(a->digests[i] == b->digests[i], "batch %zu differs", i);
}

/* Two epochs made in the caller, to compare with; allocated with calloc. */
static inline load_record *load_reference(spk_loader_options o, int epochs)
{
    load_record *r = calloc(1, sizeof *r);
    o.workers = 0;
    spk_loader *l = load_open(o);
    while (epochs-- > 0)
        ck_assert_int_eq(load_run(l, r, LOAD_BATCHES_MAX), SPK_END);
    spk_loader_close(l);
    return r;
}

static inline int count_entries(const char *folder)
{
    char command[256];
    int n = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%d", &n), 1);
    pclose(f);
    return n;
}

/* Descriptors of this process. */
static inline int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

#endif
