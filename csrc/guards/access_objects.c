/* Accessors on plain objects: items, the class, what a class look-up finds, the parts of a bound method; and the
 * check that a look-up finds nothing. */

#include "node.h"

static PyTypeObject *deque_type;

int gl_deque_init(void)
{
    if (deque_type == NULL) {
        PyObject *collections = PyImport_ImportModule("collections");
        deque_type = collections ? (PyTypeObject *)PyObject_GetAttrString(collections, "deque") : NULL;
        Py_XDECREF(collections);
    }
    return deque_type == NULL ? -1 : 0;
}

/* The C type's own function reads the storage beneath; it cannot fail for an index in range. */
static int put_deque_item(const GlNode *node, GlRun *run, PyObject *deque)
{
    if (!PyObject_TypeCheck(deque, deque_type) || node->number >= gl_length(deque)) {
        return 0;
    }
    PyObject *item = deque_type->tp_as_sequence->sq_item(deque, node->number);
    Py_XDECREF(item); /* the deque holds it */
    return gl_put(node, run, item);
}

static int run_item(const GlNode *node, GlRun *run)
{
    PyObject *sequence = gl_parent(node, run);
    if (PyTuple_Check(sequence)) {
        return node->number < PyTuple_GET_SIZE(sequence) &&
               gl_put(node, run, PyTuple_GET_ITEM(sequence, node->number));
    }
    if (!PyList_Check(sequence)) {
        return put_deque_item(node, run, sequence);
    }
    return node->number < PyList_GET_SIZE(sequence) && gl_put(node, run, PyList_GET_ITEM(sequence, node->number));
}

static int item_rests(const GlNode *node, GlRecording *recording)
{
    return PyTuple_Check(gl_recorded_parent(node, recording));
}

static int build_item(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    node->number = PyLong_AsSsize_t(operands[0]);
    if (node->number < 0 && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "an item's index counts from the front");
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int run_type(const GlNode *node, GlRun *run)
{
    return gl_put(node, run, (PyObject *)Py_TYPE(gl_parent(node, run)));
}

/* --- look-ups along the method resolution order --- */

static PyObject *look_up(const GlNode *node, const GlRun *run)
{
    return _PyType_Lookup((PyTypeObject *)gl_parent(node, run), node->object);
}

static int run_type_lookup(const GlNode *node, GlRun *run)
{
    return PyType_Check(gl_parent(node, run)) && gl_put(node, run, look_up(node, run));
}

static int run_type_lookup_absent(const GlNode *node, GlRun *run)
{
    return PyType_Check(gl_parent(node, run)) && look_up(node, run) == NULL;
}

/* A value found is looked up each time, by CPython's own cache: a class lets go of the former one before its version
 * changes. What is absent becomes present without that. */
static int look_up_rests(const GlNode *node, GlRecording *recording)
{
    return gl_rests_on_class(recording, node->from);
}

static int build_name(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    if (!PyUnicode_CheckExact(operands[0])) {
        PyErr_SetString(PyExc_TypeError, "a name is a string");
        return -1;
    }
    node->object = Py_NewRef(operands[0]);
    PyUnicode_InternInPlace(&node->object);
    return 0;
}

/* --- bound methods, of Python and of C --- */

static int run_method_self(const GlNode *node, GlRun *run)
{
    PyObject *method = gl_parent(node, run);
    if (PyMethod_Check(method)) {
        return gl_put(node, run, PyMethod_GET_SELF(method));
    }
    return PyCFunction_Check(method) && gl_put(node, run, PyCFunction_GET_SELF(method));
}

/* What a bound method is bound to never changes. */
static int method_rests(const GlNode *node, GlRecording *recording) { return 1; }

static int run_method_function(const GlNode *node, GlRun *run)
{
    PyObject *method = gl_parent(node, run);
    return PyMethod_Check(method) && gl_put(node, run, PyMethod_GET_FUNCTION(method));
}

/* --- weak references --- */

static int run_referent(const GlNode *node, GlRun *run)
{
    PyObject *reference = gl_parent(node, run);
    if (!PyWeakref_CheckRefExact(reference)) {
        return 0;
    }
    /* None when the referent is gone. Owned, for nothing else may keep it alive until it is looked at. */
    return gl_put_new(node, run, Py_NewRef(gl_referent(reference)));
}

/* --- context variables --- */

static int run_context_value(const GlNode *node, GlRun *run)
{
    PyObject *variable = gl_parent(node, run), *value = NULL;
    if (!PyContextVar_CheckExact(variable)) {
        return 0;
    }
    if (PyContextVar_Get(variable, NULL, &value) < 0) {
        PyErr_Clear();
        return 0;
    }
    return value != NULL && gl_put_new(node, run, value);
}

/* --- contents of objects of C classes: the operand is the function that reads them --- */

static int run_contents(const GlNode *node, GlRun *run)
{
    return gl_put_new(node, run, PyObject_CallOneArg(node->object, gl_parent(node, run)));
}

static int build_contents(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    if (!PyCallable_Check(operands[0])) {
        PyErr_Format(PyExc_TypeError, "no function: %R", operands[0]);
        return -1;
    }
    node->object = Py_NewRef(operands[0]);
    build->calls_out = 1; /* it may be written in Python */
    return 0;
}

const GlOp gl_object_access_ops[] = {
    {"item", GL_ACCESSOR, 1, run_item, build_item, NULL, item_rests},
    {"type", GL_ACCESSOR, 0, run_type, NULL, NULL, NULL},
    {"type_lookup", GL_ACCESSOR, 1, run_type_lookup, build_name, NULL, NULL},
    {"type_lookup_absent", GL_ALONE, 1, run_type_lookup_absent, build_name, NULL, look_up_rests},
    {"method_self", GL_ACCESSOR, 0, run_method_self, NULL, NULL, method_rests},
    {"method_function", GL_ACCESSOR, 0, run_method_function, NULL, NULL, method_rests},
    {"referent", GL_ACCESSOR, 0, run_referent, NULL, NULL, NULL},
    {"context_value", GL_ACCESSOR, 0, run_context_value, NULL, NULL, NULL},
    {"contents", GL_ACCESSOR, 1, run_contents, build_contents, NULL, NULL},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
