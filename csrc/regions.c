/* Under what the calling thread runs: hook on or off, plainly, capturing.
 *
 * A region is left with what it was entered with whatever happens inside, so an exception cannot leave
 * the hook on. Knows nothing of frames; where the hook is installed is eval_frame.c's business. */

#include "runtime.h"
#include "compat/compat.h"

GL_THREAD_LOCAL GlThread gl_thread;
int gl_bypass = 0;

static PyObject *
set_bypass(PyObject *Py_UNUSED(module), PyObject *arg)
{
    int bypass = PyObject_IsTrue(arg);
    if (bypass < 0) {
        return NULL;
    }
    int former = gl_bypass;
    gl_bypass = bypass;
    return PyBool_FromLong(former);
}

static PyObject *
enter_capture(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    gl_thread.capturing++;
    Py_RETURN_NONE;
}

static PyObject *
leave_capture(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (gl_thread.capturing == 0) {
        PyErr_SetString(PyExc_RuntimeError, "leave_capture() without enter_capture() on this thread");
        return NULL;
    }
    gl_thread.capturing--;
    Py_RETURN_NONE;
}

static PyObject *
capturing(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(gl_thread.capturing);
}

/* The callable in front of the arguments of `plain_call` and `call_hooked`. */
static int
check_callee(const char *name, Py_ssize_t nargs)
{
    if (nargs < 1) {
        PyErr_Format(PyExc_TypeError, "%s() needs the callable as its first argument", name);
        return -1;
    }
    return 0;
}

static PyObject *
plain_call(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (check_callee("plain_call", nargs) < 0) {
        return NULL;
    }
    GlThread *thread = &gl_thread;
    GlRegion saved = thread->region;
    gl_region_change(thread, 0, saved.context, saved.settings);
    thread->plain++;
    PyObject *result = PyObject_Vectorcall(args[0], args + 1,
                                           (size_t)(nargs - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
    thread->plain--;
    gl_region_restore(thread, &saved);
    return result;
}

/* Calls a function whose frame outlives it. Such a frame becomes the owner of its caller's, locals and all,
 * and that one of its own caller's; where there is no caller, it owns nothing. */
static PyObject *
call_on_top(PyObject *Py_UNUSED(module), PyObject *function)
{
    PyThreadState *tstate = gl_tstate();
    struct _PyInterpreterFrame *saved = GL_CURRENT_FRAME(tstate);
    GL_CURRENT_FRAME(tstate) = NULL;
    PyObject *result = PyObject_CallNoArgs(function);
    GL_CURRENT_FRAME(tstate) = saved;
    return result;
}

/* --- asking Python ------------------------------------------------------------------------------- */

PyObject *
gl_ask(GlThread *thread, PyObject *callable, PyObject *const *args, Py_ssize_t nargs)
{
    GlRegion region = thread->region;
    int capturing = thread->capturing;
    PyObject **passing = thread->passing;
    Py_INCREF(callable);
    gl_region_change(thread, 0, region.context, region.settings);
    thread->passing = NULL;
    thread->plain++;
    PyObject *answer = PyObject_Vectorcall(callable, args, (size_t)nargs | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    thread->plain--;
    thread->passing = passing;
    thread->capturing = capturing;
    gl_region_restore(thread, &region);
    Py_DECREF(callable);
    if (answer == NULL && PyErr_ExceptionMatches(PyExc_RecursionError)) {
        /* No room for a capture so deep; the program itself may have some left. */
        PyErr_Clear();
        return Py_NewRef(Py_NotImplemented);
    }
    return answer;
}

/* --- calls with the hook on ---------------------------------------------------------------------- */

/* The code object behind a plain function or a method of one; NULL for anything else. */
static PyCodeObject *
code_behind(PyObject *callee)
{
    if (PyMethod_Check(callee)) {
        callee = PyMethod_GET_FUNCTION(callee);
    }
    return PyFunction_Check(callee) ? (PyCodeObject *)PyFunction_GET_CODE(callee) : NULL;
}

/* Remembers whether a call under the hook led to anything. */
static void
note_call(PyCodeObject *code, int led_to_nothing)
{
    GlCodeRecord *record = led_to_nothing ? gl_code_record_make(code) : gl_code_record(code);
    if (record != NULL) {
        gl_quiet_note(&record->quiet, led_to_nothing);
    } else {
        PyErr_Clear(); /* out of memory for a count: the count can do without */
    }
}

static PyObject *
call_with_hook(PyObject *callee, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    GlThread *thread = &gl_thread;
    PyCodeObject *code = code_behind(callee);
    GlCodeRecord *record = code == NULL ? NULL : gl_code_record(code);
    if (record != NULL && gl_quiet_spend(&record->quiet)) {
        return PyObject_Vectorcall(callee, args, nargsf, kwnames);
    }
    PyThreadState *tstate = gl_tstate();
    GlRegion saved = thread->region;
    unsigned long events = thread->events;
    gl_region_change(thread, 1, saved.context, saved.settings);
    if (code != NULL) {
        Py_INCREF(code);
        GL_C_RECURSION_CREDIT(tstate, GL_EVALUATOR_C_UNITS);
    }
    PyObject *result = PyObject_Vectorcall(callee, args, nargsf, kwnames);
    gl_region_restore(thread, &saved);
    if (code != NULL) {
        GL_C_RECURSION_CREDIT(tstate, -GL_EVALUATOR_C_UNITS);
        if (result != NULL) {
            note_call(code, thread->events == events);
        }
        Py_DECREF(code);
    }
    return result;
}

static PyObject *
call_hooked(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (check_callee("call_hooked", nargs) < 0) {
        return NULL;
    }
    GlThread *thread = &gl_thread;
    size_t nargsf = (size_t)(nargs - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    if (thread->region.settings == NULL || gl_runs_plainly(thread)) {
        return PyObject_Vectorcall(args[0], args + 1, nargsf, kwnames);
    }
    return call_with_hook(args[0], args + 1, nargsf, kwnames);
}

static PyObject *
forget_quiet_counts(PyObject *Py_UNUSED(module), PyObject *code)
{
    if (!PyCode_Check(code)) {
        PyErr_Format(PyExc_TypeError, "a code object is needed, not %.100s", Py_TYPE(code)->tp_name);
        return NULL;
    }
    GlCodeRecord *record = gl_code_record((PyCodeObject *)code);
    if (record != NULL) {
        record->quiet = (GlQuiet){0};
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_bypass", set_bypass, METH_O, "Make every compiled function run its original."},
    {"enter_capture", enter_capture, METH_NOARGS, "A capture begins on this thread."},
    {"leave_capture", leave_capture, METH_NOARGS, "A capture ends on this thread."},
    {"capturing", capturing, METH_NOARGS, "Whether a capture runs on this thread."},
    {"call_on_top", call_on_top, METH_O, "Calls without arguments, as if nobody called: `f_back` is None."},
    {"plain_call", (PyCFunction)(void (*)(void))plain_call, METH_FASTCALL | METH_KEYWORDS,
     "Call with the hook off and compiled functions running plainly on this thread."},
    {"call_hooked", (PyCFunction)(void (*)(void))call_hooked, METH_FASTCALL | METH_KEYWORDS,
     "Call with the hook on, under the context and settings of the compiled call that runs."},
    {"forget_quiet_counts", forget_quiet_counts, METH_O,
     "Look at every call of this code object again, however often one led to nothing."},
    {NULL, NULL, 0, NULL},
};

int
gl_regions_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
