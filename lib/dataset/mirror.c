/* spk_mirror: threads over shards, then table and manifest, then what is old. */
#include "dataset/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/options.h"
#include "base/threads.h"
#include "dataset/publish.h"
#include "io/url.h"

#define JOBS 4
#define JOBS_MAX 64
#define TICK_NS 100000000L

typedef struct run {
    spk_dataset *dataset;
    spk_mirror_options options;
    spk_mirror_result *result;
    spk_dest dest;
    _Atomic uint64_t next, done_bytes;
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int working;          /* guarded by lock */
    spk_status status;    /* guarded by lock: of the first shard that failed */
    spk_error error;      /* guarded by lock */
    uint64_t there, sent; /* guarded by lock */
} run;

/* One thread's work. */
typedef struct job {
    run *run;
    spk_put *put;
    uint64_t counted; /* bytes of the shard under way that are in done_bytes */
} job;

static void count(job *j, uint64_t bytes)
{
    if (bytes > j->counted)
        atomic_fetch_add(&j->run->done_bytes, bytes - j->counted);
    j->counted = bytes > j->counted ? bytes : j->counted;
}

/* Threads that wait for a server are to end. */
static int is_stopped(void *user)
{
    return atomic_load(&((run *)user)->stop);
}

static int on_sent(void *user, uint64_t bytes)
{
    job *j = user;
    count(j, bytes);
    return atomic_load(&j->run->stop);
}

static spk_status one_shard(job *j, uint64_t number, bool *there, spk_error *err)
{
    run *r = j->run;
    spk_feed feed;
    SPK_TRY(r->dest.net ? spk_net_look(&r->dest, j->put, r->dataset, number, there, err)
                        : spk_folder_look(&r->dest, r->dataset, number, there, err));
    if (*there || r->options.dry_run)
        return SPK_OK;
    spk_status st = spk_feed_open(&feed, r->dataset, number, err);
    if (st == SPK_OK)
        st = r->dest.net ? spk_net_send(&r->dest, j->put, &feed, err)
                         : spk_folder_send(&r->dest, &feed, on_sent, j, err);
    spk_feed_close(&feed);
    return st;
}

static void *work(void *arg)
{
    run *r = arg;
    job j = {.run = r};
    spk_error err;
    spk_error_clear(&err);
    spk_status st = r->dest.net ? spk_put_new(&j.put, r->dest.net, on_sent, &j, &err) : SPK_OK;
    while (st == SPK_OK && !atomic_load(&r->stop)) {
        uint64_t number = atomic_fetch_add(&r->next, 1);
        bool there = false;
        if (number >= r->dataset->catalog.n)
            break;
        j.counted = 0;
        st = one_shard(&j, number, &there, &err);
        count(&j, r->dataset->catalog.rows[number].bytes);
        pthread_mutex_lock(&r->lock);
        r->there += there;
        r->sent += st == SPK_OK && !there ? r->dataset->catalog.rows[number].bytes : 0;
        pthread_mutex_unlock(&r->lock);
    }
    spk_put_free(j.put);
    pthread_mutex_lock(&r->lock);
    if (st < 0 && r->status == SPK_OK) {
        r->status = st;
        r->error = err;
        atomic_store(&r->stop, true);
    }
    r->working--;
    pthread_cond_signal(&r->ended);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static int is_cancelled(void *user)
{
    run *r = user;
    return r->options.on_progress &&
           r->options.on_progress(r->options.user, atomic_load(&r->done_bytes), r->dataset->catalog.bytes) != 0;
}

static int is_cancelled_put(void *user, uint64_t sent)
{
    (void)sent;
    return is_cancelled(user);
}

/* Who is asked while somebody waits for a server. */
static void set_waits(run *r, int (*on_wait)(void *user))
{
    if (r->dataset->net)
        spk_net_on_wait(r->dataset->net, on_wait, r);
    if (r->dest.net)
        spk_net_on_wait(r->dest.net, on_wait, r);
}

/* Until all threads have ended; the caller's thread tells of the progress. */
static bool wait_for_all(run *r)
{
    bool cancelled = false;
    pthread_mutex_lock(&r->lock);
    while (r->working > 0) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TICK_NS;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&r->ended, &r->lock, &until);
        pthread_mutex_unlock(&r->lock);
        if (!cancelled && is_cancelled(r)) {
            cancelled = true;
            atomic_store(&r->stop, true);
        }
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return cancelled;
}

