/* A dataset with one reader on it. Any thread: calls wait for each other without the GIL. */
#include "core.h"

#include <pthread.h>
#include <string.h>

struct core_dataset {
    PyObject_HEAD spk_dataset *dataset;
    spk_reader *reader; /* made by the first read */
    pthread_mutex_t lock;
    bool locked; /* the lock was made */
};

const spk_dataset *core_dataset_get(PyObject *self)
{
    return ((core_dataset *)self)->dataset;
}

/* In whatever thread a call waits for a server. */
static int on_wait(void *user)
{
    (void)user;
    PyGILState_STATE state = PyGILState_Ensure();
    int raised = PyErr_CheckSignals();
    PyGILState_Release(state);
    return raised != 0;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"urls", "options", NULL};
    PyObject *urls = NULL, *dict = NULL;
    core_place place;
    spk_error err;
    spk_status status = SPK_OK;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!:Dataset", names, &PyList_Type, &urls, &PyDict_Type, &dict) ||
        core_place_set(&place, urls, dict) < 0)
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    core_dataset *self = (core_dataset *)allocate(type, 0);
    if (self) {
        self->locked = pthread_mutex_init(&self->lock, NULL) == 0;
        spk_error_clear(&err);
        place.options.on_wait = on_wait;
        Py_BEGIN_ALLOW_THREADS status = spk_dataset_open(&self->dataset, place.urls[0], &place.options, &err);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(place.urls);
    if (!self || status == SPK_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return core_raise(&err);
}

static void dealloc(PyObject *object)
{
    core_dataset *self = (core_dataset *)object;
    PyTypeObject *type = Py_TYPE(object);
    spk_reader_close(self->reader);
    spk_dataset_close(self->dataset);
    if (self->locked)
        pthread_mutex_destroy(&self->lock);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *totals(PyObject *object, PyObject *none)
{
    spk_dataset_stat s;
    (void)none;
    spk_dataset_get_stat(core_dataset_get(object), &s);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:O}", "samples", s.samples, "shards", s.shards, "frames", s.frames,
                         "bytes", s.bytes, "tar_bytes", s.tar_bytes, "payload_bytes", s.payload_bytes, "shuffled",
                         s.shuffled ? Py_True : Py_False);
}

static PyObject *fingerprint(PyObject *object, PyObject *none)
{
    (void)none;
    return PyUnicode_FromString(spk_dataset_fingerprint(core_dataset_get(object)));
}

static PyObject *manifest(PyObject *object, PyObject *none)
{
    (void)none;
    return PyUnicode_FromString(spk_dataset_manifest(core_dataset_get(object)));
}

