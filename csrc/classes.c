/* What Python code cannot do to a class: give it another metaclass, also where that is `type`, and take it
 * off the lists of subclasses; and what it cannot ask: how it makes objects and looks up
 * attributes, which fields may be set, and whether its names are strings. */

#include "compat/layouts.h"
#include "runtime.h"

#include <structmember.h>

static PyObject *
set_metaclass(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyTypeObject *cls, *meta;
    if (!PyArg_ParseTuple(args, "O!O!:set_metaclass", &PyType_Type, &cls, &PyType_Type, &meta)) {
        return NULL;
    }
    PyTypeObject *former = Py_TYPE(cls);
    if (!PyType_IsSubtype(former, meta) || former->tp_basicsize != meta->tp_basicsize ||
        former->tp_itemsize != meta->tp_itemsize || former->tp_dictoffset != meta->tp_dictoffset) {
        PyErr_Format(PyExc_TypeError, "the metaclass %.100s is not laid out as %.100s", meta->tp_name,
                     former->tp_name);
        return NULL;
    }
    /* Objects own a reference to their class only if that is a heap type. */
    if (meta->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        Py_INCREF(meta);
    }
    Py_SET_TYPE((PyObject *)cls, meta);
    if (former->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        Py_DECREF(former);
    }
    PyType_Modified(cls);
    Py_RETURN_NONE;
}

static PyObject *
hide_subclass(PyObject *Py_UNUSED(module), PyObject *cls)
{
    if (!PyType_Check(cls)) {
        PyErr_SetString(PyExc_TypeError, "hide_subclass() takes a class");
        return NULL;
    }
    PyObject *key = PyLong_FromVoidPtr(cls);
    if (key == NULL) {
        return NULL;
    }
    PyObject *bases = ((PyTypeObject *)cls)->tp_bases;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(bases, i);
        PyObject *subclasses = (PyObject *)base->tp_subclasses;
        /* Those of static types lie elsewhere from 3.12 on. */
        if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE) || subclasses == NULL || !PyDict_CheckExact(subclasses)) {
            continue;
        }
        if (PyDict_DelItem(subclasses, key) < 0) {
            PyErr_Clear();
        }
    }
    Py_DECREF(key);
    Py_RETURN_NONE;
}

static PyObject *
new_slot(PyObject *Py_UNUSED(module), PyObject *cls)
{
    if (!PyType_Check(cls)) {
        PyErr_SetString(PyExc_TypeError, "new_slot() takes a class");
        return NULL;
    }
    return PyLong_FromVoidPtr((void *)((PyTypeObject *)cls)->tp_new);
}

static PyObject *
has_only_strings(PyObject *Py_UNUSED(module), PyObject *cls)
{
    if (PyDict_CheckExact(cls)) {
        return PyBool_FromLong(gl_dict_has_only_strings((PyDictObject *)cls));
    }
    PyObject *mro = PyType_Check(cls) ? ((PyTypeObject *)cls)->tp_mro : NULL;
    if (mro == NULL) {
        PyErr_SetString(PyExc_TypeError, "has_only_strings() takes a class or a dict");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *owner = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (owner->tp_flags & Py_TPFLAGS_HEAPTYPE && !gl_dict_has_only_strings((PyDictObject *)owner->tp_dict)) {
            Py_RETURN_FALSE;
        }
    }
    Py_RETURN_TRUE;
}

static PyObject *
looks_up_generically(PyObject *Py_UNUSED(module), PyObject *method)
{
    return PyBool_FromLong(Py_IS_TYPE(method, &PyWrapperDescr_Type) &&
                           ((PyWrapperDescrObject *)method)->d_wrapped == (void *)PyObject_GenericGetAttr);
}

static PyObject *
is_read_only(PyObject *Py_UNUSED(module), PyObject *descriptor)
{
    return PyBool_FromLong(Py_IS_TYPE(descriptor, &PyMemberDescr_Type) &&
                           (((PyMemberDescrObject *)descriptor)->d_member->flags & READONLY));
}

static PyObject *
item_slots(PyObject *Py_UNUSED(module), PyObject *cls)
{
    if (!PyType_Check(cls)) {
        PyErr_SetString(PyExc_TypeError, "item_slots() takes a class");
        return NULL;
    }
    PyMappingMethods *mapping = ((PyTypeObject *)cls)->tp_as_mapping;
    PySequenceMethods *sequence = ((PyTypeObject *)cls)->tp_as_sequence;
    return Py_BuildValue("(NNN)", PyBool_FromLong(mapping != NULL && mapping->mp_ass_subscript != NULL),
                         PyBool_FromLong(sequence != NULL),
                         PyBool_FromLong(sequence != NULL && sequence->sq_ass_item != NULL));
}

static PyMethodDef functions[] = {
    {"item_slots", item_slots, METH_O,
     "What a class has in C for storing items: as a mapping, anything of a sequence, as a sequence."},
    {"looks_up_generically", looks_up_generically, METH_O,
     "Whether a `__getattribute__` of a class in C does what that of object does."},
    {"is_read_only", is_read_only, METH_O, "Whether a member descriptor refuses to be set."},
    {"new_slot", new_slot, METH_O, "The address of the C function by which a class makes its objects."},
    {"has_only_strings", has_only_strings, METH_O,
     "Whether a dict, or the tables of names of a class and its bases, are known to have exact strings for keys only."},
    {"set_metaclass", set_metaclass, METH_VARARGS,
     "Make a class an instance of a base of its metaclass that is laid out alike."},
    {"hide_subclass", hide_subclass, METH_O, "Take a class off what `__subclasses__()` of its bases gives."},
    {NULL, NULL, 0, NULL},
};

int
gl_classes_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
