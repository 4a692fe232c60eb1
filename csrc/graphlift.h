/* The border between the frame side of the core (hook, cache, compiled functions) and the guard side
 * (guard programs, tensor reader, torch state). Neither knows anything else of the other. */

#ifndef GRAPHLIFT_H
#define GRAPHLIFT_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

/* _C.GuardProgram: what has to hold before an entry's code may run. */
extern PyTypeObject GlGuardProgram_Type;

/* Runs a program on a function object and the flat parameters of its code.
 *
 * Returns 1 when all guards hold, 0 when one does not, -1 with an error set. `*bound` becomes a new tuple
 * of the program's outputs when it holds and has any, else NULL. */
int gl_guard_run(PyObject *program, PyObject *function, PyObject *const *params, Py_ssize_t nparams,
                 PyObject **bound);

/* Whether a program that holds hands out a binding tuple. */
int gl_guards_has_outputs(PyObject *program);

/* Each adds its types and functions to the module; 0, or -1 with an error set. May run again in one process. */
int gl_guards_init(PyObject *module);
int gl_tensor_reader_init(PyObject *module);
int gl_torch_state_init(PyObject *module);

#endif
