/* What trainer and workers share: the layout of the memfd and the packets on the socket. Both sides are the same build:
 * the worker refuses another SPK_PROTOCOL, and another version of the library, whose order or pixels may be others (a
 * trainer may run on while a new version is installed). All numbers in native order.
 *
 * memfd:  head | spec | first_sample[shards + 1] | shard rows[shards] | chosen[samples] | names | (page) activity |
 *         net counts | (page) slots | (page) arenas
 *
 * The part before the activity is written by the trainer alone, all but wanted_from before any worker starts, and
 * read-only for workers. A slot is written by workers between a RUN packet and their DONE, and read by the trainer
 * between the last DONE and release.
 */
#ifndef SPK_LOAD_PROTOCOL_H
#define SPK_LOAD_PROTOCOL_H

#include <assert.h>
#include <stddef.h>

#include "load/spec.h"

/* "SP", the version of the order, and that of what is declared here. */
#define SPK_PROTOCOL (0x53500000u | SPK_PLAN_ORDER << 8 | 5u)

typedef struct spk_shm_shard {
    uint64_t name;  /* offset of its path in names, NUL-terminated */
    uint64_t first; /* index of its first sample in the dataset */
    uint64_t samples, frames, bytes, tar_bytes, index_offset;
    uint8_t tail_sha256[32];
} spk_shm_shard;

typedef struct spk_shm_head {
    uint32_t protocol;
    uint32_t slots;
    char version[24];                           /* SPK_VERSION_STRING, padded with zeros */
    uint64_t spec, first_sample, shards, names; /* offsets in the memfd */
    uint64_t folder;                            /* offset in names: the dataset's folder or URL */
    uint64_t chosen;   /* uint32_t for each sample of the plan: its number in its shard; 0: all samples, in order */
    uint64_t slots_at; /* slot s is at slots_at + s * slot_stride */
    uint64_t slot_stride;
    uint64_t arenas_at; /* arena of slot s at arenas_at + s * spec.arena_bytes */
    /* Of a dataset by URL; 0: a folder. URLs may hold secrets: so many bytes of mirrors and options (io/net.h) are the
     * first packets on the socket, of SPK_NET_PACKET bytes but for the last, and never in this memory. */
    uint64_t net_bytes;
    uint64_t net_shared;  /* spk_net_shared, written by workers */
    uint64_t activity_at; /* spk_activity of worker w at activity_at + w * sizeof(spk_activity) */
    uint64_t bytes;       /* of the memfd */
    /* Batches with a serial below it are not wanted any more: a worker that has not begun one answers DONE at once. Set
     * by the trainer at any time. */
    _Atomic uint64_t wanted_from;
} spk_shm_head;

/* Of the kernel, at most: 4, 16 or 64 KiB on aarch64. The parts that are protected differently begin at such borders.
 */
#define SPK_PAGE_MAX 65536u

#define SPK_NET_PACKET 16384u
#define SPK_NET_TEXT_MAX (128u << 10) /* 16 URLs of 4 KiB, and a path */

/* What a worker is doing, for the report of one that makes no progress. Written by the worker without locks, read by
 * the trainer only when the worker is overdue: text may be torn, never unterminated. */
typedef struct spk_activity {
    _Atomic uint64_t steps; /* counts rows and frames: unchanged means stuck */
    uint64_t row;
    char text[240];
} spk_activity;

/* First bytes of every slot's page-aligned control block, behind the columns: the arena's bump pointer, set to
 * SPK_ARENA_FIRST by the trainer before it sends the batch's first RUN. No value lies before that: offset 0 says that
 * there is none. */
#define SPK_ARENA_FIRST 16u
typedef struct spk_slot_control {
    _Atomic uint64_t arena_used;
    uint64_t reserved[7];
} spk_slot_control;

enum { SPK_PACKET_RUN = 1, SPK_PACKET_DONE = 2, SPK_PACKET_FAIL = 3, SPK_PACKET_HELLO = 4 };

/* Slot s is slot_bytes of columns and row states, then one page with its control block. */
static inline uint64_t spk_slot_stride(const spk_load_spec *spec)
{
    return spec->slot_bytes + SPK_SLOT_ALIGN;
}

static inline uint8_t *spk_slot_data(uint8_t *base, uint64_t slot)
{
    const spk_shm_head *head = (const spk_shm_head *)base;
    return base + head->slots_at + slot * head->slot_stride;
}

static inline spk_slot_control *spk_slot_control_of(uint8_t *base, const spk_load_spec *spec, uint64_t slot)
{
    return (spk_slot_control *)(spk_slot_data(base, slot) + spec->slot_bytes);
}

static inline uint8_t *spk_slot_arena(uint8_t *base, const spk_load_spec *spec, uint64_t slot)
{
    const spk_shm_head *head = (const spk_shm_head *)base;
    return base + head->arenas_at + slot * spec->arena_bytes;
}

/* Trainer to worker: fill your rows of a batch. */
typedef struct spk_run_packet {
    uint32_t kind; /* SPK_PACKET_RUN */
    uint32_t slot;
    uint64_t serial; /* unique number of this batch in the loader's life */
    uint32_t epoch;
    uint32_t reserved;
    spk_batch_range batch;
} spk_run_packet;

typedef struct spk_run_counters {
    uint64_t busy_ns, bytes_read, frames_read, images_decoded;
    uint64_t substituted, padded;
} spk_run_counters;

/* Worker to trainer: HELLO once at the start, then DONE or FAIL for each RUN, in their order. */
typedef struct spk_done_packet {
    uint32_t kind;
    uint32_t protocol; /* HELLO */
    uint64_t serial;
    spk_run_counters counters;
    uint64_t row;                 /* FAIL: lowest row that failed; DONE: first substituted row; SPK_ROW_NONE if none */
    spk_error error;              /* FAIL */
    spk_error first_substitution; /* DONE: text of the first substituted row, for the loader's note */
} spk_done_packet;

/* A DONE without a substitution ends before its error records. */
#define SPK_DONE_SHORT offsetof(spk_done_packet, error)

static_assert(SPK_PLAN_ORDER < 256, "one byte of the protocol");
static_assert(sizeof SPK_VERSION_STRING <= sizeof((spk_shm_head *)NULL)->version, "versions are short");
static_assert(sizeof(spk_run_packet) == 40, "packets are fixed");
static_assert(sizeof(spk_slot_control) == 64, "control blocks are fixed");

#endif
