/* DLPack, version 0: the structs of dlpack.h (https://dmlc.github.io/dlpack/latest/c_api.html) as far as they are
 * needed, and a capsule that keeps the owner of its data. */
#include "core.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DIMS 4

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
} dl_managed;

typedef struct lent_tensor {
    dl_managed managed; /* context: the owner, or NULL if the data is its own */
    int64_t shape[DIMS], strides[DIMS];
    _Alignas(max_align_t) uint8_t own[];
} lent_tensor;

enum { DL_CPU = 1, DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2 };

/* Called by whoever took the tensor, in any thread; behind the interpreter's end its objects are gone already. */
static void give_up(dl_managed *managed)
{
    if (managed->context && Py_IsInitialized()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        Py_DECREF((PyObject *)managed->context);
        PyGILState_Release(gil);
    }
    free(managed); /* first member of a lent_tensor */
}

static void drop(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return; /* taken: it has another name now */
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    managed->deleter(managed);
}

PyObject *core_dlpack(PyObject *owner, const spk_view *view)
{
    static const struct {
        uint8_t code, bits;
    } types[] = {[SPK_UINT8] = {DL_UINT, 8},
                 [SPK_FLOAT16] = {DL_FLOAT, 16},
                 [SPK_FLOAT32] = {DL_FLOAT, 32},
                 [SPK_INT64] = {DL_INT, 64}};
    lent_tensor *lent = malloc(sizeof *lent + (owner ? 0 : (size_t)view->bytes));
    if (!lent)
        return PyErr_NoMemory();
    int64_t stride = 1;
    for (uint32_t i = view->ndim; i-- > 0;) {
        lent->shape[i] = (int64_t)view->shape[i];
        lent->strides[i] = stride;
        stride *= lent->shape[i];
    }
    void *data = lent->own;
    if (owner)
        memcpy(&data, &view->data, sizeof data); /* batches may be written to */
    else
        memcpy(data, view->data, (size_t)view->bytes);
    lent->managed = (dl_managed){.tensor = {.data = data,
                                            .device = {DL_CPU, 0},
                                            .ndim = (int32_t)view->ndim,
                                            .dtype = {types[view->dtype].code, types[view->dtype].bits, 1},
                                            .shape = lent->shape,
                                            .strides = lent->strides},
                                 .context = Py_XNewRef(owner),
                                 .deleter = give_up};
    PyObject *capsule = PyCapsule_New(&lent->managed, "dltensor", drop);
    if (!capsule) {
        Py_XDECREF(owner);
        free(lent);
    }
    return capsule;
}