static PyObject *classes(PyObject *object, PyObject *none)
{
    const spk_dataset *d = core_dataset_get(object);
    (void)none;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < spk_dataset_class_count(d); i++) {
        PyObject *name = PyUnicode_FromString(spk_dataset_class_name(d, i));
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *fields(PyObject *object, PyObject *none)
{
    const spk_dataset *d = core_dataset_get(object);
    (void)none;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < spk_dataset_field_count(d); i++) {
        spk_field_stat f;
        PyObject *row = spk_dataset_get_field(d, i, &f, NULL) < 0
                            ? PyErr_NoMemory()
                            : Py_BuildValue("(ssK)", f.name, f.kind, (unsigned long long)f.samples);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* Names of files may be any bytes: as os.fsdecode has them. */
static PyObject *path_text(const char *path)
{
    return path ? PyUnicode_DecodeFSDefault(path) : Py_NewRef(Py_None);
}

static PyObject *sample_tuple(const spk_dataset *d, const spk_sample *s)
{
    spk_shard_row row;
    spk_error err;
    spk_error_clear(&err);
    if (spk_dataset_get_shard(d, s->shard, &row, &err) < 0)
        return core_raise(&err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < s->field_count; i++) {
        const spk_field *f = &s->fields[i];
        PyObject *path = path_text(f->path);
        long long original = strcmp(f->encoding, "identity") == 0 ? -1 : (long long)f->original;
        PyObject *field =
            path ? Py_BuildValue("(sy#OL)", f->name, (const char *)f->data, (Py_ssize_t)f->size, path, original) : NULL;
        if (!field || PyList_Append(list, field) < 0)
            Py_CLEAR(list);
        Py_XDECREF(path);
        Py_XDECREF(field);
    }
    return list ? Py_BuildValue("(sKsN)", s->key, (unsigned long long)s->number, row.path, list) : NULL;
}

static spk_status read_one(core_dataset *self, uint64_t number, const spk_sample **out, spk_error *err)
{
    spk_status status = SPK_OK;
    if (!self->reader)
        status = spk_reader_open(&self->reader, self->dataset, number, err);
    if (status == SPK_OK) {
        spk_reader_set_stored(self->reader, 1);
        status = spk_reader_seek(self->reader, number, err);
    }
    return status == SPK_OK ? spk_reader_next(self->reader, out, err) : status;
}

/* Whoever holds the lock may wait for the GIL; nobody waits for the lock with the GIL. */
static PyObject *read_sample(PyObject *object, PyObject *args)
{
    core_dataset *self = (core_dataset *)object;
    unsigned long long number = 0;
    const spk_sample *sample = NULL;
    PyObject *out = NULL;
    spk_error err;
    spk_status status = SPK_OK;
    spk_error_clear(&err);
    if (!PyArg_ParseTuple(args, "K:read", &number))
        return NULL;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->lock);
    status = read_one(self, number, &sample, &err);
    Py_END_ALLOW_THREADS if (status == SPK_OK) out = sample_tuple(self->dataset, sample);
    pthread_mutex_unlock(&self->lock);
    if (status == SPK_END)
        PyErr_Format(PyExc_IndexError, "sample %llu: the dataset ends before it", number);
    return status < 0 ? core_raise(&err) : out;
}

static PyObject *find(PyObject *object, PyObject *args)
{
    core_dataset *self = (core_dataset *)object;
    const char *key = NULL;
    uint64_t number = 0;
    spk_error err;
    spk_status status = SPK_OK;
    spk_error_clear(&err);
    if (!PyArg_ParseTuple(args, "s:find", &key))
        return NULL;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->lock);
    status = spk_dataset_find(self->dataset, key, &number, &err);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS if (status == SPK_E_NOT_FOUND) return Py_NewRef(Py_None);
    return status < 0 ? core_raise(&err) : PyLong_FromUnsignedLongLong(number);
}

/* Keys of shard i, in order; NULL with an exception. */
static PyObject *key_list(const spk_shard *shard)
{
    spk_shard_stat stat;
    spk_shard_get_stat(shard, &stat);
    PyObject *list = PyList_New(0);
    for (uint64_t i = 0; list && i < stat.samples; i++) {
        PyObject *key = PyUnicode_FromString(spk_shard_key(shard, i));
        if (!key || PyList_Append(list, key) < 0)
            Py_CLEAR(list);
        Py_XDECREF(key);
    }
    return list;
}

static PyObject *keys_of(PyObject *object, PyObject *args)
{
    core_dataset *self = (core_dataset *)object;
    unsigned long long number = 0;
    spk_shard *shard = NULL;
    spk_error err;
    spk_status status = SPK_OK;
    spk_error_clear(&err);
    if (!PyArg_ParseTuple(args, "K:keys", &number))
        return NULL;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->lock);
    status = spk_dataset_open_shard(self->dataset, number, &shard, &err);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS PyObject *list = status == SPK_OK ? key_list(shard) : core_raise(&err);
    spk_shard_close(shard);
    return list;
}

static PyMethodDef methods[] = {
    {"stat", totals, METH_NOARGS, "Totals as a dict."},
    {"fingerprint", fingerprint, METH_NOARGS, "64 hex digits."},
    {"manifest", manifest, METH_NOARGS, "The manifest's text."},
    {"classes", classes, METH_NOARGS, "Names of the classes."},
    {"fields", fields, METH_NOARGS, "(name, kind, samples) of each field."},
    {"read", read_sample, METH_VARARGS,
     "(key, number, shard, [(field, bytes as stored, path or None, bytes of the file if they are a form of it or "
     "-1)])"},
    {"find", find, METH_VARARGS, "Number of the sample with a key, or None."},
    {"keys", keys_of, METH_VARARGS, "Keys of a shard's samples, in order."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec core_dataset_spec = {
    .name = "shardpack._core.Dataset",
    .basicsize = sizeof(core_dataset),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
