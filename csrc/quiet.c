/* What is not worth its cost: calls under the hook that lead to nothing, entries that hold too little.
 *
 * Both are decided by counts. Here is what counting needs; what an entry holds is the review handler's
 * business. */

#include "runtime.h"
#include "compat/compat.h"

/* --- quiet calls --------------------------------------------------------------------------------- */

/* After this many calls in a row that led to nothing, a callee is let run without the hook. */
enum { IDLE_CALLS = 4, MOST_DOUBLINGS = 16 };

void
gl_quiet_note(GlQuiet *quiet, int led_to_nothing)
{
    if (!led_to_nothing) {
        quiet->idle = 0;
        return;
    }
    if (quiet->idle < IDLE_CALLS + MOST_DOUBLINGS) {
        quiet->idle++;
    }
    if (quiet->idle >= IDLE_CALLS) {
        quiet->budget = 1u << (quiet->idle - IDLE_CALLS);
    }
}

/* --- entries ------------------------------------------------------------------------------------- */

static PyObject *review_handler = NULL;

void
gl_review(GlThread *thread, PyObject *function, GlEntry *entry)
{
    entry->review_at = ULLONG_MAX;
    if (review_handler == NULL) {
        return;
    }
    PyObject *args[] = {NULL, thread->region.context, function, (PyObject *)entry};
    PyObject *answer = gl_ask(thread, review_handler, args + 1, 3);
    if (answer == NULL) {
        PyErr_WriteUnraisable(review_handler); /* the program has nothing to do with it */
    }
    Py_XDECREF(answer);
}

static PyObject *
set_review_handler(PyObject *Py_UNUSED(module), PyObject *handler)
{
    if (handler != Py_None && !PyCallable_Check(handler)) {
        PyErr_Format(PyExc_TypeError, "a review handler must be callable or None, not %.100s",
                     Py_TYPE(handler)->tp_name);
        return NULL;
    }
    PyObject *former = review_handler == NULL ? Py_NewRef(Py_None) : review_handler;
    review_handler = handler == Py_None ? NULL : Py_NewRef(handler);
    return former;
}

static PyMethodDef functions[] = {
    {"set_review_handler", set_review_handler, METH_O,
     "Set what is asked about an entry that has been hit `review_at` times; returns the former."},
    {NULL, NULL, 0, NULL},
};

int
gl_quiet_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