static spk_status send_shards(run *r, spk_error *err)
{
    pthread_t threads[JOBS_MAX];
    int jobs = r->options.jobs > 0 ? r->options.jobs : JOBS, started = 0;
    jobs = jobs < JOBS_MAX ? jobs : JOBS_MAX;
    jobs = (uint64_t)jobs < r->dataset->catalog.n ? jobs : (int)r->dataset->catalog.n;
    pthread_mutex_init(&r->lock, NULL);
    spk_cond_init_monotonic(&r->ended);
    spk_status st = SPK_OK;
    set_waits(r, is_stopped);
    pthread_mutex_lock(&r->lock); /* none ends before all are counted */
    while (started < jobs && spk_thread_start(&threads[started], work, r))
        started++;
    r->working = started;
    pthread_mutex_unlock(&r->lock);
    if (started == 0 && jobs > 0)
        st = spk_error_sys(err, EAGAIN, "cannot start a thread");
    bool cancelled = wait_for_all(r);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&r->ended);
    pthread_mutex_destroy(&r->lock);
    if (st == SPK_OK && cancelled)
        st = spk_error_set(err, SPK_E_CANCELLED, "cancelled; the same call goes on where this one stopped");
    else if (st == SPK_OK && r->status < 0) {
        *err = r->error;
        st = r->status;
    }
    r->result->shards_there = r->there;
    r->result->bytes_sent = r->sent;
    return st;
}

static spk_status read_table(const spk_dataset *d, spk_buf *out, spk_error *err)
{
    spk_source *source = NULL;
    uint8_t *text = NULL;
    const spk_source_check check = {d->manifest.table_sha256, sizeof d->manifest.table_sha256, 0};
    size_t n = (size_t)d->manifest.table_bytes;
    spk_status st =
        d->net ? spk_dataset_fetch_table(d, &text, &source, err) : spk_source_open(&source, d->table_path, err);
    if (st == SPK_OK)
        st = spk_buf_reserve(out, n, err);
    if (st == SPK_OK)
        st = spk_source_pread_checked(source, out->data, n, 0, &check, err);
    if (st == SPK_OK)
        out->len = n;
    spk_source_close(source);
    free(text);
    return st;
}

static spk_status publish(run *r, spk_error *err)
{
    spk_buf table = {0};
    spk_put *put = NULL;
    set_waits(r, is_cancelled);
    spk_status st = read_table(r->dataset, &table, err);
    if (st == SPK_OK && r->dest.net)
        st = spk_put_new(&put, r->dest.net, is_cancelled_put, r, err);
    if (st == SPK_OK)
        st = put ? spk_net_publish(&r->dest, put, r->dataset, &table, err)
                 : spk_folder_publish(&r->dest, r->dataset, &table, err);
    if (st == SPK_OK && put && r->options.prune)
        st = spk_net_prune(&r->dest, put, r->dataset, r->result, err);
    spk_put_free(put);
    spk_buf_free(&table);
    return st;
}

/* The path of a folder, which may be given as a file URL. */
static spk_status take_path(spk_dest *t, const char *dest, spk_error *err)
{
    const char *path = strncmp(dest, "file://", 7) == 0 ? dest + 7 : dest;
    bool url = path != dest;
    if (url && strncmp(path, "localhost/", 10) == 0)
        path += strlen("localhost");
    if (url && path[0] != '/')
        return spk_error_set(err, SPK_E_INVALID, "%s: a file URL needs an absolute path: file:///...", dest);
    t->folder = strdup(path);
    if (!t->folder)
        return spk_error_nomem(err, strlen(path) + 1);
    spk_status status = url ? spk_url_decode(t->folder, path, err) : SPK_OK;
    if (status < 0)
        spk_error_prefix(err, "%s", dest);
    return status;
}

