/* Errors of the library as Python exceptions, and Ctrl-C in calls that run without the GIL. */
#include "core.h"

PyObject *core_raise(const spk_error *err)
{
    if (PyErr_Occurred())
        return NULL; /* it ended by what a callback raised */
    PyObject *module = PyImport_ImportModule("shardpack._errors");
    if (!module)
        return NULL;
    PyObject *exception = PyObject_CallMethod(module, "make", "ssLi", spk_status_name(err->code), err->text,
                                              (long long)err->offset, err->sys_errno);
    Py_DECREF(module);
    if (!exception)
        return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return NULL;
}

bool core_interrupted(PyThreadState **thread)
{
    PyEval_RestoreThread(*thread);
    int raised = PyErr_CheckSignals();
    *thread = PyEval_SaveThread();
    return raised != 0;
}
