/* Single images: a decoder for one after another, and files of stored forms. */
#include "core.h"

typedef struct decoder {
    PyObject_HEAD spk_image_decoder *decoder;
    Py_buffer data; /* of the open image; obj NULL: none is open */
    bool busy;      /* some thread is inside a call of the library without the GIL */
} decoder;

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {NULL};
    spk_error err;
    spk_error_clear(&err);
    if (!PyArg_ParseTupleAndKeywords(args, keywords, ":Decoder", names))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    decoder *self = (decoder *)allocate(type, 0);
    if (!self || spk_image_decoder_new(&self->decoder, &err) == SPK_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return core_raise(&err);
}

static void close_image(decoder *self)
{
    if (self->data.obj)
        PyBuffer_Release(&self->data);
}

static void dealloc(PyObject *object)
{
    decoder *self = (decoder *)object;
    PyTypeObject *type = Py_TYPE(object);
    close_image(self);
    spk_image_decoder_free(self->decoder);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static int check(const decoder *self)
{
    if (!self->busy)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, "another thread uses this decoder");
    return -1;
}

static PyObject *header_of(const decoder *self, const spk_image_head *head)
{
    const void *header = NULL;
    size_t n = 0;
    if (!head->encoded || spk_image_decoder_header(self->decoder, &header, &n, NULL) < 0)
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize(header, (Py_ssize_t)n);
}

static PyObject *open_image(PyObject *object, PyObject *args)
{
    decoder *self = (decoder *)object;
    spk_image_decode_options options = {.size = sizeof options};
    unsigned channels = 3;
    unsigned long long max_pixels = 0;
    spk_image_head head;
    Py_buffer data;
    spk_error err;
    spk_status status = SPK_OK;
    spk_error_clear(&err);
    if (check(self) < 0 || !PyArg_ParseTuple(args, "y*IK:open", &data, &channels, &max_pixels))
        return NULL;
    options.channels = channels;
    options.max_pixels = max_pixels;
    close_image(self);
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS status =
        spk_image_decoder_open(self->decoder, data.buf, (size_t)data.len, &options, &head, &err);
    Py_END_ALLOW_THREADS self->busy = false;
    if (status < 0) {
        PyBuffer_Release(&data);
        return core_raise(&err);
    }
    self->data = data;
    PyObject *header = header_of(self, &head);
    return header ? Py_BuildValue("(IIN)", (unsigned)head.width, (unsigned)head.height, header) : NULL;
}

static PyObject *read_image(PyObject *object, PyObject *args)
{
    decoder *self = (decoder *)object;
    Py_buffer pixels;
    spk_error err;
    spk_status status = SPK_OK;
    spk_error_clear(&err);
    if (check(self) < 0 || !PyArg_ParseTuple(args, "w*:read", &pixels))
        return NULL;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS status = spk_image_decoder_read(self->decoder, pixels.buf, (size_t)pixels.len, &err);
    Py_END_ALLOW_THREADS self->busy = false;
    PyBuffer_Release(&pixels);
    close_image(self);
    if (status < 0)
        return core_raise(&err);
    return Py_NewRef(Py_None);
}

PyObject *core_restore(PyObject *module, PyObject *args)
{
    Py_buffer data;
    void *file = NULL;
    size_t n = 0;
    spk_error err;
    spk_status status = SPK_OK;
    (void)module;
    spk_error_clear(&err);
    if (!PyArg_ParseTuple(args, "y*:restore", &data))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = spk_image_restore(data.buf, (size_t)data.len, &file, &n, &err);
    Py_END_ALLOW_THREADS PyBuffer_Release(&data);
    PyObject *out = status < 0 ? core_raise(&err) : PyBytes_FromStringAndSize(file, (Py_ssize_t)n);
    spk_free(file);
    return out;
}

static PyMethodDef methods[] = {
    {"open", open_image, METH_VARARGS, "open(data, channels, max_pixels) -> (width, height, header of a stored form)"},
    {"read", read_image, METH_VARARGS, "read(pixels): those of the open image"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Decodes one image after another. One thread at a time."},
    {0, NULL},
};

PyType_Spec core_decoder_spec = {
    .name = "shardpack._core.Decoder",
    .basicsize = sizeof(decoder),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
