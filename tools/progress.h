/* Progress on stderr: one line redrawn on a terminal, otherwise a plain line now and then, or nothing. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdint.h>

typedef struct progress {
    int mode; /* progress.c */
    double started;
    double shown_at;    /* time of the last line */
    double shown_share; /* part done at the last line */
    int timing;         /* the rate's clock runs */
} progress;

/* How far things are. Totals of 0 are unknown. */
typedef struct progress_now {
    const char *what;  /* "packing" */
    const char *units; /* what `done` counts: "samples" */
    uint64_t done, total;
    uint64_t bytes, bytes_total;
    uint64_t bytes_before; /* of bytes: not done by this run, left out of the rate */
} progress_now;

void progress_start(progress *p, int quiet);
void progress_show(progress *p, const progress_now *now);
/* Clears the line, if one stands there. */
void progress_end(progress *p);

#endif
