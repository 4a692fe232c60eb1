/* The frame evaluator that a library user writes in Python: one per thread.
 *
 * It is a reason to have the hook in place for as long as it is set. The thread's own dictionary owns it, so
 * that it goes when the thread does. Knows nothing of captures. */

#include "frame_swap.h"

/* --- asking and running ---------------------------------------------------------------------------- */

static PyObject *
locals_at_entry(_PyInterpreterFrame *frame)
{
    PyCodeObject *code = gl_frame_code(frame);
    PyObject *locals = PyDict_New();
    for (Py_ssize_t i = 0; locals != NULL && i < gl_code_nparams(code); i++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        if (PyDict_SetItem(locals, name, frame->localsplus[i]) < 0) {
            Py_CLEAR(locals);
        }
    }
    return locals;
}

/* Calls the callback; a new reference to a code object, to None, or NULL with an error set. */
static PyObject *
ask_callback(GlThread *thread, _PyInterpreterFrame *frame)
{
    PyObject *locals = locals_at_entry(frame);
    if (locals == NULL) {
        return NULL;
    }
    PyCodeObject *code = gl_frame_code(frame);
    PyObject *args[] = {NULL, (PyObject *)code, gl_frame_function(frame), locals};
    PyObject *callback = Py_NewRef(thread->callback);
    thread->plain++;
    PyObject *answer = PyObject_Vectorcall(callback, args + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    thread->plain--;
    Py_DECREF(callback);
    Py_DECREF(locals);
    if (answer == NULL || answer == Py_None) {
        return answer;
    }
    const char *objection = NULL;
    if (!PyCode_Check(answer)) {
        PyErr_Format(PyExc_TypeError, "a frame callback must return a code object or None, not %.100s",
                     Py_TYPE(answer)->tp_name);
        Py_CLEAR(answer);
    } else if ((objection = gl_swap_objection(code, (PyCodeObject *)answer)) != NULL) {
        PyErr_SetString(PyExc_ValueError, objection);
        Py_CLEAR(answer);
    }
    return answer;
}

/* Runs replacement code for a frame that cannot take it: by a function that is like the frame's own. */
static PyObject *
run_beside(PyThreadState *tstate, GlThread *thread, _PyInterpreterFrame *frame, PyCodeObject *code)
{
    PyFunctionObject *model = (PyFunctionObject *)gl_frame_function(frame);
    PyObject *function =
        PyFunction_NewWithQualName((PyObject *)code, model->func_globals, model->func_qualname);
    PyObject *result = NULL;
    if (function != NULL) {
        ((PyFunctionObject *)function)->func_closure = Py_XNewRef(model->func_closure);
        thread->let_through = function;
        result = gl_call_spread(function, frame->localsplus);
        thread->let_through = NULL;
        Py_DECREF(function);
    }
    return gl_frame_finish(tstate, frame, result);
}

static PyObject *
run_replacement(PyThreadState *tstate, GlThread *thread, _PyInterpreterFrame *frame, PyCodeObject *code)
{
    if (gl_frame_make_room(tstate, frame, code)) {
        return gl_frame_run_code(tstate, frame, code, NULL);
    }
    return run_beside(tstate, thread, frame, code);
}

int
gl_callback_evaluate(PyThreadState *tstate, GlThread *thread, _PyInterpreterFrame *frame, PyObject **result)
{
    PyObject *code = ask_callback(thread, frame);
    if (code == NULL) {
        *result = gl_frame_finish(tstate, frame, NULL);
        return 1;
    }
    int replaced = code != Py_None && code != (PyObject *)gl_frame_code(frame);
    if (replaced) {
        *result = run_replacement(tstate, thread, frame, (PyCodeObject *)code);
    }
    Py_DECREF(code);
    return replaced;
}

/* --- setting --------------------------------------------------------------------------------------- */

#define CALLBACK_KEY "graphlift.frame_callback"

/* Runs when a callback is replaced or removed, and when its thread ends without having done so. */
static void
release_callback(PyObject *holder)
{
    PyObject *callback = PyCapsule_GetPointer(holder, CALLBACK_KEY);
    if (gl_thread.callback_holder == holder) {
        gl_thread.callback = gl_thread.callback_holder = NULL;
    }
    gl_hook_release();
    Py_XDECREF(callback);
}

/* Makes `callback` the thread's; its dictionary owns it, so that it ends with the thread. */
static int
install_callback(GlThread *thread, PyObject *thread_dict, PyObject *callback)
{
    PyObject *holder = PyCapsule_New(callback, CALLBACK_KEY, release_callback);
    if (holder == NULL) {
        return -1;
    }
    Py_INCREF(callback);
    gl_hook_acquire();
    int failed = PyDict_SetItemString(thread_dict, CALLBACK_KEY, holder);
    if (!failed) {
        thread->callback = callback;
        thread->callback_holder = holder;
    }
    Py_DECREF(holder);
    return failed;
}

static PyObject *
set_frame_callback(PyObject *Py_UNUSED(module), PyObject *callback)
{
    if (callback != Py_None && !PyCallable_Check(callback)) {
        PyErr_Format(PyExc_TypeError, "a frame callback must be callable or None, not %.100s",
                     Py_TYPE(callback)->tp_name);
        return NULL;
    }
    GlThread *thread = &gl_thread;
    PyObject *thread_dict = PyThreadState_GetDict();
    if (thread_dict == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *former = Py_XNewRef(thread->callback);
    int failed = 0;
    if (callback != Py_None) {
        failed = install_callback(thread, thread_dict, callback);
    } else if (former != NULL) {
        failed = PyDict_DelItemString(thread_dict, CALLBACK_KEY);
    }
    if (failed) {
        Py_XDECREF(former);
        return NULL;
    }
    return former != NULL ? former : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"set_frame_callback", set_frame_callback, METH_O, "Set this thread's evaluator; gives the former one."},
    {NULL, NULL, 0, NULL},
};

int
gl_frame_callback_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
