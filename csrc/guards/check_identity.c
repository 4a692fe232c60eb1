/* Checks on which object it is, and of which class. */

#include "node.h"

/* --- exact class --- */

static int run_type_is(const GlNode *node, GlRun *run)
{
    return (PyObject *)Py_TYPE(gl_parent(node, run)) == node->object;
}

static int run_type_is_weak(const GlNode *node, GlRun *run)
{
    /* Once the class is gone the reference shows None, which is no value's class. */
    return (PyObject *)Py_TYPE(gl_parent(node, run)) == ((PyWeakReference *)node->object)->wr_object;
}

/* A class dies only when no object is of it; the word is compared, so it must not be another class's by now. */
static int type_is_rests(const GlNode *node, GlRecording *recording)
{
    PyObject *value = gl_recorded_parent(node, recording);
    if (gl_is_c_type(Py_TYPE(value)) && !PyModule_Check(value)) {
        return 1; /* only modules and objects of classes that can be changed change their class */
    }
    return (!gl_is_weak(node->object) || gl_rests_on_referent(recording, node->object)) &&
           gl_rests_on_word(recording, &value->ob_type);
}

static int build_type_is(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    PyObject *type = gl_held(operands[0]);
    if (type != NULL && !PyType_Check(type)) {
        PyErr_Format(PyExc_TypeError, "no class: %R", type);
        return -1;
    }
    node->object = Py_NewRef(operands[0]);
    if (gl_is_weak(operands[0])) {
        node->run = run_type_is_weak;
    }
    return 0;
}

/* --- one certain object --- */

/* A fixed register holds the same object, alive. */
static int is_rests(const GlNode *node, GlRecording *recording) { return 1; }

static int run_is(const GlNode *node, GlRun *run) { return gl_parent(node, run) == node->object; }

static int run_is_weak(const GlNode *node, GlRun *run)
{
    PyObject *value = gl_parent(node, run);
    return value == ((PyWeakReference *)node->object)->wr_object && value != Py_None;
}

static int build_is(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    node->object = Py_NewRef(operands[0]);
    if (gl_is_weak(operands[0])) {
        node->run = run_is_weak;
    }
    return 0;
}

/* The object that must not be there; one that is gone cannot be. */
static int run_is_not(const GlNode *node, GlRun *run) { return gl_parent(node, run) != gl_held(node->object); }

static int build_is_not(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    node->object = Py_NewRef(operands[0]);
    return 0;
}

const GlOp gl_identity_ops[] = {
    {"type_is", GL_ALONE, 1, run_type_is, build_type_is, NULL, type_is_rests},
    {"is", GL_ALONE, 1, run_is, build_is, NULL, is_rests},
    {"is_not", GL_ALONE, 1, run_is_not, build_is_not, NULL, is_rests},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
