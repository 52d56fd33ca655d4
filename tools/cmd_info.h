/* The parts of shardpack info: gathering (cmd_info.c) and the text for people (cmd_info_text.c). */
#ifndef TOOLS_CMD_INFO_H
#define TOOLS_CMD_INFO_H

#include <jansson.h>

#include "target.h"

#define INFO_LABELS_MAX (1u << 22) /* bounds the table, whatever a label says */

/* Samples per label, from the labels themselves. */
typedef struct label_counts {
    uint64_t *counts; /* NULL: not counted */
    size_t size;      /* labels 0 to size - 1 */
    uint64_t without; /* samples without a label */
    uint64_t others;  /* samples with a label that is no number below INFO_LABELS_MAX */
} label_counts;

void info_print_dataset(const target *t, const json_t *manifest, const label_counts *labels);
void info_print_shard(const target *t, const json_t *fields, const label_counts *labels);

#endif
