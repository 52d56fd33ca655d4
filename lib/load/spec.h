/* What a loader does, as plain data: the caller's options checked once, with every default filled in and the layout of
 * a slot fixed. It lives in the memory that trainer and workers share, so it holds offsets and no pointers. */
#ifndef SPK_LOAD_SPEC_H
#define SPK_LOAD_SPEC_H

#include <shardpack/loader.h>
#include <stdbool.h>

#include "load/choice.h"
#include "plan/plan.h"

#define SPK_COLUMNS_MAX 64u
#define SPK_FIELD_CHARS 32u
#define SPK_SLOT_ALIGN 4096u
#define SPK_COLUMN_ALIGN 64u
#define SPK_ROW_NONE UINT64_MAX

/* A column and where it lies in a slot. */
typedef struct spk_load_column {
    uint32_t kind; /* spk_column_kind */
    uint32_t optional;
    char field[SPK_FIELD_CHARS]; /* empty: IMAGE: the first of jpg, png, ... that the sample has */
    spk_image_options image;
    uint32_t dtype;     /* of fixed columns */
    uint32_t ndim;      /* 1 or 4 */
    uint64_t shape[4];  /* shape[0] = batch size */
    uint64_t row_bytes; /* of fixed columns; variable ones have 16: offset in the arena, length */
    uint64_t offset;    /* in the slot */
} spk_load_column;

/* Whether its values are of any size, in the arena. */
static inline bool spk_column_is_variable(uint32_t kind)
{
    return kind == SPK_COLUMN_KEY || kind == SPK_COLUMN_BYTES || kind == SPK_COLUMN_STORED;
}

/* One row's fate, kept beside the columns of every slot for statistics, errors and padding. */
enum { SPK_ROW_OK = 0, SPK_ROW_PADDED = 1, SPK_ROW_SUBSTITUTED = 2 };

typedef struct spk_load_spec {
    spk_plan_spec plan;            /* epoch 0; the epoch comes with each run */
    uint64_t samples;              /* N: of the dataset, or those chosen */
    uint64_t shards;               /* with any of them */
    char choice[SPK_CHOICE_CHARS]; /* its name; empty: all samples */
    uint64_t total;                /* T: min(limit, N * echo): positions of an epoch that are delivered */
    uint32_t batch_size, rank, world_size, workers;
    uint32_t tail; /* never SPK_TAIL_DEFAULT */
    uint32_t on_error;
    uint32_t verify_full;
    uint32_t columns_n;
    uint32_t has_arena; /* some column is variable */
    uint32_t reserved;
    uint64_t slot_bytes;  /* fixed part: columns and row states, a multiple of SPK_SLOT_ALIGN */
    uint64_t rows_offset; /* of the row states (one byte each) in the slot */
    uint64_t arena_bytes; /* address space of a slot's arena; memory is used as it is written */
    spk_load_column columns[SPK_COLUMNS_MAX];
} spk_load_spec;

/* A batch of one rank: rows r < rows take the positions first + r of E; positions at or above spec->total are padding.
 */
typedef struct spk_batch_range {
    uint64_t first;
    uint64_t rows;
} spk_batch_range;

/* Checks the options against the dataset and fills in *out. INVALID names the option, its value and the range. */
SPK_CHECK spk_status spk_load_spec_make(spk_load_spec *out, const spk_dataset *dataset,
                                        const spk_loader_options *options, spk_error *err);

#endif
