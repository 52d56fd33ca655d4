/* The order of an epoch: format-spec/epoch-order.md. Pure arithmetic: integers in, integers out, no I/O, no time.
 *
 * An epoch is a sequence E of positions 0 .. total-1, cut into global batches of G, those into chunks of C. With
 * shuffling, chunk j of every global batch g with g mod m = a comes from lane (a, j), and each lane is a run of the
 * permuted spans passed through a shuffle buffer (lane.h). Without shuffling, position x is sample x / echo.
 * Everything is a function of (samples per shard, seed, epoch, G, C, m, K, D, echo) and of nothing else. */
#ifndef SPK_PLAN_PLAN_H
#define SPK_PLAN_PLAN_H

#include <shardpack/error.h>
#include <stdbool.h>

/* Version of the order and of the draws of crops and flips (epoch-order.md). It is part of saved states and of the
 * loader's protocol; test_plan_vectors.c ties it to the vectors, so that neither changes alone. */
#define SPK_PLAN_ORDER 1u

#define SPK_PLAN_CHUNK 16u
#define SPK_PLAN_BUFFER 64u
#define SPK_PLAN_LANES 48u
#define SPK_PLAN_SPAN 4u
#define SPK_PLAN_EPOCH_MAX 0x3FFFFFFFu
#define SPK_PLAN_BUFFER_MAX (1u << 24)
#define SPK_PLAN_ECHO_MAX 65536u
#define SPK_PLAN_LANES_MAX (1u << 24)
#define SPK_PLAN_BATCH_MAX (1u << 24)

/* What the order depends on beside the shards. Zero chunk, groups, buffer, span, echo: the default. */
typedef struct spk_plan_spec {
    uint64_t seed;
    uint64_t global_batch; /* G: ranks x batch size, 1 to SPK_PLAN_BATCH_MAX */
    uint32_t epoch;        /* up to SPK_PLAN_EPOCH_MAX */
    uint32_t chunk;        /* C */
    uint32_t groups;       /* m */
    uint32_t buffer;       /* K */
    uint32_t span;         /* D: samples that a span should have at least, where the dataset is large enough */
    uint32_t echo;         /* e: times each sample is delivered */
    bool shuffle;
} spk_plan_spec;

typedef struct spk_span {
    uint64_t first; /* sample */
    uint64_t start; /* place of its first sample in the sequence Q */
} spk_span;

/* One epoch's order. Thread-safety: read-shareable. */
typedef struct spk_plan {
    spk_plan_spec spec;   /* defaults filled in */
    uint64_t samples;     /* N */
    uint64_t total;       /* N * echo: length of E */
    uint64_t chunks;      /* P: chunks of one global batch */
    uint64_t lanes;       /* m * P; 0 without shuffling */
    uint64_t *lane_start; /* lanes + 1 entries: first place of each lane in E's multiset, in repeats */
    spk_span *spans;      /* in the order of Q; one more at the end with start = N */
    uint64_t spans_n;
} spk_plan;

/* first_sample has shards + 1 entries, ascending from 0 to N. It is only read during the call. Cost: O(shards + lanes).
 * INVALID if a value of spec is out of range or N * echo overflows. */
SPK_CHECK spk_status spk_plan_new(spk_plan **out, const uint64_t *first_sample, uint64_t shards,
                                  const spk_plan_spec *spec, spk_error *err);
void spk_plan_free(spk_plan *p);
/* Memory that a plan takes at most. spec has its defaults filled in. */
uint64_t spk_plan_bytes(const spk_plan_spec *spec, uint64_t samples, uint64_t shards);

/* Size of chunk j of a whole global batch. */
uint64_t spk_plan_chunk_size(const spk_plan *p, uint64_t j);
/* Position x of E (< total) as (lane, output of that lane); O(1). Shuffled plans only. */
void spk_plan_locate(const spk_plan *p, uint64_t x, uint64_t *lane, uint64_t *output);
uint64_t spk_plan_lane_size(const spk_plan *p, uint64_t lane);
/* Sample at place q of Q (< N); *hint is any value, best the one left by the last call. O(1) on sequential use. */
uint64_t spk_plan_sequence(const spk_plan *p, uint64_t q, uint64_t *hint);

/* Random words. domain separates the uses. */
enum { SPK_DRAW_LANE = 0, SPK_DRAW_SPANS = 1, SPK_DRAW_AUGMENT = 2 };
/* 64 bits of Philox4x32-10: key = seed, counter = (low and high word of step, lane, epoch | domain << 30). */
uint64_t spk_draw(uint64_t seed, uint32_t epoch, unsigned domain, uint32_t lane, uint64_t step);
/* The same, mapped to [0, bound): high 64 bits of the 128-bit product. bound >= 1. */
uint64_t spk_draw_below(uint64_t seed, uint32_t epoch, unsigned domain, uint32_t lane, uint64_t step, uint64_t bound);

#endif
