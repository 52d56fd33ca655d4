/* Datasets by URL: what workers are told of mirrors; what a loader can tell of them, per mirror, added up over the
 * workers and the trainer's own requests; and notes on what costs time. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "dataset/dataset.h"
#include "load/loader_parts.h"

static uint64_t get(const _Atomic uint64_t *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

/* Of all processes of the loader; NULL if the dataset is a folder. */
static const spk_net_shared *of_workers(const spk_loader *l)
{
    const spk_shm_head *head = spk_memory_head(&l->core->memory);
    return head->net_bytes > 0 ? (const spk_net_shared *)(l->core->memory.base + head->net_shared) : NULL;
}

spk_status spk_loader_net_text(const spk_loader *l, spk_buf *out, spk_error *err)
{
    uint64_t bytes = spk_memory_head(&l->core->memory)->net_bytes;
    if (bytes == 0)
        return SPK_OK;
    SPK_TRY(spk_net_pack(l->dataset->net, out, err));
    return out->len == bytes ? SPK_OK : spk_error_set(err, SPK_E_STATE, "the dataset's mirrors changed");
}

/* All of it fits into the socket's buffer, so that nothing waits for a worker that does not run yet. */
spk_status spk_loader_net_send(const spk_loader *l, int socket, spk_error *err)
{
    const int room = 2 * (int)SPK_NET_TEXT_MAX;
    spk_buf text = {0};
    spk_status status = spk_loader_net_text(l, &text, err);
    if (text.len > 0)
        (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    for (size_t at = 0; at < text.len && status == SPK_OK; at += SPK_NET_PACKET) {
        size_t n = text.len - at < SPK_NET_PACKET ? text.len - at : SPK_NET_PACKET;
        if (send(socket, (const char *)text.data + at, n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)n)
            status = spk_error_sys(err, errno, "sending mirrors and options to a worker");
    }
    spk_buf_free(&text);
    return status;
}

/* Seconds below which a share of the requests had their first byte. */
static double quantile(const spk_net_counts *a, const spk_net_counts *b, double share)
{
    uint64_t all = 0, seen = 0;
    for (size_t i = 0; i < SPK_NET_BUCKETS; i++)
        all += get(&a->latency[i]) + get(&b->latency[i]);
    for (size_t i = 0; i < SPK_NET_BUCKETS && all > 0; i++) {
        seen += get(&a->latency[i]) + get(&b->latency[i]);
        if ((double)seen >= share * (double)all)
            return spk_net_bucket_seconds(i);
    }
    return 0;
}

spk_status spk_loader_get_mirror(const spk_loader *l, size_t i, spk_mirror_stats *out)
{
    const spk_net_shared *workers = of_workers(l);
    memset(out, 0, sizeof *out);
    if (!workers || i >= spk_net_mirrors(l->dataset->net))
        return SPK_END;
    const spk_net_counts *a = &workers->mirrors[i], *b = &spk_net_counts_of(l->dataset->net)->mirrors[i];
    const struct {
        uint64_t *to;
        spk_net_fault fault;
    } faults[] = {{&out->no_connection, SPK_FAULT_CONNECT}, {&out->broken, SPK_FAULT_BROKEN},
                  {&out->stalled, SPK_FAULT_STALL},         {&out->denied, SPK_FAULT_DENIED},
                  {&out->missing, SPK_FAULT_MISSING},       {&out->throttled, SPK_FAULT_THROTTLE},
                  {&out->server_errors, SPK_FAULT_SERVER},  {&out->bad_replies, SPK_FAULT_REPLY},
                  {&out->changed, SPK_FAULT_CHANGED},       {&out->wrong_bytes, SPK_FAULT_DIGEST}};
    out->url = spk_net_mirror_name(l->dataset->net, i);
    out->requests = get(&a->requests) + get(&b->requests);
    out->bytes = get(&a->bytes) + get(&b->bytes);
    out->retries = get(&a->retries) + get(&b->retries);
    out->failovers = get(&a->failovers) + get(&b->failovers);
    out->hedges = get(&a->hedges) + get(&b->hedges);
    for (size_t k = 0; k < sizeof faults / sizeof faults[0]; k++)
        *faults[k].to = get(&a->faults[faults[k].fault]) + get(&b->faults[faults[k].fault]);
    for (size_t k = 0; k < SPK_NET_CODES; k++)
        out->codes[k] = atomic_load_explicit(&a->codes[k], memory_order_relaxed) +
                        atomic_load_explicit(&b->codes[k], memory_order_relaxed);
    out->latency_p50 = quantile(a, b, 0.5);
    out->latency_p99 = quantile(a, b, 0.99);
    return SPK_OK;
}

void spk_loader_net_stats(const spk_loader *l, spk_loader_stats *out)
{
    const spk_net_shared *workers = of_workers(l);
    spk_mirror_stats m;
    if (!workers)
        return;
    for (size_t i = 0; spk_loader_get_mirror(l, i, &m) == SPK_OK; i++) {
        out->mirrors++;
        out->net_requests += m.requests;
        out->net_bytes += m.bytes;
        out->net_retries += m.retries;
        out->net_failovers += m.failovers;
        out->net_hedges += m.hedges;
    }
    out->cache_hits = get(&workers->cache_hits);
    out->cache_hit_bytes = get(&workers->cache_hit_bytes);
    out->cache_misses = get(&workers->cache_misses);
}

void spk_loader_net_notes(spk_loader *l)
{
    const spk_net_shared *workers = of_workers(l);
    if (!workers || !l->on_note)
        return;
    uint64_t cause = get(&workers->cache_off);
    if (cause != 0 && !l->cache_noted) {
        l->cache_noted = true;
        spk_loader_note(l, "the cache cannot be written (%s): streaming without it", strerror((int)cause));
    }
    for (size_t i = 0; i < spk_net_mirrors(l->dataset->net); i++) {
        if (l->throttled_noted >> i & 1 || get(&workers->mirrors[i].faults[SPK_FAULT_THROTTLE]) == 0)
            continue;
        l->throttled_noted |= 1u << i;
        spk_loader_note(l, "%s throttles: requests to it are slowed down", spk_net_mirror_name(l->dataset->net, i));
    }
}
