/* Batches on loan. The last view of a batch may go in any thread, also while another one is inside the loader; then it
 * is put aside, and the loader's thread gives it back. */
#include "core.h"

#include <stdlib.h>

void core_shop_leave(core_shop *shop)
{
    if (--shop->users > 0)
        return;
    Py_XDECREF(shop->current_stream);
    free(shop);
}

/* The library keeps memory of which it cannot learn when the device has read it, so an error is only told. */
static void guard(spk_batch *batch, PyObject *handle)
{
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    spk_error err;
    spk_error_clear(&err);
    PyErr_Fetch(&type, &value, &traceback);
    void *stream = PyLong_AsVoidPtr(handle);
    if (!PyErr_Occurred() && spk_batch_guard(batch, stream, &err) < 0)
        core_raise(&err);
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(handle);
    PyErr_Restore(type, value, traceback);
}

static void give_back(core_lent *lent)
{
    core_shop *shop = lent->shop;
    Py_ssize_t n = lent->streams ? PyList_Size(lent->streams) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        guard(lent->batch, PyTuple_GetItem(PyList_GetItem(lent->streams, i), 0));
    Py_CLEAR(lent->streams);
    spk_batch_release(lent->batch);
    free(lent);
    core_shop_leave(shop);
}

void core_shop_settle(core_shop *shop)
{
    core_lent *lent = shop->ended;
    shop->ended = NULL;
    while (lent) {
        core_lent *next = lent->next;
        give_back(lent);
        lent = next;
    }
}

typedef struct lease {
    PyObject_HEAD core_lent *lent;
} lease;

PyObject *core_lease_new(core_state *state, core_shop *shop, spk_batch *batch)
{
    core_lent *lent = malloc(sizeof *lent);
    lease *self = lent ? PyObject_New(lease, state->lease) : NULL;
    if (!self) {
        free(lent);
        spk_batch_release(batch);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    *lent = (core_lent){.batch = batch, .shop = shop};
    shop->users++;
    self->lent = lent;
    return (PyObject *)self;
}

void core_lease_viewed(PyObject *object)
{
    ((lease *)object)->lent->viewed = true;
}

static int add_stream(core_lent *lent, PyObject *handle, PyObject *owner)
{
    if (!lent->streams)
        lent->streams = PyList_New(0);
    PyObject *pair = lent->streams ? PyTuple_Pack(2, handle, owner) : NULL;
    int done = pair ? PyList_Append(lent->streams, pair) : -1;
    Py_XDECREF(pair);
    return done;
}

/* The last view is gone: whatever was done with the memory was queued by now, on the current stream unless
 * release_after named another. An interpreter that is ending may not know the stream any more: then it is the default
 * one. */
static void add_current_stream(core_lent *lent)
{
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *handle = PyObject_CallNoArgs(lent->shop->current_stream);
    if (!handle) {
        PyErr_Clear();
        handle = PyLong_FromLong(0);
    }
    if (!handle || add_stream(lent, handle, Py_None) < 0)
        PyErr_WriteUnraisable(lent->shop->current_stream);
    Py_XDECREF(handle);
    PyErr_Restore(type, value, traceback);
}

static PyObject *release_after(PyObject *object, PyObject *args)
{
    PyObject *handle = NULL, *owner = NULL;
    if (!PyArg_ParseTuple(args, "O!O:release_after", &PyLong_Type, &handle, &owner) ||
        add_stream(((lease *)object)->lent, handle, owner) < 0)
        return NULL;
    return Py_NewRef(Py_None);
}

/* upload([(column, device pointer)], stream) */
static PyObject *upload(PyObject *object, PyObject *args)
{
    enum { MOST = 64 };
    core_lent *lent = ((lease *)object)->lent;
    PyObject *list = NULL, *handle = NULL;
    size_t columns[MOST];
    void *pointers[MOST];
    spk_error err;
    if (!PyArg_ParseTuple(args, "O!O!:upload", &PyList_Type, &list, &PyLong_Type, &handle))
        return NULL;
    Py_ssize_t n = PyList_Size(list);
    if (n > MOST || lent->shop->busy) {
        PyErr_SetString(PyExc_RuntimeError, n > MOST ? "too many columns" : "the loader is in use by another thread");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        unsigned long long pointer = 0;
        Py_ssize_t column = 0;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "nK", &column, &pointer))
            return NULL;
        columns[i] = (size_t)column;
        pointers[i] = (void *)(uintptr_t)pointer;
    }
    void *stream = PyLong_AsVoidPtr(handle);
    if (PyErr_Occurred())
        return NULL;
    spk_error_clear(&err);
    core_shop_settle(lent->shop);
    lent->shop->busy = true;
    PyThreadState *thread = PyEval_SaveThread(); /* copies from pageable memory take their time */
    spk_status status = spk_batch_upload(lent->batch, columns, (size_t)n, pointers, stream, &err);
    PyEval_RestoreThread(thread);
    lent->shop->busy = false;
    core_shop_settle(lent->shop);
    return status < 0 ? core_raise(&err) : Py_NewRef(Py_None);
}

static void dealloc(PyObject *object)
{
    core_lent *lent = ((lease *)object)->lent;
    PyTypeObject *type = Py_TYPE(object);
    if (lent->viewed && lent->shop->current_stream)
        add_current_stream(lent);
    if (lent->shop->busy) {
        lent->next = lent->shop->ended;
        lent->shop->ended = lent;
    } else {
        give_back(lent);
    }
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"release_after", release_after, METH_VARARGS,
     "release_after(stream, owner): the memory waits for that stream, too, once the last view is gone."},
    {"upload", upload, METH_VARARGS, "upload([(column, device pointer)], stream)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {{Py_tp_dealloc, dealloc}, {Py_tp_methods, methods}, {0, NULL}};

PyType_Spec core_lease_spec = {
    .name = "shardpack._core.Lease",
    .basicsize = sizeof(lease),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
