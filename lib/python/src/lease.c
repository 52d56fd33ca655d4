/* Batches on loan. The last view of a batch may go in any thread, also while another one is inside the loader; then it
 * is put aside, and the loader's thread gives it back. */
#include "core.h"

#include <stdlib.h>

void core_shop_leave(core_shop *shop)
{
    if (--shop->users == 0)
        free(shop);
}

static void give_back(core_lent *lent)
{
    core_shop *shop = lent->shop;
    spk_batch_release(lent->batch);
    free(lent);
    core_shop_leave(shop);
}

void core_shop_settle(core_shop *shop)
{
    core_lent *lent = shop->ended;
    shop->ended = NULL;
    while (lent) {
        core_lent *next = lent->next;
        give_back(lent);
        lent = next;
    }
}

typedef struct lease {
    PyObject_HEAD core_lent *lent;
} lease;

PyObject *core_lease_new(core_state *state, core_shop *shop, spk_batch *batch)
{
    core_lent *lent = malloc(sizeof *lent);
    lease *self = lent ? PyObject_New(lease, state->lease) : NULL;
    if (!self) {
        free(lent);
        spk_batch_release(batch);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    *lent = (core_lent){.batch = batch, .shop = shop};
    shop->users++;
    self->lent = lent;
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    core_lent *lent = ((lease *)object)->lent;
    PyTypeObject *type = Py_TYPE(object);
    if (lent->shop->busy) {
        lent->next = lent->shop->ended;
        lent->shop->ended = lent;
    } else {
        give_back(lent);
    }
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {{Py_tp_dealloc, dealloc}, {0, NULL}};

PyType_Spec core_lease_spec = {
    .name = "shardpack._core.Lease",
    .basicsize = sizeof(lease),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
