/* Checks on values that a capture baked in: exact type and value, floats by their bits. */

#include "node.h"

#include "../compat/layouts.h"

#include <string.h>

/* --- which objects are constants --- */

/* Classes of torch whose instances are constants, by name: the core is not linked against torch. */
static int is_torch_constant_type(PyTypeObject *type)
{
    static const char *const names[] = {"torch.dtype",         "torch.device",  "torch.layout",
                                        "torch.memory_format", "torch.qscheme", "torch.Size"};
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) || strncmp(type->tp_name, "torch.", 6) != 0) {
        return 0;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(type->tp_name, names[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

static int all_constant(PyObject *const *items, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!gl_is_constant(items[i])) {
            return 0;
        }
    }
    return 1;
}

static int is_constant_set(PyObject *set)
{
    Py_ssize_t at = 0;
    PyObject *item;
    Py_hash_t hash;
    while (_PySet_NextEntry(set, &at, &item, &hash)) {
        if (!gl_is_constant(item)) {
            return 0;
        }
    }
    return 1;
}

int gl_is_constant(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type ||
        type == &PyBytes_Type || type == &PyComplex_Type || type == &PyRange_Type || value == Py_None ||
        value == Py_Ellipsis || value == Py_NotImplemented) {
        return 1;
    }
    if (type == &PyTuple_Type) {
        return all_constant(((PyTupleObject *)value)->ob_item, PyTuple_GET_SIZE(value));
    }
    if (type == &PyFrozenSet_Type) {
        return is_constant_set(value);
    }
    if (type == &PySlice_Type) {
        PySliceObject *slice = (PySliceObject *)value;
        return gl_is_constant(slice->start) && gl_is_constant(slice->stop) && gl_is_constant(slice->step);
    }
    if (type == &PyType_Type) {
        return gl_is_c_type((PyTypeObject *)value);
    }
    return is_torch_constant_type(type);
}

/* --- comparing --- */

static int same_string(PyObject *a, PyObject *b)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(a);
    return length == PyUnicode_GET_LENGTH(b) && PyUnicode_KIND(a) == PyUnicode_KIND(b) &&
           memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), (size_t)length * PyUnicode_KIND(a)) == 0;
}

static int same_items(PyObject *a, PyObject *b)
{
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++) {
        if (!gl_same_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) {
            return 0;
        }
    }
    return 1;
}

/* In the order of iteration, which a capture may have used. */
static int same_set(PyObject *a, PyObject *b)
{
    Py_ssize_t at = 0, other_at = 0;
    PyObject *item, *other;
    Py_hash_t hash, other_hash;
    if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) {
        return 0;
    }
    while (_PySet_NextEntry(a, &at, &item, &hash)) {
        if (!_PySet_NextEntry(b, &other_at, &other, &other_hash) || hash != other_hash ||
            !gl_same_constant(item, other)) {
            return 0;
        }
    }
    return 1;
}

static int equal_in_c(PyObject *a, PyObject *b)
{
    int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0) {
        PyErr_Clear();
    }
    return equal == 1;
}

int gl_same_constant(PyObject *expected, PyObject *value)
{
    PyTypeObject *type = Py_TYPE(expected);
    if (expected == value) {
        return 1;
    }
    if (type != Py_TYPE(value)) {
        return 0;
    }
    if (type == &PyUnicode_Type) {
        return same_string(expected, value);
    }
    if (type == &PyFloat_Type) {
        return memcmp(&((PyFloatObject *)expected)->ob_fval, &((PyFloatObject *)value)->ob_fval, sizeof(double)) == 0;
    }
    if (type == &PyComplex_Type) {
        Py_complex a = ((PyComplexObject *)expected)->cval, b = ((PyComplexObject *)value)->cval;
        return memcmp(&a.real, &b.real, sizeof(double)) == 0 && memcmp(&a.imag, &b.imag, sizeof(double)) == 0;
    }
    if (PyTuple_Check(expected)) {
        return same_items(expected, value);
    }
    if (type == &PyFrozenSet_Type) {
        return same_set(expected, value);
    }
    if (type == &PySlice_Type) {
        PySliceObject *a = (PySliceObject *)expected, *b = (PySliceObject *)value;
        return gl_same_constant(a->start, b->start) && gl_same_constant(a->stop, b->stop) &&
               gl_same_constant(a->step, b->step);
    }
    if (type == &PyLong_Type || type == &PyBytes_Type || type == &PyRange_Type) {
        return equal_in_c(expected, value);
    }
    return strcmp(type->tp_name, "torch.device") == 0 && equal_in_c(expected, value);
}

/* --- nodes --- */

static int run_constant(const GlNode *node, GlRun *run) { return gl_same_constant(node->object, gl_parent(node, run)); }

static int run_singleton(const GlNode *node, GlRun *run) { return gl_parent(node, run) == node->object; }

static int run_string(const GlNode *node, GlRun *run)
{
    PyObject *value = gl_parent(node, run);
    return value == node->object || (PyUnicode_CheckExact(value) && same_string(node->object, value));
}

/* An int that fits a machine word (`number`). */
static int run_int(const GlNode *node, GlRun *run)
{
    PyObject *value = gl_parent(node, run);
    int overflow;
    if (value == node->object) {
        return 1;
    }
    return PyLong_CheckExact(value) && PyLong_AsLongLongAndOverflow(value, &overflow) == node->number && !overflow;
}

/* Constants never change. */
static int constant_rests(const GlNode *node, GlRecording *recording) { return 1; }

static int choose_int(GlNode *node)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(node->object, &overflow);
    if (!overflow && number == (Py_ssize_t)number) {
        node->number = (Py_ssize_t)number;
        node->run = run_int;
    }
    return 0;
}

static int build_constant(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    PyObject *value = operands[0];
    if (!gl_is_constant(value)) {
        PyErr_Format(PyExc_TypeError, "no constant: %R", value);
        return -1;
    }
    node->object = Py_NewRef(value);
    if (value == Py_None || PyBool_Check(value)) {
        node->run = run_singleton;
    } else if (PyUnicode_CheckExact(value)) {
        node->run = run_string;
    } else if (PyLong_CheckExact(value)) {
        return choose_int(node);
    }
    return 0;
}

const GlOp gl_constant_ops[] = {
    {"constant", GL_ALONE, 1, run_constant, build_constant, NULL, constant_rests},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
