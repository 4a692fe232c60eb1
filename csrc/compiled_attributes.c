/* A compiled function's attributes: its own dictionary first, then its type, then the function's.
 *
 * Writes stay in the own dictionary, so decorators that adorn a compiled function leave the user's alone.
 * Only what a call reads (`__code__` and the defaults) is written through, for there it must take effect. */

#include "runtime.h"

static PyObject *name_dict, *name_class, *name_doc, *name_qualname;
static PyObject *written_through[3];

static PyObject *
function_of(PyObject *self)
{
    PyObject *function = ((GlCompiled *)self)->function;
    if (function == NULL) {
        PyErr_SetString(PyExc_ReferenceError,
                        "the compiled function has been taken apart by the garbage collector");
    }
    return function;
}

/* Whether two attribute names are the same; names are nearly always interned. */
static int
same_name(PyObject *name, PyObject *constant)
{
    return name == constant || (PyUnicode_Check(name) && PyUnicode_Compare(name, constant) == 0);
}

PyObject *
gl_compiled_getattro(PyObject *self, PyObject *name)
{
    PyObject *dict = ((GlCompiled *)self)->dict;
    if (dict != NULL && !same_name(name, name_dict) && !same_name(name, name_class)) {
        PyObject *own = PyDict_GetItemWithError(dict, name);
        if (own != NULL) {
            return Py_NewRef(own);
        }
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    if (_PyType_Lookup(Py_TYPE(self), name) != NULL) {
        return PyObject_GenericGetAttr(self, name);
    }
    PyObject *function = function_of(self);
    return function == NULL ? NULL : PyObject_GetAttr(function, name);
}

/* Whether an attribute is one that calls read from the function. */
static int
is_written_through(PyObject *name)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(written_through); i++) {
        if (same_name(name, written_through[i])) {
            return 1;
        }
    }
    return 0;
}

static int
set_own(PyObject *self, PyObject *name, PyObject *value)
{
    PyObject *dict = PyObject_GenericGetDict(self, NULL);
    if (dict == NULL) {
        return -1;
    }
    int done = value != NULL ? PyDict_SetItem(dict, name, value) : PyDict_DelItem(dict, name);
    Py_DECREF(dict);
    if (done < 0 && value == NULL && PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Format(PyExc_AttributeError, "a compiled function has no own attribute %R to delete", name);
    }
    return done;
}

int
gl_compiled_setattro(PyObject *self, PyObject *name, PyObject *value)
{
    if (same_name(name, name_dict) || same_name(name, name_class)) {
        return PyObject_GenericSetAttr(self, name, value);
    }
    if (is_written_through(name)) {
        PyObject *function = function_of(self);
        return function == NULL ? -1 : PyObject_SetAttr(function, name, value);
    }
    return set_own(self, name, value);
}

/* --- what its type defines itself ---------------------------------------------------------------- */

static PyObject *
get_wrapped(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_XNewRef(function_of(self));
}

static PyObject *
get_doc(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *function = function_of(self);
    return function == NULL ? NULL : PyObject_GetAttr(function, name_doc);
}

PyGetSetDef gl_compiled_getset[] = {
    {"__wrapped__", get_wrapped, NULL, "the Python function it stands for", NULL},
    {"__doc__", get_doc, NULL, "the function's own", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, "attributes set on it", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* As for a function, a pickle holds the name; pickle itself sees to it that the name leads back here. */
static PyObject *
reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyObject_GetAttr(self, name_qualname);
}

static PyObject *
same_object(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return Py_NewRef(self);
}

static int
add_names(PyObject *names, PyObject *more)
{
    PyObject *done = more == NULL ? NULL : PyObject_CallMethod(names, "update", "O", more);
    Py_XDECREF(more);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static PyObject *
list_names(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *function = function_of(self);
    PyObject *names = function == NULL ? NULL : PySet_New(NULL);
    if (names == NULL) {
        return NULL;
    }
    PyObject *result = NULL;
    if (add_names(names, PyObject_Dir(function)) == 0 &&
        add_names(names, PyObject_Dir((PyObject *)Py_TYPE(self))) == 0 &&
        add_names(names, PyObject_GenericGetDict(self, NULL)) == 0) {
        result = PySequence_List(names);
    }
    Py_DECREF(names);
    return result;
}

PyMethodDef gl_compiled_methods[] = {
    {"__reduce__", reduce, METH_NOARGS, "pickles by name, as functions do"},
    {"__copy__", same_object, METH_NOARGS, "itself, as for functions"},
    {"__deepcopy__", same_object, METH_O, "itself, as for functions"},
    {"__dir__", list_names, METH_NOARGS, "its own names and the function's"},
    {NULL, NULL, 0, NULL},
};

int
gl_compiled_attributes_init(void)
{
    if (name_dict != NULL) {
        return 0;
    }
    name_class = PyUnicode_InternFromString("__class__");
    name_doc = PyUnicode_InternFromString("__doc__");
    name_qualname = PyUnicode_InternFromString("__qualname__");
    written_through[0] = PyUnicode_InternFromString("__code__");
    written_through[1] = PyUnicode_InternFromString("__defaults__");
    written_through[2] = PyUnicode_InternFromString("__kwdefaults__");
    name_dict = PyUnicode_InternFromString("__dict__");
    return PyErr_Occurred() ? -1 : 0;
}
