/* The extension shardpack._core: a thin layer over the public calls. Names, defaults and checks of what users pass are
 * the Python side's; here are memory, threads and errors.
 *
 * The limited API of Python 3.11, the first that has the buffer protocol. Multi-phase initialisation, no globals. */
#ifndef CORE_H
#define CORE_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <shardpack.h>
#include <stdbool.h>

/* The module's state. */
typedef struct core_state {
    PyTypeObject *dataset, *loader, *lease, *column;
} core_state;

/* module.c */
core_state *core_state_of(PyTypeObject *type);

/* errors.c */
/* Raises the exception that shardpack._errors makes of it; returns NULL. */
PyObject *core_raise(const spk_error *err);

/* options.c: dicts to option structs */
typedef enum core_kind {
    CORE_INT,     /* int */
    CORE_U32,     /* uint32_t */
    CORE_U64,     /* uint64_t */
    CORE_DOUBLE,  /* double */
    CORE_DOUBLES, /* double[2] */
    CORE_FLOATS,  /* float[3] */
    CORE_TEXT,    /* const char *, from bytes, borrowed from the dict */
    CORE_INDICES  /* const uint64_t * and a size_t behind it, from bytes, borrowed from the dict */
} core_kind;
typedef struct core_option {
    const char *name;
    core_kind kind;
    size_t offset;
} core_option;
/* Sets the members that the dict names; table ends with a NULL name. -1 with an exception if one is unknown, of another
 * type or out of the member's range. */
int core_options_set(void *out, const core_option *table, PyObject *dict);
/* A list of dicts with "kind", "field", "optional" and image options; PyMem_Free frees *out. */
int core_columns_set(PyObject *list, spk_column **out, size_t *n);
extern const core_option core_loader_options[];
/* Borrowed texts of a list of bytes; PyMem_Free frees *out. */
int core_texts_set(PyObject *list, const char ***out, size_t *n);
/* A dataset's places and how they are read. Borrows from the list and the dict; PyMem_Free frees urls. */
typedef struct core_place {
    const char **urls; /* one at least */
    spk_dataset_options options;
} core_place;
int core_place_set(core_place *out, PyObject *urls, PyObject *dict);
/* Calls PyErr_CheckSignals for a call that runs without the GIL. *thread is what PyEval_SaveThread gave. True if the
 * call is to end, with an exception set. */
bool core_interrupted(PyThreadState **thread);

/* dataset.c */
typedef struct core_dataset core_dataset;
extern PyType_Spec core_dataset_spec;
const spk_dataset *core_dataset_get(PyObject *self);

/* lease.c */
/* What a loader and the batches on loan from it share. The GIL guards it. While `busy`, some thread is inside a call of
 * the library without the GIL: batches that end meanwhile wait in `ended`. */
typedef struct core_shop core_shop;
typedef struct core_lent {
    spk_batch *batch;
    core_shop *shop;
    struct core_lent *next;
    PyObject *streams; /* list of (handle, who keeps it), or NULL: the memory waits for them */
    bool viewed;       /* somebody saw the memory itself */
} core_lent;
struct core_shop {
    size_t users; /* the loader and every batch */
    bool busy;
    core_lent *ended;
    PyObject *current_stream; /* NULL: the memory is not pinned for others to copy from; else gives a handle */
};
void core_shop_leave(core_shop *shop);
/* Gives back what ended while the shop was busy. */
void core_shop_settle(core_shop *shop);
extern PyType_Spec core_lease_spec;
/* A Python object that owns the batch; frees it when the last column that views it is gone. Takes the batch, also when
 * it fails. */
PyObject *core_lease_new(core_state *state, core_shop *shop, spk_batch *batch);
/* A column views the memory. */
void core_lease_viewed(PyObject *lease);

/* column.c */
extern PyType_Spec core_column_spec;
/* A column of fixed shape: a view that keeps the lease; NULL: its own copy. */
PyObject *core_column_new(core_state *state, PyObject *lease, const spk_view *view);

/* dlpack.c */
/* A capsule "dltensor" over the data of a view that `owner` keeps; NULL: over its own copy. */
PyObject *core_dlpack(PyObject *owner, const spk_view *view);

/* loader.c */
extern PyType_Spec core_loader_spec;

/* estimate(dataset, options, columns): how many workers a loader would have, and what memory it would take */
PyObject *core_estimate(PyObject *module, PyObject *args);

/* stats.c: the figures of a loader as a dict */
PyObject *core_stats(const spk_loader *loader);

/* pack.c */
PyObject *core_pack(PyObject *module, PyObject *args);
PyObject *core_repack(PyObject *module, PyObject *args);
PyObject *core_verify(PyObject *module, PyObject *args);

/* image.c */
extern PyType_Spec core_decoder_spec;
PyObject *core_restore(PyObject *module, PyObject *args);

#endif
