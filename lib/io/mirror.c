/* Which mirror is asked next, and when: measured latency, failures in a row, pauses that servers ask for. The numbers
 * are shared by all processes of a loader, so that one that meets a slow or throttling server tells the others. Updates
 * race harmlessly: they are averages and hints. */
#include "base/cpu.h"
#include "io/net_impl.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define UNKNOWN_NS (20 * MS) /* taken for the latency of a mirror that was not measured yet */
#define EXPLORE 64u          /* one pick in so many goes to another mirror than the best, to keep its numbers fresh */
#define PACE_FIRST (5 * MS)
#define PACE_MAX SECOND
#define PATIENCE_LEAST (400 * MS)
#define PATIENCE_MOST (10 * SECOND)
#define AVOID_MOST (20 * SECOND)

static uint64_t get(_Atomic uint64_t *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

static void put(_Atomic uint64_t *p, uint64_t v)
{
    atomic_store_explicit(p, v, memory_order_relaxed);
}

uint64_t spk_net_random(spk_net *net, uint64_t below)
{
    uint64_t x = net->random; /* xorshift: jitter only */
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    net->random = x;
    return below ? (x >> 11) % below : 0;
}

static uint64_t score(const spk_net *net, size_t i, uint64_t now)
{
    spk_net_counts *c = net->mirrors[i].counts;
    uint64_t usual = get(&c->usual_ns), failing = get(&c->failing);
    uint64_t s = (usual ? usual : UNKNOWN_NS) * (1 + (failing < 8 ? failing : 8)) + i * MS;
    if (get(&c->avoid_until_ns) > now)
        s += 10 * SECOND;
    uint64_t until = get(&c->not_before_ns);
    return until > now ? s + (until - now) : s;
}

size_t spk_mirror_pick(spk_net *net, uint32_t excluded, uint32_t avoided)
{
    size_t best = SPK_NO_MIRROR, second = SPK_NO_MIRROR;
    uint64_t now = spk_now_ns(), least = UINT64_MAX, next = UINT64_MAX;
    for (size_t i = 0; i < net->mirrors_n; i++) {
        if ((excluded | avoided) >> i & 1)
            continue;
        uint64_t s = score(net, i, now);
        if (s < least) {
            next = least;
            second = best;
            least = s;
            best = i;
        } else if (s < next) {
            next = s;
            second = i;
        }
    }
    if (second != SPK_NO_MIRROR && next < 10 * SECOND && ++net->explored % EXPLORE == 0)
        return second;
    return best;
}

uint64_t spk_mirror_not_before(const spk_net *net, size_t mirror)
{
    return get(&net->mirrors[mirror].counts->not_before_ns);
}

uint64_t spk_mirror_slot(spk_net *net, size_t mirror, uint64_t now)
{
    spk_net_counts *c = net->mirrors[mirror].counts;
    uint64_t until = get(&c->not_before_ns), pace = get(&c->pace_ns);
    if (until > now)
        return until + spk_net_random(net, 100 * MS);
    if (pace == 0)
        return 0;
    uint64_t next = get(&c->next_ns), mine = 0;
    do {
        mine = next > now ? next : now;
    } while (!atomic_compare_exchange_weak(&c->next_ns, &next, mine + pace));
    return mine > now ? mine : 0;
}

double spk_net_bucket_seconds(size_t i)
{
    return (double)((UINT64_C(9) + 2 * (i % 4)) << (i / 4)) / 2e6;
}

static size_t bucket(uint64_t ns)
{
    uint64_t us = ns / 1000, b = 0;
    while (us >= 8) {
        us >>= 1;
        b += 4;
    }
    b += us >= 4 ? us - 4 : 0; /* 4 to 7: the quarter */
    return b < SPK_NET_BUCKETS ? (size_t)b : SPK_NET_BUCKETS - 1;
}

void spk_mirror_good(spk_net *net, size_t mirror, uint64_t latency_ns)
{
    spk_net_counts *c = net->mirrors[mirror].counts;
    uint64_t usual = get(&c->usual_ns), spread = get(&c->spread_ns), pace = get(&c->pace_ns);
    uint64_t off = latency_ns > usual ? latency_ns - usual : usual - latency_ns;
    put(&c->usual_ns, usual ? usual - usual / 8 + latency_ns / 8 : latency_ns);
    put(&c->spread_ns, usual ? spread - spread / 4 + off / 4 : latency_ns / 2);
    put(&c->failing, 0);
    if (pace)
        put(&c->pace_ns, pace > MS ? pace - pace / 16 : 0);
    atomic_fetch_add_explicit(&c->latency[bucket(latency_ns)], 1, memory_order_relaxed);
}

void spk_mirror_bad(spk_net *net, size_t mirror, spk_net_fault fault, uint32_t retry_after)
{
    spk_net_counts *c = net->mirrors[mirror].counts;
    uint64_t now = spk_now_ns(), failing = get(&c->failing) + 1, avoid = 100 * MS;
    atomic_fetch_add_explicit(&c->faults[fault], 1, memory_order_relaxed);
    if (fault == SPK_FAULT_MISSING || fault == SPK_FAULT_DENIED)
        return; /* says something of the object, not of the mirror's health */
    put(&c->failing, failing);
    for (uint64_t i = 1; i < failing && avoid < AVOID_MOST; i++)
        avoid *= 2;
    if (fault == SPK_FAULT_DIGEST || fault == SPK_FAULT_CHANGED)
        avoid = AVOID_MOST;
    put(&c->avoid_until_ns, now + avoid);
    if (fault != SPK_FAULT_THROTTLE)
        return;
    uint64_t pace = get(&c->pace_ns) * 2;
    put(&c->pace_ns, pace < PACE_FIRST ? PACE_FIRST : pace < PACE_MAX ? pace : PACE_MAX);
    if (retry_after)
        put(&c->not_before_ns, now + retry_after * SECOND);
}

void spk_mirror_code(spk_net *net, size_t mirror, int status)
{
    if (status >= 300 && status < 100 + (int)SPK_NET_CODES)
        atomic_fetch_add_explicit(&net->mirrors[mirror].counts->codes[status - 100], 1, memory_order_relaxed);
}

uint64_t spk_mirror_patience(const spk_net *net, size_t mirror)
{
    spk_net_counts *c = net->mirrors[mirror].counts;
    uint64_t usual = get(&c->usual_ns), patience = 4 * (usual + 4 * get(&c->spread_ns));
    if (usual == 0)
        return 2 * SECOND;
    return patience < PATIENCE_LEAST ? PATIENCE_LEAST : patience < PATIENCE_MOST ? patience : PATIENCE_MOST;
}
