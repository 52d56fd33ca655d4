/* DLPack, version 0: the structs of dlpack.h (https://dmlc.github.io/dlpack/latest/c_api.html) as far as they are
 * needed, and a capsule that keeps its owner. */
#include "core.h"

#include <stdlib.h>

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
    dl_managed managed;
    int64_t shape[DIMS], strides[DIMS];
} lent_tensor;

enum { DL_CPU = 1, DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2 };

/* Called by whoever took the tensor, in any thread. */
static void give_up(dl_managed *managed)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)managed->context);
    free(managed); /* its first member */
    PyGILState_Release(gil);
}

static void drop(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return; /* taken: it has another name now */
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    managed->deleter(managed);
}

PyObject *core_dlpack(PyObject *owner, void *data, spk_dtype dtype, int ndim, const Py_ssize_t *shape)
{
    static const struct {
        uint8_t code, bits;
    } types[] = {[SPK_UINT8] = {DL_UINT, 8},
                 [SPK_FLOAT16] = {DL_FLOAT, 16},
                 [SPK_FLOAT32] = {DL_FLOAT, 32},
                 [SPK_INT64] = {DL_INT, 64}};
    lent_tensor *lent = calloc(1, sizeof *lent);
    if (!lent)
        return PyErr_NoMemory();
    int64_t stride = 1;
    for (int i = ndim; i-- > 0;) {
        lent->shape[i] = shape[i];
        lent->strides[i] = stride;
        stride *= shape[i];
    }
    lent->managed.tensor = (dl_tensor){.data = data,
                                       .device = {DL_CPU, 0},
                                       .ndim = ndim,
                                       .dtype = {types[dtype].code, types[dtype].bits, 1},
                                       .shape = lent->shape,
                                       .strides = lent->strides};
    lent->managed.context = Py_NewRef(owner);
    lent->managed.deleter = give_up;
    PyObject *capsule = PyCapsule_New(&lent->managed, "dltensor", drop);
    if (!capsule) {
        Py_DECREF(owner);
        free(lent);
    }
    return capsule;
}
