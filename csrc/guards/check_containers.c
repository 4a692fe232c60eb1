/* Checks on how much a container holds, and on the elements of a set. (Keys of dictionaries: access_dicts.c) */

#include "node.h"

#include "../compat/layouts.h"


static int run_length(const GlNode *node, GlRun *run) { return gl_length(gl_parent(node, run)) == node->number; }

static int length_rests(const GlNode *node, GlRecording *recording)
{
    PyObject *value = gl_recorded_parent(node, recording);
    if (PyDict_Check(value)) {
        return gl_rests_on_word(recording, &((PyDictObject *)value)->ma_used);
    }
    return PyTuple_Check(value) || (PyList_Check(value) && gl_rests_on_word(recording, &((PyVarObject *)value)->ob_size));
}

static int build_length(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    node->number = PyLong_AsSsize_t(operands[0]);
    if (node->number < 0 && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "a length is not negative");
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* The elements of a set or frozenset (or a subclass) in the order of iteration; an expected one is a constant or a
 * weak reference to the very object. */
static int run_set_items(const GlNode *node, GlRun *run)
{
    PyObject *set = gl_parent(node, run), *item;
    Py_ssize_t at = 0, count = 0, size = PyTuple_GET_SIZE(node->object);
    Py_hash_t hash;
    if (!PyAnySet_Check(set) || PySet_GET_SIZE(set) != size) {
        return 0;
    }
    while (_PySet_NextEntry(set, &at, &item, &hash)) {
        PyObject *held = PyTuple_GET_ITEM(node->object, count++);
        PyObject *expected = gl_held(held);
        if (expected != item && (expected != held || !gl_same_constant(expected, item))) {
            return 0;
        }
    }
    return count == size;
}

static int build_set_items(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    if (!PyTuple_Check(operands[0])) {
        PyErr_SetString(PyExc_TypeError, "the elements of a set are given as a tuple");
        return -1;
    }
    node->object = Py_NewRef(operands[0]);
    return 0;
}

/* The hashes that a dictionary or set keeps, in the order of its table; None stands for any. */
static int run_hashes(const GlNode *node, GlRun *run)
{
    PyObject *container = gl_parent(node, run), *key, *value;
    Py_ssize_t at = 0, count = 0, size = PyTuple_GET_SIZE(node->object);
    Py_hash_t hash;
    int is_dict = PyDict_Check(container);
    if (!is_dict && !PyAnySet_Check(container)) {
        return 0;
    }
    while (is_dict ? gl_dict_next(container, &at, &key, &value, &hash) : _PySet_NextEntry(container, &at, &key, &hash)) {
        PyObject *expected = count < size ? PyTuple_GET_ITEM(node->object, count++) : NULL;
        if (expected == NULL || (expected != Py_None && PyLong_AsSsize_t(expected) != hash)) {
            return 0;
        }
    }
    return count == size;
}

static int build_hashes(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    if (!PyTuple_Check(operands[0])) {
        PyErr_SetString(PyExc_TypeError, "hashes are given as a tuple");
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands[0]); i++) {
        PyObject *hash = PyTuple_GET_ITEM(operands[0], i);
        if (hash != Py_None && PyLong_AsSsize_t(hash) == -1) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "no hash is -1");
            }
            return -1;
        }
    }
    node->object = Py_NewRef(operands[0]);
    return 0;
}

const GlOp gl_container_ops[] = {
    {"length", 0, 1, run_length, build_length, NULL, length_rests},
    {"hashes", GL_ALONE, 1, run_hashes, build_hashes, NULL, NULL},
    {"set_items", GL_ALONE, 1, run_set_items, build_set_items, NULL, NULL},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
