/* The loader as a Python object. One thread at a time; the GIL is released while it waits. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define COPY_BELOW 65536u /* bytes: smaller columns are copied, so that keeping them holds no slot */
#define NOTES_MAX 64u

typedef struct note {
    struct note *next;
    char text[];
} note;

typedef struct loader {
    PyObject_HEAD PyObject *dataset;
    spk_loader *loader; /* NULL: closed */
    core_shop *shop;
    size_t columns;
    int capsules; /* columns of fixed shape come as DLPack capsules */
    uint64_t row; /* of the last batch: position of its first row in its epoch, and that epoch */
    uint32_t epoch;
    PyThreadState *thread; /* of the call under way */
    note *notes, *last;
    size_t notes_n;
} loader;

/* From any call of the library, with or without the GIL. */
static void on_note(void *user, const char *text)
{
    loader *self = user;
    size_t n = strlen(text) + 1;
    note *new = self->notes_n < NOTES_MAX ? malloc(sizeof *new + n) : NULL;
    if (!new)
        return;
    new->next = NULL;
    memcpy(new->text, text, n);
    if (self->last)
        self->last->next = new;
    else
        self->notes = new;
    self->last = new;
    self->notes_n++;
}

static void drop_notes(loader *self)
{
    while (self->notes) {
        note *next = self->notes->next;
        free(self->notes);
        self->notes = next;
    }
    self->last = NULL;
    self->notes_n = 0;
}

static int on_wait(void *user)
{
    loader *self = user;
    return self->thread && core_interrupted(&self->thread);
}

/* Begins and ends a call without the GIL. */
static void begin(loader *self)
{
    core_shop_settle(self->shop);
    self->shop->busy = true;
    self->thread = PyEval_SaveThread();
}

static void end(loader *self)
{
    PyEval_RestoreThread(self->thread);
    self->thread = NULL;
    self->shop->busy = false;
    core_shop_settle(self->shop);
}

static int check(const loader *self)
{
    if (self->shop && self->shop->busy) {
        PyErr_SetString(PyExc_RuntimeError, "the loader is in use by another thread");
        return -1;
    }
    if (!self->loader) {
        PyErr_SetString(PyExc_RuntimeError, "the Loader is closed");
        return -1;
    }
    return 0;
}

