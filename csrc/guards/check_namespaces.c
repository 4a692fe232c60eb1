/* One check for what most instance dictionaries are asked again and again: that they lack some names, and that the
 * dictionaries under some others are empty. */

#include "node.h"

typedef struct {
    Py_ssize_t absent; /* how many of the keys must be absent; under the rest lie empty dictionaries */
    Py_ssize_t count;
    GlKey keys[];
} Names;

static int run_namespace_lacks(const GlNode *node, GlRun *run)
{
    PyObject *dict = gl_parent(node, run), *value;
    Names *names = node->data;
    if (!PyDict_Check(dict)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < names->absent; i++) {
        if (gl_dict_find(dict, &names->keys[i], &value) != GL_ABSENT) {
            return 0;
        }
    }
    for (Py_ssize_t i = names->absent; i < names->count; i++) {
        if (gl_dict_find(dict, &names->keys[i], &value) != GL_FOUND || !PyDict_Check(value) ||
            PyDict_GET_SIZE(value) != 0) {
            return 0;
        }
    }
    return 1;
}

static int namespace_lacks_rests(const GlNode *node, GlRecording *recording)
{
    Names *names = node->data;
    for (Py_ssize_t i = 0; i < names->absent; i++) {
        if (!gl_rests_on_absence(recording, node->from, &names->keys[i])) {
            return 0;
        }
    }
    for (Py_ssize_t i = names->absent; i < names->count; i++) {
        if (!gl_rests_on_emptiness(recording, node->from, &names->keys[i])) {
            return 0;
        }
    }
    return 1;
}

static int build_namespace_lacks(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    if (!PyTuple_Check(operands[0]) || !PyTuple_Check(operands[1])) {
        PyErr_SetString(PyExc_TypeError, "names of a namespace are given as tuples");
        return -1;
    }
    Py_ssize_t absent = PyTuple_GET_SIZE(operands[0]), total = absent + PyTuple_GET_SIZE(operands[1]);
    Names *names = PyMem_Calloc(1, sizeof(Names) + (size_t)total * sizeof(GlKey));
    if (names == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    node->data = names;
    names->absent = absent;
    for (; names->count < total; names->count++) {
        Py_ssize_t i = names->count;
        PyObject *name = i < absent ? PyTuple_GET_ITEM(operands[0], i) : PyTuple_GET_ITEM(operands[1], i - absent);
        if (gl_key_init(&names->keys[i], name) < 0) {
            return -1;
        }
    }
    return 0;
}

static void clear_namespace_lacks(GlNode *node)
{
    Names *names = node->data;
    for (Py_ssize_t i = 0; names != NULL && i < names->count; i++) {
        Py_XDECREF(names->keys[i].held);
    }
}

const GlOp gl_namespace_ops[] = {
    {"namespace_lacks", GL_ALONE, 2, run_namespace_lacks, build_namespace_lacks, clear_namespace_lacks, namespace_lacks_rests},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
