/* Single images. */
#include "core.h"

PyObject *core_image_size(PyObject *module, PyObject *args)
{
    Py_buffer data;
    uint32_t width = 0, height = 0;
    spk_error err;
    (void)module;
    spk_error_clear(&err);
    if (!PyArg_ParseTuple(args, "y*:image_size", &data))
        return NULL;
    spk_status status = spk_image_get_size(data.buf, (size_t)data.len, NULL, &width, &height, &err);
    PyBuffer_Release(&data);
    return status < 0 ? core_raise(&err) : Py_BuildValue("(II)", (unsigned)width, (unsigned)height);
}

PyObject *core_decode_image(PyObject *module, PyObject *args)
{
    Py_buffer data, pixels;
    spk_image_decode_options options = {.size = sizeof options};
    unsigned channels = 3;
    spk_error err;
    spk_status status = SPK_OK;
    (void)module;
    spk_error_clear(&err);
    if (!PyArg_ParseTuple(args, "y*w*I:decode_image", &data, &pixels, &channels))
        return NULL;
    options.channels = channels;
    Py_BEGIN_ALLOW_THREADS status =
        spk_image_decode(data.buf, (size_t)data.len, &options, pixels.buf, (size_t)pixels.len, &err);
    Py_END_ALLOW_THREADS PyBuffer_Release(&data);
    PyBuffer_Release(&pixels);
    if (status < 0)
        return core_raise(&err);
    return Py_NewRef(Py_None);
}
