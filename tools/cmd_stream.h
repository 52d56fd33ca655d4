/* The parts of shardpack stream: running (cmd_stream.c), and the lines it prints (cmd_stream_print.c). */
#ifndef TOOLS_CMD_STREAM_H
#define TOOLS_CMD_STREAM_H

#include "digest.h"
#include "remote.h"

typedef struct stream_values {
    loader_values loader; /* first: loader_rows.h */
    uint64_t workers, epochs, batches, save_state_at;
    const char *resume, *state;
    int keys, json, verbose;
    remote_values remote;
} stream_values;

/* A run, and what is counted of the epoch under way. */
typedef struct stream {
    const stream_values *values;
    const opts *opts;
    spk_loader *loader;
    loader_setup setup;
    digests digests;
    digest_sum *sum;
    uint32_t epoch;
    uint64_t batches, rows, valid; /* of the epoch */
    uint64_t printed;              /* batches of the run */
} stream;

/* Each returns an exit status. */
int stream_print_head(const stream *s);
int stream_print_batch(const stream *s, const spk_batch *batch);
int stream_print_epoch(const stream *s);
/* On stderr: what the loader will need; what it did. */
void stream_note_estimate(const spk_loader_estimate *e);
void stream_note_stats(const stream *s);

#endif
