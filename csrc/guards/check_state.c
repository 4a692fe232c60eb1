/* Checks on state of the process: torch's global state, what classes hold, and what abstract base classes count
 * as their own. */

#include "node.h"

#include "../torch_state.h"

#include <limits.h>

static int run_torch_state(const GlNode *node, GlRun *run)
{
    return gl_torch_state_is(PyBytes_AS_STRING(node->object), PyBytes_GET_SIZE(node->object));
}

static int build_torch_state(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    if (!PyBytes_CheckExact(operands[0])) {
        PyErr_SetString(PyExc_TypeError, "the state of torch is given as bytes");
        return -1;
    }
    node->object = Py_NewRef(operands[0]);
    return 0;
}

/* --- what a class and its bases hold ---
 *
 * CPython gives a class a new version tag at the first look-up after an attribute of it or of a base changed. */

unsigned int gl_class_version(PyTypeObject *class)
{
    if (class->tp_version_tag == 0) {
        static PyObject *name;
        if (name == NULL && (name = PyUnicode_InternFromString("__class__")) == NULL) {
            PyErr_Clear();
            return 0;
        }
        _PyType_Lookup(class, name);
    }
    return class->tp_version_tag;
}

static PyObject *get_class_version(PyObject *Py_UNUSED(module), PyObject *class)
{
    if (!PyType_Check(class)) {
        PyErr_Format(PyExc_TypeError, "a class is needed, not %.100s", Py_TYPE(class)->tp_name);
        return NULL;
    }
    return PyLong_FromUnsignedLong(gl_class_version((PyTypeObject *)class));
}

PyMethodDef gl_state_functions[] = {
    {"class_version", get_class_version, METH_O, "A number that changes when an attribute of a class or a base does."},
    {NULL, NULL, 0, NULL},
};

static int run_class_version(const GlNode *node, GlRun *run)
{
    const unsigned int *wanted = node->data;
    unsigned int now = ((PyTypeObject *)node->object)->tp_version_tag;
    return now == *wanted || (now == 0 && gl_class_version((PyTypeObject *)node->object) == *wanted);
}

/* operands: the class, which must live as long as the process; its version, 0 if it has none (then it never holds) */
static int build_class_version(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    unsigned long version = PyLong_AsUnsignedLong(operands[1]);
    if (PyErr_Occurred()) {
        return -1;
    }
    if (!PyType_Check(operands[0])) {
        PyErr_SetString(PyExc_TypeError, "class_version is about a class");
        return -1;
    }
    unsigned int *wanted = PyMem_Malloc(sizeof *wanted);
    if (wanted == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *wanted = version == 0 ? UINT_MAX : (unsigned int)version;
    node->data = wanted;
    node->object = Py_NewRef(operands[0]);
    return 0;
}

/* --- abstract base classes ---
 *
 * Whether a class counts as a subclass of an abstract one can change only when somebody registers a class, which
 * changes the token of `abc`. Then the pairs are asked about again, once. */

typedef struct {
    PyObject *token;       /* the function that tells the token */
    unsigned long long at; /* the token at the last look */
} AbcState;

static int read_token(PyObject *function, unsigned long long *out)
{
    PyObject *token = PyObject_CallNoArgs(function);
    *out = token ? PyLong_AsUnsignedLongLong(token) : 0;
    Py_XDECREF(token);
    return !PyErr_Occurred();
}

/* Whether each pair (class, abstract class, is subclass) still holds. */
static int pairs_hold(PyObject *pairs)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); i++) {
        PyObject *pair = PyTuple_GET_ITEM(pairs, i);
        PyObject *derived = gl_held(PyTuple_GET_ITEM(pair, 0)), *base = gl_held(PyTuple_GET_ITEM(pair, 1));
        if (derived == NULL || base == NULL) {
            return 0;
        }
        Py_INCREF(derived);
        Py_INCREF(base);
        int is = PyObject_IsSubclass(derived, base);
        Py_DECREF(derived);
        Py_DECREF(base);
        if (is < 0 || is != (PyTuple_GET_ITEM(pair, 2) == Py_True)) {
            return 0;
        }
    }
    return 1;
}

/* operands: abc's token function, its token when the pairs were true, the pairs */
static int run_abc(const GlNode *node, GlRun *run)
{
    AbcState *state = node->data;
    unsigned long long now;
    int holds = read_token(state->token, &now);
    if (holds && now != state->at) {
        if (!run->owning) {
            run->again = 1; /* asking about the pairs may run Python code */
            return 0;
        }
        holds = pairs_hold(node->object);
        if (holds) {
            state->at = now;
        }
    }
    PyErr_Clear();
    return holds;
}

static int build_abc(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    PyObject *pairs = operands[2];
    AbcState *state = PyMem_Calloc(1, sizeof(AbcState));
    if (state == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    node->data = state;
    state->token = Py_NewRef(operands[0]);
    state->at = PyLong_AsUnsignedLongLong(operands[1]);
    build->calls_out |= !PyCFunction_Check(state->token);
    if (!PyTuple_Check(pairs)) {
        PyErr_SetString(PyExc_TypeError, "the pairs of classes are given as a tuple");
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); i++) {
        if (!PyTuple_Check(PyTuple_GET_ITEM(pairs, i)) || PyTuple_GET_SIZE(PyTuple_GET_ITEM(pairs, i)) != 3) {
            PyErr_SetString(PyExc_TypeError, "a pair of classes is (class, abstract class, is subclass)");
            return -1;
        }
    }
    node->object = Py_NewRef(pairs);
    return PyErr_Occurred() ? -1 : 0;
}

static void clear_abc(GlNode *node) { Py_XDECREF(((AbcState *)node->data)->token); }

const GlOp gl_state_ops[] = {
    {"torch_state", GL_ROOT, 1, run_torch_state, build_torch_state, NULL, NULL},
    {"class_version", GL_ROOT, 2, run_class_version, build_class_version, NULL, NULL},
    {"abc", GL_ROOT, 3, run_abc, build_abc, clear_abc, NULL},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
