/* Option structs of the library, set from dicts by tables. */
#include "core.h"

#include <stddef.h>
#include <string.h>

static int take_number(const char *name, uint64_t most, PyObject *value, uint64_t *out)
{
    *out = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "%s=%R: must be 0 to %llu", name, value, (unsigned long long)most);
        return -1;
    }
    if (*out <= most)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s=%R: must be 0 to %llu", name, value, (unsigned long long)most);
    return -1;
}

/* Element i of a sequence of n numbers. */
static int take_element(PyObject *value, Py_ssize_t i, double *out)
{
    PyObject *item = PySequence_GetItem(value, i);
    *out = item ? PyFloat_AsDouble(item) : 0;
    Py_XDECREF(item);
    return PyErr_Occurred() ? -1 : 0;
}

static int set_one(void *at, const core_option *option, PyObject *value)
{
    uint64_t number = 0;
    double real[3] = {0};
    int whole = 0;
    switch (option->kind) {
    case CORE_INT:
        whole = (int)PyLong_AsLong(value);
        memcpy(at, &whole, sizeof whole);
        break;
    case CORE_U32:
        if (take_number(option->name, UINT32_MAX, value, &number) == 0)
            memcpy(at, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
        break;
    case CORE_U64:
        if (take_number(option->name, UINT64_MAX, value, &number) == 0)
            memcpy(at, &number, sizeof number);
        break;
    case CORE_DOUBLE:
        real[0] = PyFloat_AsDouble(value);
        memcpy(at, real, sizeof *real);
        break;
    case CORE_DOUBLES:
        for (int i = 0; i < 2 && take_element(value, i, &real[i]) == 0; i++)
            ;
        memcpy(at, real, 2 * sizeof *real);
        break;
    case CORE_FLOATS:
        for (int i = 0; i < 3 && take_element(value, i, &real[i]) == 0; i++)
            memcpy((char *)at + (size_t)i * sizeof(float), &(float){(float)real[i]}, sizeof(float));
        break;
    case CORE_TEXT: {
        char *text = NULL;
        if (PyBytes_AsStringAndSize(value, &text, NULL) < 0) /* also if there is a zero byte in it */
            return -1;
        memcpy(at, &text, sizeof text);
        break;
    }
    case CORE_INDICES: {
        char *numbers = NULL; /* aligned as objects are: their contents begin at a multiple of 8 */
        Py_ssize_t bytes = 0;
        if (PyBytes_AsStringAndSize(value, &numbers, &bytes) < 0)
            return -1;
        memcpy(at, &numbers, sizeof numbers);
        memcpy((char *)at + sizeof numbers, &(size_t){(size_t)bytes / sizeof(uint64_t)}, sizeof(size_t));
        break;
    }
    }
    return PyErr_Occurred() ? -1 : 0;
}

int core_options_set(void *out, const core_option *table, PyObject *dict)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        const core_option *option = table;
        if (!name)
            return -1;
        while (option->name && strcmp(option->name, name) != 0)
            option++;
        if (!option->name) {
            PyErr_Format(PyExc_TypeError, "unknown option %R", key);
            return -1;
        }
        if (set_one((char *)out + option->offset, option, value) < 0)
            return -1;
    }
    return 0;
}

#define ROW(type, kind, member)                                                                                        \
    {                                                                                                                  \
#member, kind, offsetof(type, member)                                                                          \
    }

_Static_assert(offsetof(spk_loader_options, index_count) ==
                   offsetof(spk_loader_options, indices) + sizeof(const uint64_t *),
               "CORE_INDICES sets both");

