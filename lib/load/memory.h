/* The memory that trainer and workers share (layout: protocol.h): made, filled with spec and catalog, mapped. */
#ifndef SPK_LOAD_MEMORY_H
#define SPK_LOAD_MEMORY_H

#include <stdatomic.h>

#include "load/choice.h"
#include "load/protocol.h"

/* Mapped memory. fd is -1 if it is plain memory of this process only. */
typedef struct spk_memory {
    uint8_t *base;
    uint64_t bytes;
    int fd;
} spk_memory;

/* Where everything will lie; nothing is allocated. choice: what the spec was made with. folder: of the dataset,
 * absolute. */
SPK_CHECK spk_status spk_memory_layout(spk_shm_head *out, const spk_load_spec *spec, const spk_dataset *dataset,
                                       const spk_choice *choice, const char *folder, uint32_t slots, spk_error *err);
/* Makes and fills it. shared: a memfd, sealed in its size (no name anywhere: nothing is left behind when the last
 * process ends); else anonymous memory. Pages of slots and arenas cost nothing until they are written. */
SPK_CHECK spk_status spk_memory_new(spk_memory *out, const spk_shm_head *layout, const spk_load_spec *spec,
                                    const spk_dataset *dataset, const spk_choice *choice, const char *folder,
                                    bool shared, spk_error *err);
/* A worker's view of a memfd: what lies before the activities is read-only. FORMAT if it is no such memory, UNSUPPORTED
 * if it is of another build. Owns fd on success. */
SPK_CHECK spk_status spk_memory_map(spk_memory *out, int fd, spk_error *err);
void spk_memory_free(spk_memory *m);

static inline const spk_shm_head *spk_memory_head(const spk_memory *m)
{
    return (const spk_shm_head *)m->base;
}

static inline spk_load_spec *spk_memory_spec(const spk_memory *m)
{
    return (spk_load_spec *)(m->base + spk_memory_head(m)->spec);
}

static inline spk_activity *spk_memory_activity(const spk_memory *m, uint32_t worker)
{
    return (spk_activity *)(m->base + spk_memory_head(m)->activity_at + worker * sizeof(spk_activity));
}

/* From here on batches with a lower serial are not wanted. */
static inline void spk_memory_want_from(const spk_memory *m, uint64_t serial)
{
    atomic_store_explicit(&((spk_shm_head *)m->base)->wanted_from, serial, memory_order_relaxed);
}

#endif
