/* What Python code cannot ask of an object whose memory others may look at. */

#include "runtime.h"

static PyObject *bytearray_exports(PyObject *Py_UNUSED(module), PyObject *value)
{
    if (!PyByteArray_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "no bytearray");
        return NULL;
    }
    return PyLong_FromSsize_t(((PyByteArrayObject *)value)->ob_exports);
}

static PyMethodDef functions[] = {
    {"bytearray_exports", bytearray_exports, METH_O,
     "bytearray_exports(value) -> int\n\nHow many others look at its memory; it cannot be resized while somebody does."},
    {NULL, NULL, 0, NULL},
};

int gl_buffers_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
