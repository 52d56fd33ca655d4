/* Columns of fixed shape: buffers that NumPy, PyTorch and whoever speaks DLPack view without a copy. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define DIMS 4

typedef struct column {
    PyObject_HEAD PyObject *lease; /* NULL: the data is its own */
    spk_view view;                 /* of data */
    void *data;
    int ndim;
    Py_ssize_t item, bytes;
    Py_ssize_t shape[DIMS], strides[DIMS];
} column;

static const struct {
    const char *name, *format;
    Py_ssize_t item;
} types[] = {[SPK_UINT8] = {"uint8", "B", 1},
             [SPK_FLOAT16] = {"float16", "e", 2},
             [SPK_FLOAT32] = {"float32", "f", 4},
             [SPK_INT64] = {"int64", "q", 8}};

PyObject *core_column_new(core_state *state, PyObject *lease, const spk_view *view)
{
    column *self = PyObject_New(column, state->column);
    if (!self)
        return NULL;
    self->lease = NULL;
    self->view = *view;
    self->ndim = (int)view->ndim;
    self->item = types[view->dtype].item;
    self->bytes = (Py_ssize_t)view->bytes;
    Py_ssize_t stride = self->item;
    for (int i = self->ndim; i-- > 0;) {
        self->shape[i] = (Py_ssize_t)view->shape[i];
        self->strides[i] = stride;
        stride *= self->shape[i];
    }
    memcpy(&self->data, &view->data, sizeof self->data); /* batches may be written to */
    if (lease) {
        self->lease = Py_NewRef(lease);
        return (PyObject *)self;
    }
    self->data = malloc(view->bytes > 0 ? (size_t)view->bytes : 1);
    if (!self->data) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    memcpy(self->data, view->data, (size_t)view->bytes);
    self->view.data = self->data;
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    column *self = (column *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (!self->lease)
        free(self->data);
    Py_XDECREF(self->lease);
    PyObject_Free(object);
    Py_DECREF(type);
}

static int get_buffer(PyObject *object, Py_buffer *out, int flags)
{
    column *self = (column *)object;
    /* Whatever else is asked for: it is writable and contiguous, and says all that it is. */
    memset(out, 0, sizeof *out);
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && self->ndim > 1) {
        PyErr_SetString(PyExc_BufferError, "columns are C-contiguous");
        return -1;
    }
    out->obj = Py_NewRef(object);
    out->buf = self->data;
    out->len = self->bytes;
    out->itemsize = self->item;
    out->ndim = self->ndim;
    memcpy(&out->format, &types[self->view.dtype].format, sizeof out->format);
    out->shape = self->shape;
    out->strides = self->strides;
    return 0;
}

static PyObject *get_shape(PyObject *object, void *closure)
{
    column *self = (column *)object;
    (void)closure;
    PyObject *shape = PyTuple_New(self->ndim);
    for (int i = 0; shape && i < self->ndim; i++) {
        PyObject *side = PyLong_FromSsize_t(self->shape[i]);
        if (!side || PyTuple_SetItem(shape, i, side) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *get_dtype(PyObject *object, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(types[((column *)object)->view.dtype].name);
}

static PyObject *get_nbytes(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(((column *)object)->bytes);
}

/* The keywords of newer versions of the protocol ask for what this memory is anyway, or for what it cannot be. */
static PyObject *dlpack(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    column *self = (column *)object;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &version, &device, &copy))
        return NULL;
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "stream: must be None, this is memory of the CPU");
        return NULL;
    }
    int type = 1, id = 0; /* kDLCPU */
    if (device != Py_None && !PyArg_ParseTuple(device, "ii:dl_device", &type, &id))
        return NULL;
    if (type != 1 || id != 0) {
        PyErr_Format(PyExc_BufferError, "dl_device=%R: must be (1, 0), this is memory of the CPU", device);
        return NULL;
    }
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "copy=True: columns are lent as they are");
        return NULL;
    }
    return core_dlpack(object, &self->view);
}

static PyObject *dlpack_device(PyObject *object, PyObject *none)
{
    (void)object;
    (void)none;
    return Py_BuildValue("(ii)", 1, 0); /* kDLCPU */
}

static PyObject *repr(PyObject *object)
{
    column *self = (column *)object;
    PyObject *shape = get_shape(object, NULL);
    PyObject *text = shape ? PyUnicode_FromFormat("<shardpack column %S %s%s>", shape, types[self->view.dtype].name,
                                                  self->lease ? "" : ", a copy")
                           : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyGetSetDef attributes[] = {
    {"shape", get_shape, NULL, "Sides, the number of rows first.", NULL},
    {"dtype", get_dtype, NULL, "Name of the type of its elements.", NULL},
    {"nbytes", get_nbytes, NULL, "Size in bytes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS, "A DLPack capsule."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "(kDLCPU, 0)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_bf_getbuffer, get_buffer},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_tp_repr, repr},
    {Py_tp_doc, "A column of a batch: a buffer, and a DLPack source. The memory stays as it is while a view lives."},
    {0, NULL},
};

PyType_Spec core_column_spec = {
    .name = "shardpack._core.Column",
    .basicsize = sizeof(column),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
