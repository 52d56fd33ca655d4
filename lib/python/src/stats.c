/* The figures of a loader as a dict. */
#include "core.h"

/* Sets dict[name]; value is stolen, NULL is an exception already. */
static int set(PyObject *dict, const char *name, PyObject *value)
{
    int failed = !value || PyDict_SetItemString(dict, name, value) < 0;
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

static int set_count(PyObject *dict, const char *name, uint64_t value)
{
    return set(dict, name, PyLong_FromUnsignedLongLong(value));
}

/* Seconds; 0 is not known yet. */
static PyObject *latency(double seconds)
{
    return seconds > 0 ? PyFloat_FromDouble(seconds) : Py_NewRef(Py_None);
}

/* {HTTP status: requests that failed with it} */
static PyObject *codes(const spk_mirror_stats *m)
{
    PyObject *dict = PyDict_New();
    for (long i = 0; dict && i < (long)(sizeof m->codes / sizeof *m->codes); i++) {
        if (m->codes[i] == 0)
            continue;
        PyObject *status = PyLong_FromLong(100 + i), *count = PyLong_FromUnsignedLong(m->codes[i]);
        if (!status || !count || PyDict_SetItem(dict, status, count) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(status);
        Py_XDECREF(count);
    }
    return dict;
}

static PyObject *mirror(const spk_mirror_stats *m)
{
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"requests", m->requests},       {"bytes", m->bytes},         {"retries", m->retries},
        {"failovers", m->failovers},     {"hedges", m->hedges},       {"no_connection", m->no_connection},
        {"broken", m->broken},           {"stalled", m->stalled},     {"denied", m->denied},
        {"missing", m->missing},         {"throttled", m->throttled}, {"server_errors", m->server_errors},
        {"bad_replies", m->bad_replies}, {"changed", m->changed},     {"wrong_bytes", m->wrong_bytes},
    };
    PyObject *dict = PyDict_New();
    if (!dict)
        return NULL;
    int failed = set(dict, "url", PyUnicode_DecodeFSDefault(m->url)) < 0 ||
                 set(dict, "latency_p50", latency(m->latency_p50)) < 0 ||
                 set(dict, "latency_p99", latency(m->latency_p99)) < 0 || set(dict, "codes", codes(m)) < 0;
    for (size_t i = 0; !failed && i < sizeof counts / sizeof *counts; i++)
        failed = set_count(dict, counts[i].name, counts[i].value) < 0;
    if (failed)
        Py_CLEAR(dict);
    return dict;
}

static PyObject *mirrors(const spk_loader *loader)
{
    spk_mirror_stats m;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && spk_loader_get_mirror(loader, i, &m) == SPK_OK; i++) {
        PyObject *one = mirror(&m);
        if (!one || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static int set_remote(PyObject *dict, const spk_loader *loader, const spk_loader_stats *s)
{
    if (s->mirrors == 0)
        return 0;
    return set_count(dict, "cache_hits", s->cache_hits) < 0 ||
                   set_count(dict, "cache_hit_bytes", s->cache_hit_bytes) < 0 ||
                   set_count(dict, "cache_misses", s->cache_misses) < 0 || set(dict, "mirrors", mirrors(loader)) < 0
               ? -1
               : 0;
}

PyObject *core_stats(const spk_loader *loader)
{
    spk_loader_stats s;
    spk_loader_get_stats(loader, &s);
    PyObject *dict = Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:d,s:d,s:K,s:K,s:K,s:d,s:K,s:K,s:K,s:N,s:d,s:K,s:K,s:d}", "batches", s.batches, "samples",
        s.samples, "padded", s.padded, "substituted", s.substituted, "wait_seconds", (double)s.wait_ns / 1e9,
        "worker_busy_seconds", (double)s.worker_busy_ns / 1e9, "bytes_read", s.bytes_read, "frames_read", s.frames_read,
        "images_decoded", s.images_decoded, "ready", s.batches > 0 ? (double)s.ready_sum / (double)s.batches : 0.0,
        "restarts", s.restarts, "copies", s.copies, "shared_lanes", s.shared_lanes, "pinned",
        PyBool_FromLong(s.pinned != 0), "pin_seconds", (double)s.pin_ns / 1e9, "uploads", s.uploads, "upload_bytes",
        s.upload_bytes, "upload_wait_seconds", (double)s.upload_wait_ns / 1e9);
    if (dict && set_remote(dict, loader, &s) < 0)
        Py_CLEAR(dict);
    return dict;
}