static int open_loader(loader *self, PyObject *options, PyObject *columns)
{
    spk_loader_options o = {.size = sizeof o, .on_note = on_note, .on_wait = on_wait, .user = self};
    spk_column *list = NULL;
    spk_error err;
    spk_error_clear(&err);
    if (core_options_set(&o, core_loader_options, options) < 0 || core_columns_set(columns, &list, &self->columns) < 0)
        return -1;
    o.columns = list;
    o.column_count = self->columns;
    const spk_dataset *dataset = core_dataset_get(self->dataset);
    begin(self);
    spk_status status = spk_loader_open(&self->loader, dataset, &o, &err);
    end(self);
    PyMem_Free(list);
    if (status < 0)
        core_raise(&err);
    return status < 0 ? -1 : 0;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *dataset = NULL, *options = NULL, *columns = NULL;
    int capsules = 0;
    static char *names[] = {"dataset", "options", "columns", "capsules", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!O!|p:Loader", names, core_state_of(type)->dataset, &dataset,
                                     &PyDict_Type, &options, &PyList_Type, &columns, &capsules))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    loader *self = (loader *)allocate(type, 0); /* zeroed */
    if (!self)
        return NULL;
    self->dataset = Py_NewRef(dataset);
    self->capsules = capsules;
    self->shop = calloc(1, sizeof *self->shop);
    if (!self->shop) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->shop->users = 1;
    if (open_loader(self, options, columns) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

PyObject *core_estimate(PyObject *module, PyObject *args)
{
    const core_state *state = PyModule_GetState(module);
    PyObject *dataset = NULL, *options = NULL, *columns = NULL;
    spk_loader_options o = {.size = sizeof o};
    spk_column *list = NULL;
    spk_loader_estimate e;
    spk_error err;
    spk_error_clear(&err);
    if (!PyArg_ParseTuple(args, "O!O!O!:estimate", state->dataset, &dataset, &PyDict_Type, &options, &PyList_Type,
                          &columns) ||
        core_options_set(&o, core_loader_options, options) < 0 || core_columns_set(columns, &list, &o.column_count) < 0)
        return NULL;
    o.columns = list;
    spk_status status = spk_loader_estimate_memory(core_dataset_get(dataset), &o, &e, &err);
    PyMem_Free(list);
    if (status < 0)
        return core_raise(&err);
    return Py_BuildValue("{s:I,s:I,s:K,s:K,s:K}", "workers", (unsigned)e.workers, "slots", (unsigned)e.slots,
                         "shared_bytes", e.shared_bytes, "worker_bytes", e.worker_bytes, "batches", e.batches);
}

static void stop(loader *self)
{
    spk_loader *l = self->loader;
    if (!l)
        return;
    self->loader = NULL;
    begin(self);
    spk_loader_close(l);
    end(self);
}

static void dealloc(PyObject *object)
{
    loader *self = (loader *)object;
    PyTypeObject *type = Py_TYPE(object);
    stop(self);
    if (self->shop)
        core_shop_leave(self->shop);
    drop_notes(self);
    Py_XDECREF(self->dataset);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *close_loader(PyObject *object, PyObject *none)
{
    loader *self = (loader *)object;
    (void)none;
    if (self->loader && check(self) < 0)
        return NULL;
    stop(self);
    return Py_NewRef(Py_None);
}

/* A list of bytes objects; None where a sample lacks the field. */
static PyObject *values_of(const spk_view *view)
{
    Py_ssize_t n = (Py_ssize_t)view->shape[0];
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        const uint64_t *at = view->offsets + 2 * i;
        bool there = at[0] > 0 || view->kind == SPK_COLUMN_KEY;
        PyObject *value =
            there ? PyBytes_FromStringAndSize((const char *)view->data + at[0], (Py_ssize_t)at[1]) : Py_NewRef(Py_None);
        if (!value || PyList_SetItem(list, i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *column_of(const loader *self, core_state *state, PyObject *lease, const spk_batch *batch, size_t i)
{
    spk_view view;
    spk_error err;
    spk_error_clear(&err);
    if (spk_batch_column(batch, i, &view, &err) < 0)
        return core_raise(&err);
    if (view.offsets)
        return values_of(&view);
    if (view.bytes < COPY_BELOW)
        lease = NULL;
    else
        core_lease_viewed(lease);
    return self->capsules ? core_dlpack(lease, &view) : core_column_new(state, lease, &view);
}

static PyObject *next(PyObject *object, PyObject *none)
{
    loader *self = (loader *)object;
    spk_batch *batch = NULL;
    spk_error err;
    (void)none;
    if (check(self) < 0)
        return NULL;
    spk_error_clear(&err);
    uint64_t before = 0;
    spk_loader_position(self->loader, &self->epoch, &before);
    begin(self);
    spk_status status = spk_loader_next(self->loader, &batch, &err);
    end(self);
    if (status < 0)
        return core_raise(&err);
    if (status == SPK_END)
        return Py_NewRef(Py_None);
    self->row = spk_batch_position(batch);
    core_state *state = core_state_of(Py_TYPE(object));
    PyObject *lease = core_lease_new(state, self->shop, batch);
    PyObject *columns = lease ? PyTuple_New((Py_ssize_t)self->columns) : NULL;
    for (size_t i = 0; columns && i < self->columns; i++) {
        PyObject *column = column_of(self, state, lease, batch, i);
        if (!column || PyTuple_SetItem(columns, (Py_ssize_t)i, column) < 0)
            Py_CLEAR(columns);
    }
    PyObject *both = columns ? PyTuple_Pack(2, columns, lease) : NULL;
    Py_XDECREF(columns);
    Py_XDECREF(lease);
    return both;
}

static PyObject *ready(PyObject *object, PyObject *none)
{
    loader *self = (loader *)object;
    (void)none;
    return check(self) < 0 ? NULL : PyBool_FromLong(spk_loader_ready(self->loader));
}

static PyObject *set_current_stream(PyObject *object, PyObject *call)
{
    loader *self = (loader *)object;
    Py_XDECREF(self->shop->current_stream);
    self->shop->current_stream = Py_NewRef(call);
    return Py_NewRef(Py_None);
}

static PyObject *answer(spk_status status, const spk_error *err)
{
    if (status < 0)
        return core_raise(err);
    return Py_NewRef(Py_None);
}

static PyObject *set_epoch(PyObject *object, PyObject *args)
{
    loader *self = (loader *)object;
    unsigned epoch = 0;
    spk_error err;
    spk_error_clear(&err);
    if (!PyArg_ParseTuple(args, "I:set_epoch", &epoch) || check(self) < 0)
        return NULL;
    begin(self);
    spk_status status = spk_loader_set_epoch(self->loader, epoch, &err);
    end(self);
    return answer(status, &err);
}

static PyObject *skip(PyObject *object, PyObject *args)
{
    loader *self = (loader *)object;
    unsigned long long count = 0;
    spk_error err;
    spk_error_clear(&err);
    if (!PyArg_ParseTuple(args, "K:skip", &count) || check(self) < 0)
        return NULL;
    begin(self);
    spk_status status = spk_loader_skip(self->loader, count, &err);
    end(self);
    return answer(status, &err);
}

static PyObject *save(PyObject *object, PyObject *none)
{
    loader *self = (loader *)object;
    char *text = NULL;
    spk_error err;
    (void)none;
    spk_error_clear(&err);
    if (check(self) < 0)
        return NULL;
    if (spk_loader_state_save(self->loader, &text, &err) < 0)
        return core_raise(&err);
    PyObject *out = PyUnicode_FromString(text);
    spk_free(text);
    return out;
}

static PyObject *restore(PyObject *object, PyObject *args)
{
    loader *self = (loader *)object;
    const char *text = NULL;
    spk_error err;
    spk_error_clear(&err);
    if (!PyArg_ParseTuple(args, "s:restore", &text) || check(self) < 0)
        return NULL;
    begin(self);
    spk_status status = spk_loader_state_restore(self->loader, text, &err);
    end(self);
    return answer(status, &err);
}

static PyObject *position(PyObject *object, PyObject *none)
{
    loader *self = (loader *)object;
    uint32_t epoch = 0;
    uint64_t samples = 0;
    (void)none;
    if (check(self) < 0)
        return NULL;
    spk_loader_position(self->loader, &epoch, &samples);
    return Py_BuildValue("(IK)", (unsigned)epoch, (unsigned long long)samples);
}

static PyObject *length(PyObject *object, PyObject *none)
{
    loader *self = (loader *)object;
    (void)none;
    return check(self) < 0 ? NULL : PyLong_FromUnsignedLongLong(spk_loader_length(self->loader));
}

static PyObject *stats(PyObject *object, PyObject *none)
{
    loader *self = (loader *)object;
    (void)none;
    return check(self) < 0 ? NULL : core_stats(self->loader);
}

static PyObject *take_notes(PyObject *object, PyObject *none)
{
    loader *self = (loader *)object;
    (void)none;
    if (self->shop->busy)
        return PyList_New(0);
    PyObject *list = PyList_New(0);
    for (const note *n = self->notes; list && n; n = n->next) {
        PyObject *text = PyUnicode_FromString(n->text);
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    drop_notes(self);
    return list;
}

static PyObject *is_closed(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(!((loader *)object)->loader);
}

static PyObject *first_row(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(((loader *)object)->row);
}

static PyObject *last_epoch(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(((loader *)object)->epoch);
}

static PyObject *is_pinned(PyObject *object, void *closure)
{
    loader *self = (loader *)object;
    spk_loader_stats s = {0};
    (void)closure;
    if (self->loader)
        spk_loader_get_stats(self->loader, &s);
    return PyBool_FromLong(s.pinned != 0);
}

static PyObject *has_notes(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((loader *)object)->notes_n > 0);
}

static PyMethodDef methods[] = {
    {"next", next, METH_NOARGS, "(columns, lease) of the next batch; None at the end of an epoch."},
    {"ready", ready, METH_NOARGS, "Whether next() would not wait."},
    {"set_current_stream", set_current_stream, METH_O,
     "What gives the handle of the stream that batches wait for when their last view is gone."},
    {"close", close_loader, METH_NOARGS, "Ends the workers. Batches held stay valid."},
    {"set_epoch", set_epoch, METH_VARARGS, "Goes to the beginning of an epoch."},
    {"skip", skip, METH_VARARGS, "Passes over batches, at most to the end of the epoch."},
    {"save", save, METH_NOARGS, "The state as JSON."},
    {"restore", restore, METH_VARARGS, "Goes on from a state."},
    {"position", position, METH_NOARGS, "(epoch, samples of it delivered by all ranks)"},
    {"length", length, METH_NOARGS, "Batches of an epoch."},
    {"stats", stats, METH_NOARGS, "Figures as a dict."},
    {"notes", take_notes, METH_NOARGS, "Hints that came up since the last call."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"closed", is_closed, NULL, "Whether it is closed.", NULL},
    {"row", first_row, NULL, "Position of the last batch's first row in the order of its epoch.", NULL},
    {"epoch", last_epoch, NULL, "Epoch of the last batch.", NULL},
    {"pinned", is_pinned, NULL, "Whether its memory is page-locked.", NULL},
    {"noted", has_notes, NULL, "Whether notes() would give some.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, new}, {Py_tp_dealloc, dealloc}, {Py_tp_methods, methods}, {Py_tp_getset, attributes}, {0, NULL},
};

PyType_Spec core_loader_spec = {
    .name = "shardpack._core.Loader",
    .basicsize = sizeof(loader),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
