/* Running other code in an interpreter frame that has not started yet.
 *
 * The code object is put in the original frame, which the default evaluator then runs: the frame keeps
 * function, globals, closure, arguments and its place in the chain, and is cleared and popped by whoever
 * does so anyway. Nothing here knows why the code is replaced. */

#include "frame_swap.h"

#include <opcode.h>

/* `lambda value: value`, entered at its RETURN_VALUE, makes the evaluator return what is on the stack:
 * the way to have a frame cleared and popped that shall not run. */
static PyCodeObject *return_stub;
enum { STUB_RETURN_AT = 2 };

/* --- which code may stand in for which ------------------------------------------------------------ */

/* The flags on which the layout of the parameters and the kind of frame depend. */
enum {
    LAYOUT_FLAGS = CO_VARARGS | CO_VARKEYWORDS | CO_OPTIMIZED | CO_NEWLOCALS | CO_GENERATOR | CO_COROUTINE |
                   CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE
};

static int
same_free_variables(PyCodeObject *old, PyCodeObject *new)
{
    if (old->co_nfreevars != new->co_nfreevars) {
        return 0;
    }
    /* They are the last of the local slots, in the order of the closure. */
    for (int i = 1; i <= old->co_nfreevars; i++) {
        PyObject *before = PyTuple_GET_ITEM(old->co_localsplusnames, old->co_nlocalsplus - i);
        PyObject *after = PyTuple_GET_ITEM(new->co_localsplusnames, new->co_nlocalsplus - i);
        if (before != after && PyUnicode_Compare(before, after) != 0) {
            return 0;
        }
    }
    return 1;
}

const char *
gl_swap_objection(PyCodeObject *old, PyCodeObject *new)
{
    if ((old->co_flags ^ new->co_flags) & LAYOUT_FLAGS) {
        return "the replacement code is of another kind: *args, **kwargs and being a generator must stay";
    }
    if (old->co_argcount != new->co_argcount || old->co_kwonlyargcount != new->co_kwonlyargcount) {
        return "the replacement code must take as many positional and keyword-only arguments as the original";
    }
    if (!same_free_variables(old, new)) {
        return "the replacement code must have the same free variables as the original, in the same order";
    }
    return NULL;
}

/* --- running and finishing ------------------------------------------------------------------------ */

int
gl_frame_make_room(PyThreadState *tstate, _PyInterpreterFrame *frame, PyCodeObject *code)
{
    Py_ssize_t now = gl_code_frame_size(gl_frame_code(frame));
    Py_ssize_t wanted = gl_code_frame_size(code);
    /* Only the topmost frame of the data stack can be seen to the end. */
    if ((PyObject **)frame + now != tstate->datastack_top) {
        return 0;
    }
    if (wanted <= now) {
        return 1;
    }
    if (wanted - now >= tstate->datastack_limit - tstate->datastack_top) {
        return 0;
    }
    tstate->datastack_top += wanted - now;
    return 1;
}

PyObject *
gl_frame_run_code(PyThreadState *tstate, _PyInterpreterFrame *frame, PyCodeObject *code, PyObject *bound)
{
    Py_ssize_t nparams = gl_code_nparams(code);
    for (Py_ssize_t i = nparams; i < code->co_nlocalsplus; i++) {
        frame->localsplus[i] = NULL;
    }
    if (bound != NULL) {
        frame->localsplus[nparams] = bound;
    }
    frame->stacktop = code->co_nlocalsplus;
    gl_frame_set_code(frame, (PyCodeObject *)Py_NewRef(code), 0);
    GL_C_RECURSION_CREDIT(tstate, GL_EVALUATOR_C_UNITS);
    PyObject *result = _PyEval_EvalFrameDefault(tstate, frame, 0);
    GL_C_RECURSION_CREDIT(tstate, -GL_EVALUATOR_C_UNITS);
    return result;
}

#if GL_EVALUATOR_POPS_FRAME

static PyObject *
return_from(PyThreadState *tstate, _PyInterpreterFrame *frame, PyObject *value)
{
    /* Ending a frame must not fail for want of depth. */
    GL_C_RECURSION_CREDIT(tstate, GL_EVALUATOR_C_UNITS + 1);
    GL_PY_RECURSION_CREDIT(tstate, 1);
    frame->localsplus[frame->stacktop++] = value;
    gl_frame_set_code(frame, (PyCodeObject *)Py_NewRef(return_stub), STUB_RETURN_AT);
    PyObject *result = _PyEval_EvalFrameDefault(tstate, frame, 0);
    GL_PY_RECURSION_CREDIT(tstate, -1);
    GL_C_RECURSION_CREDIT(tstate, -GL_EVALUATOR_C_UNITS - 1);
    return result;
}

PyObject *
gl_frame_finish(PyThreadState *tstate, _PyInterpreterFrame *frame, PyObject *result)
{
    if (result != NULL) {
        return return_from(tstate, frame, result);
    }
    /* Returning None with the error put aside leaves no entry in its traceback. */
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(return_from(tstate, frame, Py_NewRef(Py_None)));
    PyErr_Restore(type, value, traceback);
    return NULL;
}

void
gl_frame_release_locals(_PyInterpreterFrame *Py_UNUSED(frame))
{
}

#else

PyObject *
gl_frame_finish(PyThreadState *Py_UNUSED(tstate), _PyInterpreterFrame *Py_UNUSED(frame), PyObject *result)
{
    return result;
}

void
gl_frame_release_locals(_PyInterpreterFrame *frame)
{
    /* A frame object that outlives the call shows the locals as they were in the end. */
    if (frame->frame_obj != NULL) {
        return;
    }
    for (int i = 0; i < frame->stacktop; i++) {
        Py_CLEAR(frame->localsplus[i]);
    }
}

#endif

/* --- set-up --------------------------------------------------------------------------------------- */

static PyObject *
make_identity(void)
{
    PyObject *code = Py_CompileString("lambda value: value", "<graphlift>", Py_eval_input);
    PyObject *names = PyDict_New(), *function = NULL;
    if (code != NULL && names != NULL) {
        function = PyEval_EvalCode(code, names, names);
    }
    Py_XDECREF(code);
    Py_XDECREF(names);
    return function;
}

int
gl_frame_swap_init(void)
{
    if (return_stub != NULL) {
        return 0;
    }
    PyObject *function = make_identity();
    if (function == NULL) {
        return -1;
    }
    PyCodeObject *code = (PyCodeObject *)Py_NewRef(PyFunction_GET_CODE(function));
    Py_DECREF(function);
    if (_Py_OPCODE(_PyCode_CODE(code)[STUB_RETURN_AT]) != RETURN_VALUE) {
        Py_DECREF(code);
        PyErr_SetString(PyExc_ImportError,
                        "graphlift._C: this CPython compiles `lambda value: value` in an unknown way.");
        return -1;
    }
    return_stub = code;
    return 0;
}