/* Nothing would be sent, and yet the manifest be written anew. */
static spk_status refuse_itself(const run *r, spk_error *err)
{
    struct stat here, there;
    if (r->dataset->net || r->dest.dirfd < 0 || stat(r->dataset->folder, &here) != 0 ||
        fstat(r->dest.dirfd, &there) != 0 || here.st_dev != there.st_dev || here.st_ino != there.st_ino)
        return SPK_OK;
    return spk_error_set(err, SPK_E_INVALID, "%s: is the dataset itself", r->dest.name);
}

static spk_status open_folder(run *r, const char *dest, spk_error *err)
{
    spk_dest *t = &r->dest;
    SPK_TRY(take_path(t, dest, err));
    if (!r->options.dry_run && mkdir(t->folder, 0777) != 0 && errno != EEXIST)
        return spk_error_sys(err, errno, "%s", dest);
    t->dirfd = open(t->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->dirfd < 0)
        return r->options.dry_run && errno == ENOENT ? SPK_OK : spk_error_sys(err, errno, "%s", dest);
    SPK_TRY(refuse_itself(r, err));
    return r->options.dry_run ? SPK_OK : spk_work_lock(t->dirfd, dest, &t->lock, err);
}

static spk_status open_dest(run *r, const char *dest, spk_error *err)
{
    spk_net_options options = {.cache_dir = ""};
    spk_dest *t = &r->dest;
    spk_dataset_options source = {0};
    SPK_TRY(spk_options_copy(&source, sizeof source, r->options.source, err));
    options.plain_credentials = source.plain_credentials;
    options.deadline = source.deadline;
    t->name = dest;
    t->dirfd = t->lock = -1;
    if (!spk_url_is_remote(dest)) {
        if (spk_url_scheme(dest) && strncmp(dest, "file://", 7) != 0)
            return spk_error_set(err, SPK_E_UNSUPPORTED, "%s: must be a folder, http(s):// or s3://", dest);
        return open_folder(r, dest, err);
    }
    SPK_TRY(spk_net_new(&t->net, &options, err));
    SPK_TRY(spk_net_add_mirror(t->net, dest, err));
    t->shown = strdup(spk_net_mirror_name(t->net, 0));
    return t->shown ? SPK_OK : spk_error_nomem(err, strlen(dest));
}

static void close_dest(spk_dest *t)
{
    if (t->lock >= 0) {
        unlinkat(t->dirfd, SPK_WORK_LOCK, 0);
        unlinkat(t->dirfd, SPK_WORK_FOLDER, AT_REMOVEDIR);
        close(t->lock);
    }
    if (t->dirfd >= 0)
        close(t->dirfd);
    spk_net_free(t->net);
    free(t->shown);
}

/* The packer's own prune, once the lock is free. */
static spk_status prune_folder(const run *r, spk_error *err)
{
    spk_prune_result pruned = {0};
    SPK_TRY(spk_prune(r->dest.folder, NULL, &pruned, err));
    r->result->pruned_files = pruned.files;
    r->result->pruned_bytes = pruned.bytes;
    return SPK_OK;
}

spk_status spk_mirror(const char *dataset, const char *dest, const spk_mirror_options *options,
                      spk_mirror_result *result, spk_error *err)
{
    spk_mirror_result unused = {0};
    spk_error local;
    run r = {.result = result ? result : &unused, .dest = {.dirfd = -1, .lock = -1}};
    memset(r.result, 0, sizeof *r.result);
    spk_error_clear(&local);
    SPK_TRY(spk_options_copy(&r.options, sizeof r.options, options, err));
    if (!dest || !*dest)
        return spk_error_set(err, SPK_E_INVALID, "the destination is empty");
    spk_status st = spk_dataset_open(&r.dataset, dataset, r.options.source, &local);
    if (st == SPK_OK)
        st = open_dest(&r, dest, &local);
    if (st == SPK_OK) {
        r.result->shards = r.dataset->catalog.n;
        st = send_shards(&r, &local);
    }
    if (st == SPK_OK && !r.options.dry_run)
        st = publish(&r, &local);
    const bool folder = !r.dest.net;
    close_dest(&r.dest);
    if (st == SPK_OK && folder && r.options.prune && !r.options.dry_run)
        st = prune_folder(&r, &local);
    free(r.dest.folder);
    spk_dataset_close(r.dataset);
    if (st < 0 && err)
        *err = local;
    return st;
}
