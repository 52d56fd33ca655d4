/* pack, repack and verify. Callbacks come in the calling thread, which holds no GIL meanwhile. */
#include "core.h"

#include <stddef.h>
#include <string.h>

/* A call under way. */
typedef struct job {
    PyThreadState *thread;
    PyObject *on_progress, *on_note; /* callables or None */
    PyObject *problems;              /* verify: a list */
    bool failed;                     /* a callback raised */
} job;

/* Ends with the GIL given up again. `made` is the callback's argument, stolen. */
static int tell(job *j, PyObject *callback, PyObject *made)
{
    PyObject *answer = made && callback != Py_None ? PyObject_CallFunctionObjArgs(callback, made, NULL) : NULL;
    Py_XDECREF(made);
    Py_XDECREF(answer);
    if (PyErr_Occurred() || PyErr_CheckSignals() < 0)
        j->failed = true;
    j->thread = PyEval_SaveThread();
    return j->failed;
}

static int on_pack_progress(void *user, const spk_pack_progress *p)
{
    static const char *const phases[] = {"scan", "build", "publish"};
    job *j = user;
    if (j->failed)
        return 1;
    PyEval_RestoreThread(j->thread);
    return tell(j, j->on_progress,
                Py_BuildValue("{s:s,s:K,s:K,s:K,s:K,s:K,s:K}", "phase", phases[p->phase], "files", p->files, "samples",
                              p->samples, "samples_total", p->samples_total, "bytes", p->bytes, "bytes_total",
                              p->bytes_total, "bad", p->bad));
}

static void on_pack_note(void *user, const char *text)
{
    job *j = user;
    if (j->failed)
        return;
    PyEval_RestoreThread(j->thread);
    (void)tell(j, j->on_note, PyUnicode_FromString(text));
}

#define ROW(kind, member)                                                                                              \
    {                                                                                                                  \
#member, kind, offsetof(spk_pack_options, member)                                                              \
    }

static const core_option pack_options[] = {
    ROW(CORE_U64, shard_size),
    ROW(CORE_U64, shard_samples),
    ROW(CORE_U64, frame_size),
    ROW(CORE_U64, frame_samples),
    ROW(CORE_INT, single_frame),
    ROW(CORE_INT, has_level),
    ROW(CORE_INT, level),
    ROW(CORE_INT, jobs),
    ROW(CORE_INT, no_shuffle),
    ROW(CORE_U64, seed),
    ROW(CORE_TEXT, prefix),
    ROW(CORE_TEXT, list),
    ROW(CORE_U64, limit),
    ROW(CORE_INT, check),
    ROW(CORE_INT, on_bad),
    ROW(CORE_INT, labels),
    ROW(CORE_INT, stem),
    ROW(CORE_INT, follow_symlinks),
    ROW(CORE_INT, force),
    ROW(CORE_INT, dry_run),
    ROW(CORE_U64, max_pixels),
    ROW(CORE_INT, jpeg),
    ROW(CORE_INT, allow_unrestorable),
    {NULL, CORE_INT, 0},
};

static const core_option repack_options[] = {
    {"jpeg", CORE_INT, offsetof(spk_repack_options, jpeg)},
    {"allow_unrestorable", CORE_INT, offsetof(spk_repack_options, allow_unrestorable)},
    {"jobs", CORE_INT, offsetof(spk_repack_options, jobs)},
    {"force", CORE_INT, offsetof(spk_repack_options, force)},
    {"dry_run", CORE_INT, offsetof(spk_repack_options, dry_run)},
    {NULL, CORE_INT, 0},
};

/* What cannot be told by a table: lists of globs and splits. */
typedef struct lists {
    const char **include, **exclude;
    spk_split *splits;
} lists;

static int take_splits(PyObject *list, spk_split **out, size_t *n)
{
    Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return -1;
    *out = PyMem_Calloc((size_t)count + 1, sizeof **out);
    if (!*out) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "yd", &(*out)[i].name, &(*out)[i].share))
            return -1;
    *n = (size_t)count;
    return 0;
}

static PyObject *pack_result(const spk_pack_result *r)
{
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:O,s:s,s:K,s:K,s:K,s:K,s:K,s:K}", "samples",
        r->samples, "files", r->files, "classes", r->classes, "shards", r->shards, "frames", r->frames, "bytes_in",
        r->bytes_in, "bytes_out", r->bytes_out, "bad", r->bad, "bad_skipped_samples", r->bad_skipped_samples, "junk",
        r->junk, "excluded", r->excluded, "excluded_folders", r->excluded_folders, "other_skipped", r->other_skipped,
        "shards_resumed", r->shards_resumed, "up_to_date", r->up_to_date ? Py_True : Py_False, "fingerprint",
        r->fingerprint, "jpeg_fast", r->jpeg_fast, "jpeg_pixels", r->jpeg_pixels, "jpeg_other", r->jpeg_other,
        "jpeg_damaged", r->jpeg_damaged, "jpeg_unequal", r->jpeg_unequal, "jpeg_no_gain", r->jpeg_no_gain);
}

