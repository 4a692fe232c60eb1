/* What running a guard program costs, for people who ask. */

#include "program.h"

#include <time.h>

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

PyObject *gl_program_measure(GlProgram *self, PyObject *args)
{
    PyObject *function, *params;
    Py_ssize_t times, failed = -1;
    if (!PyArg_ParseTuple(args, "OO!n:measure", &function, &PyTuple_Type, &params, &times)) {
        return NULL;
    }
    double start = now_ns();
    for (Py_ssize_t i = 0; i < times; i++) {
        GlRun run = {.function = function,
                     .params = ((PyTupleObject *)params)->ob_item,
                     .nparams = PyTuple_GET_SIZE(params)};
        if (gl_program_run(self, &run, &failed, NULL) < 0) {
            return NULL;
        }
    }
    double ns = now_ns() - start;
    return Py_BuildValue("nd", failed, times > 0 ? ns / (double)times : 0.0);
}

/* The time of a node in ns, the best of a few means; below nought when it does not hold. Its last run is the
 * one that those behind it build on. */
static double profile_node(const GlNode *node, GlRun *run, Py_ssize_t times)
{
    Py_ssize_t owned = run->nowned;
    double best = -1.0;
    for (int batch = 0; batch < 4; batch++) {
        double start = now_ns();
        for (Py_ssize_t i = 0; i < times; i++) {
            gl_let_go(run, owned);
            if (!node->run(node, run)) {
                return -1.0;
            }
        }
        double mean = (now_ns() - start) / (double)times;
        best = best < 0 || mean < best ? mean : best;
    }
    return best;
}

static int profile_nodes(const GlProgram *self, GlRun *run, Py_ssize_t times, PyObject *found)
{
    for (Py_ssize_t i = 0; i < self->size; i++) {
        double ns = profile_node(&self->nodes[i], run, times);
        if (ns < 0) {
            return 0;
        }
        PyObject *number = PyFloat_FromDouble(ns);
        int failed = number == NULL || PyList_Append(found, number) < 0;
        Py_XDECREF(number);
        if (failed) {
            return -1;
        }
    }
    return 0;
}

/* What a remembered run costs, by node; None when none is. */
static PyObject *profile_memo(const GlProgram *self, GlRun *run, Py_ssize_t times)
{
    double *costs = PyMem_Calloc((size_t)self->size + 1, sizeof(double));
    if (costs == NULL) {
        return PyErr_NoMemory();
    }
    if (!gl_recall_costs(&self->memos, run, times, now_ns, costs)) {
        PyMem_Free(costs);
        Py_RETURN_NONE;
    }
    PyObject *found = PyList_New(self->size);
    for (Py_ssize_t i = 0; found != NULL && i < self->size; i++) {
        PyObject *number = PyFloat_FromDouble(costs[i]);
        if (number == NULL) {
            Py_CLEAR(found);
        } else {
            PyList_SET_ITEM(found, i, number);
        }
    }
    PyMem_Free(costs);
    return found;
}

PyObject *gl_program_profile(GlProgram *self, PyObject *args)
{
    PyObject *function, *params, *small[2 * GL_SMALL_PROGRAM];
    Py_ssize_t times;
    if (!PyArg_ParseTuple(args, "OO!n:profile", &function, &PyTuple_Type, &params, &times)) {
        return NULL;
    }
    GlRun run = {.function = function,
                 .params = ((PyTupleObject *)params)->ob_item,
                 .nparams = PyTuple_GET_SIZE(params)};
    times = times < 1 ? 1 : times;
    PyObject *remembered = profile_memo(self, &run, times);
    gl_let_go(&run, 0);
    if (remembered != Py_None) {
        return remembered;
    }
    Py_DECREF(remembered);
    PyObject *found = PyList_New(0);
    PyObject **registers = found == NULL ? NULL : gl_take_registers(self, small);
    if (registers == NULL) {
        Py_XDECREF(found);
        return NULL;
    }
    gl_begin_run(self, &run, registers);
    if (profile_nodes(self, &run, times, found) < 0) {
        Py_CLEAR(found);
    }
    gl_let_go(&run, 0);
    if (registers != small) {
        PyMem_Free(registers);
    }
    return found;
}

