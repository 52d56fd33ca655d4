/* memfd and anonymous memory, and the part of it that is written once: head, spec and catalog. */
#define _GNU_SOURCE
#include "load/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "dataset/dataset.h"

/* Adds a part of n x size bytes, aligned; its place is *at. */
static bool place(uint64_t *end, uint64_t align, uint64_t n, uint64_t size, uint64_t *at)
{
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(n, size, &bytes) || !spk_add_u64(*end, align - 1, end))
        return false;
    *at = *end / align * align;
    return spk_add_u64(*at, bytes, end) && *end <= INT64_MAX;
}

/* Whether the shard is in the catalog: all are, but for those without a chosen sample. */
static bool is_wanted(const spk_choice *choice, const spk_shard_row *row, uint64_t *at)
{
    return spk_choice_count(choice, row, at) > 0 || !choice->indices;
}

static spk_status names_bytes(const spk_dataset *dataset, const spk_choice *choice, const char *folder, uint64_t *out,
                              spk_error *err)
{
    spk_shard_row row;
    spk_dataset_stat stat;
    uint64_t at = 0;
    *out = strlen(folder) + 1;
    spk_dataset_get_stat(dataset, &stat);
    for (uint64_t i = 0; i < stat.shards; i++) {
        SPK_TRY(spk_dataset_get_shard(dataset, i, &row, err));
        if (is_wanted(choice, &row, &at))
            *out += strlen(row.path) + 1;
    }
    return SPK_OK;
}

static spk_status net_bytes(const spk_dataset *dataset, uint64_t *out, spk_error *err)
{
    spk_buf text = {0};
    *out = 0;
    if (!dataset->net)
        return SPK_OK;
    spk_status status = spk_net_pack(dataset->net, &text, err);
    *out = text.len;
    spk_buf_free(&text);
    if (status == SPK_OK && *out > SPK_NET_TEXT_MAX)
        status = spk_error_set(err, SPK_E_LIMIT, "mirrors and options of %" PRIu64 " bytes, at most %u are allowed",
                               *out, SPK_NET_TEXT_MAX);
    return status;
}

spk_status spk_memory_layout(spk_shm_head *out, const spk_load_spec *spec, const spk_dataset *dataset,
                             const spk_choice *choice, const char *folder, uint32_t slots, spk_error *err)
{
    uint64_t end = sizeof *out, names = 0, workers = spec->workers > 0 ? spec->workers : 1;
    memset(out, 0, sizeof *out);
    SPK_TRY(names_bytes(dataset, choice, folder, &names, err));
    SPK_TRY(net_bytes(dataset, &out->net_bytes, err));
    out->protocol = SPK_PROTOCOL;
    memcpy(out->version, SPK_VERSION_STRING, sizeof SPK_VERSION_STRING);
    out->slots = slots;
    out->slot_stride = spk_slot_stride(spec);
    bool fits = place(&end, 64, 1, sizeof *spec, &out->spec);
    fits = fits && place(&end, 64, spec->shards + 1, sizeof(uint64_t), &out->first_sample);
    fits = fits && place(&end, 64, spec->shards, sizeof(spk_shm_shard), &out->shards);
    if (choice->indices)
        fits = fits && place(&end, 64, spec->samples, sizeof(uint32_t), &out->chosen);
    fits = fits && place(&end, 64, 1, names, &out->names);
    fits = fits && place(&end, SPK_PAGE_MAX, workers, sizeof(spk_activity), &out->activity_at);
    if (dataset->net)
        fits = fits && place(&end, 64, 1, sizeof(spk_net_shared), &out->net_shared);
    fits = fits && place(&end, SPK_PAGE_MAX, slots, out->slot_stride, &out->slots_at);
    fits = fits && place(&end, SPK_PAGE_MAX, slots, spec->arena_bytes, &out->arenas_at);
    fits = fits && place(&end, SPK_PAGE_MAX, 0, 0, &out->bytes);
    if (!fits)
        return spk_error_set(err, SPK_E_LIMIT,
                             "%u slots of %" PRIu64 " bytes with arenas of %" PRIu64
                             " bytes: more than can be addressed",
                             slots, out->slot_stride, spec->arena_bytes);
    return SPK_OK;
}

