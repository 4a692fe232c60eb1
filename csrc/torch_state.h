/* The global state of torch that every captured tensor operation reads by itself. */

#ifndef GRAPHLIFT_TORCH_STATE_H
#define GRAPHLIFT_TORCH_STATE_H

#include <Python.h>

/* Whether a part of the state is read by calling into Python. */
extern int gl_state_fallback;

/* Whether the calling thread's state is the one that torch_state() gave as these bytes. Leaves no error set. */
int gl_torch_state_is(const char *bytes, Py_ssize_t size);

#endif