const core_option core_loader_options[] = {
    /* clang-format off */
    ROW(spk_loader_options, CORE_U32, batch_size),
    ROW(spk_loader_options, CORE_U32, rank),
    ROW(spk_loader_options, CORE_U32, world_size),
    ROW(spk_loader_options, CORE_INT, has_workers),
    ROW(spk_loader_options, CORE_INT, workers),
    ROW(spk_loader_options, CORE_U32, prefetch),
    ROW(spk_loader_options, CORE_INT, shuffle),
    ROW(spk_loader_options, CORE_U64, seed),
    ROW(spk_loader_options, CORE_U32, epoch),
    ROW(spk_loader_options, CORE_U32, chunk),
    ROW(spk_loader_options, CORE_U32, lane_groups),
    ROW(spk_loader_options, CORE_U32, lane_buffer),
    ROW(spk_loader_options, CORE_U32, echo),
    ROW(spk_loader_options, CORE_U64, limit),
    ROW(spk_loader_options, CORE_INDICES, indices),
    ROW(spk_loader_options, CORE_INT, tail),
    ROW(spk_loader_options, CORE_INT, on_error),
    ROW(spk_loader_options, CORE_U64, max_errors),
    ROW(spk_loader_options, CORE_DOUBLE, timeout),
    ROW(spk_loader_options, CORE_INT, verify_full),
    ROW(spk_loader_options, CORE_INT, error_on_hold),
    ROW(spk_loader_options, CORE_TEXT, worker_program),
    ROW(spk_loader_options, CORE_INT, pin_memory),
    ROW(spk_loader_options, CORE_U32, local_world_size),
    {NULL, CORE_INT, 0},
    /* clang-format on */
};

#define IMAGE(kind, member)                                                                                            \
    {                                                                                                                  \
#member, kind, offsetof(spk_column, image) + offsetof(spk_image_options, member)                               \
    }

static const core_option column_options[] = {
    ROW(spk_column, CORE_INT, kind),
    ROW(spk_column, CORE_INT, optional),
    ROW(spk_column, CORE_TEXT, field),
    IMAGE(CORE_INT, transform),
    IMAGE(CORE_U32, height),
    IMAGE(CORE_U32, width),
    IMAGE(CORE_U32, resize),
    IMAGE(CORE_DOUBLES, scale),
    IMAGE(CORE_DOUBLES, ratio),
    IMAGE(CORE_DOUBLE, hflip),
    IMAGE(CORE_DOUBLE, vflip),
    IMAGE(CORE_INT, interpolation),
    IMAGE(CORE_INT, dtype),
    IMAGE(CORE_INT, layout),
    IMAGE(CORE_INT, normalize),
    IMAGE(CORE_FLOATS, mean),
    IMAGE(CORE_FLOATS, std),
    IMAGE(CORE_U32, channels),
    IMAGE(CORE_INT, exif_orientation),
    IMAGE(CORE_INT, fast),
    IMAGE(CORE_INT, paired),
    IMAGE(CORE_U64, max_pixels),
    {NULL, CORE_INT, 0},
};

int core_texts_set(PyObject *list, const char ***out, size_t *n)
{
    Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return -1;
    *out = PyMem_Calloc((size_t)count + 1, sizeof **out);
    for (Py_ssize_t i = 0; *out && i < count; i++) {
        char *text = NULL;
        if (PyBytes_AsStringAndSize(PyList_GetItem(list, i), &text, NULL) < 0)
            return -1;
        (*out)[i] = text;
    }
    *n = (size_t)count;
    return *out ? 0 : (PyErr_NoMemory(), -1);
}

static const core_option dataset_options[] = {
    ROW(spk_dataset_options, CORE_INT, verify_full),       ROW(spk_dataset_options, CORE_DOUBLE, deadline),
    ROW(spk_dataset_options, CORE_TEXT, cache_dir),        ROW(spk_dataset_options, CORE_U64, cache_limit),
    ROW(spk_dataset_options, CORE_INT, plain_credentials), {NULL, CORE_INT, 0},
};

int core_place_set(core_place *out, PyObject *urls, PyObject *dict)
{
    size_t n = 0;
    *out = (core_place){.options = {.size = sizeof out->options}};
    int failed = core_texts_set(urls, &out->urls, &n);
    if (!failed && n == 0) {
        PyErr_SetString(PyExc_ValueError, "no path");
        failed = -1;
    }
    if (!failed)
        failed = core_options_set(&out->options, dataset_options, dict);
    if (failed) {
        PyMem_Free(out->urls);
        return -1;
    }
    out->options.mirrors = out->urls + 1;
    out->options.mirror_count = n - 1;
    return 0;
}

int core_columns_set(PyObject *list, spk_column **out, size_t *n)
{
    Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return -1;
    spk_column *columns = PyMem_Calloc((size_t)count + 1, sizeof *columns);
    if (!columns) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        columns[i].image.size = sizeof columns[i].image;
        if (core_options_set(&columns[i], column_options, PyList_GetItem(list, i)) < 0) {
            PyMem_Free(columns);
            return -1;
        }
    }
    *out = columns;
    *n = (size_t)count;
    return 0;
}
