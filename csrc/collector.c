/* How near the next garbage collection is. */

#include "runtime.h"
#include "compat/compat.h"

static PyObject *
young_objects(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(GL_YOUNG_OBJECTS());
}

static PyObject *
set_young_objects(PyObject *Py_UNUSED(module), PyObject *value)
{
    long count = PyLong_AsLong(value);
    if (count == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (count < 0 || count > INT_MAX) {
        PyErr_Format(PyExc_ValueError, "no number of objects: %ld", count);
        return NULL;
    }
    GL_YOUNG_OBJECTS() = (int)count;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"young_objects", young_objects, METH_NOARGS,
     "young_objects() -> int\n\nObjects made since the last collection, less those that are gone: `gc.get_count()[0]`."},
    {"set_young_objects", set_young_objects, METH_O,
     "set_young_objects(count)\n\nCount from there on to the next collection of young objects."},
    {NULL, NULL, 0, NULL},
};

/* `gc.get_count()` reads the counts before it makes anything. */
static int
is_where_we_read(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *get_count = gc == NULL ? NULL : PyObject_GetAttrString(gc, "get_count");
    int before = GL_YOUNG_OBJECTS();
    PyObject *counts = get_count == NULL ? NULL : PyObject_CallNoArgs(get_count);
    long told = counts == NULL ? -1 : PyLong_AsLong(PyTuple_GET_ITEM(counts, 0));
    Py_XDECREF(counts);
    Py_XDECREF(get_count);
    Py_XDECREF(gc);
    return PyErr_Occurred() ? -1 : told == before;
}

int
gl_collector_init(PyObject *module)
{
    int found = is_where_we_read();
    if (found == 0) {
        PyErr_SetString(PyExc_ImportError, "graphlift._C: this CPython counts young objects in another place.");
    }
    return found > 0 ? PyModule_AddFunctions(module, functions) : -1;
}
