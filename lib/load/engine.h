/* All that a worker does with one RUN packet: lanes, shards, decoding, columns. The worker program runs one engine;
 * with workers = 0 the trainer runs one itself, so both give the same bytes. Confined. */
#ifndef SPK_LOAD_ENGINE_H
#define SPK_LOAD_ENGINE_H

#include "load/protocol.h"

typedef struct spk_engine spk_engine;

/* base is the mapped memfd (or plain memory laid out alike), borrowed. net: as for spk_shard_cache_new. worker: 0 to
 * spec.workers - 1 (0 if workers is 0). The only files it opens are shards; at most max_open at a time. */
SPK_CHECK spk_status spk_engine_new(spk_engine **out, uint8_t *base, const char *net, uint32_t worker,
                                    uint32_t max_open, spk_error *err);
/* Fills this worker's rows of the batch. Content errors follow spec.on_error; others fail the run. done is filled in
 * completely (kind DONE or FAIL). Lanes stay open for the next batch; a batch that is not the next one (after a
 * restart, a new epoch or a jump) enters them anew. What is being done is written to the worker's activity text
 * (protocol.h) for the watchdog. */
void spk_engine_run(spk_engine *engine, const spk_run_packet *run, spk_done_packet *done);
/* Of a dataset by URL: who is asked while it waits for a server (io/net.h). */
void spk_engine_on_wait(spk_engine *engine, int (*on_wait)(void *user), void *user);
/* While there is no packet on fd: remote transfers go on. */
void spk_engine_idle(spk_engine *engine, int fd);
void spk_engine_free(spk_engine *engine);

/* Estimate of a worker's private memory: the plan, buffers and frames of its lanes. frame and sample bytes are the
 * dataset's means. */
uint64_t spk_engine_memory(const spk_load_spec *spec, uint64_t lanes, double sample_bytes, double frame_bytes);

#endif