/* Shards and samples that are not chosen are left out. */
static spk_status fill(uint8_t *base, const spk_shm_head *layout, const spk_load_spec *spec, const spk_dataset *dataset,
                       const spk_choice *choice, const char *folder, spk_error *err)
{
    spk_shard_row row;
    memcpy(base, layout, sizeof *layout);
    memcpy(base + layout->spec, spec, sizeof *spec);
    uint64_t *first = (uint64_t *)(base + layout->first_sample), i = 0, sample = 0;
    spk_shm_shard *shards = (spk_shm_shard *)(base + layout->shards);
    uint32_t *chosen = choice->indices ? (uint32_t *)(base + layout->chosen) : NULL;
    char *names = (char *)base + layout->names;
    size_t at = strlen(folder) + 1;
    memcpy(names, folder, at); /* layout->folder is 0 */
    for (uint64_t number = 0; i < spec->shards; number++) {
        SPK_TRY(spk_dataset_get_shard(dataset, number, &row, err));
        uint64_t from = sample;
        if (!is_wanted(choice, &row, &sample))
            continue;
        first[i] = chosen ? from : row.first_sample;
        for (uint64_t k = from; chosen && k < sample; k++)
            chosen[k] = (uint32_t)(choice->indices[k] - row.first_sample);
        shards[i] = (spk_shm_shard){.name = at,
                                    .first = row.first_sample,
                                    .samples = row.samples,
                                    .frames = row.frames,
                                    .bytes = row.bytes,
                                    .tar_bytes = row.tar_bytes,
                                    .index_offset = row.index_offset};
        memcpy(shards[i++].tail_sha256, row.tail_sha256, sizeof row.tail_sha256);
        size_t n = strlen(row.path) + 1;
        memcpy(names + at, row.path, n);
        at += n;
    }
    first[spec->shards] = spec->samples;
    return SPK_OK;
}

static spk_status make_memfd(uint64_t bytes, int *out, spk_error *err)
{
    int fd = memfd_create("shardpack-loader", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return spk_error_sys(err, errno, "memfd_create");
    /* Nobody can cut it short below a mapping. */
    if (ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        int cause = errno;
        close(fd);
        return spk_error_sys(err, cause, "memfd of %" PRIu64 " bytes", bytes);
    }
    *out = fd;
    return SPK_OK;
}

/* A core dump would bring every page of slots and arenas into memory first, also those that nobody has touched. */
static void keep_from_dumps(const spk_memory *m)
{
    uint64_t at = spk_memory_head(m)->slots_at;
    (void)madvise(m->base + at, (size_t)(m->bytes - at), MADV_DONTDUMP);
}

spk_status spk_memory_new(spk_memory *out, const spk_shm_head *layout, const spk_load_spec *spec,
                          const spk_dataset *dataset, const spk_choice *choice, const char *folder, bool shared,
                          spk_error *err)
{
    spk_memory m = {.base = NULL, .bytes = layout->bytes, .fd = -1};
    memset(out, 0, sizeof *out);
    out->fd = -1;
    if (shared)
        SPK_TRY(make_memfd(m.bytes, &m.fd, err));
    int flags = shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *p = mmap(NULL, (size_t)m.bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, m.fd, 0);
    if (p == MAP_FAILED) {
        spk_status status = spk_error_sys(err, errno, "mapping %" PRIu64 " bytes for the slots", m.bytes);
        if (m.fd >= 0)
            close(m.fd);
        return status;
    }
    m.base = p;
    spk_status status = fill(m.base, layout, spec, dataset, choice, folder, err);
    if (status < 0) {
        spk_memory_free(&m);
        return status;
    }
    keep_from_dumps(&m);
    *out = m;
    return SPK_OK;
}

static spk_status check_head(const spk_shm_head *head, uint64_t bytes, spk_error *err)
{
    if (head->protocol != SPK_PROTOCOL)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "memory of protocol %08" PRIx32 ", this worker speaks %08x",
                             head->protocol, SPK_PROTOCOL);
    if (strncmp(head->version, SPK_VERSION_STRING, sizeof head->version) != 0)
        return spk_error_set(err, SPK_E_UNSUPPORTED,
                             "memory of version %.*s, this worker is of version " SPK_VERSION_STRING,
                             (int)sizeof head->version, head->version);
    if (head->bytes != bytes || head->activity_at > bytes || head->activity_at % SPK_PAGE_MAX != 0 ||
        head->slots_at > bytes)
        return spk_error_set(err, SPK_E_FORMAT, "memory of %" PRIu64 " bytes, its head says %" PRIu64, bytes,
                             head->bytes);
    return SPK_OK;
}

spk_status spk_memory_map(spk_memory *out, int fd, spk_error *err)
{
    struct stat st;
    memset(out, 0, sizeof *out);
    out->fd = -1;
    if (fstat(fd, &st) != 0)
        return spk_error_sys(err, errno, "file descriptor %d", fd);
    if (st.st_size < (off_t)sizeof(spk_shm_head))
        return spk_error_set(err, SPK_E_FORMAT, "memory of %lld bytes", (long long)st.st_size);
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED)
        return spk_error_sys(err, errno, "mapping %lld bytes", (long long)st.st_size);
    spk_memory m = {.base = p, .bytes = (uint64_t)st.st_size, .fd = fd};
    spk_status status = check_head(spk_memory_head(&m), m.bytes, err);
    if (status == SPK_OK && mprotect(m.base, (size_t)spk_memory_head(&m)->activity_at, PROT_READ) != 0)
        status = spk_error_sys(err, errno, "mprotect");
    if (status < 0) {
        munmap(p, (size_t)m.bytes);
        return status;
    }
    keep_from_dumps(&m);
    *out = m;
    return SPK_OK;
}

void spk_memory_free(spk_memory *m)
{
    if (m->base)
        munmap(m->base, (size_t)m->bytes);
    if (m->fd >= 0)
        close(m->fd);
    m->base = NULL;
    m->fd = -1;
}
