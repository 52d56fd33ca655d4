/* Initialisation, and what is no type. */
#include "core.h"

core_state *core_state_of(PyTypeObject *type)
{
    return PyType_GetModuleState(type);
}

static PyMethodDef methods[] = {
    {"pack", core_pack, METH_VARARGS, "pack(src, dst, options, on_progress, on_note) -> dict"},
    {"repack", core_repack, METH_VARARGS, "repack(urls, place, dst, options, on_progress, on_note) -> dict"},
    {"verify", core_verify, METH_VARARGS, "verify(path, jobs, on_progress) -> (dict, list of problems)"},
    {"restore", core_restore, METH_VARARGS, "restore(stored) -> the file"},
    {"estimate", core_estimate, METH_VARARGS, "estimate(dataset, options, columns) -> dict"},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, PyTypeObject **out, PyType_Spec *spec)
{
    *out = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *out ? PyModule_AddType(module, *out) : -1;
}

static int exec(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    PyTypeObject *decoder = NULL;
    if (add_type(module, &state->dataset, &core_dataset_spec) < 0 ||
        add_type(module, &state->loader, &core_loader_spec) < 0 ||
        add_type(module, &state->lease, &core_lease_spec) < 0 ||
        add_type(module, &state->column, &core_column_spec) < 0 || add_type(module, &decoder, &core_decoder_spec) < 0)
        return -1;
    Py_DECREF(decoder); /* the module has it */
    return PyModule_AddStringConstant(module, "version", spk_version());
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    core_state *state = PyModule_GetState(module);
    Py_VISIT(state->dataset);
    Py_VISIT(state->loader);
    Py_VISIT(state->lease);
    Py_VISIT(state->column);
    return 0;
}

static int clear(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    Py_CLEAR(state->dataset);
    Py_CLEAR(state->loader);
    Py_CLEAR(state->lease);
    Py_CLEAR(state->column);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, exec}, {0, NULL}};

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "shardpack._core",
    .m_doc = "The C library. Private: use the package.",
    .m_size = sizeof(core_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
