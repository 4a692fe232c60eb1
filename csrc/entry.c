/* _C.Entry: what one capture made. Plain data; who may run it is decided by its guards alone. */

#include "runtime.h"

#include <structmember.h>

static int
check_field(const char *field, PyObject *value, PyTypeObject *type, int may_be_none)
{
    if (Py_IS_TYPE(value, type) || (may_be_none && value == Py_None)) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "Entry: %s must be a %s%s, not %.100s", field, type->tp_name,
                 may_be_none ? " or None" : "", Py_TYPE(value)->tp_name);
    return -1;
}

static PyObject *
none_to_null(PyObject *value)
{
    return value == Py_None ? NULL : Py_NewRef(value);
}

static PyObject *
entry_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"guards", "function", "swap_code", "owner", "data", NULL};
    PyObject *guards, *function, *swap_code = Py_None, *owner = Py_None, *data = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOO:Entry", names, &guards, &function, &swap_code,
                                     &owner, &data)) {
        return NULL;
    }
    if (check_field("guards", guards, &GlGuardProgram_Type, 0) < 0 ||
        check_field("function", function, &PyFunction_Type, 1) < 0 ||
        check_field("swap_code", swap_code, &PyCode_Type, 1) < 0) {
        return NULL;
    }
    if (function == Py_None && swap_code != Py_None) {
        PyErr_SetString(PyExc_ValueError, "Entry: swap_code needs a function beside it");
        return NULL;
    }
    GlEntry *self = (GlEntry *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->guards = Py_NewRef(guards);
    self->function = none_to_null(function);
    self->swap_code = none_to_null(swap_code);
    self->owner = Py_NewRef(owner);
    self->data = Py_NewRef(data);
    self->review_at = ULLONG_MAX;
    self->worthwhile = self->function != NULL;
    self->valid = 1;
    return (PyObject *)self;
}

static int
entry_traverse(GlEntry *self, visitproc visit, void *arg)
{
    Py_VISIT(self->guards);
    Py_VISIT(self->function);
    Py_VISIT(self->swap_code);
    Py_VISIT(self->owner);
    Py_VISIT(self->data);
    return 0;
}

/* The guards stay: they are needed as long as somebody can ask, and are no part of a cycle of ours. */
static int
entry_clear(GlEntry *self)
{
    self->valid = 0;
    Py_CLEAR(self->function);
    Py_CLEAR(self->swap_code);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->data);
    return 0;
}

static void
entry_dealloc(GlEntry *self)
{
    PyObject_GC_UnTrack(self);
    entry_clear(self);
    Py_CLEAR(self->guards);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
entry_invalidate(GlEntry *self, PyObject *Py_UNUSED(ignored))
{
    self->valid = 0;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"invalidate", (PyCFunction)(void (*)(void))entry_invalidate, METH_NOARGS,
     "Never run this entry again."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"guards", T_OBJECT_EX, offsetof(GlEntry, guards), READONLY, "the guard program"},
    {"function", T_OBJECT, offsetof(GlEntry, function), READONLY, "the function to run, or None"},
    {"swap_code", T_OBJECT, offsetof(GlEntry, swap_code), READONLY, "the same for a hooked frame, or None"},
    {"owner", T_OBJECT, offsetof(GlEntry, owner), 0, "on whose account it was captured"},
    {"data", T_OBJECT, offsetof(GlEntry, data), 0, "anything its maker wants to keep with it"},
    {"hits", T_ULONGLONG, offsetof(GlEntry, hits), 0, "how often its guards held"},
    {"review_at", T_ULONGLONG, offsetof(GlEntry, review_at), 0,
     "after how many hits the review handler is asked about it"},
    {"worthwhile", T_BOOL, offsetof(GlEntry, worthwhile), 0, "whether running it is worth a hook"},
    {"valid", T_BOOL, offsetof(GlEntry, valid), READONLY, "False once invalidated"},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject GlEntry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "graphlift._C.Entry",
    .tp_doc = "What one capture made: guards, and the code to run when they hold.",
    .tp_basicsize = sizeof(GlEntry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = entry_new,
    .tp_traverse = (traverseproc)entry_traverse,
    .tp_clear = (inquiry)entry_clear,
    .tp_dealloc = (destructor)entry_dealloc,
    .tp_methods = methods,
    .tp_members = members,
};

int
gl_entry_init(PyObject *module)
{
    return PyModule_AddType(module, &GlEntry_Type);
}