static PyObject *run_pack(const char *src, const char *dst, spk_pack_options *o, job *j)
{
    spk_pack_result result;
    spk_error err;
    spk_error_clear(&err);
    memset(&result, 0, sizeof result);
    o->on_progress = on_pack_progress;
    o->on_note = on_pack_note;
    o->user = j;
    j->thread = PyEval_SaveThread();
    spk_status status = spk_pack(src, dst, o, &result, &err);
    PyEval_RestoreThread(j->thread);
    if (PyErr_Occurred())
        return NULL;
    return status < 0 ? core_raise(&err) : pack_result(&result);
}

PyObject *core_pack(PyObject *module, PyObject *args)
{
    const char *src = NULL, *dst = NULL;
    PyObject *dict = NULL, *include = NULL, *exclude = NULL, *splits = NULL, *out = NULL;
    spk_pack_options o = {.size = sizeof o};
    lists l = {NULL, NULL, NULL};
    job j = {.failed = false};
    (void)module;
    if (!PyArg_ParseTuple(args, "yyO!O!O!O!OO:pack", &src, &dst, &PyDict_Type, &dict, &PyList_Type, &include,
                          &PyList_Type, &exclude, &PyList_Type, &splits, &j.on_progress, &j.on_note))
        return NULL;
    if (core_options_set(&o, pack_options, dict) == 0 && core_texts_set(include, &l.include, &o.include_count) == 0 &&
        core_texts_set(exclude, &l.exclude, &o.exclude_count) == 0 &&
        take_splits(splits, &l.splits, &o.split_count) == 0) {
        o.include = l.include;
        o.exclude = l.exclude;
        o.splits = l.splits;
        out = run_pack(src, dst, &o, &j);
    }
    PyMem_Free(l.include);
    PyMem_Free(l.exclude);
    PyMem_Free(l.splits);
    return out;
}

/* While the dataset is opened, in the calling thread. */
static int on_opening(void *user)
{
    job *j = user;
    return core_interrupted(&j->thread);
}

PyObject *core_repack(PyObject *module, PyObject *args)
{
    const char *dst = NULL;
    PyObject *urls = NULL, *where = NULL, *dict = NULL;
    core_place place;
    spk_repack_options o = {.size = sizeof o, .on_progress = on_pack_progress, .on_note = on_pack_note};
    spk_pack_result result;
    job j = {.failed = false};
    spk_error err;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!yO!OO:repack", &PyList_Type, &urls, &PyDict_Type, &where, &dst, &PyDict_Type,
                          &dict, &j.on_progress, &j.on_note) ||
        core_options_set(&o, repack_options, dict) < 0 || core_place_set(&place, urls, where) < 0)
        return NULL;
    spk_error_clear(&err);
    memset(&result, 0, sizeof result);
    o.user = &j;
    o.dataset = &place.options;
    place.options.on_wait = on_opening;
    place.options.user = &j;
    j.thread = PyEval_SaveThread();
    spk_status status = spk_repack(place.urls[0], dst, &o, &result, &err);
    PyEval_RestoreThread(j.thread);
    PyMem_Free(place.urls);
    if (PyErr_Occurred())
        return NULL;
    return status < 0 ? core_raise(&err) : pack_result(&result);
}

static int on_verify_progress(void *user, uint64_t done, uint64_t total)
{
    job *j = user;
    if (j->failed)
        return 1;
    PyEval_RestoreThread(j->thread);
    return tell(j, j->on_progress, Py_BuildValue("(KK)", (unsigned long long)done, (unsigned long long)total));
}

static void on_problem(void *user, const spk_error *problem)
{
    job *j = user;
    if (j->failed)
        return;
    PyEval_RestoreThread(j->thread);
    PyObject *row = Py_BuildValue("(ssLi)", spk_status_name(problem->code), problem->text, (long long)problem->offset,
                                  problem->sys_errno);
    if (!row || PyList_Append(j->problems, row) < 0)
        j->failed = true;
    Py_XDECREF(row);
    j->thread = PyEval_SaveThread();
}

PyObject *core_verify(PyObject *module, PyObject *args)
{
    PyObject *urls = NULL, *dict = NULL;
    core_place place;
    spk_verify_options o = {.size = sizeof o, .on_problem = on_problem, .on_progress = on_verify_progress};
    spk_verify_result r;
    job j = {.failed = false};
    spk_error err;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!iO:verify", &PyList_Type, &urls, &PyDict_Type, &dict, &o.jobs, &j.on_progress) ||
        core_place_set(&place, urls, dict) < 0)
        return NULL;
    j.problems = PyList_New(0);
    if (!j.problems) {
        PyMem_Free(place.urls);
        return NULL;
    }
    memset(&r, 0, sizeof r);
    spk_error_clear(&err);
    o.user = &j;
    o.dataset = &place.options;
    place.options.on_wait = on_opening;
    place.options.user = &j;
    j.thread = PyEval_SaveThread();
    spk_status status = spk_verify(place.urls[0], &o, &r, &err);
    PyEval_RestoreThread(j.thread);
    PyMem_Free(place.urls);
    if (PyErr_Occurred() || status < 0) {
        Py_DECREF(j.problems);
        return PyErr_Occurred() ? NULL : core_raise(&err);
    }
    return Py_BuildValue("({s:K,s:K,s:K,s:K}N)", "problems", r.problems, "shards", r.shards, "samples", r.samples,
                         "bytes", r.bytes, j.problems);
}
